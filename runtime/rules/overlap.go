// Package rules holds the decisions of the runtime as pure functions: overlap,
// turn, misfire, retry. Claim, dispatch, planner, drivers and simulators all
// call the same ones, so there is one answer to each question. Nothing here
// reads a clock, a store or a random source.
package rules

import (
	"cmp"

	"github.com/axctl/ax"
)

// Verdict is what the overlap rule says of one new start.
type Verdict int

// The verdicts of Admit.
const (
	Begin        Verdict = iota // may be dispatched at once
	Wait                        // becomes pending and waits its turn
	Skip                        // becomes skipped (overlap)
	TakePlace                   // waits; the newest waiting scheduled one that is in no back-off is skipped (replaced), if there is one, else the newcomer is
	CancelOldest                // waits; the oldest running one gets a cancel intent
)

// Admit applies a task's overlap policy to a scheduled start, given the hot
// row's counters under its lock: active attempts that are not stopped, waiting
// pending instances (retry back-off included), maxActive the concurrency.
//
// With live = waiting + active:
//
//	queue    begins when nothing waits and a place is free; at most maxActive
//	         live and one more waiting, beyond that the newcomer is skipped
//	latest   the same, but beyond that the newcomer takes the waiting one's place
//	skip     at most maxActive live, beyond that the newcomer is skipped
//	replace  beyond maxActive live the oldest running one is cancelled and the
//	         newcomer waits for its end; beyond one more it takes the waiting
//	         one's place, as with latest
//	allow    begins while a place is free; up to ax.MaxWaiting wait
func Admit(policy ax.Overlap, active, waiting, maxActive int) Verdict {
	live := active + waiting
	switch policy {
	case ax.OverlapQueue, ax.OverlapLatest:
		switch {
		case live < maxActive && waiting == 0:
			return Begin
		case live <= maxActive:
			return Wait
		case policy == ax.OverlapLatest:
			return TakePlace
		default:
			return Skip
		}
	case ax.OverlapSkip:
		switch {
		case live >= maxActive:
			return Skip
		case waiting == 0:
			return Begin
		default:
			return Wait
		}
	case ax.OverlapReplace:
		switch {
		case live < maxActive && waiting == 0:
			return Begin
		case live < maxActive || active == 0 && live == maxActive:
			return Wait
		case waiting > 0 && live > maxActive:
			return TakePlace
		default:
			return CancelOldest
		}
	case ax.OverlapAllow:
		switch {
		case active < maxActive:
			return Begin
		case waiting < ax.MaxWaiting:
			return Wait
		default:
			return Skip
		}
	default:
		panic("unknown overlap policy " + string(policy))
	}
}

// Live counts instances: attempts that are not stopped, and pending ones.
type Live struct{ Active, Waiting int }

// AdmitBeside is Admit for a task that also has instances of backfills, which
// all includes. They count as live, and yet the overlap policy acts between the
// others only: what a backfill has open can make a scheduled start wait its
// turn, and never skips or replaces one, nor is it replaced. So a backfill,
// however long, costs the schedule no slot.
func AdmitBeside(policy ax.Overlap, all, backfills Live, maxActive int) Verdict {
	v := Admit(policy, all.Active, all.Waiting, maxActive)
	if v == Begin || v == Wait {
		return v
	}
	v = Admit(policy, all.Active-backfills.Active, all.Waiting-backfills.Waiting, maxActive)
	if v == Begin {
		return Wait
	}
	return v
}

// CompareTurn orders the waiting instances of a task as they take their turn:
// by due instant, ties by id, and those of backfills after all others.
func CompareTurn(a, b ax.Waiting) int {
	last := func(w ax.Waiting) int {
		if w.Kind == ax.InstanceBackfill {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(last(a), last(b)), cmp.Compare(a.DueMs, b.DueMs), cmp.Compare(a.ID, b.ID))
}

// Turn returns which of a task's waiting instances may be tried now, as indexes
// into waiting, which must be in the order of CompareTurn: at most the places
// that are free. Under every policy but allow an instance keeps its turn: one
// in back-off holds a place that later ones must not take. One that a hold
// stops holds none, so a manual start passes it.
func Turn(policy ax.Overlap, active, maxActive int, waiting []ax.Waiting, nowMs int64) []int {
	free := maxActive - active
	var turn []int
	for i, w := range waiting {
		if free <= 0 {
			break
		}
		switch {
		case w.Held && !w.Kind.ByPerson():
		case w.NotBeforeMs <= nowMs:
			turn = append(turn, i)
			free--
		case policy != ax.OverlapAllow:
			free--
		}
	}
	return turn
}
