package rules_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

type ranked struct {
	ax.Ref
	priority int
	backlog  bool
}

func (r ranked) rank() rules.Rank { return rules.RankOf(r.Ref, r.priority, r.backlog) }

var drawRanked = rapid.Custom(func(t *rapid.T) ranked {
	return ranked{
		ax.Ref{DueMs: rapid.Int64Range(0, 400*rules.PriorityMs).Draw(t, "due"), ID: rapid.Int64Range(1, 5).Draw(t, "id")},
		rapid.IntRange(-ax.MaxPriority, ax.MaxPriority).Draw(t, "priority"), rapid.Bool().Draw(t, "backlog"),
	}
})

// Live goes before backlog; of equal priority the one due first; a point of
// priority is worth a minute; and it is an order.
func TestRankIsAnOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawRanked.Draw(t, "a"), drawRanked.Draw(t, "b"), drawRanked.Draw(t, "c")
		ab, ba := a.rank().Compare(b.rank()), b.rank().Compare(a.rank())
		switch {
		case ab != -ba:
			t.Fatalf("%d one way, %d the other", ab, ba)
		case ab < 0 && b.rank().Compare(c.rank()) < 0 && a.rank().Compare(c.rank()) >= 0:
			t.Fatal("not transitive")
		case a.backlog != b.backlog && (ab < 0) != b.backlog:
			t.Fatal("backlog before live")
		}
		if a.backlog != b.backlog {
			return
		}
		lead := int64(a.priority - b.priority)
		switch {
		case lead == 0 && a.DueMs < b.DueMs && ab >= 0:
			t.Fatal("equal priority is not in due order")
		case a.DueMs <= b.DueMs && lead > 0 && ab >= 0:
			t.Fatal("due no later and of higher priority, yet not first")
		case a.DueMs-b.DueMs > lead*rules.PriorityMs && ab <= 0:
			t.Fatal("priority is worth more than its minutes")
		}
	})
}

// Nothing starves: one place, and each minute, for ever, a newcomer of the
// highest priority that keeps it for a minute. What waits gets the place within
// the minutes that its priority lies below.
func TestNothingStarves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		poor := ranked{ax.Ref{ID: 1}, rapid.IntRange(-ax.MaxPriority, ax.MaxPriority).Draw(t, "priority"), false}
		queue := []ranked{poor}
		for minute := range int64(2*ax.MaxPriority + 2) {
			queue = append(queue, ranked{ax.Ref{DueMs: minute * rules.PriorityMs, ID: 2 + minute}, ax.MaxPriority, false})
			slices.SortFunc(queue, func(a, b ranked) int { return a.rank().Compare(b.rank()) })
			served := queue[0]
			if queue = queue[1:]; served == poor {
				if minute > int64(ax.MaxPriority-poor.priority) {
					t.Fatalf("it waited %d minutes", minute)
				}
				return
			}
		}
		t.Fatal("it starved")
	})
}

// What has its turn later in its task stays behind, in whatever order ranks are
// asked for and whatever the versions' priorities.
func TestTurnsOfATaskKeepTheirOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(drawRanked, 2, 8).Draw(t, "instances")
		slices.SortFunc(all, func(a, b ranked) int { return int(a.DueMs - b.DueMs) })
		for n := range all {
			all[n].ID = int64(n + 1)
		}
		last := all[0].rank()
		for _, in := range all[1:] {
			r := in.rank().After(last)
			if r.Compare(last) <= 0 {
				t.Fatalf("%+v goes before %+v", r, last)
			}
			if own := in.rank(); own.Compare(last) > 0 && r != own {
				t.Fatalf("%+v was moved for nothing", own)
			}
			last = r
		}
	})
}
