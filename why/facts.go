package why

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

// Question asks about one task.
type Question struct {
	Object ax.Object
	// AtMs is the instant asked about; 0 asks about now.
	AtMs int64
	// InstanceID asks about one instance instead; 0 none.
	InstanceID int64
	NowMs      int64
	Zone       *time.Location // to show instants in
	// Daemon says whether an axd holds the store.
	Daemon bool
	// Clock is what the clocks of this machine say now; zero: not asked.
	Clock ax.ClockMark
}

// Facts is all that an explanation is made from.
type Facts struct {
	Question
	Versions []ax.VersionRow // newest first
	// Open are the task's open instances and those whose processes are not
	// known to be gone, as they take their turn.
	Open []ax.InstanceRow
	// Slot is the life of the instance asked about, or of the scheduled one due
	// at AtMs; nil when there is none.
	Slot *ax.Life
	// Around are instances due in the minute from AtMs on, newest first, and of
	// a slot that was skipped by overlap also those before it.
	Around []ax.InstanceRow
	// After are instances that were due after AtMs when Slot ended.
	After     []ax.InstanceRow
	Stretches []ax.SkippedStretch
	// Backfills are those of the task that have not ended, newest first.
	Backfills []ax.Backfill
	Hosts     []ax.Host
	// Mark is what axd's clocks said when it last believed them.
	Mark   ax.ClockMark
	Offers []ax.HostOffer
	// Busy counts the instances at work in the task's pool, of all tasks.
	Busy int
}

// What Gather reads at most of each kind.
const (
	maxOpen      = 2 * ax.MaxWaiting
	maxAround    = 50
	maxStretches = 10_000
	minuteMs     = 60_000
)

// Store is what the facts are read from.
type Store interface {
	ax.Queries
	Backfills(ctx context.Context, f ax.BackfillFilter) ([]ax.Backfill, error)
}

// Gather reads the facts for a question. Each read is its own snapshot: what
// moves meanwhile may show in one and not in another.
func Gather(ctx context.Context, q Store, about Question) (Facts, error) {
	f := Facts{Question: about}
	var err error
	f.Backfills, err = q.Backfills(ctx, ax.BackfillFilter{TaskID: about.Object.ID, States: []ax.BackfillState{ax.BackfillRunning, ax.BackfillPaused}})
	if err != nil {
		return f, fmt.Errorf("backfills of %s: %w", about.Object.Address(), err)
	}
	if f.Versions, err = q.Versions(ctx, about.Object.ID); err != nil {
		return f, fmt.Errorf("versions of %s: %w", about.Object.Address(), err)
	}
	if f.Hosts, err = q.Hosts(ctx); err != nil {
		return f, fmt.Errorf("hosts: %w", err)
	}
	info, err := q.Info(ctx)
	if err != nil {
		return f, fmt.Errorf("store: %w", err)
	}
	f.Mark = info.Clock
	if f.Offers, err = q.Offers(ctx); err != nil {
		return f, fmt.Errorf("what hosts offer: %w", err)
	}
	if err := f.gatherOpen(ctx, q); err != nil {
		return f, fmt.Errorf("open instances: %w", err)
	}
	if about.AtMs == 0 && about.InstanceID == 0 {
		return f, nil
	}
	if err := f.gatherSlot(ctx, q); err != nil {
		return f, fmt.Errorf("instances: %w", err)
	}
	if f.Stretches, err = q.Stretches(ctx, about.Object.ID, maxStretches); err != nil {
		return f, fmt.Errorf("skipped stretches: %w", err)
	}
	return f, nil
}

// gatherOpen reads what of the task is not over, and how much of its pool is
// taken. The ledger is read newest first, so each read asks for as many
// rows as the task's counters say that there are, and none where there is none.
func (f *Facts) gatherOpen(ctx context.Context, q ax.Queries) error {
	row := f.Object.Row
	if row.Active > 0 {
		recent, err := q.Instances(ctx, ax.InstanceFilter{TaskID: f.Object.ID, Limit: maxAround})
		if err != nil {
			return err
		}
		for _, in := range recent {
			if in.Status.Final() && in.HandedMs != 0 && in.StoppedMs == 0 {
				f.Open = append(f.Open, in)
			}
		}
	}
	if left := row.Active + row.Waiting - len(f.Open); left > 0 {
		open, err := q.Instances(ctx, ax.InstanceFilter{
			TaskID: f.Object.ID, Limit: min(left, maxOpen),
			Status: []ax.Status{ax.StatusPending, ax.StatusDispatched},
		})
		if err != nil {
			return err
		}
		f.Open = append(f.Open, open...)
	}
	slices.SortFunc(f.Open, compareTurn)
	if row.Waiting == 0 {
		return nil
	}
	return f.gatherBusy(ctx, q)
}

// gatherBusy counts the work in the task's pool, for which others compete.
func (f *Facts) gatherBusy(ctx context.Context, q ax.Queries) error {
	counts, err := q.Counts(ctx)
	if err != nil || counts[ax.StatusDispatched] == 0 {
		return err
	}
	work, err := q.Instances(ctx, ax.InstanceFilter{
		Status: []ax.Status{ax.StatusDispatched}, Limit: int(min(counts[ax.StatusDispatched], maxOpen)),
	})
	if err != nil {
		return err
	}
	var at ax.ObjectFilter // what is at work; the pools of all others say nothing
	for _, in := range work {
		if !slices.Contains(at.IDs, in.TaskID) {
			at.IDs = append(at.IDs, in.TaskID)
		}
	}
	if len(at.IDs) == 0 {
		return nil
	}
	objects, err := q.Objects(ctx, at)
	if err != nil {
		return err
	}
	pools := map[int64]string{}
	for _, o := range objects {
		pools[o.ID] = poolOf(o.Definition)
	}
	for _, in := range work {
		if pools[in.TaskID] == poolOf(f.Object.Definition) {
			f.Busy++
		}
	}
	return nil
}

// poolOf returns the pool of a definition, "" when it cannot be read.
func poolOf(definition json.RawMessage) string {
	var spec ax.TaskSpec
	if json.Unmarshal(definition, &spec) != nil {
		return ""
	}
	return spec.PoolName()
}

// gatherSlot reads the instance in question and those around it.
func (f *Facts) gatherSlot(ctx context.Context, q ax.Queries) error {
	id := f.InstanceID
	if id == 0 {
		due, err := q.Instances(ctx, ax.InstanceFilter{
			TaskID: f.Object.ID, SinceMs: f.AtMs, Before: &ax.Ref{DueMs: f.AtMs + 1}, Limit: maxOpen,
		})
		if err != nil {
			return err
		}
		for _, in := range due {
			if in.DueMs == f.AtMs && in.Kind == ax.InstanceSchedule {
				id = in.ID
			}
		}
	}
	if id != 0 {
		life, err := q.Instance(ctx, id)
		if err != nil {
			return err
		}
		f.Slot, f.AtMs = &life, life.DueMs
	}
	around := ax.InstanceFilter{
		TaskID: f.Object.ID, SinceMs: f.AtMs, Before: &ax.Ref{DueMs: f.AtMs + minuteMs}, Limit: maxAround,
	}
	if f.Slot != nil && (f.Slot.Reason == ax.ReasonOverlap || f.Slot.Reason == ax.ReasonStartWithin) {
		around.SinceMs = 0 // what was in its way began before it
	}
	var err error
	f.Around, err = q.Instances(ctx, around)
	if err != nil || f.Slot == nil || f.Slot.EndedMs <= f.AtMs {
		return err
	}
	f.After, err = q.Instances(ctx, ax.InstanceFilter{
		TaskID: f.Object.ID, SinceMs: f.AtMs + 1, Before: &ax.Ref{DueMs: f.Slot.EndedMs + 1}, Limit: maxAround,
	})
	return err
}

// compareTurn orders as instances take their turn.
func compareTurn(a, b ax.InstanceRow) int {
	return rules.CompareTurn(ax.Waiting{Ref: a.Ref, Kind: a.Kind}, ax.Waiting{Ref: b.Ref, Kind: b.Kind})
}
