package why_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/planner"
	"github.com/axctl/ax/runtime/rules"
	"github.com/axctl/ax/schedule"
	"github.com/axctl/ax/store/memory"
	"github.com/axctl/ax/why"
)

// world is a store, its clock, and an axd that does what it is told.
type world struct {
	t       *testing.T
	store   *memory.Store
	nowMs   int64
	daemon  bool
	clock   ax.ClockMark // of this machine; zero: not looked at
	zone    *time.Location
	applies int
}

// newWorld begins at 11:30 on a Monday, with axd running.
func newWorld(t *testing.T) *world {
	w := &world{t: t, zone: time.UTC}
	w.at("2026-11-30T11:30:00Z")
	w.store = memory.New(func() time.Time { return time.UnixMilli(w.nowMs) })
	w.start("boot1")
	return w
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// at sets the clock.
func (w *world) at(text string) { w.nowMs = w.ms(text) }

func (w *world) ms(text string) int64 {
	w.t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	w.check(err)
	return at.UnixMilli()
}

// start lets axd join as it does, stop ends it as a drain does.
func (w *world) start(boot string, handlers ...string) {
	w.t.Helper()
	if handlers == nil {
		handlers = []string{"shell", "http"}
	}
	w.daemon = true
	w.check(w.store.Join(w.t.Context(), ax.Host{
		Name: "h1", Boot: boot, PID: 7, DataDir: "/var/lib/ax", Handlers: handlers, StartedMs: w.nowMs,
		Pools: map[string]int{"shell": 64, "http": 64, "hot": 8},
	}))
}

// offer lets the running axd tell of one plugin and its handler daily.
func (w *world) offer(problem, schema string) {
	w.t.Helper()
	w.check(w.store.Offer(w.t.Context(), ax.HostOffer{
		Host: "h1", Boot: "boot1", AtMs: w.nowMs,
		Handlers: []ax.OfferedHandler{{Name: "daily", Executor: "report", SchemaHash: "1f", Schema: []byte(schema)}},
		Plugins:  []ax.HostPlugin{{Name: "report", Path: "/plugins/ax-handler-report", Problem: problem}},
	}))
}

func (w *world) stop() {
	w.t.Helper()
	w.daemon = false
	w.check(w.store.Leave(w.t.Context(), "h1", "boot1", w.nowMs))
}

// task edits a task of the language's defaults that fires each hour.
func task(edits ...func(*ax.TaskSpec)) *ax.TaskSpec {
	spec := &ax.TaskSpec{
		Handler:   ax.HandlerSpec{Name: "shell", Body: json.RawMessage(`{"command":"true"}`)},
		Schedules: []ax.ScheduleSpec{{Cron: "0 * * * *", Timezone: "UTC"}},
		Enabled:   true, Timeout: 3_600_000, KillAfter: 10_000,
		Misfire:     ax.MisfireSpec{Policy: ax.MisfireOnce, Grace: 60_000, Max: 100, OnResume: ax.MisfireSkip},
		Concurrency: 1, Overlap: ax.OverlapQueue, Idempotent: true,
	}
	for _, edit := range edits {
		edit(spec)
	}
	return spec
}

func cron(expr, zone string) func(*ax.TaskSpec) {
	return func(s *ax.TaskSpec) { s.Schedules = []ax.ScheduleSpec{{Cron: expr, Timezone: zone}} }
}

func overlap(o ax.Overlap) func(*ax.TaskSpec) { return func(s *ax.TaskSpec) { s.Overlap = o } }
func disabled(s *ax.TaskSpec)                 { s.Enabled = false }
func unscheduled(s *ax.TaskSpec)              { s.Schedules = nil }
func pool(name string) func(*ax.TaskSpec)     { return func(s *ax.TaskSpec) { s.Pool = name } }
func handler(name string) func(*ax.TaskSpec)  { return func(s *ax.TaskSpec) { s.Handler.Name = name } }

func startWithin(d ax.Duration) func(*ax.TaskSpec) {
	return func(s *ax.TaskSpec) { s.StartWithin = d }
}

func misfire(p ax.MisfirePolicy) func(*ax.TaskSpec) {
	return func(s *ax.TaskSpec) { s.Misfire.Policy = p }
}

// apply plans and applies a stack of one task, of none when spec is nil.
func (w *world) apply(spec *ax.TaskSpec) {
	w.t.Helper()
	c := ax.Configuration{Stack: "s", Origin: "/etc/ax", Hash: "c"}
	if spec != nil {
		c.Definitions = []ax.Definition{{Kind: ax.KindTask, Name: "a", Task: spec}}
	}
	state, err := w.store.ReadStack(w.t.Context(), "s")
	w.check(err)
	p, err := planner.Diff(c, state, planner.Options{}, w.nowMs)
	w.check(err)
	w.applies++
	r := ax.Revision{Who: "ann", Host: "desk", Origin: "/etc/ax", GitCommit: "0123456789abcdef"}
	cs, err := p.ChangeSet(state, fmt.Sprintf("apply-%d", w.applies), r, w.nowMs)
	w.check(err)
	_, err = w.store.Apply(w.t.Context(), cs)
	w.check(err)
}

func (w *world) object() ax.Object {
	w.t.Helper()
	objects, err := w.store.Objects(w.t.Context(), ax.ObjectFilter{Stack: "s"})
	w.check(err)
	return objects[0]
}

// claim does what axd does with what is due; with a place, what may begin is
// born dispatched.
func (w *world) claim(place bool) {
	w.t.Helper()
	due, err := w.store.DueTasks(w.t.Context(), w.nowMs, ax.DueCursor{}, 10)
	w.check(err)
	for _, d := range due {
		vs, err := w.store.TaskVersions(w.t.Context(), []ax.VersionKey{{ObjectID: d.TaskID, Version: d.Version}})
		w.check(err)
		spec := vs[0].Spec
		late := rules.Misfired(spec.Misfire, d.NextMs, w.nowMs)
		b := rules.Backlog{
			TaskID: d.TaskID, Version: d.Version, FirstMs: d.NextMs, EndMs: w.nowMs,
			Policy: spec.Misfire.Policy, Max: spec.Misfire.Max, Reason: ax.ReasonMisfire,
		}
		if !late {
			b.Policy = ax.MisfireAll
		}
		times, err := schedule.Compile(spec.Schedules)
		w.check(err)
		var tt ax.Timetable
		b.Account(times, d.LastSlotMs, &tt)
		f := ax.Firing{
			TaskID: d.TaskID, Version: d.Version, ExpectNextMs: d.NextMs, ExpectLockVersion: d.LockVersion,
			NextMs: tt.NextMs, LastSlotMs: tt.LastSlotMs, NowMs: w.nowMs, Overlap: spec.Overlap, Skipped: tt.Skipped,
		}
		for _, s := range tt.Starts {
			start := ax.FiringStart{DueMs: s.DueMs, CatchUp: late}
			if by := rules.StartBy(spec.StartWithin, ax.InstanceSchedule, 1, s.DueMs, s.DueMs); by != 0 && by <= w.nowMs {
				start.Skip = ax.ReasonStartWithin
			} else if place {
				start.Place = &ax.Handover{Host: "h1", Boot: "boot1", Executor: "shell", AtMs: w.nowMs, DeadlineMs: w.nowMs + 30_000}
			}
			f.Starts = append(f.Starts, start)
		}
		claimed, err := w.store.Claim(w.t.Context(), []ax.Firing{f})
		w.check(err)
		if claimed[0].Lost {
			w.t.Fatal("the claim was lost")
		}
	}
}

// fire sets the clock and claims with a place.
func (w *world) fire(at string) {
	w.t.Helper()
	w.at(at)
	w.claim(true)
}

// dispatch hands a waiting instance over.
func (w *world) dispatch(id int64) {
	w.t.Helper()
	l := w.life(id)
	got, err := w.store.Dispatch(w.t.Context(), []ax.Handover{{
		Ref: l.Ref, Attempt: l.Attempt, Host: "h1", Boot: "boot1", Executor: "shell", AtMs: w.nowMs, DeadlineMs: w.nowMs + 30_000,
	}})
	w.check(err)
	if got[0] != ax.HandedOver {
		w.t.Fatalf("instance %d: %s", id, got[0])
	}
}

func (w *world) life(id int64) ax.Life {
	w.t.Helper()
	l, err := w.store.Instance(w.t.Context(), id)
	w.check(err)
	return l
}

// started lets the executor say that it has begun.
func (w *world) started(id int64) {
	w.t.Helper()
	l := w.life(id)
	w.check(w.store.Started(w.t.Context(), []ax.Started{{Ref: l.Ref, Attempt: l.Attempt, StartedMs: w.nowMs, DeadlineMs: w.nowMs + 3_600_000}}))
}

// finish sets the clock and ends an attempt as edited from a success.
func (w *world) finish(id int64, at string, edit func(*ax.Ending)) {
	w.t.Helper()
	w.at(at)
	l := w.life(id)
	e := ax.Ending{
		Ref: l.Ref, Attempt: l.Attempt, Status: ax.StatusSuccess, StartedMs: l.HandedMs,
		EndedMs: w.nowMs, StoppedMs: w.nowMs, NowMs: w.nowMs,
	}
	edit(&e)
	_, err := w.store.Finish(w.t.Context(), []ax.Ending{e})
	w.check(err)
}

func well(*ax.Ending) {}

func badly(status ax.Status, class ax.ErrorClass, text string) func(*ax.Ending) {
	return func(e *ax.Ending) { e.Status, e.ErrorClass, e.Error = status, class, text }
}

// trigger starts an instance by hand.
func (w *world) trigger() {
	w.t.Helper()
	w.applies++
	_, err := w.store.Trigger(w.t.Context(), ax.Trigger{
		ObjectID: w.object().ID, UID: fmt.Sprint(w.applies), DueMs: w.nowMs, NowMs: w.nowMs, Who: "bob",
	})
	w.check(err)
}

func (w *world) cancel(id int64) {
	w.t.Helper()
	_, err := w.store.Cancel(w.t.Context(), id, "bob", w.nowMs)
	w.check(err)
}

// lapse does what axd does with an instance that was not started in time.
func (w *world) lapse(id int64, at string) {
	w.t.Helper()
	w.at(at)
	done, err := w.store.Lapse(w.t.Context(), []ax.Lapse{{Ref: w.life(id).Ref, NowMs: w.nowMs}})
	w.check(err)
	if !done[0] {
		w.t.Fatalf("instance %d did not lapse", id)
	}
}

func (w *world) hold(kind ax.HoldKind, untilMs int64) {
	w.t.Helper()
	w.check(w.store.Hold(w.t.Context(), w.object().ID, ax.Hold{
		Kind: kind, Who: "bob", SinceMs: w.nowMs, UntilMs: untilMs, Reason: "moving house",
	}))
}

func (w *world) resume() {
	w.t.Helper()
	o := w.object()
	var spec ax.TaskSpec
	w.check(json.Unmarshal(o.Definition, &spec))
	times, err := schedule.Compile(spec.Schedules)
	w.check(err)
	tt := rules.Resume(times, spec.Misfire, o.Version, o.ID, o.Row, times.Fingerprint(), ax.ReasonHeld, w.nowMs)
	w.check(w.store.Resume(w.t.Context(), o.ID, tt, w.nowMs))
}

// facts are what axctl reads for a question; at "" is now.
func (w *world) facts(at string, instance int64) why.Facts {
	w.t.Helper()
	q := why.Question{Object: w.object(), InstanceID: instance, NowMs: w.nowMs, Zone: w.zone, Daemon: w.daemon}
	if at != "" {
		q.AtMs = w.ms(at)
	}
	q.Clock = w.clock
	f, err := why.Gather(context.Background(), w.store, q)
	w.check(err)
	return f
}

// list writes the checks one a line.
func list(x why.Explanation) string {
	var b strings.Builder
	for _, c := range x.Checks {
		fmt.Fprintf(&b, "%-7s %s %s\n", c.Outcome, c.Question, c.Evidence)
	}
	return b.String()
}
