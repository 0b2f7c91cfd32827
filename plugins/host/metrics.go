package host

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	starts *prometheus.CounterVec
	up     *prometheus.GaugeVec
	jobs   *prometheus.CounterVec
	lost   *prometheus.CounterVec
	output *prometheus.CounterVec

	found       *prometheus.CounterVec
	quarantined *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	label := []string{"executor"}
	m := &metrics{
		starts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ax_host_executor_starts_total", Help: "Starts of executor processes."}, label),
		up:     prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "ax_host_executor_up", Help: "1 while the executor takes jobs."}, label),
		jobs:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ax_host_jobs_total", Help: "Jobs sent to executors, repetitions included."}, label),
		lost:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ax_host_lost_total", Help: "Attempts whose executor was gone before they ended."}, label),
		output: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ax_host_output_bytes_total", Help: "Output of attempts that was handed to the log."}, label),

		found:       prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ax_host_executor_found_total", Help: "Processes of an earlier axd that were taken over."}, label),
		quarantined: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "ax_host_executor_quarantined", Help: "1 while the executor is quarantined after a crash loop."}, label),
	}
	if reg != nil {
		reg.MustRegister(m.starts, m.up, m.jobs, m.lost, m.output, m.found, m.quarantined)
	}
	return m
}
