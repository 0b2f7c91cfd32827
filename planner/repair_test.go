package planner_test

import (
	"strings"
	"testing"

	"github.com/axctl/ax"
	"github.com/axctl/ax/planner"
)

// A stored next fire that does not follow from the schedule is set right, with
// no new version, and starts nothing.
func TestRepair(t *testing.T) {
	t.Parallel()
	nightly := task("t", cron("0 2 * * *", "UTC"))
	for name, c := range map[string]struct {
		spoil func(*ax.TaskRow)
		note  string
	}{
		"parked far away": {func(r *ax.TaskRow) { r.NextMs += 365 * 86_400_000 }, "set right"},
		"no slot at all":  {func(r *ax.TaskRow) { r.NextMs -= 3_600_000 }, "set right"},
		"lost":            {func(r *ax.TaskRow) { r.NextMs = 0 }, "set right"},
		"switched off":    {func(r *ax.TaskRow) { r.NextMs, r.Enabled = 0, false }, "set right"},
		"other tzdata":    {func(r *ax.TaskRow) { r.Fingerprint = "before" }, "time zone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, morning)
			w.apply(nightly)
			state := w.state()
			good := state.Objects[0].Row
			c.spoil(&state.Objects[0].Row)
			p, err := planner.Diff(conf(nightly), state, planner.Options{}, w.nowMs)
			if err != nil {
				t.Fatal(err)
			}
			ch := change(t, p)
			if ch.Action != ax.ActionUpdate || ch.ToVersion != ch.FromVersion || len(ch.Attributes) != 0 {
				t.Errorf("repair is planned as %+v", ch)
			}
			if notes := strings.Join(ch.Effects.Notes, "\n"); !strings.Contains(notes, c.note) {
				t.Errorf("notes %q", notes)
			}
			if err := p.Valid(); err != nil {
				t.Error(err)
			}
			cs, err := p.ChangeSet(state, "x", ax.Revision{}, w.nowMs)
			if err != nil {
				t.Fatal(err)
			}
			tt := cs.Changes[0].Task.Timetable
			if tt == nil || tt.NextMs != good.NextMs || tt.Fingerprint != good.Fingerprint || len(tt.Starts) != 0 {
				t.Errorf("repaired to %+v, good was %+v", tt, good)
			}
		})
	}
}

// Slots that a broken row has passed over are accounted for as skipped.
func TestRepairAccountsForLostSlots(t *testing.T) {
	t.Parallel()
	hourly := task("t", cron("0 * * * *", "UTC"), misfire(ax.MisfireAll, ax.MisfireAll))
	w := newWorld(t, "2026-03-02T08:30:00Z")
	w.apply(hourly)
	state := w.state()
	state.Objects[0].Row.NextMs = ms(t, "2026-03-02T20:00:00Z")
	w.at("2026-03-02T11:30:00Z")
	p, err := planner.Diff(conf(hourly), state, planner.Options{}, w.nowMs)
	if err != nil {
		t.Fatal(err)
	}
	cs, err := p.ChangeSet(state, "x", ax.Revision{}, w.nowMs)
	if err != nil {
		t.Fatal(err)
	}
	tt := cs.Changes[0].Task.Timetable
	if len(tt.Starts) != 0 || len(tt.Skipped) != 1 || tt.Skipped[0].Slots != 3 || tt.NextMs != ms(t, "2026-03-02T12:00:00Z") {
		t.Errorf("repaired to %+v", tt)
	}
}
