package planner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/planner"
	"github.com/axctl/ax/runtime/rules"
	"github.com/axctl/ax/schedule"
	"github.com/axctl/ax/store/memory"
)

// fataler is a *testing.T or a *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is a store, its clock, and nobody else.
type world struct {
	t       fataler
	store   *memory.Store
	nowMs   int64
	applies int
}

func newWorld(t fataler, at string) *world {
	w := &world{t: t, nowMs: ms(t, at)}
	w.store = memory.New(func() time.Time { return time.UnixMilli(w.nowMs) })
	return w
}

func (w *world) at(text string) *world {
	w.nowMs = ms(w.t, text)
	return w
}

func (w *world) state() ax.StackState {
	w.t.Helper()
	s, err := w.store.ReadStack(context.Background(), "s")
	if err != nil {
		w.t.Fatalf("read stack: %v", err)
	}
	return s
}

func (w *world) object(name string) ax.Object {
	w.t.Helper()
	for _, o := range w.state().Objects {
		if o.Name == name {
			return o
		}
	}
	w.t.Fatalf("no object %s", name)
	return ax.Object{}
}

func (w *world) plan(defs ...ax.Definition) *planner.Plan {
	w.t.Helper()
	p, err := planner.Diff(conf(defs...), w.state(), planner.Options{}, w.nowMs)
	if err != nil {
		w.t.Fatalf("diff: %v", err)
	}
	if err := p.Valid(); err != nil {
		w.t.Fatalf("plan is not valid: %v", err)
	}
	return p
}

func (w *world) changeSet(p *planner.Plan) ax.ChangeSet {
	w.t.Helper()
	w.applies++
	cs, err := p.ChangeSet(w.state(), fmt.Sprintf("apply-%d", w.applies), ax.Revision{Who: "ann"}, w.nowMs)
	if err != nil {
		w.t.Fatalf("change set: %v", err)
	}
	return cs
}

// apply plans and applies, and returns the plan.
func (w *world) apply(defs ...ax.Definition) *planner.Plan {
	w.t.Helper()
	p := w.plan(defs...)
	if !p.Empty() {
		w.commit(p)
	}
	return p
}

func (w *world) commit(p *planner.Plan) {
	w.t.Helper()
	if _, err := w.store.Apply(context.Background(), w.changeSet(p)); err != nil {
		w.t.Fatalf("apply: %v", err)
	}
}

// claim does what axd does with all that is due, and returns how many slots
// became instances.
func (w *world) claim() int {
	w.t.Helper()
	ctx := context.Background()
	due, err := w.store.DueTasks(ctx, w.nowMs, ax.DueCursor{}, 1000)
	if err != nil {
		w.t.Fatalf("due tasks: %v", err)
	}
	started := 0
	for _, d := range due {
		vs, err := w.store.TaskVersions(ctx, []ax.VersionKey{{ObjectID: d.TaskID, Version: d.Version}})
		if err != nil || len(vs) != 1 {
			w.t.Fatalf("version: %v", err)
		}
		spec := vs[0].Spec
		b := rules.Backlog{
			TaskID: d.TaskID, Version: d.Version, FirstMs: d.NextMs, EndMs: w.nowMs,
			Policy: spec.Misfire.Policy, Max: spec.Misfire.Max, Reason: ax.ReasonMisfire,
		}
		if !rules.Misfired(spec.Misfire, d.NextMs, w.nowMs) {
			b.Policy, b.Max = ax.MisfireAll, 1000
		}
		var tt ax.Timetable
		b.Account(compile(w.t, spec.Schedules...), d.LastSlotMs, &tt)
		f := ax.Firing{
			TaskID: d.TaskID, Version: d.Version, ExpectNextMs: d.NextMs, ExpectLockVersion: d.LockVersion,
			NextMs: tt.NextMs, LastSlotMs: tt.LastSlotMs, NowMs: w.nowMs, Overlap: spec.Overlap, Skipped: tt.Skipped,
		}
		for _, s := range tt.Starts {
			f.Starts = append(f.Starts, ax.FiringStart{DueMs: s.DueMs, CatchUp: true})
		}
		claimed, err := w.store.Claim(ctx, []ax.Firing{f})
		if err != nil || claimed[0].Lost {
			w.t.Fatalf("claim: %v %+v", err, claimed)
		}
		started += len(f.Starts)
	}
	return started
}

func (w *world) hold(name string) {
	w.t.Helper()
	h := ax.Hold{Kind: ax.HoldPaused, Who: "bob", SinceMs: w.nowMs, Reason: "inspection"}
	if err := w.store.Hold(context.Background(), w.object(name).ID, h); err != nil {
		w.t.Fatalf("hold: %v", err)
	}
}

func (w *world) resume(name string) {
	w.t.Helper()
	o := w.object(name)
	var spec ax.TaskSpec
	if err := json.Unmarshal(o.Definition, &spec); err != nil {
		w.t.Fatalf("definition: %v", err)
	}
	times := compile(w.t, spec.Schedules...)
	tt := rules.Resume(times, spec.Misfire, o.Version, o.ID, o.Row, times.Fingerprint(), ax.ReasonHeld, w.nowMs)
	if err := w.store.Resume(context.Background(), o.ID, tt, w.nowMs); err != nil {
		w.t.Fatalf("resume: %v", err)
	}
}

func (w *world) trigger(name string) {
	w.t.Helper()
	w.applies++
	tr := ax.Trigger{ObjectID: w.object(name).ID, UID: fmt.Sprint(w.applies), DueMs: w.nowMs, NowMs: w.nowMs, Who: "bob"}
	if _, err := w.store.Trigger(context.Background(), tr); err != nil {
		w.t.Fatalf("trigger: %v", err)
	}
}

// instances returns a task's instances, oldest due first.
func (w *world) instances(name string) []ax.InstanceRow {
	w.t.Helper()
	rows, err := w.store.Instances(context.Background(), ax.InstanceFilter{TaskID: w.object(name).ID, Limit: 100_000})
	if err != nil {
		w.t.Fatalf("instances: %v", err)
	}
	for i, j := 0, len(rows)-1; i < j; i, j = i+1, j-1 {
		rows[i], rows[j] = rows[j], rows[i]
	}
	return rows
}

func (w *world) stretches(name string) []ax.SkippedStretch {
	w.t.Helper()
	rows, err := w.store.Stretches(context.Background(), w.object(name).ID, 100_000)
	if err != nil {
		w.t.Fatalf("stretches: %v", err)
	}
	return rows
}

// next checks a task's next_fire_time.
func (w *world) next(name, want string) {
	w.t.Helper()
	if got := w.object(name).Row.NextMs; got != ms(w.t, want) {
		w.t.Fatalf("next fire of %s is %s, want %s", name, time.UnixMilli(got).UTC().Format(time.RFC3339), want)
	}
}

func conf(defs ...ax.Definition) ax.Configuration {
	return ax.Configuration{Stack: "s", Origin: "/etc/ax", Hash: "c0", Definitions: defs}
}

// task defines a task of the language's defaults, changed by edits.
func task(name string, edits ...func(*ax.TaskSpec)) ax.Definition {
	spec := &ax.TaskSpec{
		Handler: ax.HandlerSpec{Name: "shell", Body: json.RawMessage(`{"command":"true"}`)},
		Enabled: true, Timeout: 3_600_000, KillAfter: 10_000,
		Retry: ax.RetrySpec{
			Max: 3, Initial: 10_000, Factor: 2, MaxInterval: 300_000, Jitter: 0.2, On: ax.DefaultRetryOn,
		},
		Misfire:     ax.MisfireSpec{Policy: ax.MisfireOnce, Grace: 60_000, Max: 100, OnResume: ax.MisfireSkip},
		Concurrency: 1, Overlap: ax.OverlapQueue, Idempotent: true,
	}
	for _, edit := range edits {
		edit(spec)
	}
	return ax.Definition{
		Kind: ax.KindTask, Name: name, Task: spec,
		Source: ax.Range{Filename: "main.hcl", Start: ax.Pos{Line: 12}},
	}
}

func cron(expr, zone string) func(*ax.TaskSpec) {
	return func(s *ax.TaskSpec) {
		s.Schedules = append(s.Schedules, ax.ScheduleSpec{Cron: expr, Timezone: zone})
	}
}

func every(d time.Duration) func(*ax.TaskSpec) {
	return func(s *ax.TaskSpec) {
		s.Schedules = append(s.Schedules, ax.ScheduleSpec{Every: ax.DurationOf(d), Timezone: "UTC"})
	}
}

func disabled(s *ax.TaskSpec) { s.Enabled = false }

func timeout(d time.Duration) func(*ax.TaskSpec) {
	return func(s *ax.TaskSpec) { s.Timeout = ax.DurationOf(d) }
}

func misfire(policy, onResume ax.MisfirePolicy) func(*ax.TaskSpec) {
	return func(s *ax.TaskSpec) { s.Misfire.Policy, s.Misfire.OnResume = policy, onResume }
}

func compile(t fataler, specs ...ax.ScheduleSpec) *schedule.Schedule {
	t.Helper()
	s, err := schedule.Compile(specs)
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	return s
}

// ms reads RFC 3339.
func ms(t fataler, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatalf("instant: %v", err)
	}
	return at.UnixMilli()
}

// change returns the plan's one change.
func change(t *testing.T, p *planner.Plan) planner.PlannedChange {
	t.Helper()
	if len(p.Changes) != 1 {
		t.Fatalf("%d changes, want 1: %+v", len(p.Changes), p.Changes)
	}
	return p.Changes[0]
}

// dispatch hands the oldest n scheduled instances of a task over.
func (w *world) dispatch(name string, n int) {
	w.t.Helper()
	var hs []ax.Handover
	for _, in := range w.instances(name) {
		if len(hs) < n && in.Kind == ax.InstanceSchedule {
			hs = append(hs, ax.Handover{Ref: in.Ref, Attempt: 1, Host: "h", Boot: "b", AtMs: w.nowMs, DeadlineMs: w.nowMs + 30_000})
		}
	}
	results, err := w.store.Dispatch(context.Background(), hs)
	if err != nil {
		w.t.Fatalf("dispatch: %v", err)
	}
	for _, r := range results {
		if r != ax.HandedOver {
			w.t.Fatalf("dispatch: %v", results)
		}
	}
}
