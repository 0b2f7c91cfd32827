package why_test

import (
	"strings"
	"testing"

	"github.com/axctl/ax"
	"github.com/axctl/ax/why"
)

// backfill starts one of Bob's over the slots of a few hours.
func (w *world) backfill(from, to string) ax.Backfill {
	w.t.Helper()
	o := w.object()
	b, err := w.store.StartBackfill(w.t.Context(), ax.BackfillRequest{
		TaskID: o.ID, Version: o.Version, FromMs: w.ms(from), ToMs: w.ms(to) + 1, Mode: ax.BackfillMissing, Parallel: 1, Slots: 2, Who: "bob", AtMs: w.nowMs,
	})
	w.check(err)
	return b
}

// fill makes its instance for a slot.
func (w *world) fill(b ax.Backfill, at string) {
	w.t.Helper()
	got, err := w.store.Fill(w.t.Context(), ax.Fill{BackfillID: b.ID, ExpectPositionMs: b.PositionMs, Slots: []int64{w.ms(at)}, NowMs: w.nowMs})
	w.check(err)
	if len(got.Made) != 1 {
		w.t.Fatalf("filled %+v", got)
	}
}

func (w *world) pauseBackfill(b ax.Backfill) {
	w.t.Helper()
	_, err := w.store.MoveBackfill(w.t.Context(), ax.BackfillMove{ID: b.ID, To: ax.BackfillPaused, Who: "eve", NowMs: w.nowMs})
	w.check(err)
}

// missed applies a task that an outage made miss 12:00 and 13:00.
func (w *world) missed() {
	w.t.Helper()
	w.apply(task(misfire(ax.MisfireSkip)))
	w.at("2026-11-30T13:10:00Z")
	w.claim(true)
}

// What a backfill has done, and has still to do, is told with whatever else is
// the answer.
func TestBackfillsAreTold(t *testing.T) {
	t.Parallel()
	const first = "2026-11-30T12:00:00Z"
	for _, c := range []struct {
		name     string
		set      func(*world)
		at       string
		instance int64
		code     why.Code
		text     string // in the answer
		check    string // in the list
	}{
		{"to come", func(w *world) {
			w.missed()
			w.backfill(first, "2026-11-30T13:00:00Z")
		}, first, 0, why.Misfired, "Backfill 1 by bob has still to decide on it.", "yes     Will a backfill decide on it? backfill 1 by bob from Mon 2026-11-30 12:00 +00:00 to Mon 2026-11-30 13:00 +00:00, running, 0 of 2 slots decided"},
		{"to come, and paused", func(w *world) {
			w.missed()
			w.pauseBackfill(w.backfill(first, "2026-11-30T13:00:00Z"))
		}, first, 0, why.Misfired, "Backfill 1 by bob has still to decide on it, and is paused by eve: axctl backfill resume 1 goes on with it.", "paused by eve"},
		{"of before it was created", func(w *world) {
			w.apply(task())
			w.backfill("2026-11-29T12:00:00Z", "2026-11-29T13:00:00Z")
		}, "2026-11-29T13:00:00Z", 0, why.BeforeBirth, "Backfill 1 by bob has still to decide on it.", "Will a backfill decide on it?"},
		{"not of another slot", func(w *world) {
			w.apply(task())
			w.backfill("2026-11-29T12:00:00Z", "2026-11-29T13:00:00Z")
		}, "2026-11-29T14:00:00Z", 0, why.BeforeBirth, "commit 0123456789ab).", ""},
		{"made and run", func(w *world) {
			w.missed()
			w.fill(w.backfill(first, "2026-11-30T13:00:00Z"), first)
			w.dispatch(1)
			w.finish(1, "2026-11-30T13:11:00Z", well)
		}, first, 0, why.Misfired, "Instance 1, due Mon 2026-11-30 12:00 +00:00, was started by backfill 1 (success at Mon 2026-11-30 13:11 +00:00).", "Was it started by hand then?"},
		{"its instance", func(w *world) {
			w.missed()
			w.fill(w.backfill(first, "2026-11-30T13:00:00Z"), first)
			w.dispatch(1)
			w.finish(1, "2026-11-30T13:11:00Z", badly(ax.StatusFailed, ax.ClassFailed, "exit code 3"))
		}, "", 1, why.Failed, "exit code 3.", "instance 1, by bob at Mon 2026-11-30 13:10 +00:00, made by backfill 1"},
		{"its instance, that waits, held", func(w *world) {
			w.missed()
			w.hold(ax.HoldPaused, 0)
			w.fill(w.backfill(first, "2026-11-30T13:00:00Z"), first)
		}, "", 1, why.Starting, "Instance 1 is about to start", "yes     May it start?"},
		{"now", func(w *world) {
			w.missed()
			w.pauseBackfill(w.backfill(first, "2026-11-30T13:00:00Z"))
		}, "", 0, why.Comes, "It fires next", "yes     Is a backfill under way? backfill 1 by bob"},
		{"now, while it works", func(w *world) {
			w.missed()
			w.fill(w.backfill(first, "2026-11-30T13:00:00Z"), first)
			w.dispatch(1)
		}, "", 0, why.Running, "It runs: instance 1", "running, 1 of 2 slots decided"},
		{"a firing that waits for it", func(w *world) {
			w.missed()
			w.fill(w.backfill(first, "2026-11-30T13:00:00Z"), first)
			w.dispatch(1)
			w.fire("2026-11-30T14:00:00Z")
		}, "2026-11-30T14:00:00Z", 0, why.Turn, "Instance 2 waits for its turn behind instance 1 (not begun)", ""},
		{"and that waits for a firing", func(w *world) {
			w.missed()
			w.fire("2026-11-30T14:00:00Z")
			w.fill(w.backfill(first, "2026-11-30T13:00:00Z"), first)
		}, "", 2, why.Turn, "Instance 2 waits for its turn behind instance 1 (not begun)", "a person started it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.set(w)
			x := why.Explain(w.facts(c.at, c.instance))
			if x.Answer.Code != c.code || !strings.Contains(x.Answer.Text, c.text) || !strings.Contains(list(x), c.check) {
				t.Errorf("got %s: %s\nwant %s: ... %s\n%s", x.Answer.Code, x.Answer.Text, c.code, c.text, list(x))
			}
			if c.check == "" && strings.Contains(list(x), "Will a backfill") {
				t.Errorf("a backfill is told that has nothing to do with it:\n%s", list(x))
			}
		})
	}
}

// What waits of a backfill comes after what waits of the schedule, however old
// its slot is.
func TestScheduleIsToldBeforeBackfill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.missed()
	w.fire("2026-11-30T14:00:00Z") // at work
	w.fill(w.backfill("2026-11-30T12:00:00Z", "2026-11-30T13:00:00Z"), "2026-11-30T12:00:00Z")
	w.at("2026-11-30T15:00:00Z")
	w.claim(true)
	w.finish(1, "2026-11-30T15:00:05Z", well)
	if x := why.Explain(w.facts("", 3)); x.Answer.Code != why.Starting {
		t.Errorf("the firing: %s\n%s", x.Answer.Text, list(x))
	}
	if x := why.Explain(w.facts("", 2)); x.Answer.Code != why.Turn || !strings.Contains(x.Answer.Text, "behind instance 3 (waiting)") {
		t.Errorf("the backfill's: %s\n%s", x.Answer.Text, list(x))
	}
}
