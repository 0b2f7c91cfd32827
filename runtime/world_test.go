package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime"
	"github.com/axctl/ax/runtime/rules"
	"github.com/axctl/ax/schedule"
	"github.com/axctl/ax/store/check"
	"github.com/axctl/ax/store/memory"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a host with a store. Its clock is the bubble's.
type world struct {
	t      testing.TB
	store  *memory.Store
	audit  ax.Auditor // what is checked at the end
	faults *faults
	exec   *executors
	cfg    runtime.Config
	engine *runtime.Engine
	stop   context.CancelFunc
	done   chan error
	boots  int
	serial int64
	log    buffer

	mu     sync.Mutex
	events []runtime.Event
}

// simulate runs body in a bubble of its own time, and checks the store after it.
func simulate(t *testing.T, body func(w *world)) {
	t.Helper()
	t.Parallel()
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, folder)
		defer w.end()
		body(w)
	})
}

// newWorld makes a world inside a bubble.
func newWorld(t testing.TB, folder string) *world {
	st := memory.New(time.Now)
	w := &world{t: t, store: st, audit: st, faults: &faults{Store: st}, exec: newExecutors()}
	info, err := st.Info(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	w.cfg = runtime.Config{
		Claims: w.faults, Fills: w.faults, Dispatches: w.faults, Cancels: w.faults, Watcher: w.faults,
		Host: "h1", Incarnation: info.Incarnation,
		JournalPath: filepath.Join(folder, "reports"),
		Log:         slog.New(slog.NewTextHandler(&w.log, nil)),
		OnEvent: func(e runtime.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
		},
	}
	return w
}

// end kills what runs and checks the store.
func (w *world) end() {
	if w.engine != nil {
		w.kill()
	}
	w.verify()
	if w.t.Failed() {
		w.t.Log(w.log.String())
	}
}

// boot starts an engine as a fresh axd would.
func (w *world) boot() {
	w.t.Helper()
	w.boots++
	w.cfg.Boot = fmt.Sprintf("boot%d", w.boots)
	w.cfg.Executors = w.exec
	var err error
	if w.engine, err = runtime.New(w.cfg); err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	w.stop, w.done = stop, make(chan error, 1)
	engine, done := w.engine, w.done
	go func() { done <- engine.Run(ctx) }()
	synctest.Wait()
}

// crash ends axd at once; its executors go on.
func (w *world) crash() {
	w.t.Helper()
	w.stop()
	if err := <-w.done; err != nil {
		w.t.Error("run:", err)
	}
	if err := w.engine.Close(); err != nil {
		w.t.Error("close:", err)
	}
	w.engine = nil
	w.exec.leave()
}

// kill ends axd and its executors at once; a fresh set of executors knows
// nothing of what ran.
func (w *world) kill() {
	w.t.Helper()
	w.crash()
	w.exec = w.exec.next()
}

// pass lets time go by.
func (w *world) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// until lets time go by to a clock time of the bubble's first day.
func (w *world) until(clock string) {
	w.t.Helper()
	at, err := time.Parse("2006-01-02T15:04:05.999", "2000-01-01T"+clock)
	if err != nil {
		w.t.Fatal(err)
	}
	w.pass(time.Until(at))
}

// task returns a definition that fires each minute.
func taskSpec(edit ...func(*ax.TaskSpec)) *ax.TaskSpec {
	s := &ax.TaskSpec{
		Handler:   ax.HandlerSpec{Name: "work", Body: json.RawMessage(`{}`)},
		Schedules: []ax.ScheduleSpec{{Every: minute, Timezone: "UTC"}},
		Enabled:   true, Timeout: 60 * minute, KillAfter: 10_000,
		Retry: ax.RetrySpec{
			Initial: 10_000, Factor: 2, MaxInterval: 5 * minute, On: ax.RetryBlockOn,
		},
		Misfire:     ax.MisfireSpec{Policy: ax.MisfireOnce, Grace: minute, Max: 100, OnResume: ax.MisfireSkip},
		Concurrency: 1, Overlap: ax.OverlapQueue, Idempotent: true,
	}
	for _, e := range edit {
		e(s)
	}
	return s
}

const minute = ax.Duration(60_000)

// apply creates or changes a task as a plan would, next firing strictly after
// now.
func (w *world) apply(name string, spec *ax.TaskSpec) int64 {
	w.t.Helper()
	def := ax.Definition{Kind: ax.KindTask, Name: name, Task: spec}
	body, hash := def.Canonical()
	sched, err := schedule.Compile(spec.Schedules)
	if err != nil {
		w.t.Fatal(err)
	}
	now := time.Now().UnixMilli()
	tt := &ax.Timetable{Fingerprint: sched.Fingerprint()}
	if spec.Enabled {
		tt.NextMs, _ = sched.Next(now)
	}
	c := ax.Change{
		Action: ax.ActionCreate, Kind: ax.KindTask, Name: name, Definition: body, Hash: hash,
		Task: &ax.TaskChange{Enabled: spec.Enabled, MaxActive: spec.Concurrency, Overlap: spec.Overlap, FreezeAfter: spec.FreezeAfter, Timetable: tt},
	}
	for _, o := range w.objects() {
		if o.Name == name {
			c.Action, c.ObjectID, c.BaseVersion = ax.ActionUpdate, o.ID, o.Version
			tt.ExpectNextMs, tt.ExpectLockVersion = o.Row.NextMs, o.Row.LockVersion
			if o.Row.NextMs != 0 && o.Row.NextMs <= now {
				w.endBacklog(o, tt, now)
			}
			if !spec.Enabled {
				c.Task.SkipPending = ax.ReasonDisabled
			}
		}
	}
	_, err = w.store.Apply(w.t.Context(), ax.ChangeSet{
		ApplyID: fmt.Sprint(name, w.serial), Stack: "s", BaseSerial: w.serial, NowMs: now,
		Changes: []ax.Change{c},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.serial++
	return w.object(name).ID
}

// endBacklog skips the unclaimed slots of a version that ends.
func (w *world) endBacklog(o ax.Object, tt *ax.Timetable, now int64) {
	w.t.Helper()
	var old ax.TaskSpec
	if err := json.Unmarshal(o.Definition, &old); err != nil {
		w.t.Fatal(err)
	}
	sched, err := schedule.Compile(old.Schedules)
	if err != nil {
		w.t.Fatal(err)
	}
	next := tt.NextMs
	rules.Backlog{
		TaskID: o.ID, Version: o.Version, FirstMs: o.Row.NextMs, EndMs: now,
		Policy: ax.MisfireSkip, Reason: ax.ReasonMisfire,
	}.Account(sched, o.Row.LastSlotMs, tt)
	tt.NextMs = next
}

func (w *world) objects() []ax.Object {
	w.t.Helper()
	os, err := w.store.Objects(context.Background(), ax.ObjectFilter{Stack: "s"})
	if err != nil {
		w.t.Fatal(err)
	}
	return os
}

func (w *world) object(name string) ax.Object {
	w.t.Helper()
	for _, o := range w.objects() {
		if o.Name == name {
			return o
		}
	}
	w.t.Fatalf("no task %s", name)
	return ax.Object{}
}

// rows returns the instances of a task, oldest due first.
func (w *world) rows(name string) []ax.Instance {
	w.t.Helper()
	rows, err := w.store.Instances(context.Background(), ax.InstanceFilter{TaskID: w.object(name).ID, Limit: 1 << 20})
	if err != nil {
		w.t.Fatal(err)
	}
	is := make([]ax.Instance, len(rows))
	for i, r := range rows {
		is[len(rows)-1-i] = r.Instance
	}
	return is
}

// count returns how many instances of a task have each status.
func (w *world) count(name string) map[ax.Status]int {
	m := map[ax.Status]int{}
	for _, r := range w.rows(name) {
		m[r.Status]++
	}
	return m
}

func (w *world) life(id int64) ax.Life {
	w.t.Helper()
	l, err := w.store.Instance(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

func (w *world) causes(id int64) []ax.Cause {
	var cs []ax.Cause
	for _, tr := range w.life(id).Transitions {
		cs = append(cs, tr.Cause)
	}
	return cs
}

func (w *world) trigger(name string) int64 {
	w.t.Helper()
	now := time.Now().UnixMilli()
	ref, err := w.store.Trigger(context.Background(), ax.Trigger{
		ObjectID: w.object(name).ID, UID: fmt.Sprint(now), DueMs: now, NowMs: now, Who: "ann",
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return ref.ID
}

func (w *world) hold(name string) {
	w.t.Helper()
	h := ax.Hold{Kind: ax.HoldPaused, Who: "ann", SinceMs: time.Now().UnixMilli()}
	if err := w.store.Hold(context.Background(), w.object(name).ID, h); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) wantStatuses(name string, want ...ax.Status) {
	w.t.Helper()
	var got []ax.Status
	for _, r := range w.rows(name) {
		got = append(got, r.Status)
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("%s: statuses %v, want %v", name, got, want)
	}
}

// verify checks what must hold after every history.
func (w *world) verify() {
	w.t.Helper()
	for b, n := range w.exec.sent {
		if n != 1 {
			w.t.Errorf("batch %s was given to executors %d times", b, n)
		}
	}
	for _, b := range w.exec.revived {
		w.t.Errorf("batch %s was begun after it had been given up", b)
	}
	findings, err := check.Check(context.Background(), w.audit, time.Now())
	if err != nil {
		w.t.Error(err)
	}
	for _, f := range findings {
		w.t.Error(f)
	}
}

// buffer keeps the log for the test to read.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
