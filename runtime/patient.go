package runtime

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/axctl/ax"
	"github.com/prometheus/client_golang/prometheus"
)

// outage waits while the store is away, for all callers, and says so once.
type outage struct {
	log    *slog.Logger
	faults prometheus.Counter

	mu      sync.Mutex       // guards failing
	failing map[string]error // calls that are being tried again
}

func newOutage(log *slog.Logger, r prometheus.Registerer) *outage {
	return &outage{log: log, failing: map[string]error{}, faults: newFaults(r)}
}

// retry repeats call until it succeeds, fails for good, or ctx ends. The wait
// doubles up to a second.
func retry[T any](ctx context.Context, o *outage, name string, call func() (T, error)) (T, error) {
	wait := 25 * time.Millisecond
	for {
		answer, err := call()
		if o.note(name, err); !passing(err) || ctx.Err() != nil {
			return answer, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return answer, ctx.Err()
		case <-timer.C:
		}
		wait = min(2*wait, time.Second)
	}
}

// passing reports whether a store call may succeed later.
func passing(err error) bool {
	return errors.Is(err, ax.ErrUnavailable) || errors.Is(err, ax.ErrBusy)
}

// note keeps book of what fails; the first failure and the end of the last are
// logged.
func (o *outage) note(name string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := len(o.failing)
	if passing(err) {
		o.faults.Inc()
		o.failing[name] = err
	} else {
		delete(o.failing, name)
	}
	switch {
	case before == 0 && len(o.failing) > 0:
		log := o.log
		if hint := (*ax.HintError)(nil); errors.As(err, &hint) {
			log = log.With("hint", hint.Hint)
		}
		log.Error("the store cannot be used; claims stop, running work goes on", "call", name, "error", err)
	case before > 0 && len(o.failing) == 0:
		o.log.Info("the store can be used again")
	}
}

// String tells what fails, "" when nothing does.
func (o *outage) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(o.failing)) {
		all = append(all, name+": "+o.failing[name].Error())
	}
	return strings.Join(all, "; ")
}

// patientClaims waits for the store in all calls that may be repeated. A claim
// may not: it may have been written although its answer was lost.
type patientClaims struct {
	ax.Claims
	*outage
}

func (p patientClaims) TaskVersions(ctx context.Context, keys []ax.VersionKey) ([]ax.TaskVersion, error) {
	return retry(ctx, p.outage, "read definitions", func() ([]ax.TaskVersion, error) { return p.Claims.TaskVersions(ctx, keys) })
}

func (p patientClaims) DueTasks(ctx context.Context, untilMs int64, after ax.DueCursor, limit int) ([]ax.DueTask, error) {
	return retry(ctx, p.outage, "read due tasks", func() ([]ax.DueTask, error) {
		return p.Claims.DueTasks(ctx, untilMs, after, limit)
	})
}

func (p patientClaims) ReloadTasks(ctx context.Context, ids []int64) ([]ax.DueTask, error) {
	return retry(ctx, p.outage, "read tasks", func() ([]ax.DueTask, error) { return p.Claims.ReloadTasks(ctx, ids) })
}

func (p patientClaims) EndingHolds(ctx context.Context, untilMs int64) ([]ax.HeldTask, error) {
	return retry(ctx, p.outage, "read holds", func() ([]ax.HeldTask, error) { return p.Claims.EndingHolds(ctx, untilMs) })
}

func (p patientClaims) ScheduledTasks(ctx context.Context, afterID int64, limit int) ([]ax.ScheduledTask, error) {
	return retry(ctx, p.outage, "read tasks", func() ([]ax.ScheduledTask, error) { return p.Claims.ScheduledTasks(ctx, afterID, limit) })
}

func (p patientClaims) ClockMark(ctx context.Context) (ax.ClockMark, error) {
	return retry(ctx, p.outage, "read the clock's mark", func() (ax.ClockMark, error) { return p.Claims.ClockMark(ctx) })
}

// Rewind may be repeated: a row that was set back is not as expected.
func (p patientClaims) Rewind(ctx context.Context, rs []ax.Rewind) ([]bool, error) {
	return retry(ctx, p.outage, "set tasks back", func() ([]bool, error) { return p.Claims.Rewind(ctx, rs) })
}

func (p patientClaims) Claim(ctx context.Context, firings []ax.Firing) ([]ax.Claimed, error) {
	claimed, err := p.Claims.Claim(ctx, firings)
	p.note("claim", err)
	return claimed, err
}

// Resume may be repeated: a second one finds no hold.
func (p patientClaims) Resume(ctx context.Context, objectID int64, tt ax.Timetable, nowMs int64) error {
	_, err := retry(ctx, p.outage, "resume", func() (struct{}, error) {
		return struct{}{}, p.Claims.Resume(ctx, objectID, tt, nowMs)
	})
	return err
}

// notedFills keeps book of calls that fail; who makes them tries again.
type notedFills struct {
	ax.Fills
	*outage
}

func (n notedFills) Backfills(ctx context.Context, f ax.BackfillFilter) ([]ax.Backfill, error) {
	all, err := n.Fills.Backfills(ctx, f)
	n.note("read backfills", err)
	return all, err
}

func (n notedFills) Fill(ctx context.Context, f ax.Fill) (ax.Filled, error) {
	filled, err := n.Fills.Fill(ctx, f)
	n.note("go on with a backfill", err)
	return filled, err
}

// patientDispatches waits for the store in all calls. All may be repeated: an
// ending that was written is late the second time, and an instance that was
// handed over is gone the second time and found by reconciliation.
type patientDispatches struct {
	ax.Dispatches
	*outage
}

func (p patientDispatches) TaskVersions(ctx context.Context, keys []ax.VersionKey) ([]ax.TaskVersion, error) {
	return retry(ctx, p.outage, "read definitions of waiting instances", func() ([]ax.TaskVersion, error) {
		return p.Dispatches.TaskVersions(ctx, keys)
	})
}

func (p patientDispatches) Pending(ctx context.Context, q ax.PendingQuery) ([]ax.Waiting, error) {
	return retry(ctx, p.outage, "read waiting instances", func() ([]ax.Waiting, error) { return p.Dispatches.Pending(ctx, q) })
}

func (p patientDispatches) Dispatch(ctx context.Context, hs []ax.Handover) ([]ax.HandoverResult, error) {
	return retry(ctx, p.outage, "hand over", func() ([]ax.HandoverResult, error) { return p.Dispatches.Dispatch(ctx, hs) })
}

// Lapse may be repeated: what was skipped is pending no more.
func (p patientDispatches) Lapse(ctx context.Context, ls []ax.Lapse) ([]bool, error) {
	return retry(ctx, p.outage, "skip what was not started in time", func() ([]bool, error) { return p.Dispatches.Lapse(ctx, ls) })
}

func (p patientDispatches) Started(ctx context.Context, ss []ax.Started) error {
	_, err := retry(ctx, p.outage, "write starts", func() (struct{}, error) {
		return struct{}{}, p.Dispatches.Started(ctx, ss)
	})
	return err
}

func (p patientDispatches) Finish(ctx context.Context, es []ax.Ending) ([]ax.Ended, error) {
	return retry(ctx, p.outage, "write ends", func() ([]ax.Ended, error) { return p.Dispatches.Finish(ctx, es) })
}

func (p patientDispatches) Open(ctx context.Context, host string) ([]ax.Instance, error) {
	return retry(ctx, p.outage, "read dispatched instances", func() ([]ax.Instance, error) { return p.Dispatches.Open(ctx, host) })
}

// patientCancels waits for the store.
type patientCancels struct {
	ax.CancelIntents
	*outage
}

func (p patientCancels) SignalStates(ctx context.Context, host string) ([]ax.SignalState, error) {
	return retry(ctx, p.outage, "read signals", func() ([]ax.SignalState, error) { return p.CancelIntents.SignalStates(ctx, host) })
}

// Signalled may be repeated: an answer that is written is no news.
func (p patientCancels) Signalled(ctx context.Context, as []ax.SignalAnswer) error {
	_, err := retry(ctx, p.outage, "write answers to signals", func() (struct{}, error) {
		return struct{}{}, p.CancelIntents.Signalled(ctx, as)
	})
	return err
}

// Progressed is not repeated: newer progress follows.
func (p patientCancels) Progressed(ctx context.Context, ps []ax.Progress) error {
	err := p.CancelIntents.Progressed(ctx, ps)
	p.note("write progress", err)
	return err
}

func (p patientCancels) Cancels(ctx context.Context, host string) ([]ax.CancelIntent, error) {
	return retry(ctx, p.outage, "read cancels", func() ([]ax.CancelIntent, error) { return p.CancelIntents.Cancels(ctx, host) })
}
