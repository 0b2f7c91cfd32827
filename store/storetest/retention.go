package storetest

import (
	"errors"
	"slices"
	"sync"

	"github.com/axctl/ax"
)

// prune deletes what ended at or before endedBy, and keeps the last of each task.
func (f *fixture) prune(endedBy int64, last int) (sum ax.Pruned) {
	f.Helper()
	f.ok(f.Prune(f.ctx, ax.PruneQuery{EndedByMs: endedBy, KeepLast: last}, func(n ax.Pruned) error {
		sum = sum.Plus(n)
		return nil
	}))
	return sum
}

// ids are those of the task's instances, oldest first.
func (f *fixture) ids(o ax.Object) (ids []int64) {
	f.Helper()
	rows, err := f.Instances(f.ctx, ax.InstanceFilter{TaskID: o.ID, Limit: 10_000})
	f.ok(err)
	for _, in := range rows {
		ids = append(ids, in.ID)
	}
	slices.Sort(ids)
	return ids
}

func testPrune(f *fixture) {
	a := f.task("a", nil)
	b := f.task("b", nil)
	var born []ax.Born
	for i := range 8 {
		x := f.fire(a, nil)
		if attempt := 1; i == 1 { // with an attempt and a life line
			f.finish(f.again(x.Ref, attempt, f.nowMs))
			f.handOver(x.Ref, 2)
			f.finish(f.ending(x.Ref, 2, ax.StatusFailed))
		} else {
			f.finish(f.ending(x.Ref, attempt, ax.StatusSuccess))
		}
		born = append(born, x)
	}
	other := f.fire(b, nil)
	f.finish(f.ending(other.Ref, 1, ax.StatusSuccess))
	before := f.object("a").Row
	third := f.life(born[3].ID).EndedMs

	equal(f, "deleted of nothing old", f.prune(start, 0), ax.Pruned{})
	equal(f, "deleted with all kept", f.prune(f.nowMs+minute, 8), ax.Pruned{})
	// Two are beyond the newest six, four are old enough; and then the reverse.
	equal(f, "deleted", f.prune(third, 6), ax.Pruned{Instances: 2, Attempts: 1, Transitions: 1})
	equal(f, "deleted", f.prune(third, 1).Instances, 2)
	if got := f.ids(a); !slices.Equal(got, []int64{born[4].ID, born[5].ID, born[6].ID, born[7].ID}) {
		f.Errorf("kept are %v", got)
	}
	equal(f, "kept of the other", len(f.ids(b)), 1)
	_, err := f.Instance(f.ctx, born[0].ID)
	f.fails(err, ax.ErrNotFound)
	f.check()

	// The hot row is as it was, so the slots that are gone are not due again.
	after := f.object("a").Row
	equal(f, "checked from", after.CheckedFromMs, born[3].DueMs)
	before.CheckedFromMs = after.CheckedFromMs
	equal(f, "row", after, before)
	again := f.firing(a)
	again.ExpectNextMs = born[0].DueMs
	equal(f, "claim of a slot that is gone", f.claim(again)[0].Lost, true)
	equal(f, "late report of what is gone", f.finish(f.ending(born[0].Ref, 1, ax.StatusFailed)).Late, true)

	// What is open stays, and what was made after it.
	running := f.fire(a, nil)
	waiting, err := f.Trigger(f.ctx, ax.Trigger{ObjectID: a.ID, UID: "u", DueMs: f.nowMs, NowMs: f.nowMs, Who: "ann"})
	f.ok(err)
	unstopped := f.ending(running.Ref, 1, ax.StatusTimeout)
	unstopped.StoppedMs, unstopped.Cause, unstopped.ErrorClass = 0, ax.CauseTimeout, ax.ClassTimeout
	f.finish(unstopped)
	equal(f, "deleted up to what is open", f.prune(f.nowMs+minute, 0).Instances, 5)
	if got := f.ids(a); !slices.Equal(got, []int64{running.ID, waiting.ID}) {
		f.Errorf("kept are %v", got)
	}
	equal(f, "a row that retention emptied", len(f.ids(b)), 0)
}

func testPruneStretches(f *fixture) {
	a := f.task("a", nil)
	var ends []int64
	for range 5 {
		g := f.firing(a)
		f.nowMs = g.ExpectNextMs + minute
		g.NowMs, g.LastSlotMs, g.NextMs, g.Starts = f.nowMs, f.nowMs, f.nowMs+minute, nil
		g.Skipped = []ax.SkippedStretch{{TaskID: a.ID, FromMs: g.ExpectNextMs, ToMs: f.nowMs, Slots: 2, Reason: ax.ReasonMisfire, Version: 1}}
		f.claim(g)
		ends = append(ends, f.nowMs)
	}
	equal(f, "deleted of five", f.prune(ends[3], 3), ax.Pruned{Stretches: 2})
	equal(f, "deleted of three", f.prune(ends[2], 0), ax.Pruned{Stretches: 1})
	left, err := f.Stretches(f.ctx, a.ID, 10)
	f.ok(err)
	equal(f, "left", len(left), 2)
	equal(f, "checked from", f.object("a").Row.CheckedFromMs, ends[2])
}

// More than one step holds; step's error ends it; two at once delete no more
// than one may.
func testPruneSteps(f *fixture) {
	a := f.task("a", nil)
	total := 2*ax.PruneStep + 100
	for range total {
		f.finish(f.ending(f.fire(a, nil).Ref, 1, ax.StatusSuccess))
	}
	enough := errors.New("enough")
	q := ax.PruneQuery{EndedByMs: f.nowMs + minute, KeepLast: total - 10}
	f.fails(f.Prune(f.ctx, q, func(n ax.Pruned) error {
		equal(f, "deleted at first", n.Instances, 10)
		return enough
	}), enough)
	q.KeepLast = 50
	var group sync.WaitGroup
	var mu sync.Mutex
	var sum ax.Pruned
	for range 3 {
		group.Go(func() {
			err := f.Prune(f.ctx, q, func(n ax.Pruned) error {
				mu.Lock()
				defer mu.Unlock()
				sum = sum.Plus(n)
				if n.Instances > ax.PruneStep && n.Instances != int64(total-10-50) { // the model has one step
					f.Errorf("one step deleted %d", n.Instances)
				}
				return nil
			})
			if err != nil {
				f.Error(err)
			}
		})
	}
	group.Wait()
	equal(f, "deleted", sum.Instances, int64(total-10-50))
	equal(f, "kept", len(f.ids(a)), 50)
}
