package planner_test

import (
	"context"
	"encoding/json"
	"fmt"
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
