package backfill

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	made    prometheus.Counter
	running prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) metrics {
	m := metrics{
		made: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ax_backfill_made_total", Help: "Instances that backfills made.",
		}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ax_backfill_running", Help: "Backfills under way, as last looked at.",
		}),
	}
	if r != nil {
		r.MustRegister(m.made, m.running)
	}
	return m
}
