package retention

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	rows  prometheus.Counter
	bytes prometheus.Counter
	last  prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) metrics {
	m := metrics{
		rows: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ax_retention_rows_total", Help: "Rows of old history deleted from the store.",
		}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ax_retention_log_bytes_total", Help: "Bytes of old log segments removed.",
		}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ax_retention_last_sweep_seconds", Help: "When old history was last looked for to the end, in seconds since epoch; 0 not yet.",
		}),
	}
	if r != nil {
		r.MustRegister(m.rows, m.bytes, m.last)
	}
	return m
}
