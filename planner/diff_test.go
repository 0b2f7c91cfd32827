package planner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/planner"
)

const morning = "2026-03-02T08:00:00Z" // a Monday

func TestDiffActions(t *testing.T) {
	t.Parallel()
	nightly := cron("0 2 * * *", "UTC")
	w := newWorld(t, morning)
	w.apply(task("same", nightly), task("edited", nightly), task("gone", nightly))
	p := w.plan(task("new", nightly), task("edited", nightly, timeout(time.Minute)), task("same", nightly))
	if p.Counts != (planner.Counts{Added: 1, Changed: 1, Deleted: 1, Unchanged: 1}) || p.Empty() {
		t.Errorf("counts %+v", p.Counts)
	}
	var got []string
	for _, c := range p.Changes {
		got = append(got, fmt.Sprintf("%s %s v%d->v%d %s", c.Action, c.Address, c.FromVersion, c.ToVersion, c.Source))
	}
	want := []string{"update task.edited v1->v2 main.hcl:12", "delete task.gone v1->v2 ", "create task.new v0->v1 main.hcl:12"}
	if !slices.Equal(got, want) {
		t.Errorf("changes %q, want %q", got, want)
	}
	if want := map[string]int{"task.same": 1, "task.edited": 1, "task.gone": 1}; fmt.Sprint(p.Read) != fmt.Sprint(want) {
		t.Errorf("read set %v, want %v", p.Read, want)
	}
	state := w.state()
	if p.StoreID != state.StoreID || p.Stack != "s" || p.BaseSerial != 1 || p.ConfigHash != "c0" ||
		p.Origin != "/etc/ax" || p.BaseOrigin != "/etc/ax" || p.MadeAt != morning {
		t.Errorf("head %+v", p)
	}
}

func TestDestroy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, morning)
	w.apply(task("a", every(time.Hour)), task("b"))
	p, err := planner.Diff(conf(task("a", every(time.Hour))), w.state(), planner.Options{Destroy: true}, w.nowMs)
	if err != nil {
		t.Fatal(err)
	}
	if p.Counts.Deleted != 2 || p.Valid() != nil {
		t.Fatalf("destroy plans %+v", p.Counts)
	}
	w.commit(p)
	for _, o := range w.state().Objects {
		if !o.Deleted || o.Row.NextMs != 0 {
			t.Errorf("%s is left as %+v", o.Address(), o)
		}
	}
	if p := w.plan(); !p.Empty() || len(p.Read) != 0 {
		t.Errorf("what is deleted is planned again: %+v", p)
	}
}

// A name made again revives its id and goes on with the next version.
func TestRevive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, morning)
	w.apply(task("a", every(time.Hour)))
	id := w.object("a").ID
	w.at("2026-03-02T09:00:01Z").claim()
	w.apply()
	p := w.at("2026-03-02T12:30:00Z").apply(task("a", every(time.Hour)))
	c := change(t, p)
	if c.Action != ax.ActionCreate || c.FromVersion != 0 || c.ToVersion != 3 || c.Effects.Backlog != nil {
		t.Errorf("made again as %+v", c)
	}
	if o := w.object("a"); o.ID != id || o.Version != 3 || o.Deleted {
		t.Errorf("revived as %+v", o)
	}
	w.next("a", "2026-03-02T13:00:00Z")
	if got := w.instances("a"); len(got) != 1 {
		t.Errorf("hours in which it was not there have made instances: %+v", got)
	}
	if notes := strings.Join(c.Effects.Notes, "\n"); !strings.Contains(notes, "history goes on with v3") {
		t.Errorf("notes %q", notes)
	}
}

// An edit that is not about time leaves time exactly as it is, whatever hour.
func TestUnrelatedEditMovesNothing(t *testing.T) {
	t.Parallel()
	nightly := cron("0 2 * * *", "UTC")
	for name, edit := range map[string]func(*ax.TaskSpec){
		"timeout":     timeout(time.Minute),
		"handler":     func(s *ax.TaskSpec) { s.Handler.Body = json.RawMessage(`{"command":"false"}`) },
		"overlap":     func(s *ax.TaskSpec) { s.Overlap, s.Concurrency = ax.OverlapAllow, 7 },
		"labels":      func(s *ax.TaskSpec) { s.Labels = map[string]string{"team": "x"} },
		"same rule":   func(s *ax.TaskSpec) { s.Schedules[0].Cron = "00 2 * * *" },
		"description": func(s *ax.TaskSpec) { s.Description = "nightly" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, morning)
			w.apply(task("t", nightly))
			before := w.object("t").Row
			p := w.at("2026-03-02T20:00:00Z").plan(task("t", nightly, edit))
			c := change(t, p)
			if c.Effects.Moved || c.Effects.NextFireBeforeMs != before.NextMs || c.Effects.NextFireAfterMs != before.NextMs ||
				c.Effects.Difference != "" || c.Effects.Then != nil {
				t.Errorf("effects %+v", c.Effects)
			}
			cs := w.changeSet(p)
			if cs.Changes[0].Task.Timetable != nil || cs.ValidUntilMs != 0 {
				t.Errorf("the change moves time: %+v", cs.Changes[0].Task.Timetable)
			}
			w.commit(p)
			if after := w.object("t").Row; after.NextMs != before.NextMs || after.LastSlotMs != before.LastSlotMs {
				t.Errorf("the row was %+v and is %+v", before, after)
			}
		})
	}
}

func TestEffectsOfASchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "2026-11-30T12:00:00Z")
	w.apply(task("report", cron("0 2 * * *", "Asia/Shanghai")))
	desired := conf(task("report", cron("0 1 * * *", "Asia/Shanghai"), timeout(30*time.Minute)))
	p, err := planner.Diff(desired, w.state(), planner.Options{NextN: 2}, w.nowMs)
	if err != nil {
		t.Fatal(err)
	}
	c := change(t, p)
	want := []planner.AttributeDiff{
		{Path: "schedule.cron", Before: json.RawMessage(`"0 2 * * *"`), After: json.RawMessage(`"0 1 * * *"`)},
		{Path: "timeout", Before: json.RawMessage(`"1h"`), After: json.RawMessage(`"30m"`)},
	}
	if fmt.Sprintf("%s", c.Attributes) != fmt.Sprintf("%s", want) {
		t.Errorf("attributes %s, want %s", c.Attributes, want)
	}
	e := c.Effects
	if e.NextFireBefore != "2026-12-01T02:00:00+08:00" || e.NextFireAfter != "2026-12-01T01:00:00+08:00" || e.Difference != "1 h earlier" || !e.Moved {
		t.Errorf("next fire %s -> %s, %q", e.NextFireBefore, e.NextFireAfter, e.Difference)
	}
	if len(e.Then) != 2 || e.Then[0].Due != "2026-12-02T01:00:00+08:00" || e.Then[1].DueMs != ms(t, "2026-12-02T17:00:00Z") {
		t.Errorf("then %+v", e.Then)
	}
	if len(e.Notes)+len(e.Warnings) != 0 || e.Backlog != nil || e.InFlight != nil {
		t.Errorf("there is nothing more to tell: %+v", e)
	}
}

func TestExhaustedSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t, morning)
	once := func(s *ax.TaskSpec) {
		s.Schedules = []ax.ScheduleSpec{{At: []string{"2026-03-01T00:00:00Z"}, Timezone: "UTC"}}
	}
	p := w.apply(task("t", once), task("by_hand"))
	if e := p.Changes[1].Effects; len(e.Warnings) != 1 || !strings.HasPrefix(e.Warnings[0], "no next fire") || e.NextFireAfterMs != 0 || e.Then != nil {
		t.Errorf("a schedule that is over: %+v", e)
	}
	if e := p.Changes[0].Effects; e.Warnings != nil {
		t.Errorf("a task without a schedule: %+v", e)
	}
	if again := w.plan(task("t", once), task("by_hand")); !again.Empty() {
		t.Errorf("planned again: %s", text(again))
	}
}

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

// A stored version that this program cannot read keeps nobody from mending or
// deleting it.
func TestUnreadableStoredVersion(t *testing.T) {
	t.Parallel()
	for name, definition := range map[string]string{
		"no JSON":         `{"handler":`,
		"a zone that was": `{"schedule":[{"cron":"0 2 * * *","timezone":"Mars/Olympus"}],"enabled":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, morning)
			w.apply(task("t", cron("0 2 * * *", "UTC")))
			state := w.state()
			state.Objects[0].Definition, state.Objects[0].Hash = json.RawMessage(definition), "other"
			w.at("2026-03-05T08:00:00Z")
			for _, defs := range [][]ax.Definition{nil, {task("t", cron("0 3 * * *", "UTC"))}} {
				p, err := planner.Diff(conf(defs...), state, planner.Options{}, w.nowMs)
				if err != nil {
					t.Fatal(err)
				}
				if e := change(t, p).Effects; len(e.Warnings) != 1 || !strings.Contains(e.Warnings[0], "not accounted for") {
					t.Errorf("warnings %q", e.Warnings)
				}
				cs, err := p.ChangeSet(state, "x", ax.Revision{}, w.nowMs)
				if err != nil {
					t.Fatal(err)
				}
				if tt := cs.Changes[0].Task.Timetable; !tt.Settled || len(tt.Starts)+len(tt.Skipped) != 0 {
					t.Errorf("timetable %+v", tt)
				}
			}
		})
	}
}

func TestRenameIsTold(t *testing.T) {
	t.Parallel()
	nightly := cron("0 2 * * *", "UTC")
	w := newWorld(t, morning)
	w.apply(task("a", nightly), task("b", nightly), task("c", nightly, timeout(time.Minute)))
	p := w.plan(task("x", nightly), task("y", nightly, timeout(time.Hour/2)))
	if want := []planner.Rename{{From: "task.a", To: "task.x"}}; !slices.Equal(p.Renames, want) {
		t.Errorf("renames %+v, want %+v", p.Renames, want)
	}
	if p.Counts.Added != 2 || p.Counts.Deleted != 3 {
		t.Errorf("a rename is no more than told: %+v", p.Counts)
	}
}

// plan_hash is what a plan does, whenever and on whatever numbers it is made.
func TestPlanHash(t *testing.T) {
	t.Parallel()
	plan := func(at string, edits ...func(*ax.TaskSpec)) *planner.Plan {
		w := newWorld(t, at)
		w.apply(task("a", every(time.Hour)))
		if at != morning { // other versions and serials
			w.apply(task("a", every(time.Hour), timeout(time.Second)))
			w.apply(task("a", every(time.Hour)))
		}
		return w.plan(task("a", edits...), task("b"))
	}
	one := plan(morning, every(time.Minute))
	if other := plan("2027-03-01T00:00:00Z", every(time.Minute)); other.PlanHash != one.PlanHash {
		t.Error("instants or numbers change the plan hash")
	}
	for name, other := range map[string]*planner.Plan{
		"another definition": plan(morning, every(2*time.Minute)),
		"no change of a":     plan(morning, every(time.Hour)),
	} {
		if other.PlanHash == one.PlanHash {
			t.Errorf("%s has the same plan hash", name)
		}
	}
}

func TestDiffRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		desired ax.Configuration
		stored  ax.StackState
		want    string
	}{
		"another stack": {conf(task("a")), ax.StackState{Stack: "other"}, `stack "s"`},
		"one name twice": {
			conf(task("a"), task("a", every(time.Hour))), ax.StackState{}, "task.a is declared twice",
		},
		"a schedule that is none": {conf(task("a", cron("0 2 * *", "UTC"))), ax.StackState{}, "task.a: schedule: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := planner.Diff(c.desired, c.stored, planner.Options{}, ms(t, morning))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestNextN(t *testing.T) {
	t.Parallel()
	for asked, want := range map[int]int{0: planner.DefaultNext, -1: planner.DefaultNext, 1: 1, 7: 7, 1 << 40: planner.MaxNext} {
		p, err := planner.Diff(conf(task("a", every(time.Hour))), ax.StackState{}, planner.Options{NextN: asked}, ms(t, morning))
		if err != nil {
			t.Fatal(err)
		}
		if got := len(p.Changes[0].Effects.Then); got != want {
			t.Errorf("asked for %d, got %d, want %d", asked, got, want)
		}
	}
}

// The change set says who, from where and what, and until when it holds.
func TestChangeSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, morning)
	w.apply(task("gone", every(time.Hour)), task("edited", every(time.Hour)))
	limits := func(s *ax.TaskSpec) { s.Concurrency, s.Overlap = 4, ax.OverlapLatest }
	p := w.plan(task("edited", limits, every(10*time.Minute)), task("new", every(2*time.Hour)))
	cs, err := p.ChangeSet(w.state(), "id", ax.Revision{Who: "ann", Host: "h", Message: "faster", GitCommit: "c"}, w.nowMs)
	if err != nil {
		t.Fatal(err)
	}
	want := ax.Revision{
		ApplyID: "id", Stack: "s", Serial: 2, AtMs: w.nowMs, Who: "ann", Host: "h", Origin: "/etc/ax", GitCommit: "c",
		PlanHash: p.PlanHash, ConfigHash: "c0", Message: "faster", Added: 1, Changed: 1, Deleted: 1,
	}
	if cs.Revision != want {
		t.Errorf("revision %+v, want %+v", cs.Revision, want)
	}
	if cs.ApplyID != "id" || cs.StoreID != p.StoreID || cs.BaseSerial != 1 || cs.ValidUntilMs != ms(t, "2026-03-02T08:10:00Z") {
		t.Errorf("change set %+v", cs)
	}
	edited, gone, added := cs.Changes[0], cs.Changes[1], cs.Changes[2]
	if edited.BaseVersion != 1 || edited.ObjectID == 0 || edited.Task.MaxActive != 4 || edited.Task.Overlap != ax.OverlapLatest {
		t.Errorf("edited %+v", edited)
	}
	if gone.Definition != nil || gone.Task.Enabled || gone.Task.SkipPending != ax.ReasonDeleted || gone.Task.Timetable.NextMs != 0 || gone.Task.MaxActive != 1 {
		t.Errorf("gone %+v %+v", gone, gone.Task)
	}
	if added.BaseVersion != 0 || added.ObjectID != 0 || added.Task.Timetable.ExpectNextMs != 0 {
		t.Errorf("added %+v", added)
	}
	// A commit after the first new firing would write a moment that has passed.
	w.at("2026-03-02T08:10:00Z")
	if _, err := w.store.Apply(context.Background(), cs); err == nil {
		t.Error("a change set was taken after its time")
	}
}
