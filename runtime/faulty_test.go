package runtime_test

import (
	"context"
	"sync"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store/memory"
)

// faults is a store whose calls fail when they are told to.
type faults struct {
	*memory.Store
	mu sync.Mutex
	// before fails a call that is not made; after loses the answer of one that
	// was.
	before, after func(call string) error
	refuse        func([]ax.Firing) error // of a claim
	alter         func(*ax.TaskVersion)   // what is read of definitions
	delay         time.Duration           // of each call
}

func (f *faults) ask(when *func(string) error, call string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if *when == nil {
		return nil
	}
	return (*when)(call)
}

func (f *faults) set(before, after func(call string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

func (f *faults) refuseClaims(when func([]ax.Firing) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = when
}

func (f *faults) alterVersions(alter func(*ax.TaskVersion)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alter = alter
}

func faulty[T any](f *faults, name string, call func() (T, error)) (T, error) {
	var none T
	if f.delay > 0 {
		<-time.After(f.delay)
	}
	if err := f.ask(&f.before, name); err != nil {
		return none, err
	}
	got, err := call()
	if err != nil {
		return got, err
	}
	if err := f.ask(&f.after, name); err != nil {
		return none, err
	}
	return got, nil
}

func (f *faults) TaskVersions(ctx context.Context, k []ax.VersionKey) ([]ax.TaskVersion, error) {
	return faulty(f, "TaskVersions", func() ([]ax.TaskVersion, error) {
		vs, err := f.Store.TaskVersions(ctx, k)
		f.mu.Lock()
		defer f.mu.Unlock()
		for i := range vs {
			if f.alter != nil {
				f.alter(&vs[i])
			}
		}
		return vs, err
	})
}

func (f *faults) DueTasks(ctx context.Context, until int64, after ax.DueCursor, limit int) ([]ax.DueTask, error) {
	return faulty(f, "DueTasks", func() ([]ax.DueTask, error) { return f.Store.DueTasks(ctx, until, after, limit) })
}

func (f *faults) ReloadTasks(ctx context.Context, ids []int64) ([]ax.DueTask, error) {
	return faulty(f, "ReloadTasks", func() ([]ax.DueTask, error) { return f.Store.ReloadTasks(ctx, ids) })
}

func (f *faults) Claim(ctx context.Context, fs []ax.Firing) ([]ax.Claimed, error) {
	return faulty(f, "Claim", func() ([]ax.Claimed, error) {
		f.mu.Lock()
		refuse := f.refuse
		f.mu.Unlock()
		if refuse != nil {
			if err := refuse(fs); err != nil {
				return nil, err
			}
		}
		return f.Store.Claim(ctx, fs)
	})
}

func (f *faults) EndingHolds(ctx context.Context, until int64) ([]ax.HeldTask, error) {
	return faulty(f, "EndingHolds", func() ([]ax.HeldTask, error) { return f.Store.EndingHolds(ctx, until) })
}

func (f *faults) Pending(ctx context.Context, q ax.PendingQuery) ([]ax.Waiting, error) {
	return faulty(f, "Pending", func() ([]ax.Waiting, error) { return f.Store.Pending(ctx, q) })
}

func (f *faults) Dispatch(ctx context.Context, hs []ax.Handover) ([]ax.HandoverResult, error) {
	return faulty(f, "Dispatch", func() ([]ax.HandoverResult, error) { return f.Store.Dispatch(ctx, hs) })
}

func (f *faults) Lapse(ctx context.Context, ls []ax.Lapse) ([]bool, error) {
	return faulty(f, "Lapse", func() ([]bool, error) { return f.Store.Lapse(ctx, ls) })
}

func (f *faults) Started(ctx context.Context, ss []ax.Started) error {
	_, err := faulty(f, "Started", func() (struct{}, error) { return struct{}{}, f.Store.Started(ctx, ss) })
	return err
}

func (f *faults) Finish(ctx context.Context, es []ax.Ending) ([]ax.Ended, error) {
	return faulty(f, "Finish", func() ([]ax.Ended, error) { return f.Store.Finish(ctx, es) })
}

func (f *faults) Open(ctx context.Context, host string) ([]ax.Instance, error) {
	return faulty(f, "Open", func() ([]ax.Instance, error) { return f.Store.Open(ctx, host) })
}

func (f *faults) Cancels(ctx context.Context, host string) ([]ax.CancelIntent, error) {
	return faulty(f, "Cancels", func() ([]ax.CancelIntent, error) { return f.Store.Cancels(ctx, host) })
}

func (f *faults) SignalStates(ctx context.Context, host string) ([]ax.SignalState, error) {
	return faulty(f, "SignalStates", func() ([]ax.SignalState, error) { return f.Store.SignalStates(ctx, host) })
}

func (f *faults) Signalled(ctx context.Context, as []ax.SignalAnswer) error {
	_, err := faulty(f, "Signalled", func() (struct{}, error) { return struct{}{}, f.Store.Signalled(ctx, as) })
	return err
}

func (f *faults) Progressed(ctx context.Context, ps []ax.Progress) error {
	_, err := faulty(f, "Progressed", func() (struct{}, error) { return struct{}{}, f.Store.Progressed(ctx, ps) })
	return err
}

func (f *faults) Changed(ctx context.Context) (bool, error) {
	return faulty(f, "Changed", func() (bool, error) { return f.Store.Changed(ctx) })
}

func (f *faults) Backfills(ctx context.Context, which ax.BackfillFilter) ([]ax.Backfill, error) {
	return faulty(f, "Backfills", func() ([]ax.Backfill, error) { return f.Store.Backfills(ctx, which) })
}

func (f *faults) Fill(ctx context.Context, fill ax.Fill) (ax.Filled, error) {
	return faulty(f, "Fill", func() (ax.Filled, error) { return f.Store.Fill(ctx, fill) })
}
