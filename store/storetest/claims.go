package storetest

import (
	"fmt"

	"github.com/axctl/ax"
)

func testDueTasks(f *fixture) {
	var ids []int64
	for i := range 5 {
		ids = append(ids, f.task(fmt.Sprintf("t%d", i), nil).ID)
	}
	off := spec()
	off.Enabled = false
	f.apply(f.create("off", off))
	f.ok(f.Hold(f.ctx, ids[1], ax.Hold{Kind: ax.HoldPaused, Who: "ann", SinceMs: f.nowMs}))
	f.apply(f.remove(f.object("t2")))
	f.nowMs += 400 * 24 * 60 * minute // there is no lower bound on lateness
	due, err := f.DueTasks(f.ctx, f.nowMs, ax.DueCursor{}, 2)
	f.ok(err)
	if len(due) != 2 || due[0].TaskID != ids[0] || due[1].TaskID != ids[3] {
		f.Fatalf("due tasks are %+v", due)
	}
	want := ax.DueTask{TaskID: ids[0], Version: 1, NextMs: start + minute, LockVersion: 1}
	equal(f, "due task", due[0], want)
	due, err = f.DueTasks(f.ctx, f.nowMs, ax.DueCursor{NextMs: due[1].NextMs, TaskID: due[1].TaskID}, 10)
	f.ok(err)
	if len(due) != 1 || due[0].TaskID != ids[4] {
		f.Errorf("due tasks after the cursor are %+v", due)
	}
	due, err = f.DueTasks(f.ctx, start+minute-1, ax.DueCursor{}, 10)
	f.ok(err)
	equal(f, "tasks due too early", len(due), 0)
	loaded, err := f.ReloadTasks(f.ctx, []int64{ids[0], ids[1], ids[2], 999})
	f.ok(err)
	if len(loaded) != 1 || loaded[0] != want {
		f.Errorf("reloaded tasks are %+v", loaded)
	}
	f.nowMs = start
}

func testClaim(f *fixture) {
	a := f.task("a", func(s *ax.TaskSpec) { s.Concurrency = 2 })
	born := f.fire(a, func(g *ax.Firing) { g.Starts[0].Place.DeadlineMs = f.nowMs + 7 })
	if born.Status != ax.StatusDispatched || born.DueMs != start+minute || born.TaskID != a.ID || born.SlotKey != ax.ScheduleSlotKey(born.DueMs) {
		f.Errorf("born is %+v", born)
	}
	l := f.life(born.ID)
	want := ax.Instance{
		Ref: born.Ref, Version: 1, Kind: ax.InstanceSchedule, Status: ax.StatusDispatched, Attempt: 1,
		Host: "h1", Boot: "boot1", Executor: "shell-1", NotBeforeMs: born.DueMs,
		ClaimedMs: f.nowMs, AssignedMs: f.nowMs, HandedMs: f.nowMs, DeadlineMs: f.nowMs + 7,
	}
	equal(f, "instance", fmt.Sprintf("%+v", l.Instance), fmt.Sprintf("%+v", want))
	row := f.object("a").Row
	if row.NextMs != start+2*minute || row.LastSlotMs != start+minute || row.LockVersion != 2 || row.Active != 1 {
		f.Errorf("row is %+v", row)
	}
	second := f.fire(a, func(g *ax.Firing) { g.Starts[0].Place = nil }) // no place was free
	equal(f, "status without a place", second.Status, ax.StatusPending)
	if second.ID <= born.ID {
		f.Errorf("ids do not rise: %d after %d", second.ID, born.ID)
	}
	f.wantRow(a, 1, 1)
	last := f.fire(a, func(g *ax.Firing) { g.NextMs = 0 }) // the schedule ends
	f.wantStatus(last.ID, ax.StatusPending)
	equal(f, "next fire time of an exhausted schedule", f.object("a").Row.NextMs, 0)
	f.apply(f.remove(f.object("a"))) // it is not exhausted in truth
}

func testClaimLost(f *fixture) {
	a, b, c, d := f.task("a", nil), f.task("b", nil), f.task("c", nil), f.task("d", nil)
	won := f.firing(a)
	older, moved, held := f.firing(b), f.firing(c), f.firing(d)
	older.ExpectLockVersion--
	moved.ExpectNextMs--
	f.ok(f.Hold(f.ctx, d.ID, ax.Hold{Kind: ax.HoldFrozen, Who: "ann", SinceMs: f.nowMs}))
	held.ExpectLockVersion++
	unknown := won
	unknown.TaskID = 99
	claimed := f.claim(older, moved, held, won, unknown, won)
	for i, lost := range []bool{true, true, true, false, true, true} {
		if claimed[i].Lost != lost || lost != (len(claimed[i].Born) == 0) {
			f.Errorf("claim %d is %+v, lost should be %v", i, claimed[i], lost)
		}
	}
	equal(f, "lock version", claimed[3].LockVersion, 2)
	rows, err := f.Instances(f.ctx, ax.InstanceFilter{})
	f.ok(err)
	equal(f, "instances", len(rows), 1)
	for _, o := range []ax.Object{b, c} {
		equal(f, "next fire time of "+o.Name, f.object(o.Name).Row.NextMs, start+minute)
		f.fire(o, nil)
	}
}

// testOverlap fires a task of concurrency 1 three times while its first
// instance runs.
func testOverlap(f *fixture) {
	tests := []struct {
		overlap       ax.Overlap
		second, third ax.Status
		secondIn      ax.Status // what became of the second after the third
		waiting       int
		cancelled     bool
	}{
		{ax.OverlapQueue, ax.StatusPending, ax.StatusSkipped, ax.StatusPending, 1, false},
		{ax.OverlapLatest, ax.StatusPending, ax.StatusPending, ax.StatusSkipped, 1, false},
		{ax.OverlapSkip, ax.StatusSkipped, ax.StatusSkipped, ax.StatusSkipped, 0, false},
		{ax.OverlapReplace, ax.StatusPending, ax.StatusPending, ax.StatusSkipped, 1, true},
		{ax.OverlapAllow, ax.StatusPending, ax.StatusPending, ax.StatusPending, 2, false},
	}
	for _, tt := range tests {
		name := string(tt.overlap)
		o := f.task(name, func(s *ax.TaskSpec) { s.Overlap = tt.overlap })
		by := func(g *ax.Firing) { g.Overlap = tt.overlap }
		first, second := f.fire(o, by), f.fire(o, by)
		third := f.fire(o, by)
		equal(f, name+": first", first.Status, ax.StatusDispatched)
		equal(f, name+": second", second.Status, tt.second)
		equal(f, name+": third", third.Status, tt.third)
		f.wantStatus(second.ID, tt.secondIn)
		f.wantRow(o, 1, tt.waiting)
		if third.Status == ax.StatusSkipped {
			equal(f, name+": reason", third.Reason, ax.ReasonOverlap)
			equal(f, name+": stored reason", f.life(third.ID).Reason, ax.ReasonOverlap)
			equal(f, name+": life line", f.causes(third.ID), "overlap")
		}
		if tt.secondIn == ax.StatusSkipped && tt.second == ax.StatusPending {
			equal(f, name+": replaced", third.Replaced, second.ID)
			equal(f, name+": stored reason", f.life(second.ID).Reason, ax.ReasonReplaced)
			equal(f, name+": life line", f.causes(second.ID), "replaced")
		}
		intents, err := f.Cancels(f.ctx, "h1")
		f.ok(err)
		wantCancelled := int64(0)
		if tt.cancelled {
			wantCancelled = first.ID
		}
		equal(f, name+": cancelled", second.Cancelled, wantCancelled)
		if tt.cancelled && (len(intents) != 1 || !intents[0].Replaced || intents[0].Ref != first.Ref) {
			f.Errorf("%s: intents are %+v", name, intents)
		}
		f.finish(f.ending(first.Ref, 1, ax.StatusCancelled))
		f.wantRow(o, 0, tt.waiting)
	}
}

func testOverlapRetry(f *fixture) {
	a := f.task("a", func(s *ax.TaskSpec) { s.Overlap = ax.OverlapLatest })
	first := f.fire(a, nil)
	f.finish(f.again(first.Ref, 1, f.nowMs+10*minute))
	second := f.fire(a, func(g *ax.Firing) { g.Overlap = ax.OverlapLatest })
	equal(f, "second beside a back-off", second.Status, ax.StatusPending)
	third := f.fire(a, func(g *ax.Firing) { g.Overlap = ax.OverlapLatest })
	equal(f, "replaced", third.Replaced, second.ID)
	f.wantStatus(first.ID, ax.StatusPending)
	f.wantRow(a, 0, 2)
	h := *f.place()
	h.Ref, h.Attempt = third.Ref, 1
	results, err := f.Dispatch(f.ctx, []ax.Handover{h})
	f.ok(err)
	equal(f, "hand over", results[0], ax.HandedOver)
	// Now one runs and one is in back-off: nobody's place can be taken.
	fourth := f.fire(a, func(g *ax.Firing) { g.Overlap = ax.OverlapLatest })
	equal(f, "fourth", fourth.Status, ax.StatusSkipped)
	equal(f, "replaced by the fourth", fourth.Replaced, 0)
	f.wantStatus(first.ID, ax.StatusPending)
}

// A firing of which something waits is told what waited before, whoever made it.
func testAhead(f *fixture) {
	a := f.task("a", nil)
	first := f.claim(f.firing(a))[0]
	equal(f, "ahead of the first", len(first.Ahead), 0)
	second := f.claim(f.firing(a))[0]
	equal(f, "ahead of the first that waits", len(second.Ahead), 0)
	manual, err := f.Trigger(f.ctx, ax.Trigger{ObjectID: a.ID, UID: "u1", DueMs: start, NowMs: f.nowMs, Who: "ann"})
	f.ok(err)
	g := f.firing(a)
	g.Overlap = ax.OverlapLatest
	third := f.claim(g)[0]
	equal(f, "replaced", third.Born[0].Replaced, second.Born[0].ID)
	equal(f, "ahead of what took a place", fmt.Sprint(third.Ahead), fmt.Sprint([]int64{manual.ID}))
	g = f.firing(a)
	g.NextMs, g.LastSlotMs = g.NextMs+minute, g.LastSlotMs+minute
	g.Starts = []ax.FiringStart{{DueMs: g.ExpectNextMs, CatchUp: true}, {DueMs: g.LastSlotMs, CatchUp: true}}
	fourth := f.claim(g)[0]
	equal(f, "ahead of two", fmt.Sprint(fourth.Ahead), fmt.Sprint([]int64{manual.ID, third.Born[0].ID}))
	equal(f, "ahead of what is skipped", len(f.claim(f.firing(a))[0].Ahead), 0)
	g = f.firing(a)
	g.Overlap = ax.OverlapAllow
	equal(f, "ahead under allow, which knows no order", len(f.claim(g)[0].Ahead), 0)
}

func testCatchUp(f *fixture) {
	a := f.task("a", nil)
	f.nowMs += 10 * minute
	g := f.firing(a)
	g.NextMs, g.LastSlotMs = start+11*minute, start+10*minute
	g.Starts = []ax.FiringStart{
		{DueMs: start + 9*minute, CatchUp: true, Place: f.place()},
		{DueMs: start + 10*minute, CatchUp: true},
	}
	g.Skipped = []ax.SkippedStretch{{TaskID: a.ID, FromMs: start + minute, ToMs: start + 8*minute, Slots: -1, Reason: ax.ReasonMisfire, Version: 1}}
	c := f.claim(g)[0]
	equal(f, "born", len(c.Born), 2)
	for _, b := range c.Born {
		equal(f, "status of a catch-up", b.Status, ax.StatusPending) // it always waits its turn
	}
	f.wantRow(a, 0, 2)
	stretches, err := f.Stretches(f.ctx, a.ID, 10)
	f.ok(err)
	if len(stretches) != 1 || stretches[0] != g.Skipped[0] {
		f.Errorf("stretches are %+v", stretches)
	}
	// A firing may account for slots that do not run at all.
	f.nowMs = start + 12*minute
	g = f.firing(a)
	g.NextMs, g.LastSlotMs, g.Starts = start+13*minute, start+12*minute, nil
	g.Skipped = []ax.SkippedStretch{{TaskID: a.ID, FromMs: start + 11*minute, ToMs: start + 12*minute, Slots: 2, Reason: ax.ReasonMisfire, Version: 1}}
	if c := f.claim(g)[0]; c.Lost || len(c.Born) != 0 {
		f.Errorf("claim is %+v", c)
	}
	equal(f, "last slot", f.object("a").Row.LastSlotMs, start+12*minute)
	stretches, err = f.Stretches(f.ctx, a.ID, 1)
	f.ok(err)
	if len(stretches) != 1 || stretches[0] != g.Skipped[0] {
		f.Errorf("the newest stretch is %+v", stretches)
	}
}
