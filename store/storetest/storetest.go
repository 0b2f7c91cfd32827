// Package storetest is the contract of a store as tests: every driver runs
// them all, and a random run that is compared with the model in memory. Each
// test ends with the invariants of store/check.
//
// It also has Faulty, a store that fails, delays or loses answers.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store/check"
)

// Store is a store with all its ports.
type Store interface {
	ax.Definitions
	ax.Operations
	ax.BackfillOperations
	ax.Fills
	ax.Claims
	ax.Dispatches
	ax.CancelIntents
	ax.Watcher
	ax.Hosts
	ax.Plugins
	ax.Retention
	ax.Upkeep
	ax.Queries
	ax.Auditor
	io.Closer
}

// Open makes an empty store whose clock is now. It is closed by the caller's
// cleanup.
type Open func(t testing.TB, now func() time.Time) Store

// Run runs the contract against the stores that open makes.
func Run(t *testing.T, open Open) {
	tests := []struct {
		name string
		run  func(*fixture)
	}{
		{"apply writes and reads back", testApply},
		{"apply refuses what is stale", testApplyStale},
		{"apply is found by its id", testApplyAgain},
		{"a plugin has versions and no hot row", testApplyPlugin},
		{"versions of a task, deleted and revived", testVersions},
		{"objects by address and id", testObjects},
		{"apply leaves other stacks alone", testStacks},
		{"apply against time and claims", testTimetable},
		{"apply accounts for passed slots", testSettled},
		{"apply ends what waits", testSkipPending},
		{"due tasks", testDueTasks},
		{"claim", testClaim},
		{"claim loses alone", testClaimLost},
		{"overlap", testOverlap},
		{"overlap spares a retry", testOverlapRetry},
		{"catch-up and stretches", testCatchUp},
		{"what waits ahead", testAhead},
		{"rewind after a clock that was ahead", testRewind},
		{"hand over", testDispatch},
		{"pending", testPending},
		{"born too late to start", testBornTooLate},
		{"not started in time", testLapse},
		{"every move on every state, twice", testMoves},
		{"moves of another attempt", testOlderAttempt},
		{"every birth, twice", testBirths},
		{"reports in every order", testFinishOrders},
		{"ended before its processes are gone", testEndedBeforeStopped},
		{"retry", testRetry},
		{"no retry of what is deleted or disabled", testNoRetry},
		{"late results are bounded", testLateResults},
		{"bytes that are no text", testDirtyText},
		{"cancel", testCancel},
		{"cancel against retry and success", testCancelBeats},
		{"signals", testSignals},
		{"progress", testProgress},
		{"trigger", testTrigger},
		{"trigger with a key", testTriggerKey},
		{"retry by a person", testRetryByHand},
		{"mark", testMark},
		{"backfill", testBackfill},
		{"backfill, one step at a time", testBackfillSteps},
		{"backfill by what became of slots", testBackfillModes},
		{"backfill, paused, cancelled, deleted", testBackfillMoves},
		{"backfill beside the schedule", testBackfillOverlap},
		{"backfill of pruned history", testBackfillPruned},
		{"hold and resume", testHold},
		{"freeze_after", testFreeze},
		{"freeze_after and backfills", testFreezeBackfill},
		{"freeze_after spares holds and deleted tasks", testFreezeSpares},
		{"hosts", testHosts},
		{"the clock's mark", testClockMark},
		{"what hosts offer", testOffers},
		{"declared plugins", testDeclaredPlugins},
		{"prune what is old", testPrune},
		{"prune stretches", testPruneStretches},
		{"prune in steps, twice at once", testPruneSteps},
		{"instances in pages", testInstances},
		{"changed by others", testChanged},
		{"claims at once", testConcurrentClaims},
		{"a failing write disturbs nobody", testConcurrentFailures},
		{"cancelled calls", testCancelledCalls},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, open)
			tt.run(f)
			f.check()
		})
	}
	t.Run("random operations", func(t *testing.T) {
		t.Parallel()
		compareWithModel(t, open)
	})
}

// start is the clock of a new fixture: a full minute.
const start = int64(1_800_000_000_000)

const minute = int64(60_000)

// fixture is one store under test and what tests need to talk to it.
type fixture struct {
	testing.TB
	Store
	ctx   context.Context
	nowMs int64
	uid   int
}

func newFixture(t testing.TB, open Open) *fixture {
	f := &fixture{TB: t, ctx: t.Context(), nowMs: start}
	f.Store = open(t, func() time.Time { return time.UnixMilli(f.nowMs) })
	return f
}

// check fails the test for each violated invariant.
func (f *fixture) check() {
	f.Helper()
	findings, err := check.Check(context.WithoutCancel(f.ctx), f.Store, time.UnixMilli(f.nowMs))
	f.ok(err)
	for _, finding := range findings {
		f.Errorf("invariant: %s", finding)
	}
}

func (f *fixture) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) fails(err, want error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Fatalf("error is %v, want %v", err, want)
	}
}

func equal[T comparable](f *fixture, what string, got, want T) {
	f.Helper()
	if got != want {
		f.Errorf("%s is %v, want %v", what, got, want)
	}
}

// spec is a task due each minute.
func spec() *ax.TaskSpec {
	return &ax.TaskSpec{
		Handler:   ax.HandlerSpec{Name: "shell", Body: []byte(`{"command":["true"]}`)},
		Schedules: []ax.ScheduleSpec{{Every: ax.Duration(minute), Timezone: "UTC"}},
		Enabled:   true, Timeout: ax.Duration(minute), Concurrency: 1, Overlap: ax.OverlapQueue,
		Retry: ax.RetrySpec{On: ax.DefaultRetryOn},
	}
}

// create is the change that makes a task which is next due a minute from now.
func (f *fixture) create(name string, s *ax.TaskSpec) ax.Change {
	body, hash := ax.Definition{Kind: ax.KindTask, Name: name, Task: s}.Canonical()
	next := f.nowMs - f.nowMs%minute + minute
	if !s.Enabled {
		next = 0
	}
	return ax.Change{
		Action: ax.ActionCreate, Kind: ax.KindTask, Name: name, Definition: body, Hash: hash,
		Task: &ax.TaskChange{
			Enabled: s.Enabled, MaxActive: s.Concurrency, Overlap: s.Overlap, FreezeAfter: s.FreezeAfter,
			Timetable: &ax.Timetable{NextMs: next, Fingerprint: ""},
		},
	}
}

// update is the change of an object to s, without moving its timetable.
func (f *fixture) update(o ax.Object, s *ax.TaskSpec) ax.Change {
	c := f.create(o.Name, s)
	c.Action, c.ObjectID, c.BaseVersion = ax.ActionUpdate, o.ID, o.Version
	c.Task.Timetable = nil
	return c
}

// remove is the change that deletes an object with no slot due.
func (f *fixture) remove(o ax.Object) ax.Change {
	return ax.Change{
		Action: ax.ActionDelete, Kind: o.Kind, Name: o.Name, ObjectID: o.ID, BaseVersion: o.Version,
		Task: &ax.TaskChange{SkipPending: ax.ReasonDeleted},
	}
}

// changeSet is an apply of changes to the stack as it is now.
func (f *fixture) changeSet(stack string, changes ...ax.Change) ax.ChangeSet {
	f.Helper()
	st, err := f.ReadStack(f.ctx, stack)
	f.ok(err)
	f.uid++
	return ax.ChangeSet{
		ApplyID: fmt.Sprintf("apply-%d", f.uid), StoreID: st.StoreID, Stack: stack, BaseSerial: st.Serial, NowMs: f.nowMs,
		Revision: ax.Revision{Who: "ann", Host: "laptop", Origin: "/etc/ax", Message: "m"}, Changes: changes,
	}
}

func (f *fixture) apply(changes ...ax.Change) ax.Applied {
	f.Helper()
	applied, err := f.Apply(f.ctx, f.changeSet("main", changes...))
	f.ok(err)
	return applied
}

// task makes a task and returns its object.
func (f *fixture) task(name string, edit func(*ax.TaskSpec)) ax.Object {
	f.Helper()
	s := spec()
	if edit != nil {
		edit(s)
	}
	f.apply(f.create(name, s))
	return f.object(name)
}

func (f *fixture) object(name string) ax.Object {
	f.Helper()
	st, err := f.ReadStack(f.ctx, "main")
	f.ok(err)
	for _, o := range st.Objects {
		if o.Name == name {
			return o
		}
	}
	f.Fatalf("no object %s in %+v", name, st.Objects)
	return ax.Object{}
}

// firing claims the next slot of a task with a place on host h1; the clock
// goes to that slot.
func (f *fixture) firing(o ax.Object) ax.Firing {
	row := f.object(o.Name).Row
	f.nowMs = max(f.nowMs, row.NextMs)
	return ax.Firing{
		TaskID: o.ID, Version: f.object(o.Name).Version, ExpectNextMs: row.NextMs, ExpectLockVersion: row.LockVersion,
		NextMs: row.NextMs + minute, LastSlotMs: row.NextMs, NowMs: f.nowMs, Overlap: ax.OverlapQueue,
		Starts: []ax.FiringStart{{DueMs: row.NextMs, Place: f.place()}},
	}
}

func (f *fixture) place() *ax.Handover {
	return &ax.Handover{Host: "h1", Boot: "boot1", Executor: "shell-1", AtMs: f.nowMs, DeadlineMs: f.nowMs + 30_000}
}

func (f *fixture) claim(fs ...ax.Firing) []ax.Claimed {
	f.Helper()
	claimed, err := f.Claim(f.ctx, fs)
	f.ok(err)
	if len(claimed) != len(fs) {
		f.Fatalf("%d answers to %d firings", len(claimed), len(fs))
	}
	return claimed
}

// fire claims the next slot of a task and returns what was born.
func (f *fixture) fire(o ax.Object, edit func(*ax.Firing)) ax.Born {
	f.Helper()
	firing := f.firing(o)
	if edit != nil {
		edit(&firing)
	}
	c := f.claim(firing)[0]
	if c.Lost || len(c.Born) != 1 {
		f.Fatalf("claim of %+v gave %+v", firing, c)
	}
	return c.Born[0]
}

// ending is a success of the attempt, with its processes gone.
func (f *fixture) ending(r ax.Ref, attempt int, status ax.Status) ax.Ending {
	return ax.Ending{
		Ref: r, Attempt: attempt, Status: status,
		StartedMs: f.nowMs, EndedMs: f.nowMs + 5, StoppedMs: f.nowMs + 6, NowMs: f.nowMs + 7,
	}
}

// again is the end of an attempt that is to be retried at notBefore.
func (f *fixture) again(r ax.Ref, attempt int, notBefore int64) ax.Ending {
	e := f.ending(r, attempt, ax.StatusPending)
	e.RetryStatus, e.ErrorClass, e.Error, e.NotBeforeMs = ax.StatusFailed, ax.ClassFailed, "exit status 1", notBefore
	return e
}

func (f *fixture) finish(e ax.Ending) ax.Ended {
	f.Helper()
	ended, err := f.Finish(f.ctx, []ax.Ending{e})
	f.ok(err)
	return ended[0]
}

func (f *fixture) life(id int64) ax.Life {
	f.Helper()
	l, err := f.Instance(f.ctx, id)
	f.ok(err)
	return l
}

func (f *fixture) wantStatus(id int64, want ax.Status) ax.Life {
	f.Helper()
	l := f.life(id)
	if l.Status != want {
		f.Errorf("instance %d is %s, want %s", id, l.Status, want)
	}
	return l
}

// wantRow checks a task's counters.
func (f *fixture) wantRow(o ax.Object, active, waiting int) {
	f.Helper()
	row := f.object(o.Name).Row
	if row.Active != active || row.Waiting != waiting {
		f.Errorf("%s has active %d and waiting %d, want %d and %d", o.Name, row.Active, row.Waiting, active, waiting)
	}
}

// causes returns the causes of an instance's life line.
func (f *fixture) causes(id int64) string {
	f.Helper()
	s := ""
	for _, t := range f.life(id).Transitions {
		if s != "" {
			s += " "
		}
		s += string(t.Cause)
	}
	return s
}
