package storetest

import "github.com/axctl/ax"

// testBornTooLate claims slots that are too late to start.
func testBornTooLate(f *fixture) {
	for _, policy := range ax.Overlaps {
		o := f.task("a_"+string(policy), func(s *ax.TaskSpec) { s.Overlap = policy })
		born := f.fire(o, func(g *ax.Firing) {
			g.Overlap, g.Starts[0].Place, g.Starts[0].Skip = policy, nil, ax.ReasonStartWithin
		})
		equal(f, "born under "+string(policy), born.Status, ax.StatusSkipped)
		equal(f, "born under "+string(policy), born.Reason, ax.ReasonStartWithin)
		f.wantRow(o, 0, 0)
		l := f.wantStatus(born.ID, ax.StatusSkipped)
		if l.Reason != ax.ReasonStartWithin || l.EndedMs != f.nowMs || f.causes(born.ID) != "start_within" {
			f.Errorf("it is %+v, %s", l.Instance, f.causes(born.ID))
		}
	}
	// It displaces and cancels nobody.
	o := f.task("b", nil)
	running := f.fire(o, nil)
	waiting := f.fire(o, func(g *ax.Firing) { g.Starts[0].Place = nil })
	f.fire(o, func(g *ax.Firing) {
		g.Overlap, g.Starts[0].Place, g.Starts[0].Skip = ax.OverlapReplace, nil, ax.ReasonStartWithin
	})
	equal(f, "cancel intent", f.wantStatus(running.ID, ax.StatusDispatched).CancelBy, "")
	f.wantStatus(waiting.ID, ax.StatusPending)
	f.wantRow(o, 1, 1)
}

// testLapse ends what was not started in time, and only that.
func testLapse(f *fixture) {
	a := f.task("a", func(s *ax.TaskSpec) { s.Concurrency, s.Overlap = 9, ax.OverlapAllow })
	late, handed, again, gone := f.pending(a), f.pending(a), f.pending(a), f.pending(a)
	equal(f, "hand over", f.handOver(handed.Ref, 1), ax.HandedOver)
	equal(f, "hand over", f.handOver(again.Ref, 1), ax.HandedOver)
	f.finish(f.again(again.Ref, 1, f.nowMs+minute))
	_, err := f.Cancel(f.ctx, gone.ID, "ann", f.nowMs)
	f.ok(err)
	wrong := late.Ref
	wrong.ID = handed.ID
	lapse := func(refs ...ax.Ref) []bool {
		f.Helper()
		var ls []ax.Lapse
		for _, r := range refs {
			ls = append(ls, ax.Lapse{Ref: r, NowMs: f.nowMs + 9, Detail: "too late"})
		}
		done, err := f.Lapse(f.ctx, ls)
		f.ok(err)
		if len(done) != len(ls) {
			f.Fatalf("%d answers to %d", len(done), len(ls))
		}
		return done
	}
	f.ok(f.Hold(f.ctx, a.ID, ax.Hold{Kind: ax.HoldPaused, Who: "ann", SinceMs: f.nowMs})) // it goes on counting
	for i, done := range lapse(wrong, handed.Ref, again.Ref, gone.Ref, ax.Ref{ID: 99, DueMs: 1, TaskID: a.ID, SlotKey: "s:1"}, late.Ref, late.Ref) {
		equal(f, "lapse", done, i == 5)
	}
	equal(f, "again", lapse(late.Ref)[0], false)
	l := f.wantStatus(late.ID, ax.StatusSkipped)
	if l.Reason != ax.ReasonStartWithin || l.EndedMs != f.nowMs+9 || l.HandedMs != 0 {
		f.Errorf("it is %+v", l.Instance)
	}
	want := ax.Transition{
		InstanceID: late.ID, AtMs: f.nowMs + 9, Attempt: 1, From: ax.StatusPending, To: ax.StatusSkipped,
		Actor: "dispatch", Cause: ax.CauseStartWithin, Detail: "too late",
	}
	if len(l.Transitions) != 1 || l.Transitions[0] != want {
		f.Errorf("its life line is %+v", l.Transitions)
	}
	equal(f, "hand over of what lapsed", f.handOver(late.Ref, 1), ax.HandoverGone)
	f.wantStatus(handed.ID, ax.StatusDispatched)
	f.wantStatus(again.ID, ax.StatusPending)
	f.wantRow(a, 1, 1)
}
