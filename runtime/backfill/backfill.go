// Package backfill makes the instances of backfills, a few at a time: never more
// than each may have open, so that a range of a million slots is one row until
// its turn comes. It owns the pace; which slots are run, and that each is made
// once, is the store's transaction.
package backfill

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/schedule"
	"github.com/prometheus/client_golang/prometheus"
)

// Places is what a Filler needs of the dispatcher. No method blocks.
type Places interface {
	// Wait hands over rows that were born pending; versions[i] belongs to rows[i].
	Wait(versions []*ax.TaskVersion, rows []ax.Waiting)
	// OutcomeUnknown says that rows may have been born that nobody was told of.
	OutcomeUnknown()
}

// Config is what a Filler works with; all but Registerer is required.
type Config struct {
	Store      ax.Fills
	Places     Places
	Scan       time.Duration // how often backfills are looked for unasked
	Now        func() time.Time
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// pause is the least time between two rounds: what is due now goes first, and
// after a step of a backfill the writer is free for many times as long as the
// step has taken.
const pause = 20 * time.Millisecond

// Filler goes on with all backfills under way. Run's goroutine owns all fields
// but those that say otherwise.
type Filler struct {
	cfg      Config
	wake     chan struct{} // safe for concurrent use
	metrics  metrics
	versions map[int64]*version // by backfill
	told     map[int64]bool     // backfills that cannot go on, which was said
}

// version is what a backfill runs, compiled.
type version struct {
	ax.TaskVersion
	timetable *schedule.Schedule
}

// New makes a Filler. It starts nothing.
func New(cfg Config) *Filler {
	return &Filler{
		cfg: cfg, wake: make(chan struct{}, 1), metrics: newMetrics(cfg.Registerer),
		versions: map[int64]*version{}, told: map[int64]bool{},
	}
}

// Wake says that a backfill may go on: another process has changed the store, or
// an instance of one has ended. It is safe for concurrent use.
func (f *Filler) Wake() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Run goes on with backfills until ctx ends; then it returns nil.
func (f *Filler) Run(ctx context.Context) error {
	faulty := false
	for {
		wait, err := f.runOnce(ctx)
		if err != nil {
			if ctx.Err() == nil && !faulty {
				f.cfg.Log.Error("backfills cannot go on; it is tried again", "error", err)
			}
			f.cfg.Places.OutcomeUnknown()
			wait = time.Second
		}
		faulty = err != nil
		sleep(ctx, pause, nil)
		sleep(ctx, wait-pause, f.wake)
		if ctx.Err() != nil {
			return nil
		}
	}
}

// sleep returns after d, when it is woken, or when ctx ends.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
}

// runOnce makes one step of each backfill under way and returns how long nothing
// else is to be done when nothing comes. One that cannot go on keeps none of the
// others.
func (f *Filler) runOnce(ctx context.Context) (time.Duration, error) {
	all, err := f.cfg.Store.Backfills(ctx, ax.BackfillFilter{States: []ax.BackfillState{ax.BackfillRunning}})
	if err != nil {
		return 0, err
	}
	f.metrics.running.Set(float64(len(all)))
	f.forget(all)
	wait := f.cfg.Scan
	var first error
	for _, b := range all {
		more, err := f.step(ctx, b)
		first = cmp.Or(first, err)
		if more {
			wait = 0
		}
	}
	return wait, first
}

// forget drops what is kept of backfills that are no longer under way.
func (f *Filler) forget(all []ax.Backfill) {
	under := make(map[int64]bool, len(all))
	for _, b := range all {
		under[b.ID] = true
	}
	for id := range f.versions {
		if !under[id] {
			delete(f.versions, id)
		}
	}
	for id := range f.told {
		if !under[id] {
			delete(f.told, id)
		}
	}
}

// step goes on with one backfill, and reports whether it can at once go on
// further.
func (f *Filler) step(ctx context.Context, b ax.Backfill) (more bool, err error) {
	v, err := f.version(ctx, b)
	if v == nil {
		return false, err
	}
	s := ax.Fill{BackfillID: b.ID, ExpectPositionMs: b.PositionMs, NowMs: f.cfg.Now().UnixMilli()}
	s.Slots, s.Last = slots(v.timetable, b.PositionMs, b.ToMs, ax.MaxFillSlots)
	done, err := f.cfg.Store.Fill(ctx, s)
	if err != nil {
		return false, err
	}
	if done.Lost {
		f.cfg.Places.OutcomeUnknown()
		return false, nil
	}
	f.metrics.made.Add(float64(len(done.Made)))
	f.deliver(v, done, s.NowMs)
	if done.State.Final() {
		f.cfg.Log.Info("a backfill has ended", "backfill", b.ID, "task", ax.Address(ax.KindTask, v.Name), "state", done.State)
	}
	// A full step of slots of which none was to be run says nothing about the next.
	full := !s.Last && len(s.Slots) > 0 && done.PositionMs == s.Slots[len(s.Slots)-1]+1
	return full, nil
}

// slots returns the first most slots in [fromMs, toMs), and whether that is all.
func slots(tt *schedule.Schedule, fromMs, toMs int64, most int) (due []int64, last bool) {
	at, ok := tt.Next(fromMs - 1)
	for ok && at < toMs && len(due) < most {
		due = append(due, at)
		at, ok = tt.Next(at)
	}
	return due, !ok || at >= toMs
}

// version returns what a backfill runs; nil when it cannot be read, which is
// said once.
func (f *Filler) version(ctx context.Context, b ax.Backfill) (*version, error) {
	if v := f.versions[b.ID]; v != nil {
		return v, nil
	}
	read, err := f.cfg.Store.TaskVersions(ctx, []ax.VersionKey{{ObjectID: b.TaskID, Version: b.Version}})
	if err != nil {
		return nil, err
	}
	fault := errors.New("its definition is not in the store, or cannot be read")
	if len(read) == 1 {
		v := &version{TaskVersion: read[0]}
		if v.timetable, fault = schedule.Compile(v.Spec.Schedules); fault == nil {
			f.versions[b.ID] = v
			return v, nil
		}
	}
	if !f.told[b.ID] {
		f.told[b.ID] = true
		f.cfg.Log.Error("a backfill cannot go on; axctl backfill cancel ends it", "backfill", b.ID, "version", b.Version, "error", fault)
	}
	return nil, nil
}

// deliver hands new instances to the dispatcher.
func (f *Filler) deliver(v *version, done ax.Filled, nowMs int64) {
	if len(done.Made) == 0 {
		return
	}
	vs := make([]*ax.TaskVersion, len(done.Made))
	rows := make([]ax.Waiting, len(done.Made))
	for i, ref := range done.Made {
		vs[i] = &v.TaskVersion
		rows[i] = ax.Waiting{
			Ref: ref, Version: v.Version, Kind: ax.InstanceBackfill, Attempt: 1, NotBeforeMs: nowMs,
			MaxActive: done.MaxActive, Overlap: done.Overlap,
		}
	}
	f.cfg.Places.Wait(vs, rows)
}
