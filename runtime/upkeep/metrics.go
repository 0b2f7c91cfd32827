package upkeep

import (
	"github.com/axctl/ax"
	"github.com/prometheus/client_golang/prometheus"
)

var (
	holdsTotal = prometheus.NewDesc("ax_upkeep_writer_holds_total",
		"Transactions that held the store's writer, by kind of work.", []string{"kind"}, nil)
	holdSeconds = prometheus.NewDesc("ax_upkeep_writer_hold_seconds_total",
		"How long they held it in all, in seconds.", []string{"kind"}, nil)
	longestHold = prometheus.NewDesc("ax_upkeep_writer_longest_hold_seconds",
		"The longest that one has held it since axd started, in seconds.", []string{"kind"}, nil)
)

// holds tells what a store counts itself.
type holds struct{ store ax.Upkeep }

// Describe implements prometheus.Collector.
func (holds) Describe(to chan<- *prometheus.Desc) {
	to <- holdsTotal
	to <- holdSeconds
	to <- longestHold
}

// Collect implements prometheus.Collector.
func (h holds) Collect(to chan<- prometheus.Metric) {
	for _, kind := range h.store.Holds() {
		to <- prometheus.MustNewConstMetric(holdsTotal, prometheus.CounterValue, float64(kind.Count), kind.Kind)
		to <- prometheus.MustNewConstMetric(holdSeconds, prometheus.CounterValue, kind.Sum.Seconds(), kind.Kind)
		to <- prometheus.MustNewConstMetric(longestHold, prometheus.GaugeValue, kind.Longest.Seconds(), kind.Kind)
	}
}
