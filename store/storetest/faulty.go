package storetest

import (
	"context"
	"sync"

	"github.com/axctl/ax"
)

// Fault is what Faulty does to one call.
type Fault int

// The faults.
const (
	NoFault    Fault = iota
	Fail             // the call fails before it reaches the store
	LoseAnswer       // the store does it, and the caller is told that it failed
	Delay            // the call reaches the store after Faulty.Wait
)

// Faulty is a store that is at fault now and then. Every call of a port that
// begins a transaction is counted, from 1, and asks Plan what becomes of it;
// an error is ax.ErrUnavailable. The store below must not be used while calls
// are under way, or their order is not repeatable.
type Faulty struct {
	Store
	// Plan says what becomes of call k of the named method.
	Plan func(k int, method string) Fault
	// Wait is what a delayed call does first; nil waits for its context to
	// end.
	Wait func(ctx context.Context)

	mu    sync.Mutex // guards calls
	calls int
}

// FailCall returns a plan with one fault, at call k.
func FailCall(k int, fault Fault) func(int, string) Fault {
	return func(n int, _ string) Fault {
		if n == k {
			return fault
		}
		return NoFault
	}
}

// Calls returns how many calls were made.
func (f *Faulty) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// fault runs do as the plan says.
func (f *Faulty) fault(ctx context.Context, method string, do func() error) error {
	f.mu.Lock()
	f.calls++
	fault := NoFault
	if f.Plan != nil {
		fault = f.Plan(f.calls, method)
	}
	f.mu.Unlock()
	switch fault {
	case NoFault:
	case Fail:
		return ax.ErrUnavailable
	case LoseAnswer:
		_ = do()
		return ax.ErrUnavailable
	case Delay:
		if f.Wait == nil {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		f.Wait(ctx)
	}
	return do()
}

// answer is fault for a call that returns something.
func answer[T any](ctx context.Context, f *Faulty, method string, do func() (T, error)) (T, error) {
	var got T
	err := f.fault(ctx, method, func() (err error) {
		got, err = do()
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return got, nil
}

// ReadStack implements ax.Definitions.
func (f *Faulty) ReadStack(ctx context.Context, stack string) (ax.StackState, error) {
	return answer(ctx, f, "ReadStack", func() (ax.StackState, error) { return f.Store.ReadStack(ctx, stack) })
}

// Apply implements ax.Definitions.
func (f *Faulty) Apply(ctx context.Context, cs ax.ChangeSet) (ax.Applied, error) {
	return answer(ctx, f, "Apply", func() (ax.Applied, error) { return f.Store.Apply(ctx, cs) })
}

// Revision implements ax.Definitions.
func (f *Faulty) Revision(ctx context.Context, applyID string) (ax.Revision, error) {
	return answer(ctx, f, "Revision", func() (ax.Revision, error) { return f.Store.Revision(ctx, applyID) })
}

// Trigger implements ax.Operations.
func (f *Faulty) Trigger(ctx context.Context, t ax.Trigger) (ax.Ref, error) {
	return answer(ctx, f, "Trigger", func() (ax.Ref, error) { return f.Store.Trigger(ctx, t) })
}

// Retry implements ax.Operations.
func (f *Faulty) Retry(ctx context.Context, r ax.Retry) (ax.Ref, error) {
	return answer(ctx, f, "Retry", func() (ax.Ref, error) { return f.Store.Retry(ctx, r) })
}

// Mark implements ax.Operations.
func (f *Faulty) Mark(ctx context.Context, m ax.Mark) error {
	return f.fault(ctx, "Mark", func() error { return f.Store.Mark(ctx, m) })
}

// Cancel implements ax.Operations.
func (f *Faulty) Cancel(ctx context.Context, id int64, who string, nowMs int64) (ax.Status, error) {
	return answer(ctx, f, "Cancel", func() (ax.Status, error) { return f.Store.Cancel(ctx, id, who, nowMs) })
}

// StartBackfill implements ax.BackfillOperations.
func (f *Faulty) StartBackfill(ctx context.Context, r ax.BackfillRequest) (ax.Backfill, error) {
	return answer(ctx, f, "StartBackfill", func() (ax.Backfill, error) { return f.Store.StartBackfill(ctx, r) })
}

// MoveBackfill implements ax.BackfillOperations.
func (f *Faulty) MoveBackfill(ctx context.Context, m ax.BackfillMove) (ax.Backfill, error) {
	return answer(ctx, f, "MoveBackfill", func() (ax.Backfill, error) { return f.Store.MoveBackfill(ctx, m) })
}

// Backfills implements ax.BackfillOperations and ax.Fills.
func (f *Faulty) Backfills(ctx context.Context, which ax.BackfillFilter) ([]ax.Backfill, error) {
	return answer(ctx, f, "Backfills", func() ([]ax.Backfill, error) { return f.Store.Backfills(ctx, which) })
}

// Tries implements ax.BackfillOperations.
func (f *Faulty) Tries(ctx context.Context, taskID int64, dues []int64) ([]ax.Try, error) {
	return answer(ctx, f, "Tries", func() ([]ax.Try, error) { return f.Store.Tries(ctx, taskID, dues) })
}

// Fill implements ax.Fills.
func (f *Faulty) Fill(ctx context.Context, fill ax.Fill) (ax.Filled, error) {
	return answer(ctx, f, "Fill", func() (ax.Filled, error) { return f.Store.Fill(ctx, fill) })
}

// Hold implements ax.Operations.
func (f *Faulty) Hold(ctx context.Context, objectID int64, h ax.Hold) error {
	return f.fault(ctx, "Hold", func() error { return f.Store.Hold(ctx, objectID, h) })
}

// Resume implements ax.Operations and ax.Claims.
func (f *Faulty) Resume(ctx context.Context, objectID int64, tt ax.Timetable, nowMs int64) error {
	return f.fault(ctx, "Resume", func() error { return f.Store.Resume(ctx, objectID, tt, nowMs) })
}

// TaskVersions implements ax.Specs.
func (f *Faulty) TaskVersions(ctx context.Context, keys []ax.VersionKey) ([]ax.TaskVersion, error) {
	return answer(ctx, f, "TaskVersions", func() ([]ax.TaskVersion, error) { return f.Store.TaskVersions(ctx, keys) })
}

// DueTasks implements ax.Claims.
func (f *Faulty) DueTasks(ctx context.Context, untilMs int64, after ax.DueCursor, limit int) ([]ax.DueTask, error) {
	return answer(ctx, f, "DueTasks", func() ([]ax.DueTask, error) { return f.Store.DueTasks(ctx, untilMs, after, limit) })
}

// ReloadTasks implements ax.Claims.
func (f *Faulty) ReloadTasks(ctx context.Context, ids []int64) ([]ax.DueTask, error) {
	return answer(ctx, f, "ReloadTasks", func() ([]ax.DueTask, error) { return f.Store.ReloadTasks(ctx, ids) })
}

// Claim implements ax.Claims.
func (f *Faulty) Claim(ctx context.Context, firings []ax.Firing) ([]ax.Claimed, error) {
	return answer(ctx, f, "Claim", func() ([]ax.Claimed, error) { return f.Store.Claim(ctx, firings) })
}

// ScheduledTasks implements ax.Rewinds.
func (f *Faulty) ScheduledTasks(ctx context.Context, afterID int64, limit int) ([]ax.ScheduledTask, error) {
	return answer(ctx, f, "ScheduledTasks", func() ([]ax.ScheduledTask, error) { return f.Store.ScheduledTasks(ctx, afterID, limit) })
}

// Rewind implements ax.Rewinds.
func (f *Faulty) Rewind(ctx context.Context, rs []ax.Rewind) ([]bool, error) {
	return answer(ctx, f, "Rewind", func() ([]bool, error) { return f.Store.Rewind(ctx, rs) })
}

// ClockMark implements ax.Clocks.
func (f *Faulty) ClockMark(ctx context.Context) (ax.ClockMark, error) {
	return answer(ctx, f, "ClockMark", func() (ax.ClockMark, error) { return f.Store.ClockMark(ctx) })
}

// KeepClock implements ax.Clocks.
func (f *Faulty) KeepClock(ctx context.Context, m ax.ClockMark) error {
	_, err := answer(ctx, f, "KeepClock", func() (struct{}, error) { return struct{}{}, f.Store.KeepClock(ctx, m) })
	return err
}

// EndingHolds implements ax.Claims.
func (f *Faulty) EndingHolds(ctx context.Context, untilMs int64) ([]ax.HeldTask, error) {
	return answer(ctx, f, "EndingHolds", func() ([]ax.HeldTask, error) { return f.Store.EndingHolds(ctx, untilMs) })
}

// Pending implements ax.Dispatches.
func (f *Faulty) Pending(ctx context.Context, q ax.PendingQuery) ([]ax.Waiting, error) {
	return answer(ctx, f, "Pending", func() ([]ax.Waiting, error) { return f.Store.Pending(ctx, q) })
}

// Dispatch implements ax.Dispatches.
func (f *Faulty) Dispatch(ctx context.Context, hs []ax.Handover) ([]ax.HandoverResult, error) {
	return answer(ctx, f, "Dispatch", func() ([]ax.HandoverResult, error) { return f.Store.Dispatch(ctx, hs) })
}

// Lapse implements ax.Lapses.
func (f *Faulty) Lapse(ctx context.Context, ls []ax.Lapse) ([]bool, error) {
	return answer(ctx, f, "Lapse", func() ([]bool, error) { return f.Store.Lapse(ctx, ls) })
}

// Started implements ax.Dispatches.
func (f *Faulty) Started(ctx context.Context, ss []ax.Started) error {
	return f.fault(ctx, "Started", func() error { return f.Store.Started(ctx, ss) })
}

// Finish implements ax.Dispatches.
func (f *Faulty) Finish(ctx context.Context, es []ax.Ending) ([]ax.Ended, error) {
	return answer(ctx, f, "Finish", func() ([]ax.Ended, error) { return f.Store.Finish(ctx, es) })
}

// Open implements ax.Dispatches.
func (f *Faulty) Open(ctx context.Context, host string) ([]ax.Instance, error) {
	return answer(ctx, f, "Open", func() ([]ax.Instance, error) { return f.Store.Open(ctx, host) })
}

// Cancels implements ax.CancelIntents.
func (f *Faulty) Cancels(ctx context.Context, host string) ([]ax.CancelIntent, error) {
	return answer(ctx, f, "Cancels", func() ([]ax.CancelIntent, error) { return f.Store.Cancels(ctx, host) })
}

// Signal implements ax.Signaller.
func (f *Faulty) Signal(ctx context.Context, r ax.SignalRequest) error {
	return f.fault(ctx, "Signal", func() error { return f.Store.Signal(ctx, r) })
}

// SignalStates implements ax.Live.
func (f *Faulty) SignalStates(ctx context.Context, host string) ([]ax.SignalState, error) {
	return answer(ctx, f, "SignalStates", func() ([]ax.SignalState, error) { return f.Store.SignalStates(ctx, host) })
}

// Signalled implements ax.Live.
func (f *Faulty) Signalled(ctx context.Context, as []ax.SignalAnswer) error {
	return f.fault(ctx, "Signalled", func() error { return f.Store.Signalled(ctx, as) })
}

// Progressed implements ax.Live.
func (f *Faulty) Progressed(ctx context.Context, ps []ax.Progress) error {
	return f.fault(ctx, "Progressed", func() error { return f.Store.Progressed(ctx, ps) })
}

// Changed implements ax.Watcher.
func (f *Faulty) Changed(ctx context.Context) (bool, error) {
	return answer(ctx, f, "Changed", func() (bool, error) { return f.Store.Changed(ctx) })
}

// Join implements ax.Hosts.
func (f *Faulty) Join(ctx context.Context, h ax.Host) error {
	return f.fault(ctx, "Join", func() error { return f.Store.Join(ctx, h) })
}

// Leave implements ax.Hosts.
func (f *Faulty) Leave(ctx context.Context, name, boot string, nowMs int64) error {
	return f.fault(ctx, "Leave", func() error { return f.Store.Leave(ctx, name, boot, nowMs) })
}

// IndexHistory implements ax.Upkeep. All its transactions are one call.
func (f *Faulty) IndexHistory(ctx context.Context, step func() error) error {
	return f.fault(ctx, "IndexHistory", func() error { return f.Store.IndexHistory(ctx, step) })
}

// Checkpoint implements ax.Upkeep.
func (f *Faulty) Checkpoint(ctx context.Context) error {
	return f.fault(ctx, "Checkpoint", func() error { return f.Store.Checkpoint(ctx) })
}

// DeclaredPlugins implements ax.Plugins.
func (f *Faulty) DeclaredPlugins(ctx context.Context) ([]ax.DeclaredPlugin, error) {
	return answer(ctx, f, "DeclaredPlugins", func() ([]ax.DeclaredPlugin, error) { return f.Store.DeclaredPlugins(ctx) })
}

// Offer implements ax.Plugins.
func (f *Faulty) Offer(ctx context.Context, o ax.HostOffer) error {
	return f.fault(ctx, "Offer", func() error { return f.Store.Offer(ctx, o) })
}

// Prune implements ax.Retention. All its transactions are one call.
func (f *Faulty) Prune(ctx context.Context, q ax.PruneQuery, step func(ax.Pruned) error) error {
	return f.fault(ctx, "Prune", func() error { return f.Store.Prune(ctx, q, step) })
}
