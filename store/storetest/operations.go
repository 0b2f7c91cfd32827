package storetest

import (
	"fmt"

	"github.com/axctl/ax"
)

func testCancel(f *fixture) {
	a := f.task("a", nil)
	running, waiting := f.fire(a, nil), f.fire(a, nil)
	_, err := f.Cancel(f.ctx, 99, "bob", f.nowMs)
	f.fails(err, ax.ErrNotFound)
	status, err := f.Cancel(f.ctx, waiting.ID, "bob", f.nowMs)
	f.ok(err)
	equal(f, "waiting one", status, ax.StatusCancelled)
	l := f.wantStatus(waiting.ID, ax.StatusCancelled)
	if l.CancelBy != "bob" || l.EndedMs != f.nowMs || l.ErrorClass != ax.ClassCancelled || l.Transitions[0].Actor != "bob" {
		f.Errorf("instance is %+v", l)
	}
	f.wantRow(a, 1, 0)
	status, err = f.Cancel(f.ctx, running.ID, "bob", f.nowMs)
	f.ok(err)
	equal(f, "running one", status, ax.StatusDispatched)
	status, err = f.Cancel(f.ctx, running.ID, "cid", f.nowMs)
	f.ok(err)
	equal(f, "running one again", status, ax.StatusDispatched)
	intents, err := f.Cancels(f.ctx, "h1")
	f.ok(err)
	want := ax.CancelIntent{Ref: running.Ref, Attempt: 1, By: "bob"}
	if len(intents) != 1 || intents[0] != want {
		f.Errorf("intents are %+v", intents)
	}
	none, err := f.Cancels(f.ctx, "h2")
	f.ok(err)
	equal(f, "intents of another host", len(none), 0)
	e := f.ending(running.Ref, 1, ax.StatusCancelled)
	e.Cause, e.ErrorClass = ax.CauseCancel, ax.ClassCancelled
	f.finish(e)
	equal(f, "life line", f.causes(running.ID), "cancel cancel")
	_, err = f.Cancel(f.ctx, running.ID, "bob", f.nowMs)
	f.fails(err, ax.ErrConflict)
	intents, err = f.Cancels(f.ctx, "h1")
	f.ok(err)
	equal(f, "intents at the end", len(intents), 0)
}

func testCancelBeats(f *fixture) {
	a := f.task("a", nil)
	born := f.fire(a, nil)
	_, err := f.Cancel(f.ctx, born.ID, "bob", f.nowMs)
	f.ok(err)
	lost := f.again(born.Ref, 1, f.nowMs)
	lost.Cause, lost.Error, lost.Detail, lost.Next = ax.CauseLost, "axd ended", "axd ended", "again in 1m"
	equal(f, "a retry", f.finish(lost), ax.Ended{Status: ax.StatusCancelled, Freed: true})
	l := f.life(born.ID)
	equal(f, "class", l.ErrorClass, ax.ClassCancelled)
	equal(f, "error", l.Error, "axd ended")
	equal(f, "detail promises nothing", l.Transitions[len(l.Transitions)-1].Detail, "asked for by bob")
	f.wantRow(a, 0, 0)
	born = f.fire(a, nil)
	_, err = f.Cancel(f.ctx, born.ID, "bob", f.nowMs)
	f.ok(err)
	equal(f, "a success", f.finish(f.ending(born.Ref, 1, ax.StatusSuccess)), ax.Ended{Status: ax.StatusSuccess, Freed: true})
	equal(f, "life line", f.causes(born.ID), "cancel cancel_late")
	f.wantRow(a, 0, 0)
}

func testTrigger(f *fixture) {
	a := f.task("a", func(s *ax.TaskSpec) { s.Overlap = ax.OverlapSkip })
	t := ax.Trigger{ObjectID: a.ID, UID: "u1", DueMs: f.nowMs - 5, NowMs: f.nowMs, Who: "bob"}
	ref, err := f.Trigger(f.ctx, t)
	f.ok(err)
	again, err := f.Trigger(f.ctx, t) // its answer was lost
	f.ok(err)
	equal(f, "the same start", again, ref)
	l := f.wantStatus(ref.ID, ax.StatusPending)
	if l.Kind != ax.InstanceManual || l.Version != 1 || l.DueMs != f.nowMs-5 || l.NotBeforeMs != f.nowMs || l.SlotKey != "m:u1" || l.Transitions[0].Actor != "bob" {
		f.Errorf("instance is %+v", l)
	}
	f.wantRow(a, 0, 1)
	// A manual start counts as live for the overlap rule.
	f.handOver(ref, 1)
	equal(f, "a slot beside it", f.fire(a, func(g *ax.Firing) { g.Overlap = ax.OverlapSkip }).Status, ax.StatusSkipped)
	_, err = f.Trigger(f.ctx, ax.Trigger{ObjectID: 99, UID: "u2", DueMs: 1, NowMs: 1})
	f.fails(err, ax.ErrNotFound)
	off := f.task("off", func(s *ax.TaskSpec) { s.Enabled = false })
	_, err = f.Trigger(f.ctx, ax.Trigger{ObjectID: off.ID, UID: "u3", DueMs: f.nowMs, NowMs: f.nowMs, Who: "bob"})
	f.ok(err)
	f.apply(f.remove(f.object("off")))
	_, err = f.Trigger(f.ctx, ax.Trigger{ObjectID: off.ID, UID: "u4", DueMs: f.nowMs, NowMs: f.nowMs, Who: "bob"})
	f.fails(err, ax.ErrNotFound)
}

func testHold(f *fixture) {
	a, b := f.task("a", nil), f.task("b", nil)
	row := f.object("a").Row
	resume := ax.Timetable{ExpectNextMs: row.NextMs, ExpectLockVersion: row.LockVersion + 1}
	f.fails(f.Resume(f.ctx, a.ID, resume, f.nowMs), ax.ErrConflict)
	f.fails(f.Hold(f.ctx, 99, ax.Hold{Kind: ax.HoldPaused, Who: "ann"}), ax.ErrNotFound)
	f.fails(f.Resume(f.ctx, 99, resume, f.nowMs), ax.ErrNotFound)
	f.ok(f.Hold(f.ctx, b.ID, ax.Hold{Kind: ax.HoldFrozen, Who: "ann", SinceMs: f.nowMs}))
	hold := ax.Hold{Kind: ax.HoldPaused, Who: "ann", SinceMs: f.nowMs, UntilMs: f.nowMs + 5*minute, Reason: "move\x00"}
	f.ok(f.Hold(f.ctx, a.ID, hold))
	hold.Reason = "move\uFFFD"
	got := f.object("a").Row
	if got.Hold == nil || *got.Hold != hold || got.LockVersion != row.LockVersion+1 || got.NextMs != row.NextMs {
		f.Fatalf("row is %+v, hold %+v", got, got.Hold)
	}
	held, err := f.EndingHolds(f.ctx, hold.UntilMs)
	f.ok(err)
	if len(held) != 1 || held[0].TaskID != a.ID || held[0].Hold != hold || !held[0].Enabled || held[0].NextMs != row.NextMs {
		f.Errorf("ending holds are %+v", held)
	}
	held, err = f.EndingHolds(f.ctx, hold.UntilMs-1)
	f.ok(err)
	equal(f, "holds that end earlier", len(held), 0)
	// Apply never changes a hold.
	longer := spec()
	longer.Timeout *= 2
	f.apply(f.update(f.object("a"), longer))
	if h := f.object("a").Row.Hold; h == nil || *h != hold {
		f.Errorf("after an apply the hold is %+v", h)
	}
	f.nowMs += 5 * minute
	row = f.object("a").Row
	tt := ax.Timetable{
		ExpectNextMs: row.NextMs, ExpectLockVersion: row.LockVersion - 1, NextMs: start + 6*minute, LastSlotMs: start + 5*minute,
		Starts:  []ax.Start{{DueMs: start + 5*minute, Version: 2}},
		Skipped: []ax.SkippedStretch{{TaskID: a.ID, FromMs: start + minute, ToMs: start + 4*minute, Slots: 4, Reason: ax.ReasonHeld, Version: 2}},
	}
	f.fails(f.Resume(f.ctx, a.ID, tt, f.nowMs), ax.ErrMoved)
	tt.ExpectLockVersion++
	f.ok(f.Resume(f.ctx, a.ID, tt, f.nowMs))
	got = f.object("a").Row
	if got.Hold != nil || got.NextMs != start+6*minute || got.LastSlotMs != start+5*minute || got.Waiting != 1 || got.LockVersion != row.LockVersion+1 {
		f.Errorf("row is %+v", got)
	}
	f.fails(f.Resume(f.ctx, a.ID, tt, f.nowMs), ax.ErrConflict)
}

func testClockMark(f *fixture) {
	want := func(m ax.ClockMark) {
		f.Helper()
		got, err := f.ClockMark(f.ctx)
		f.ok(err)
		equal(f, "mark", got, m)
		info, err := f.Info(f.ctx)
		f.ok(err)
		equal(f, "mark told", info.Clock, m)
	}
	want(ax.ClockMark{})
	for _, m := range []ax.ClockMark{
		{WallMs: f.nowMs, ElapsedMs: 7, Kernel: "k1", FormerMs: f.nowMs - 9},
		{WallMs: f.nowMs - minute, ElapsedMs: 3, Kernel: "k2"}, // whatever it was before
		{WallMs: f.nowMs},
	} {
		f.ok(f.KeepClock(f.ctx, m))
		want(m)
	}
}

func testHosts(f *fixture) {
	one := ax.Host{
		Name: "h1", Boot: "b1", PID: 7, DataDir: "/var/lib/ax", Listen: "127.0.0.1:7420", Version: "v1", TZData: "2026a",
		Handlers: []string{"http", "shell"}, Pools: map[string]int{"hot": 8, "shell": 64}, StartedMs: f.nowMs,
	}
	f.ok(f.Join(f.ctx, one))
	info, err := f.Info(f.ctx)
	f.ok(err)
	equal(f, "zone data", info.TZData, "2026a")
	f.ok(f.Join(f.ctx, ax.Host{Name: "h0", Boot: "b9", StartedMs: f.nowMs}))
	f.ok(f.Leave(f.ctx, "h1", "another boot", f.nowMs+1))
	hosts, err := f.Hosts(f.ctx)
	f.ok(err)
	equal(f, "hosts", len(hosts), 2)
	equal(f, "host", fmt.Sprintf("%+v", hosts[1]), fmt.Sprintf("%+v", one))
	f.ok(f.Leave(f.ctx, "h1", "b1", f.nowMs+2))
	hosts, err = f.Hosts(f.ctx)
	f.ok(err)
	equal(f, "left", hosts[1].LeftMs, f.nowMs+2)
	one.Boot = "b2"
	f.ok(f.Join(f.ctx, one))
	hosts, err = f.Hosts(f.ctx)
	f.ok(err)
	equal(f, "left after joining again", hosts[1].LeftMs, 0)
	equal(f, "boot", hosts[1].Boot, "b2")
}

func testInstances(f *fixture) {
	a, b := f.task("a", func(s *ax.TaskSpec) { s.Concurrency = 10 }), f.task("b", func(s *ax.TaskSpec) { s.Concurrency = 10 })
	var last ax.Born
	for range 5 {
		f.fire(a, nil)
		f.nowMs -= minute
		last = f.fire(b, nil)
	}
	f.finish(f.ending(last.Ref, 1, ax.StatusFailed))
	f.ok(f.IndexHistory(f.ctx, func() error { return nil }))
	f.ok(f.Checkpoint(f.ctx))
	var seen []ax.InstanceRow
	filter := ax.InstanceFilter{Limit: 3}
	for {
		page, err := f.Instances(f.ctx, filter)
		f.ok(err)
		if len(page) == 0 {
			break
		}
		seen = append(seen, page...)
		filter.Before = &page[len(page)-1].Ref
	}
	equal(f, "instances", len(seen), 10)
	for i := 1; i < len(seen); i++ {
		p, n := seen[i-1], seen[i]
		if p.DueMs < n.DueMs || p.DueMs == n.DueMs && p.TaskID <= n.TaskID {
			f.Errorf("%+v comes before %+v", p.Ref, n.Ref)
		}
	}
	counted := func(filter ax.InstanceFilter) int {
		rows, err := f.Instances(f.ctx, filter)
		f.ok(err)
		return len(rows)
	}
	equal(f, "of one task", counted(ax.InstanceFilter{TaskID: b.ID}), 5)
	equal(f, "failed ones", counted(ax.InstanceFilter{Status: []ax.Status{ax.StatusFailed, ax.StatusTimeout}}), 1)
	equal(f, "newer ones", counted(ax.InstanceFilter{SinceMs: start + 4*minute}), 4)
	equal(f, "of both kinds of filter", counted(ax.InstanceFilter{TaskID: a.ID, SinceMs: start + 5*minute, Status: []ax.Status{ax.StatusDispatched}}), 1)
	counts, err := f.Counts(f.ctx)
	f.ok(err)
	equal(f, "counts", fmt.Sprint(counts), "map[dispatched:9]")
	_, err = f.Instance(f.ctx, 999)
	f.fails(err, ax.ErrNotFound)
}

func testChanged(f *fixture) {
	_, err := f.Changed(f.ctx)
	f.ok(err)
	a := f.task("a", nil)
	_, err = f.Changed(f.ctx)
	f.ok(err)
	f.fire(a, nil)
	changed, err := f.Changed(f.ctx)
	f.ok(err)
	equal(f, "changed by our own claim", changed, false)
}
