package storetest

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/axctl/ax"
)

// pending fires a task without a place.
func (f *fixture) pending(o ax.Object) ax.Born {
	f.Helper()
	return f.fire(o, func(g *ax.Firing) { g.Starts[0].Place = nil; g.Overlap = ax.OverlapAllow })
}

func (f *fixture) handOver(r ax.Ref, attempt int) ax.HandoverResult {
	f.Helper()
	h := *f.place()
	h.Ref, h.Attempt = r, attempt
	results, err := f.Dispatch(f.ctx, []ax.Handover{h})
	f.ok(err)
	return results[0]
}

func testDispatch(f *fixture) {
	a := f.task("a", nil)
	first, second := f.pending(a), f.pending(a)
	manual, err := f.Trigger(f.ctx, ax.Trigger{ObjectID: a.ID, UID: "u1", DueMs: f.nowMs, NowMs: f.nowMs, Who: "ann"})
	f.ok(err)
	equal(f, "another attempt", f.handOver(first.Ref, 2), ax.HandoverGone)
	f.ok(f.Hold(f.ctx, a.ID, ax.Hold{Kind: ax.HoldPaused, Who: "ann", SinceMs: f.nowMs}))
	equal(f, "of a held task", f.handOver(first.Ref, 1), ax.HandoverHeld)
	equal(f, "by hand of a held task", f.handOver(manual, 1), ax.HandedOver)
	l := f.wantStatus(manual.ID, ax.StatusDispatched)
	if l.Host != "h1" || l.Boot != "boot1" || l.Executor != "shell-1" || l.HandedMs != f.nowMs || l.AssignedMs != f.nowMs || l.DeadlineMs != f.nowMs+30_000 {
		f.Errorf("instance is %+v", l.Instance)
	}
	row := f.object("a").Row
	f.ok(f.Resume(f.ctx, a.ID, ax.Timetable{ExpectNextMs: row.NextMs, ExpectLockVersion: row.LockVersion, NextMs: row.NextMs}, f.nowMs))
	equal(f, "at the limit", f.handOver(first.Ref, 1), ax.HandoverBlocked)
	f.wantRow(a, 1, 2)
	f.finish(f.ending(manual, 1, ax.StatusSuccess))
	equal(f, "in turn", f.handOver(first.Ref, 1), ax.HandedOver)
	equal(f, "twice", f.handOver(first.Ref, 1), ax.HandoverGone)
	equal(f, "unknown", f.handOver(ax.Ref{ID: 99, DueMs: 1, TaskID: a.ID, SlotKey: "s:1"}, 1), ax.HandoverGone)
	f.ok(f.Started(f.ctx, []ax.Started{
		{Ref: first.Ref, Attempt: 1, StartedMs: f.nowMs + 3, DeadlineMs: f.nowMs + 99},
		{Ref: second.Ref, Attempt: 1, StartedMs: f.nowMs + 3},
	}))
	l = f.life(first.ID)
	equal(f, "started", l.StartedMs, f.nowMs+3)
	equal(f, "deadline", l.DeadlineMs, f.nowMs+99)
	equal(f, "started of a pending one", f.life(second.ID).StartedMs, 0)
	open, err := f.Open(f.ctx, "h1")
	f.ok(err)
	if len(open) != 1 || open[0].Ref != first.Ref {
		f.Errorf("open are %+v", open)
	}
	open, err = f.Open(f.ctx, "h2")
	f.ok(err)
	equal(f, "open on another host", len(open), 0)
}

func testPending(f *fixture) {
	a, b := f.task("a", nil), f.task("b", func(s *ax.TaskSpec) { s.Concurrency, s.Overlap = 4, ax.OverlapAllow })
	one := f.pending(a)
	two := f.pending(b)
	f.ok(f.Hold(f.ctx, a.ID, ax.Hold{Kind: ax.HoldPaused, Who: "ann", SinceMs: f.nowMs}))
	three := f.pending(b)
	ws, err := f.Pending(f.ctx, ax.PendingQuery{UntilMs: f.nowMs, Limit: 10})
	f.ok(err)
	if len(ws) != 3 || ws[0].ID != one.ID || ws[1].ID != two.ID || ws[2].ID != three.ID {
		f.Fatalf("pending are %+v", ws)
	}
	want := ax.Waiting{
		Ref: two.Ref, Version: 1, Kind: ax.InstanceSchedule, Attempt: 1, NotBeforeMs: two.DueMs, MaxActive: 4, Overlap: ax.OverlapAllow,
	}
	equal(f, "waiting", ws[1], want)
	equal(f, "held", ws[0].Held, true)
	ws, err = f.Pending(f.ctx, ax.PendingQuery{UntilMs: one.DueMs, Limit: 1})
	f.ok(err)
	equal(f, "pending within the limit", len(ws), 1)
	ws, err = f.Pending(f.ctx, ax.PendingQuery{AfterID: two.ID, Limit: 10})
	f.ok(err)
	if len(ws) != 1 || ws[0].ID != three.ID {
		f.Errorf("pending after an id are %+v", ws)
	}
	counts, err := f.Counts(f.ctx)
	f.ok(err)
	equal(f, "counts", fmt.Sprint(counts), "map[pending:3]")
}

// testFinishOrders replays reports of one attempt in every order.
func testFinishOrders(f *fixture) {
	orders := []struct {
		reports []ax.Status
		want    ax.Status
		line    string
	}{
		{[]ax.Status{ax.StatusSuccess, ax.StatusSuccess}, ax.StatusSuccess, ""},
		{[]ax.Status{ax.StatusFailed, ax.StatusSuccess}, ax.StatusFailed, "late_result"},
		{[]ax.Status{ax.StatusTimeout, ax.StatusSuccess}, ax.StatusTimeout, "late_result"},
		{[]ax.Status{ax.StatusTimeout, ax.StatusTimeout, ax.StatusFailed}, ax.StatusTimeout, "late_result"},
		{[]ax.Status{ax.StatusSuccess, ax.StatusPending}, ax.StatusSuccess, "late_result"},
		{[]ax.Status{ax.StatusCancelled, ax.StatusSuccess, ax.StatusSuccess}, ax.StatusCancelled, "late_result late_result"},
	}
	for i, order := range orders {
		o := f.task(fmt.Sprintf("t%d", i), nil)
		born := f.fire(o, nil)
		for j, status := range order.reports {
			e := f.ending(born.Ref, 1, status)
			e.RetryStatus = ax.StatusFailed
			ended := f.finish(e)
			want := ax.Ended{Status: order.want, Late: j > 0, Freed: j == 0}
			equal(f, fmt.Sprintf("%v, report %d", order.reports, j), ended, want)
			f.ok(f.Started(f.ctx, []ax.Started{{Ref: born.Ref, Attempt: 1, StartedMs: 1, DeadlineMs: 1}})) // a late "running"
		}
		l := f.wantStatus(born.ID, order.want)
		if l.StartedMs != f.nowMs || l.EndedMs != f.nowMs+5 || l.StoppedMs != f.nowMs+6 {
			f.Errorf("%v: instance is %+v", order.reports, l.Instance)
		}
		equal(f, fmt.Sprintf("%v: life line", order.reports), f.causes(born.ID), order.line)
		f.wantRow(o, 0, 0)
	}
}

// A timeout is told before the processes are gone; only then the place is free.
func testEndedBeforeStopped(f *fixture) {
	o := f.task("slow", nil)
	born := f.fire(o, nil)
	e := f.ending(born.Ref, 1, ax.StatusTimeout)
	e.StoppedMs, e.Cause, e.ErrorClass = 0, ax.CauseTimeout, ax.ClassTimeout
	equal(f, "a timeout", f.finish(e), ax.Ended{Status: ax.StatusTimeout})
	f.wantRow(o, 1, 0)
	open, err := f.Open(f.ctx, "h1")
	f.ok(err)
	equal(f, "open ones", len(open), 1)
	stuck := ax.Ending{Ref: born.Ref, Attempt: 1, Cause: ax.CauseUnkillable, Detail: "7 (cp, state D)", NowMs: f.nowMs + 40}
	for range 2 { // noted once, and it frees nothing
		equal(f, "unkillable", f.finish(stuck), ax.Ended{Status: ax.StatusTimeout})
	}
	f.wantRow(o, 1, 0)
	held := func(ids ...int64) {
		f.Helper()
		rows, err := f.Instances(f.ctx, ax.InstanceFilter{TaskID: o.ID, Held: true})
		f.ok(err)
		var got []int64
		for _, r := range rows {
			got = append(got, r.ID)
			equal(f, "what holds it", r.Unkillable, stuck.Detail)
		}
		equal(f, "held", fmt.Sprint(got), fmt.Sprint(ids))
	}
	held(born.ID)
	gone := ax.Ending{Ref: born.Ref, Attempt: 1, StoppedMs: f.nowMs + 50, NowMs: f.nowMs + 50, Cause: ax.CauseStopped}
	equal(f, "its stop", f.finish(gone), ax.Ended{Status: ax.StatusTimeout, Freed: true})
	equal(f, "its stop again", f.finish(gone), ax.Ended{Status: ax.StatusTimeout})
	f.wantRow(o, 0, 0)
	held()
	equal(f, "unkillable when it is gone", f.finish(stuck), ax.Ended{Status: ax.StatusTimeout})
	equal(f, "life line", f.causes(born.ID), "timeout unkillable stopped")

	// The report of a timed-out attempt brings its stop along.
	born = f.fire(o, nil)
	e.Ref = born.Ref
	f.finish(e)
	equal(f, "the report", f.finish(f.ending(born.Ref, 1, ax.StatusCancelled)), ax.Ended{Status: ax.StatusTimeout, Late: true, Freed: true})
	f.wantRow(o, 0, 0)
	// A stop of what has not ended says nothing.
	born = f.fire(o, nil)
	gone.Ref = born.Ref
	equal(f, "a stop before the end", f.finish(gone), ax.Ended{Status: ax.StatusDispatched})
	stuck.Ref = born.Ref
	equal(f, "unkillable before the end", f.finish(stuck), ax.Ended{Status: ax.StatusDispatched})
	equal(f, "life line", f.causes(born.ID), "unkillable")
	f.wantRow(o, 1, 0)
}

func testRetry(f *fixture) {
	a := f.task("a", nil)
	born := f.fire(a, nil)
	e := f.again(born.Ref, 1, f.nowMs+minute)
	e.Detail, e.Next = "the first was lost", "again in 1m"
	equal(f, "a retry", f.finish(e), ax.Ended{Status: ax.StatusPending, Freed: true})
	f.wantRow(a, 0, 1)
	equal(f, "the same report again", f.finish(e), ax.Ended{Status: ax.StatusPending, Late: true})
	l := f.wantStatus(born.ID, ax.StatusPending)
	if l.Attempt != 2 || l.NotBeforeMs != f.nowMs+minute || l.Host != "" || l.HandedMs != 0 || l.StartedMs != 0 || l.EndedMs != 0 || l.StoppedMs != 0 || l.DeadlineMs != 0 || l.ClaimedMs == 0 {
		f.Errorf("instance is %+v", l.Instance)
	}
	rows, err := f.Instances(f.ctx, ax.InstanceFilter{})
	f.ok(err)
	equal(f, "last errors", rows[0].LastError+", "+l.LastError, "exit status 1, exit status 1")
	want := ax.Attempt{
		InstanceID: born.ID, Attempt: 1, Host: "h1", Executor: "shell-1", Status: ax.StatusFailed, ErrorClass: ax.ClassFailed,
		Error: "exit status 1", HandedMs: f.nowMs, StartedMs: f.nowMs, EndedMs: f.nowMs + 5, StoppedMs: f.nowMs + 6,
	}
	if len(l.Attempts) != 1 || l.Attempts[0] != want {
		f.Errorf("attempts are %+v", l.Attempts)
	}
	equal(f, "life line", f.causes(born.ID), "retry late_result")
	equal(f, "detail", l.Transitions[0].Detail, "the first was lost; again in 1m")
	equal(f, "hand over", f.handOver(born.Ref, 2), ax.HandedOver)
	equal(f, "last error of one that runs again", f.life(born.ID).LastError, "")
	// A report of the first attempt never touches the second.
	equal(f, "a late report", f.finish(f.ending(born.Ref, 1, ax.StatusSuccess)), ax.Ended{Status: ax.StatusDispatched, Late: true})
	f.wantRow(a, 1, 0)
	equal(f, "the second", f.finish(f.ending(born.Ref, 2, ax.StatusSuccess)), ax.Ended{Status: ax.StatusSuccess, Freed: true})
	f.wantRow(a, 0, 0)
	bad := f.again(born.Ref, 2, f.nowMs)
	bad.StoppedMs = 0
	if _, err := f.Finish(f.ctx, []ax.Ending{bad}); err == nil {
		f.Error("a retry before the attempt has stopped was taken")
	}
}

func testNoRetry(f *fixture) {
	a, b := f.task("a", nil), f.task("b", nil)
	one, two := f.fire(a, nil), f.fire(b, nil)
	f.apply(f.remove(f.object("a")))
	off := spec()
	off.Enabled = false
	c := f.update(f.object("b"), off)
	row := f.object("b").Row
	c.Task.Timetable = &ax.Timetable{ExpectNextMs: row.NextMs, ExpectLockVersion: row.LockVersion}
	f.apply(c)
	lost := f.again(one.Ref, 1, f.nowMs)
	lost.Detail, lost.Next = "axd ended", "again in 1m"
	equal(f, "of a deleted task", f.finish(lost), ax.Ended{Status: ax.StatusFailed, Freed: true})
	equal(f, "detail promises nothing", f.life(one.ID).Transitions[0].Detail, "axd ended")
	equal(f, "of a disabled task", f.finish(f.again(two.Ref, 1, f.nowMs)), ax.Ended{Status: ax.StatusFailed, Freed: true})
	equal(f, "life line", f.causes(one.ID)+" "+f.causes(two.ID), "deleted disabled")
	f.wantRow(a, 0, 0)
	f.wantRow(b, 0, 0)
}

func testLateResults(f *fixture) {
	a := f.task("a", nil)
	born := f.fire(a, nil)
	f.finish(f.ending(born.Ref, 1, ax.StatusFailed))
	for range 20 {
		e := f.ending(born.Ref, 1, ax.StatusSuccess)
		e.Error = "late"
		equal(f, "late", f.finish(e).Late, true)
	}
	l := f.life(born.ID)
	equal(f, "notes", len(l.Transitions), 3)
	equal(f, "detail", l.Transitions[0].Detail, "attempt 1 reported success: late")
}

func testDirtyText(f *fixture) {
	a := f.task("a", nil)
	born := f.fire(a, nil)
	e := f.ending(born.Ref, 1, ax.StatusFailed)
	e.Error, e.ErrorClass = "\x00\xff\xfe \xed\xa0\x80 "+strings.Repeat("ä", 4<<10), ax.ClassFailed
	e.Cause, e.Detail = ax.CauseNotAccepted, "a\x00b\xff"
	e.Outputs = []byte("{\"a\":\"\xff\"}")
	e.OutputBytes, e.OutputDropped = 10<<20, 9<<20
	equal(f, "end", f.finish(e), ax.Ended{Status: ax.StatusFailed, Freed: true})
	l := f.wantStatus(born.ID, ax.StatusFailed)
	if !utf8.ValidString(l.Error) || strings.ContainsRune(l.Error, 0) || len(l.Error) > ax.MaxErrorBytes || !strings.HasPrefix(l.Error, "\uFFFD\uFFFD ") {
		f.Errorf("error is %d bytes: %.40q", len(l.Error), l.Error)
	}
	equal(f, "detail", l.Transitions[0].Detail, "a\uFFFDb\uFFFD")
	equal(f, "output bytes", l.OutputBytes, 10<<20)
	equal(f, "output dropped", l.OutputDropped, 9<<20)

	good, bad := f.fire(a, nil), ax.Born{}
	e = f.ending(good.Ref, 1, ax.StatusSuccess)
	e.Outputs = []byte(`{"rows":7}`)
	f.finish(e)
	equal(f, "outputs", string(f.life(good.ID).Outputs), `{"rows":7}`)
	bad = f.fire(a, nil)
	e = f.ending(bad.Ref, 1, ax.StatusSuccess)
	e.Outputs = []byte(`{"rows":`)
	f.finish(e)
	l = f.wantStatus(bad.ID, ax.StatusSuccess)
	equal(f, "outputs that are no JSON", len(l.Outputs), 0)
}
