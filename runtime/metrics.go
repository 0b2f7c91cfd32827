package runtime

import "github.com/prometheus/client_golang/prometheus"

func newFaults(r prometheus.Registerer) prometheus.Counter {
	faults := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "ax_runtime_store_faults_total", Help: "Store calls that failed for a passing reason and were tried again.",
	})
	if r != nil {
		r.MustRegister(faults)
	}
	return faults
}
