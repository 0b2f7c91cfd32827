package planner_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/planner"
)

// Faults that users of other schedulers met; the numbers are those of the
// project's collection of cases.

// B003: editing a schedule fires it at once for a time already past.
func TestEditNeverFiresThePast(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after  string
		zone           string
		made, ran, now string
		next           string
	}{
		"a weekly report": {
			"0 21 * * tue,fri", "0 23 * * wed,sun", "UTC",
			"2024-01-29T00:00:00Z", "2024-01-30T21:00:00Z", "2024-02-02T08:05:00Z", "2024-02-04T23:00:00Z",
		},
		"an hour later on the same day": {
			"15 1 * * 1-5", "15 2 * * 1-5", "America/Chicago",
			"2023-04-12T00:00:00Z", "2023-04-13T06:15:00Z", "2023-04-13T14:00:00Z", "2023-04-14T07:15:00Z",
		},
		"an earlier time that has passed today": {
			"0 20 * * *", "0 6 * * *", "UTC",
			"2024-01-01T00:00:00Z", "2024-01-01T20:00:00Z", "2024-01-02T08:00:00Z", "2024-01-03T06:00:00Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.made)
			w.apply(task("t", cron(c.before, c.zone), misfire(ax.MisfireOnce, ax.MisfireOnce)))
			for w.at(c.ran).claim() > 0 {
			}
			ran := len(w.instances("t"))
			if ran == 0 {
				t.Fatal("it never ran under the first rule")
			}
			edited := task("t", cron(c.after, c.zone), misfire(ax.MisfireOnce, ax.MisfireOnce))
			p := w.at(c.now).apply(edited)
			if e := change(t, p).Effects; e.NextFireAfterMs != ms(t, c.next) || e.Backlog != nil {
				t.Errorf("the plan says next fire %s, backlog %+v", e.NextFireAfter, e.Backlog)
			}
			w.next("t", c.next)
			w.nowMs += 60_000
			if w.claim(); len(w.instances("t")) != ran {
				t.Errorf("the edit made an instance: %+v", w.instances("t"))
			}
		})
	}
}

// B013: resume runs the slot that passed during the pause.
func TestEnablingRunsNothingOfTheDisabledStretch(t *testing.T) {
	t.Parallel()
	nightly := cron("0 2 * * *", "Europe/Bucharest")
	w := newWorld(t, "2026-08-14T10:00:00Z")
	w.apply(task("sweep", nightly))
	p := w.at("2026-08-14T20:00:00Z").apply(task("sweep", nightly, disabled))
	if e := change(t, p).Effects; e.NextFireAfterMs != 0 || e.NextFireBefore != "2026-08-15T02:00:00+03:00" {
		t.Errorf("disabled: next fire %q -> %q", e.NextFireBefore, e.NextFireAfter)
	}
	if w.object("sweep").Row.NextMs != 0 {
		t.Error("a disabled task has a next fire")
	}
	p = w.at("2026-08-15T04:49:00Z").apply(task("sweep", nightly))
	w.next("sweep", "2026-08-15T23:00:00Z")
	b := change(t, p).Effects.Backlog
	if b == nil || b.Skipped != 1 || b.Starts != 0 || b.Reason != ax.ReasonDisabled || b.First != "2026-08-15T02:00:00+03:00" {
		t.Errorf("the plan tells of the stretch %+v", b)
	}
	w.at("2026-08-15T04:51:00Z").claim()
	if got := w.instances("sweep"); len(got) != 0 {
		t.Errorf("it ran: %+v", got)
	}
	if got := w.stretches("sweep"); len(got) != 1 || got[0].FromMs != ms(t, "2026-08-14T23:00:00Z") || got[0].Slots != 1 || got[0].Version != 2 {
		t.Errorf("the slot of the stretch is accounted for as %+v", got)
	}
}

// B058: an interval is counted from a fixed anchor, whatever is applied.
func TestIntervalKeepsItsAnchor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "2026-03-01T00:00:00Z")
	w.apply(task("sync", every(6*time.Hour)))
	var fired []string
	for hour := 2; hour <= 24; hour += 2 {
		w.nowMs = ms(t, "2026-03-01T00:00:00Z") + int64(hour)*3_600_000
		w.apply(task("sync", every(6*time.Hour), timeout(time.Duration(hour)*time.Minute)))
		w.claim()
	}
	for _, in := range w.instances("sync") {
		fired = append(fired, time.UnixMilli(in.DueMs).UTC().Format("15:04"))
	}
	if want := []string{"06:00", "12:00", "18:00", "00:00"}; !slices.Equal(fired, want) {
		t.Errorf("fired at %v, want %v", fired, want)
	}
}

// B064: a task parked a year ahead and restored.
func TestChangedRuleMovesTheStoredTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "2026-03-01T00:00:00Z")
	w.apply(task("t", cron("0 0 1 1 *", "UTC")))
	w.next("t", "2027-01-01T00:00:00Z")
	p := w.at("2026-03-01T00:02:00Z").apply(task("t", cron("*/5 * * * *", "UTC")))
	w.next("t", "2026-03-01T00:05:00Z")
	if e := change(t, p).Effects; e.Difference != "305 d 23 h earlier" {
		t.Errorf("the difference is told as %q", e.Difference)
	}
	w.apply(task("t", cron("0 12 * * *", "UTC")))
	w.next("t", "2026-03-01T12:00:00Z")
	w.apply(task("t", cron("0 12 * * *", "Asia/Tokyo"))) // the zone only
	w.next("t", "2026-03-01T03:00:00Z")
	w.apply(task("t", func(s *ax.TaskSpec) { // the window only
		s.Schedules = []ax.ScheduleSpec{{Cron: "0 12 * * *", Timezone: "Asia/Tokyo", From: "2026-04-01T00:00:00Z"}}
	}))
	w.next("t", "2026-04-01T03:00:00Z")
	p = w.apply(task("t", cron("0 12 * * *", "Asia/Tokyo"), timeout(time.Minute))) // and back
	w.next("t", "2026-03-01T03:00:00Z")
	if p.Counts.Changed != 1 {
		t.Errorf("counts %+v", p.Counts)
	}
}

// B028: a saved plan applied over a newer state.
func TestStalePlan(t *testing.T) {
	t.Parallel()
	t.Run("not stale", func(t *testing.T) {
		t.Parallel()
		w, p := planned(t)
		w.at("2026-03-01T02:00:10Z").claim()
		w.hold("a")
		if moved := planner.Stale(p, w.state()); moved != nil {
			t.Errorf("claims and holds make it stale: %+v", moved)
		}
	})
	t.Run("applied twice", func(t *testing.T) {
		t.Parallel()
		w, p := planned(t)
		w.commit(p)
		isStale(t, w, p, planner.StaleObject{
			Address: "task.a", Read: 1, Found: 2, Who: "ann", AtMs: w.nowMs, Detail: "is v2, the plan read v1",
		})
	})
	t.Run("somebody changed what the plan leaves alone", func(t *testing.T) {
		t.Parallel()
		w, p := planned(t)
		w.apply(task("a", cron("0 2 * * *", "UTC")), task("b", cron("0 9 * * *", "UTC")))
		isStale(t, w, p, planner.StaleObject{Address: "task.b", Read: 1, Found: 2, Who: "ann", AtMs: w.nowMs})
	})
	t.Run("somebody added an object", func(t *testing.T) {
		t.Parallel()
		w, p := planned(t)
		w.apply(task("a", cron("0 2 * * *", "UTC")), task("b", cron("0 3 * * *", "UTC")), task("c"))
		isStale(t, w, p, planner.StaleObject{
			Address: "task.c", Found: 1, Who: "ann", AtMs: w.nowMs, Detail: "was made (v1) after the plan",
		})
	})
	t.Run("somebody deleted an object", func(t *testing.T) {
		t.Parallel()
		w, p := planned(t)
		w.apply(task("a", cron("0 2 * * *", "UTC")))
		isStale(t, w, p, planner.StaleObject{
			Address: "task.b", Read: 1, Who: "ann", AtMs: w.nowMs, Detail: "was deleted after the plan, which read v1",
		})
	})
	t.Run("made and deleted again", func(t *testing.T) {
		t.Parallel()
		w, _ := planned(t)
		a, b := task("a", cron("0 2 * * *", "UTC")), task("b", cron("0 3 * * *", "UTC"))
		p := w.plan(a, b, task("c"))
		w.commit(p)
		w.apply(a, b)
		isStale(t, w, p, planner.StaleObject{})
	})
	t.Run("another store", func(t *testing.T) {
		t.Parallel()
		_, p := planned(t)
		other, _ := planned(t)
		isStale(t, other, p, planner.StaleObject{})
	})
	t.Run("made before there was a store", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "2026-03-01T00:00:00Z")
		p, err := planner.Diff(conf(task("a")), ax.StackState{Stack: "s"}, planner.Options{}, w.nowMs)
		if err != nil {
			t.Fatal(err)
		}
		isStale(t, w, p, planner.StaleObject{})
	})
	t.Run("another stack", func(t *testing.T) {
		t.Parallel()
		w, p := planned(t)
		p.Stack = "other"
		isStale(t, w, p, planner.StaleObject{})
	})
}

// planned is a world with a plan for it.
func planned(t *testing.T) (*world, *planner.Plan) {
	w := newWorld(t, "2026-03-01T00:00:00Z")
	w.apply(task("a", cron("0 2 * * *", "UTC")), task("b", cron("0 3 * * *", "UTC")))
	return w, w.plan(task("a", cron("0 4 * * *", "UTC")), task("b", cron("0 3 * * *", "UTC")))
}

// isStale checks that a plan is refused for what has moved.
func isStale(t *testing.T, w *world, p *planner.Plan, want planner.StaleObject) {
	t.Helper()
	moved := planner.Stale(p, w.state())
	if len(moved) != 1 {
		t.Fatalf("moved: %+v", moved)
	}
	if want.Detail == "" {
		want.Detail = moved[0].Detail
	}
	if moved[0] != want {
		t.Errorf("moved: %+v, want %+v", moved[0], want)
	}
	_, err := p.ChangeSet(w.state(), "x", ax.Revision{}, w.nowMs)
	if !errors.Is(err, ax.ErrStale) {
		t.Errorf("a change set of a stale plan: %v", err)
	}
	if want.Address != "" && !strings.HasPrefix(err.Error(), want.Address+" was ") {
		t.Errorf("the error does not name it: %v", err)
	}
	if _, _, err := p.Refresh(w.state(), planner.Options{}, w.nowMs); !errors.Is(err, ax.ErrStale) {
		t.Errorf("effects of a stale plan: %v", err)
	}
}

// B028: time alone makes no plan stale; its effects are computed anew.
func TestTimePassesOverAPlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "2026-03-01T00:00:00Z")
	w.apply(task("a", cron("0 2 * * *", "UTC")), task("b", cron("0 3 * * *", "UTC")))
	p := w.plan(task("a", cron("0 1 * * *", "UTC")), task("b", cron("0 3 * * *", "UTC"), timeout(time.Minute)))
	w.at("2026-03-01T01:00:00Z")
	fresh, shifts, err := p.Refresh(w.state(), planner.Options{}, w.nowMs)
	if err != nil {
		t.Fatal(err)
	}
	want := planner.Shift{
		Address: "task.a", Before: "2026-03-01T01:00:00Z", BeforeMs: ms(t, "2026-03-01T01:00:00Z"),
		After: "2026-03-02T01:00:00Z", AfterMs: ms(t, "2026-03-02T01:00:00Z"),
	}
	if len(shifts) != 1 || shifts[0] != want {
		t.Errorf("shifts %+v, want %+v", shifts, want)
	}
	if err := fresh.Valid(); err != nil || fresh.PlanHash != p.PlanHash || fresh.MadeAtMs != w.nowMs {
		t.Errorf("the plan as of now: %v %+v", err, fresh)
	}
	if p.Changes[0].Effects.NextFireAfter != want.Before {
		t.Error("the plan that was reviewed has changed")
	}
	w.commit(p)
	w.next("a", want.After)
	w.next("b", "2026-03-01T03:00:00Z")
}

// B011: three days of a minute job, and the schedule changes before axd is
// back: the version that missed them accounts for them.
func TestOutageBeforeAChange(t *testing.T) {
	t.Parallel()
	for policy, starts := range map[ax.MisfirePolicy]int{ax.MisfireSkip: 0, ax.MisfireOnce: 1, ax.MisfireAll: 10} {
		minutely := func(s *ax.TaskSpec) { s.Misfire.Policy, s.Misfire.Max = policy, 10 }
		w := newWorld(t, "2026-02-28T23:59:30Z")
		w.apply(task("t", cron("* * * * *", "UTC"), minutely))
		p := w.at("2026-03-04T00:00:00Z").apply(task("t", cron("0 * * * *", "UTC"), minutely))
		b := change(t, p).Effects.Backlog
		if b == nil || b.Version != 1 || b.Starts != starts || b.Skipped != -1 || b.Policy != policy ||
			b.Reason != ax.ReasonMisfire || b.FirstMs != ms(t, "2026-03-01T00:00:00Z") || b.LastMs != w.nowMs {
			t.Errorf("%s: the plan tells of %+v", policy, b)
		}
		got := w.instances("t")
		if len(got) != starts {
			t.Errorf("%s: %d instances, want %d", policy, len(got), starts)
		}
		for i, in := range got {
			if in.Version != 1 || in.DueMs != w.nowMs-int64(len(got)-1-i)*60_000 {
				t.Errorf("%s: instance %d of v%d is due at %d", policy, i, in.Version, in.DueMs)
			}
		}
		w.next("t", "2026-03-04T01:00:00Z")
	}
}

// B019: what is at work keeps its version, and a delete says what becomes of it.
func TestInFlight(t *testing.T) {
	t.Parallel()
	hourly := cron("0 * * * *", "UTC")
	allow := func(s *ax.TaskSpec) { s.Overlap, s.Concurrency = ax.OverlapAllow, 2 }
	setup := func(t *testing.T) *world {
		w := newWorld(t, "2026-03-01T00:30:00Z")
		w.apply(task("t", hourly, allow))
		for range 5 {
			w.nowMs += 3_600_000
			w.claim()
		}
		w.trigger("t")
		w.dispatch("t", 2)
		return w
	}
	t.Run("update", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		p := w.apply(task("t", hourly, allow, timeout(time.Minute)))
		got := change(t, p).Effects.InFlight
		if len(got) != 1 || got[0].Outcome != planner.OutcomeEnds || got[0].Count != 6 || len(got[0].Instances) != 3 || got[0].Instances[0].Version != 1 {
			t.Errorf("in flight %+v", got)
		}
		for _, in := range w.instances("t") {
			if in.Version != 1 || in.Status.Final() {
				t.Errorf("instance %d is %s on v%d", in.ID, in.Status, in.Version)
			}
		}
	})
	t.Run("more than a plan reads", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		state := w.state()
		for len(state.InFlight) < ax.MaxInFlight {
			state.InFlight = append(state.InFlight, ax.InFlight{ObjectID: 99, Status: ax.StatusPending})
		}
		state.Objects[0].Row.Waiting += 3
		p, err := planner.Diff(conf(), state, planner.Options{}, w.nowMs)
		if err != nil {
			t.Fatal(err)
		}
		if notes := change(t, p).Effects.Notes; len(notes) != 1 || notes[0] != "9 of its instances are open; not all are counted above" {
			t.Errorf("notes %q", notes)
		}
	})
	for name, c := range map[string]struct {
		defs   []ax.Definition
		reason ax.Reason
		ends   int // dispatched ones, and manual ones unless deleted
	}{
		"delete":  {nil, ax.ReasonDeleted, 2},
		"disable": {[]ax.Definition{task("t", hourly, allow, disabled)}, ax.ReasonDisabled, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			p := w.apply(c.defs...)
			got := change(t, p).Effects.InFlight
			if len(got) != 2 || got[0].Count != c.ends || got[1].Outcome != planner.OutcomeSkip || got[1].Count != 6-c.ends {
				t.Fatalf("in flight %+v", got)
			}
			open := 0
			for _, in := range w.instances("t") {
				switch {
				case !in.Status.Final():
					open++
				case in.Status != ax.StatusSkipped || in.Reason != c.reason:
					t.Errorf("instance %d is %s (%s)", in.ID, in.Status, in.Reason)
				}
			}
			if open != c.ends {
				t.Errorf("%d instances go on, the plan says %d", open, c.ends)
			}
		})
	}
}

// A slot of the old rule between the computing of an apply and its commit would
// be nobody's: until the row has it, the change does not hold. The same for a
// task that is disabled, deleted, held or enabled.
func TestChangeHoldsUntilTheOldRuleIsDue(t *testing.T) {
	t.Parallel()
	yearly := cron("0 0 1 1 *", "UTC")
	off := func(s *ax.TaskSpec) { s.Enabled = false }
	for name, tc := range map[string]struct {
		before, after []ax.Definition
		want          string
	}{
		"a rule":    {defs(task("a", every(time.Minute))), defs(task("a", yearly)), "2026-03-02T08:01:00Z"},
		"off":       {defs(task("a", every(time.Minute))), defs(task("a", every(time.Minute), off)), "2026-03-02T08:01:00Z"},
		"on":        {defs(task("a", every(time.Minute), off)), defs(task("a", yearly)), "2026-03-02T08:01:00Z"},
		"deleted":   {defs(task("a", every(time.Minute)), task("b", yearly)), defs(task("b", yearly)), "2026-03-02T08:01:00Z"},
		"a new one": {defs(task("a", yearly)), defs(task("a", yearly), task("b", every(time.Hour))), "2026-03-02T09:00:00Z"},
	} {
		w := newWorld(t, morning)
		w.apply(tc.before...)
		cs, err := w.plan(tc.after...).ChangeSet(w.state(), "id", ax.Revision{}, w.nowMs)
		if err != nil || cs.ValidUntilMs != ms(t, tc.want) {
			t.Errorf("%s: valid until %s, want %s (%v)", name, time.UnixMilli(cs.ValidUntilMs).UTC(), tc.want, err)
		}
	}
}

func defs(ds ...ax.Definition) []ax.Definition { return ds }
