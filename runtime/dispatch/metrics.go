package dispatch

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// stats are numbers that others read while Run works.
type stats struct {
	running, waiting, journalBytes atomic.Int64
	unkillable                     atomic.Int64
	started, ended, lost           atomic.Int64
}

// Stats is a reading of the dispatcher's numbers.
type Stats struct {
	Running, Waiting     int   // attempts not gone, pending instances in memory
	JournalBytes         int64 // size of the report journal
	Started, Ended, Lost int64 // attempts, since New
}

// Stats is safe for concurrent use.
func (d *Dispatcher) Stats() Stats {
	return Stats{
		Running: int(d.stats.running.Load()), Waiting: int(d.stats.waiting.Load()),
		JournalBytes: d.stats.journalBytes.Load(),
		Started:      d.stats.started.Load(), Ended: d.stats.ended.Load(), Lost: d.stats.lost.Load(),
	}
}

type metrics struct {
	handed, started, retried prometheus.Counter
	lapsed, frozen           prometheus.Counter
	ended                    *prometheus.CounterVec
	lateness                 prometheus.Histogram
}

func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &metrics{
		handed:  counter("ax_dispatch_handed_total", "Attempts given to executors."),
		started: counter("ax_dispatch_started_total", "Attempts that executors have begun."),
		retried: counter("ax_dispatch_retries_total", "Ended attempts that another one follows."),
		lapsed:  counter("ax_dispatch_lapsed_total", "Waiting instances that were not started within start_within."),
		frozen:  counter("ax_dispatch_frozen_total", "Tasks frozen by freeze_after."),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ax_dispatch_ended_total", Help: "Attempts that have ended, by status and error class.",
		}, []string{"status", "class"}),
		lateness: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "ax_dispatch_lateness_seconds",
			Help:    "From the due instant of a slot to the start of its first attempt.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60, 600},
		}),
	}
	if r != nil {
		r.MustRegister(m.handed, m.started, m.retried, m.lapsed, m.frozen, m.ended, m.lateness)
	}
	return m
}

func (d *Dispatcher) registerGauges(r prometheus.Registerer) {
	if r == nil {
		return
	}
	for name, g := range map[string]struct {
		help  string
		value func() float64
	}{
		"ax_dispatch_running_attempts":    {"Attempts whose processes are not gone.", func() float64 { return float64(d.stats.running.Load()) }},
		"ax_dispatch_unkillable_attempts": {"Attempts that hold a place though they were killed.", func() float64 { return float64(d.stats.unkillable.Load()) }},
		"ax_dispatch_waiting_instances":   {"Pending instances in memory.", func() float64 { return float64(d.stats.waiting.Load()) }},
		"ax_dispatch_journal_bytes":       {"Size of the report journal.", func() float64 { return float64(d.stats.journalBytes.Load()) }},
	} {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: g.help}, g.value))
	}
}
