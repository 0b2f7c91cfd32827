package planner_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/planner"
)

func TestHeldTask(t *testing.T) {
	t.Parallel()
	nightly, later := cron("0 2 * * *", "UTC"), cron("0 3 * * *", "UTC")
	w := newWorld(t, morning)
	w.apply(task("t", nightly, misfire(ax.MisfireAll, ax.MisfireSkip)), task("free"))
	w.hold("t")
	p := w.at("2026-03-05T08:00:00Z").apply(task("t", later), task("free"))
	held := []planner.HeldObject{{
		Address: "task.t", Kind: ax.HoldPaused, Who: "bob", Since: morning, SinceMs: ms(t, morning), Reason: "inspection",
	}}
	if !slices.Equal(p.Held, held) {
		t.Errorf("held %+v", p.Held)
	}
	if b := change(t, p).Effects.Backlog; b == nil || b.Reason != ax.ReasonHeld || b.Skipped != 3 || b.Starts != 0 {
		t.Errorf("backlog %+v", b)
	}
	o := w.object("t")
	if o.Row.Hold == nil || o.Row.Hold.Who != "bob" {
		t.Errorf("apply changed the hold: %+v", o.Row.Hold)
	}
	w.next("t", "2026-03-06T03:00:00Z")
	if w.at("2026-03-06T03:00:30Z").claim() != 0 {
		t.Error("a held task fired")
	}
	if p := w.plan(task("t", later), task("free")); !p.Empty() || len(p.Held) != 1 {
		t.Errorf("held tasks are told in every plan: %+v", p)
	}
	w.resume("t")
	w.next("t", "2026-03-07T03:00:00Z")
}

// Instants of a hold are written in the task's zone, as all others are.
func TestHoldInTheTasksZone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, morning)
	w.apply(task("t", cron("0 2 * * *", "Asia/Tokyo")))
	w.hold("t")
	p := w.plan(task("t", cron("0 2 * * *", "Asia/Tokyo")))
	if len(p.Held) != 1 || !strings.HasSuffix(p.Held[0].Since, "+09:00") || p.Held[0].SinceMs != ms(t, morning) {
		t.Errorf("held %+v", p.Held)
	}
}

// A hold that has ended while axd was down held what was due until then; the
// rest is an outage.
func TestHoldThatEndedUnseen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		until   string
		starts  []string
		skipped map[ax.Reason]int
	}{
		"in the middle":        {"2026-03-04T02:00:00Z", []string{"2026-03-05T02:00:00Z"}, map[ax.Reason]int{ax.ReasonHeld: 1, ax.ReasonMisfire: 1}},
		"before the first":     {"2026-03-02T09:00:00Z", []string{"2026-03-05T02:00:00Z"}, map[ax.Reason]int{ax.ReasonMisfire: 2}},
		"after the last":       {"2026-03-05T07:00:00Z", nil, map[ax.Reason]int{ax.ReasonHeld: 3}},
		"it has not ended yet": {"2026-03-06T07:00:00Z", nil, map[ax.Reason]int{ax.ReasonHeld: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, morning)
			w.apply(task("t", cron("0 2 * * *", "UTC")))
			h := ax.Hold{Kind: ax.HoldPaused, Who: "bob", SinceMs: w.nowMs, UntilMs: ms(t, c.until)}
			if err := w.store.Hold(context.Background(), w.object("t").ID, h); err != nil {
				t.Fatal(err)
			}
			p := w.at("2026-03-05T08:00:00Z").apply(task("t", cron("0 3 * * *", "UTC")))
			var starts []string
			for _, in := range w.instances("t") {
				starts = append(starts, time.UnixMilli(in.DueMs).UTC().Format(time.RFC3339))
			}
			skipped := map[ax.Reason]int{}
			slots := 0
			for _, sk := range w.stretches("t") {
				skipped[sk.Reason] += sk.Slots
				slots += sk.Slots
			}
			if !slices.Equal(starts, c.starts) || !maps.Equal(skipped, c.skipped) {
				t.Errorf("starts %v, skips %v", starts, skipped)
			}
			b := change(t, p).Effects.Backlog
			if b == nil || b.Starts != len(c.starts) || b.Skipped != slots || b.First != "2026-03-03T02:00:00Z" || b.Last != "2026-03-05T02:00:00Z" {
				t.Errorf("backlog %+v", b)
			}
			w.next("t", "2026-03-06T03:00:00Z")
		})
	}
}

// Each stretch of a disabled task is decided on once, by the version that had
// the schedule.
func TestDisabledTask(t *testing.T) {
	t.Parallel()
	hourly, nightly := cron("0 * * * *", "UTC"), cron("0 2 * * *", "UTC")
	catchUp := misfire(ax.MisfireOnce, ax.MisfireOnce)
	w := newWorld(t, morning)
	p := w.apply(task("t", hourly, disabled, catchUp))
	if e := change(t, p).Effects; e.NextFireAfterMs != 0 || len(e.Warnings) != 0 {
		t.Errorf("made disabled: %+v", e)
	}
	// v2: the rule changes while it is disabled; nothing starts.
	p = w.at("2026-03-02T11:30:00Z").apply(task("t", nightly, disabled, catchUp))
	if b := change(t, p).Effects.Backlog; b == nil || b.Version != 1 || b.Skipped != 3 || b.Starts != 0 {
		t.Errorf("the first stretch: %+v", b)
	}
	// v3: enabled; on_resume = once runs the newest of the second stretch.
	p = w.at("2026-03-04T08:00:00Z").apply(task("t", nightly, catchUp))
	b := change(t, p).Effects.Backlog
	if b == nil || b.Version != 2 || b.Skipped != 1 || b.Starts != 1 || b.Policy != ax.MisfireOnce {
		t.Errorf("the second stretch: %+v", b)
	}
	if in := w.instances("t"); len(in) != 1 || in[0].Version != 2 || in[0].DueMs != ms(t, "2026-03-04T02:00:00Z") {
		t.Errorf("instances %+v", in)
	}
	w.next("t", "2026-03-05T02:00:00Z")
	// v4: disabled during an outage; its slots do not run.
	p = w.at("2026-03-06T08:00:00Z").apply(task("t", nightly, catchUp, disabled))
	if b := change(t, p).Effects.Backlog; b == nil || b.Skipped != 2 || b.Starts != 0 || b.Reason != ax.ReasonDisabled {
		t.Errorf("the outage: %+v", b)
	}
	if in := w.instances("t"); len(in) != 1 || in[0].Status != ax.StatusSkipped {
		t.Errorf("instances %+v", in)
	}
	slots := 0
	for _, sk := range w.stretches("t") {
		slots += sk.Slots
	}
	if slots != 3+1+2 {
		t.Errorf("stretches %+v", w.stretches("t"))
	}
}

// Slots that are late but no misfire yet start as they would have.
func TestLateSlotsOfAVersionThatEnds(t *testing.T) {
	t.Parallel()
	patient := func(s *ax.TaskSpec) { s.Misfire.Policy, s.Misfire.Grace = ax.MisfireSkip, 600_000 }
	w := newWorld(t, "2026-03-02T08:00:30Z")
	w.apply(task("t", cron("* * * * *", "UTC"), patient))
	p := w.at("2026-03-02T08:03:10Z").apply(task("t", cron("0 * * * *", "UTC"), patient))
	if b := change(t, p).Effects.Backlog; b == nil || b.Starts != 3 || b.Skipped != 0 || b.Policy != ax.MisfireAll {
		t.Errorf("backlog %+v", b)
	}
	if in := w.instances("t"); len(in) != 3 || in[0].Version != 1 {
		t.Errorf("instances %+v", in)
	}
}

// A backlog that an edit does not end is left to axd, and told.
func TestBacklogLeftToAxd(t *testing.T) {
	t.Parallel()
	nightly := cron("0 2 * * *", "UTC")
	w := newWorld(t, morning)
	w.apply(task("t", nightly))
	p := w.at("2026-03-05T08:00:00Z").apply(task("t", nightly, timeout(time.Minute)))
	b := change(t, p).Effects.Backlog
	if b == nil || !b.Left || b.Version != 2 || b.First != "2026-03-03T02:00:00Z" || b.Last != "2026-03-05T02:00:00Z" || b.Policy != ax.MisfireOnce {
		t.Errorf("backlog %+v", b)
	}
	if w.claim(); len(w.instances("t")) != 1 || w.instances("t")[0].Version != 2 {
		t.Errorf("axd made %+v", w.instances("t"))
	}
}
