package rules

import (
	"cmp"

	"github.com/axctl/ax"
)

// PriorityMs is what one point of priority is worth: an instance goes before
// those of a priority one higher that were due this much later. So what waits
// rises by one each minute, and nothing that was due more than
// 2·ax.MaxPriority minutes after an instance ever goes before it.
const PriorityMs = 60_000

// Rank is the place of an instance among those that wait for a place of one
// pool. It never changes while the instance waits, since all of them age alike.
type Rank struct {
	Backlog bool  // after all that is live
	AgedMs  int64 // the due instant, moved by the priority
	DueMs   int64
	ID      int64
}

// RankOf returns the rank of an instance. Of equal priority the one that was due
// first goes first.
func RankOf(ref ax.Ref, priority int, backlog bool) Rank {
	return Rank{Backlog: backlog, AgedMs: ref.DueMs - int64(priority)*PriorityMs, DueMs: ref.DueMs, ID: ref.ID}
}

// Compare is negative when r goes before o. It is a total order.
func (r Rank) Compare(o Rank) int {
	if r.Backlog != o.Backlog {
		if o.Backlog {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(r.AgedMs, o.AgedMs), cmp.Compare(r.DueMs, o.DueMs), cmp.Compare(r.ID, o.ID))
}

// After returns the rank of an instance that has its turn after another one of
// its task, whose rank is before: it does not overtake that one, whatever
// priority a newer version of the task gave it.
func (r Rank) After(before Rank) Rank {
	if r.Compare(before) < 0 && cmp.Or(cmp.Compare(r.DueMs, before.DueMs), cmp.Compare(r.ID, before.ID)) > 0 {
		r.Backlog, r.AgedMs = before.Backlog, before.AgedMs
	}
	return r
}
