package storetest

import (
	"strings"

	"github.com/axctl/ax"
)

// failure is the final end of an attempt that failed.
func (f *fixture) failure(r ax.Ref, class ax.ErrorClass) ax.Ending {
	e := f.ending(r, 1, ax.StatusFailed)
	e.ErrorClass, e.Error = class, "exit status 1"
	return e
}

func (f *fixture) wantStreak(o ax.Object, want int) {
	f.Helper()
	equal(f, "failure streak of "+o.Name, f.object(o.Name).Row.FailureStreak, want)
}

// testFreeze counts ends of every kind, and freezes in the transaction of the
// one that is one too many.
func testFreeze(f *fixture) {
	a := f.task("a", func(s *ax.TaskSpec) { s.FreezeAfter = 3 })
	fail := func(class ax.ErrorClass) (ax.Born, ax.Ended) {
		f.Helper()
		born := f.fire(a, nil)
		return born, f.finish(f.failure(born.Ref, class))
	}
	fail(ax.ClassFailed)
	fail(ax.ClassPermanent)
	f.wantStreak(a, 2)
	f.finish(f.ending(f.fire(a, nil).Ref, 1, ax.StatusSuccess))
	f.wantStreak(a, 0)

	fail(ax.ClassLost)
	born := f.fire(a, nil)
	e := f.ending(born.Ref, 1, ax.StatusTimeout)
	e.StoppedMs, e.ErrorClass = 0, ax.ClassTimeout
	f.finish(e)
	f.wantStreak(a, 2)
	gone := ax.Ending{Ref: born.Ref, Attempt: 1, StoppedMs: f.nowMs, NowMs: f.nowMs}
	f.finish(gone)
	f.finish(e) // the same report again
	f.wantStreak(a, 2)

	// Neither of these counts, nor ends the streak.
	fail(ax.ClassResource)
	cancelled := f.ending(f.fire(a, nil).Ref, 1, ax.StatusCancelled)
	cancelled.ErrorClass = ax.ClassCancelled
	f.finish(cancelled)
	late := f.fire(a, func(g *ax.Firing) { g.Starts[0].Place, g.Starts[0].Skip = nil, ax.ReasonStartWithin })
	f.wantStatus(late.ID, ax.StatusSkipped)
	again := f.fire(a, nil)
	f.finish(f.again(again.Ref, 1, f.nowMs))
	f.wantStreak(a, 2)
	before := f.object("a").Row
	equal(f, "hold", before.Hold == nil, true)

	// The third, in its second attempt.
	equal(f, "hand over", f.handOver(again.Ref, 2), ax.HandedOver)
	e = f.failure(again.Ref, ax.ClassFailed)
	e.Attempt = 2
	equal(f, "the end", f.finish(e), ax.Ended{Status: ax.StatusFailed, Freed: true, FrozenAfter: 3})
	row := f.object("a").Row
	if h := row.Hold; h == nil || h.Kind != ax.HoldFrozen || h.Who != ax.FrozenBy || h.SinceMs != e.NowMs || h.UntilMs != 0 ||
		!strings.HasPrefix(h.Reason, "3 instances in a row failed, the last one is instance ") || !strings.HasSuffix(h.Reason, ": exit status 1") {
		f.Fatalf("hold is %+v", h)
	}
	if row.FailureStreak != 3 || row.LockVersion != before.LockVersion+1 || row.NextMs != before.NextMs || row.LastSlotMs != before.LastSlotMs {
		f.Errorf("row is %+v, was %+v", row, before)
	}
	l := f.wantStatus(again.ID, ax.StatusFailed)
	equal(f, "life line", f.causes(again.ID), "retry frozen")
	equal(f, "its detail", l.Transitions[1].Detail, "3 instances in a row failed")
	equal(f, "the end again", f.finish(e), ax.Ended{Status: ax.StatusFailed, Late: true})
	f.wantStreak(a, 3)
	stale := ax.Firing{
		TaskID: a.ID, Version: 1, ExpectNextMs: before.NextMs, ExpectLockVersion: before.LockVersion, NextMs: before.NextMs + minute,
		LastSlotMs: before.NextMs, NowMs: before.NextMs, Overlap: ax.OverlapQueue, Starts: []ax.FiringStart{{DueMs: before.NextMs}},
	}
	equal(f, "a claim after it", f.claim(stale)[0].Lost, true)

	// What a person starts runs; its success ends the streak, not the freezing.
	ref, err := f.Trigger(f.ctx, ax.Trigger{ObjectID: a.ID, UID: "u", DueMs: f.nowMs, NowMs: f.nowMs, Who: "ann"})
	f.ok(err)
	equal(f, "by hand", f.handOver(ref, 1), ax.HandedOver)
	f.finish(f.failure(ref, ax.ClassFailed))
	f.wantStreak(a, 4)
	f.unfreeze(a)
	f.wantStreak(a, 0)
	equal(f, "hold", f.object("a").Row.Hold == nil, true)
}

// unfreeze ends a hold and leaves the timetable as it is.
func (f *fixture) unfreeze(o ax.Object) {
	f.Helper()
	row := f.object(o.Name).Row
	f.ok(f.Resume(f.ctx, o.ID, ax.Timetable{ExpectNextMs: row.NextMs, ExpectLockVersion: row.LockVersion, NextMs: row.NextMs}, f.nowMs))
}

// testFreezeSpares: what a person holds stays theirs, and the end of a pause
// clears nothing; a deleted task is frozen no more; a version may change the
// limit.
func testFreezeSpares(f *fixture) {
	once := func(s *ax.TaskSpec) { s.FreezeAfter = 1 }
	a, b, c := f.task("a", once), f.task("b", once), f.task("c", nil)
	one, two, three := f.fire(a, nil), f.fire(b, nil), f.fire(c, nil)
	f.ok(f.Hold(f.ctx, a.ID, ax.Hold{Kind: ax.HoldPaused, Who: "ann", SinceMs: f.nowMs, Reason: "mine"}))
	equal(f, "of a paused task", f.finish(f.failure(one.Ref, ax.ClassFailed)).FrozenAfter, 0)
	equal(f, "the pause", f.object("a").Row.Hold.Reason, "mine")
	f.wantStreak(a, 1)
	f.unfreeze(a)
	f.wantStreak(a, 1)

	f.apply(f.remove(f.object("b")))
	lost := f.again(two.Ref, 1, f.nowMs)
	equal(f, "of a deleted task", f.finish(lost), ax.Ended{Status: ax.StatusFailed, Freed: true})
	equal(f, "its hold", f.object("b").Row.Hold == nil, true)

	equal(f, "of one that never freezes", f.finish(f.failure(three.Ref, ax.ClassFailed)).FrozenAfter, 0)
	f.wantStreak(c, 1)
	limited := spec()
	limited.FreezeAfter = 2
	f.apply(f.update(f.object("c"), limited))
	equal(f, "by the new limit", f.finish(f.failure(f.fire(c, nil).Ref, ax.ClassFailed)).FrozenAfter, 2)
	f.unfreeze(c)
}

// testFreezeBackfill: what a backfill runs says nothing of the task, whether it
// fails or succeeds, at once or with its processes left.
func testFreezeBackfill(f *fixture) {
	a := f.task("a", func(s *ax.TaskSpec) { s.FreezeAfter, s.Concurrency = 2, 10 })
	f.finish(f.failure(f.fire(a, nil).Ref, ax.ClassFailed))
	f.wantStreak(a, 1)
	b := f.backfill(a, -5, -1, func(r *ax.BackfillRequest) { r.Mode, r.Parallel = ax.BackfillAll, 5 })
	old := f.fill(b.ID).Made
	if len(old) < 4 {
		f.Fatalf("the backfill has %d instances", len(old))
	}
	for n, ref := range old {
		equal(f, "hand over", f.handOver(ref, 1), ax.HandedOver)
		e := f.failure(ref, ax.ClassFailed)
		if n%2 == 0 {
			e = f.ending(ref, 1, ax.StatusSuccess)
		}
		if n >= 2 {
			e.StoppedMs = 0
		}
		f.finish(e)
		if e.StoppedMs == 0 {
			equal(f, "active", f.object("a").Row.Active, 1)
			f.finish(ax.Ending{Ref: ref, Attempt: 1, StoppedMs: f.nowMs, NowMs: f.nowMs})
		}
		f.wantStreak(a, 1)
		equal(f, "active", f.object("a").Row.Active, 0)
	}
	equal(f, "hold", f.object("a").Row.Hold == nil, true)
	f.finish(f.failure(f.fire(a, nil).Ref, ax.ClassFailed))
	equal(f, "frozen", f.object("a").Row.Hold != nil, true)
	f.unfreeze(a)
}
