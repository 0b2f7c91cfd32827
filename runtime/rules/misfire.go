package rules

import (
	"slices"

	"github.com/axctl/ax"
)

// Timetable is a compiled schedule: package schedule has the real one.
type Timetable interface {
	// Next returns the first instant strictly after afterMs.
	Next(afterMs int64) (ms int64, ok bool)
	// Prev returns the last instant strictly before beforeMs.
	Prev(beforeMs int64) (ms int64, ok bool)
	// Count counts the instants in [fromMs, toMs]; over is true when there are
	// more than limit, and n is limit then.
	Count(fromMs, toMs int64, limit int) (n int, over bool)
}

// Settlement accounts for a backlog of slots: which run, which do not, and
// where the task goes on.
type Settlement struct {
	Starts  []int64 // due instants that run as catch-up, in due order
	Skipped *Stretch
	LastMs  int64 // the newest slot accounted for; 0 when there was none
	NextMs  int64 // the next slot, strictly after now; 0 none
}

// Stretch is a stretch of slots that do not run.
type Stretch struct {
	FromMs, ToMs int64 // first and last slot, inclusive
	Slots        int   // -1: more than ax.MaxCountedSlots
}

// Misfired reports whether the oldest unclaimed slot is old enough that all
// slots up to now are one backlog.
func Misfired(m ax.MisfireSpec, oldestMs, nowMs int64) bool {
	return nowMs-oldestMs > int64(m.Grace)
}

// Settle decides on the backlog of slots from firstMs to nowMs, both inclusive,
// as a whole: once runs the newest, all the newest most in due order, skip
// none. It never walks the whole backlog, so months of downtime cost no more
// than minutes.
func Settle(tt Timetable, policy ax.MisfirePolicy, most int, firstMs, nowMs int64) Settlement {
	s := Settlement{NextMs: next(tt, nowMs)}
	run := 0
	switch policy {
	case ax.MisfireOnce:
		run = 1
	case ax.MisfireAll:
		run = most
	case ax.MisfireSkip:
	default:
		panic("unknown misfire policy " + string(policy))
	}
	at, ok := tt.Prev(nowMs + 1)
	if !ok || at < firstMs {
		return s
	}
	s.LastMs = at
	for ok && at >= firstMs && len(s.Starts) < run {
		s.Starts = append(s.Starts, at)
		at, ok = tt.Prev(at)
	}
	slices.Reverse(s.Starts)
	if ok && at >= firstMs {
		n, over := tt.Count(firstMs, at, ax.MaxCountedSlots)
		if over {
			n = -1
		}
		s.Skipped = &Stretch{FromMs: next(tt, firstMs-1), ToMs: at, Slots: n}
	}
	return s
}

// next returns the first slot after afterMs, 0 when there is none.
func next(tt Timetable, afterMs int64) int64 {
	ms, ok := tt.Next(afterMs)
	if !ok {
		return 0
	}
	return ms
}
