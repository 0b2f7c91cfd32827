package storetest

import (
	"fmt"

	"github.com/axctl/ax"
)

func (f *fixture) signal(id int64, s ax.Signal) error {
	return f.Signal(f.ctx, ax.SignalRequest{InstanceID: id, Signal: s, NowMs: f.nowMs, Who: "ann"})
}

func (f *fixture) answer(id int64, attempt int, s ax.Signal, edit ...func(*ax.SignalAnswer)) {
	f.Helper()
	a := ax.SignalAnswer{InstanceID: id, Attempt: attempt, Signal: s, AtMs: f.nowMs, NowMs: f.nowMs}
	for _, e := range edit {
		e(&a)
	}
	f.ok(f.Signalled(f.ctx, []ax.SignalAnswer{a}))
	f.ok(f.Signalled(f.ctx, []ax.SignalAnswer{a})) // again, as after a lost answer
}

func (f *fixture) states(host string) []ax.SignalState {
	f.Helper()
	states, err := f.SignalStates(f.ctx, host)
	f.ok(err)
	return states
}

// notes are the life line's entries of signals.
func (f *fixture) notes(id, sinceMs int64) string {
	f.Helper()
	text := ""
	for _, t := range f.life(id).Transitions {
		if t.Cause == ax.CausePause || t.Cause == ax.CauseResume {
			text += fmt.Sprintf("%s %s by %s at %d; ", t.Cause, t.Detail, t.Actor, (t.AtMs-sinceMs)/1000)
		}
	}
	return text
}

func testSignals(f *fixture) {
	a, b := f.task("a", nil), f.task("b", nil)
	f.fails(f.signal(99, ax.SignalPause), ax.ErrNotFound)
	waits := f.fire(a, func(fi *ax.Firing) { fi.Starts[0].Place = nil })
	f.fails(f.signal(waits.ID, ax.SignalPause), ax.ErrConflict) // it does not run
	in := f.fire(b, nil)
	began := f.nowMs
	f.fails(f.signal(in.ID, ax.SignalResume), ax.ErrConflict) // no pause was asked for
	f.answer(in.ID, 1, ax.SignalPause)                        // nobody asked
	equal(f, "signals of nobody", len(f.states("h1")), 0)

	f.nowMs = began + 1000
	f.ok(f.signal(in.ID, ax.SignalPause))
	f.ok(f.signal(in.ID, ax.SignalPause))
	alike(f, "asked", f.states("h1"), []ax.SignalState{{InstanceID: in.ID, Attempt: 1, Signal: ax.SignalPause, Who: "ann", AskedMs: f.nowMs}})
	equal(f, "signals of another host", len(f.states("other")), 0)
	f.nowMs += 1000
	f.answer(in.ID, 2, ax.SignalPause) // no such attempt
	f.answer(in.ID, 1, ax.SignalPause, func(a *ax.SignalAnswer) { a.DeadlineMs = 5 })
	paused := ax.SignalState{
		InstanceID: in.ID, Attempt: 1, Signal: ax.SignalPause, Who: "ann", AskedMs: began + 1000, AnsweredMs: f.nowMs,
		PausedMs: f.nowMs, PausedBy: "ann",
	}
	alike(f, "paused", f.states("h1"), []ax.SignalState{paused})
	l := f.life(in.ID)
	alike(f, "in its life", *l.Signal, paused)
	equal(f, "since", l.PausedMs, f.nowMs)
	equal(f, "by", l.PausedBy, "ann")
	if l.DeadlineMs == 5 {
		f.Error("a pause moved the deadline")
	}
	rows, err := f.Instances(f.ctx, ax.InstanceFilter{Status: []ax.Status{ax.StatusDispatched}})
	f.ok(err)
	equal(f, "those at work", len(rows), 1)
	equal(f, "in the list", rows[0].PausedMs, f.nowMs)
	f.ok(f.signal(in.ID, ax.SignalPause)) // it is

	f.nowMs += 60_000
	f.ok(f.signal(in.ID, ax.SignalResume))
	f.answer(in.ID, 1, ax.SignalPause) // an answer to the one before
	equal(f, "open", f.states("h1")[0].AnsweredMs, 0)
	f.answer(in.ID, 1, ax.SignalResume, func(a *ax.SignalAnswer) { a.DeadlineMs = began + 7*minute })
	equal(f, "open or paused", len(f.states("h1")), 0)
	l = f.life(in.ID)
	equal(f, "the deadline", l.DeadlineMs, began+7*minute)
	equal(f, "paused", l.PausedMs, 0)
	f.fails(f.signal(in.ID, ax.SignalResume), ax.ErrConflict)

	f.nowMs += 1000
	f.ok(f.signal(in.ID, ax.SignalPause))
	f.answer(in.ID, 1, ax.SignalPause, func(a *ax.SignalAnswer) { a.Refused = "it cannot" })
	equal(f, "refused", f.life(in.ID).Signal.Refused, "it cannot")
	equal(f, "open after a refusal", len(f.states("h1")), 0)
	equal(f, "life line", f.notes(in.ID, began), "pause asked for by ann at 1; pause it is paused by dispatch at 2; "+
		"resume asked for by ann at 62; resume it goes on after 1 min by dispatch at 62; "+
		"pause asked for by ann at 63; pause refused: it cannot by dispatch at 63; ")

	// The next attempt was asked nothing.
	f.ok(f.signal(in.ID, ax.SignalPause))
	f.finish(f.again(in.Ref, 1, f.nowMs))
	f.fails(f.signal(in.ID, ax.SignalResume), ax.ErrConflict)
	f.answer(in.ID, 1, ax.SignalPause)
	h := *f.place()
	h.Ref, h.Attempt = in.Ref, 2
	got, err := f.Dispatch(f.ctx, []ax.Handover{h})
	f.ok(err)
	equal(f, "handover", got[0], ax.HandedOver)
	equal(f, "signals of the attempt before", len(f.states("h1")), 0)
	if st := f.life(in.ID).Signal; st != nil {
		f.Errorf("the next attempt was asked %+v", st)
	}
	_, err = f.Cancel(f.ctx, in.ID, "ann", f.nowMs)
	f.ok(err)
	f.fails(f.signal(in.ID, ax.SignalPause), ax.ErrConflict)
}

func testProgress(f *fixture) {
	a := f.task("a", nil)
	in := f.fire(a, nil)
	if p := f.life(in.ID).Progress; p != nil {
		f.Errorf("progress of nothing said: %+v", p)
	}
	tell := func(attempt int, atMs int64, percent float64, text string) {
		f.Helper()
		f.ok(f.Progressed(f.ctx, []ax.Progress{
			{InstanceID: in.ID, Attempt: attempt, AtMs: atMs, Percent: percent, Text: text},
			{InstanceID: 99, Attempt: 1, AtMs: 1},
		}))
	}
	want := func(attempt int, atMs int64, percent float64, text string) {
		f.Helper()
		alike(f, "progress", *f.life(in.ID).Progress, ax.Progress{InstanceID: in.ID, Attempt: attempt, AtMs: atMs, Percent: percent, Text: text})
	}
	tell(1, 5, 12.504, "a \xff\x00 b")
	want(1, 5, 12.5, "a \uFFFD\uFFFD b")
	tell(1, 6, ax.NoPercent, "loading")
	want(1, 6, ax.NoPercent, "loading")
	tell(1, 5, 99, "older")
	want(1, 6, ax.NoPercent, "loading")
	tell(2, 3, 100, "")
	tell(1, 9, 50, "of the attempt before")
	want(2, 3, 100, "")
	f.finish(f.ending(in.Ref, 1, ax.StatusSuccess))
	want(2, 3, 100, "") // it stays with the instance
}
