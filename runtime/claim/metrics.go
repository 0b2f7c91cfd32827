package claim

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// stats are numbers that others read while Run works.
type stats struct {
	claimed, skipped, oldestMs atomic.Int64
	clockDoubted               atomic.Bool
}

// Stats is a reading of the claimer's numbers.
type Stats struct {
	Claimed int64 // instances born, since New
	Skipped int64 // instances and stretches skipped, since New
	// OldestMs is the instant of the next thing to do: in the past when slots
	// are late. 0 before the first scan.
	OldestMs int64
	// ClockDoubted: nothing is claimed, since the clock was set and is not
	// confirmed yet.
	ClockDoubted bool
}

// Stats is safe for concurrent use.
func (c *Claimer) Stats() Stats {
	return Stats{
		Claimed: c.stats.claimed.Load(), Skipped: c.stats.skipped.Load(), OldestMs: c.stats.oldestMs.Load(),
		ClockDoubted: c.stats.clockDoubted.Load(),
	}
}

type metrics struct {
	won, lost, quarantined prometheus.Counter
	rewound                prometheus.Counter
	skipped, steps         *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer, s *stats) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &metrics{
		won:         counter("ax_claim_won_total", "Firings that were claimed."),
		lost:        counter("ax_claim_lost_total", "Firings that somebody else had moved."),
		quarantined: counter("ax_claim_quarantined_total", "Tasks put aside because they cannot be claimed."),
		rewound:     counter("ax_claim_rewound_total", "Tasks set back because they were ahead of their schedule."),
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ax_claim_clock_steps_total", Help: "Steps of the clock over 10 seconds, by direction.",
		}, []string{"direction"}),
		skipped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ax_claim_skipped_total", Help: "Slots and stretches of slots that do not run, by reason.",
		}, []string{"reason"}),
	}
	if r != nil {
		r.MustRegister(m.won, m.lost, m.quarantined, m.rewound, m.steps, m.skipped,
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "ax_claim_clock_doubted", Help: "1 while nothing is claimed, since the clock was set and is not confirmed yet.",
			}, func() float64 {
				if s.clockDoubted.Load() {
					return 1
				}
				return 0
			}))
	}
	return m
}
