package claim

import (
	"context"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

// Bounds of a step of the clock and of one page of the pass that follows.
const (
	stepOver   = 10 * time.Second // a difference above it is a step
	rewindRows = 500
)

// rewind is the pass through all tasks that sets back those whose row is ahead
// of their schedule: one at the start, one after each step back.
type rewind struct {
	under   bool
	afterID int64
	done    int // tasks set back
	far     int // tasks too far ahead to believe the clock
}

// readClock compares the advance of the wall clock since the last wake with that
// of the monotonic one, and begins anew after a step back. A step forward needs
// nothing: what was due meanwhile is late, as after an outage.
func (c *Claimer) readClock() int64 {
	now, elapsed := c.nowMs(), c.cfg.Elapsed()
	step := time.Duration(now-c.lastMs)*time.Millisecond - (elapsed - c.elapsed)
	c.elapsed = elapsed
	switch {
	case step > stepOver:
		c.metrics.steps.WithLabelValues("forward").Inc()
		c.cfg.Log.Warn("the clock went forward, or the machine slept; what was due meanwhile is late", "ms", step.Milliseconds())
	case step < -stepOver:
		c.metrics.steps.WithLabelValues("back").Inc()
		c.cfg.Log.Warn("the clock went back; all tasks are read again, and those ahead of their schedule are set back", "ms", -step.Milliseconds())
		c.reset(now)
		c.rewind = rewind{under: true}
	case now < c.lastMs-1000:
		c.cfg.Log.Warn("the clock went back; all tasks are read again", "ms", c.lastMs-now)
		c.reset(now)
	}
	c.lastMs = now
	return now
}

// rewindPage looks at a page of all tasks. A row whose definition this program
// cannot read, or whose slots are those of other zone data, is left to plan and
// doctor.
func (c *Claimer) rewindPage(ctx context.Context, now int64) error {
	p := &c.rewind
	if !p.under {
		return nil
	}
	rows, err := c.cfg.Store.ScheduledTasks(ctx, p.afterID, rewindRows)
	if err != nil {
		return err
	}
	keys := make([]ax.VersionKey, len(rows))
	for i, row := range rows {
		keys[i] = ax.VersionKey{ObjectID: row.TaskID, Version: row.Version}
	}
	if err := c.versions.load(ctx, keys); err != nil {
		return err
	}
	var back []ax.Rewind
	var ids []int64
	for i, row := range rows {
		v := c.versions.get(keys[i])
		if v == nil || v.err != nil || row.Fingerprint != "" && row.Fingerprint != v.timetable.Fingerprint() {
			continue
		}
		if row.LastSlotMs > now+rules.MaxAhead {
			p.far++
		}
		if next, last, ok := rules.Rewind(v.timetable, row, now); ok {
			ids = append(ids, row.TaskID)
			back = append(back, ax.Rewind{
				TaskID: row.TaskID, ExpectNextMs: row.NextMs, ExpectLockVersion: row.LockVersion,
				NextMs: next, LastSlotMs: last, NowMs: now,
			})
		}
	}
	if len(back) > 0 {
		// A refusal that does not pass must not be met at each wake: the pass goes
		// on, and doctor names what is still ahead.
		switch err := c.setBack(ctx, back, ids); {
		case err == nil:
		case ctx.Err() != nil || passing(err):
			return err
		default:
			c.cfg.Log.Error("tasks ahead of their schedule cannot be set back; axctl doctor names them", "tasks", len(back), "error", err)
		}
	}
	if len(rows) == rewindRows {
		p.afterID = rows[len(rows)-1].TaskID
		return nil
	}
	c.rewound()
	return nil
}

func (c *Claimer) setBack(ctx context.Context, back []ax.Rewind, ids []int64) error {
	done, err := c.cfg.Store.Rewind(ctx, back)
	if err != nil {
		return err
	}
	for _, ok := range done {
		if ok {
			c.rewind.done++
			c.metrics.rewound.Inc()
		}
	}
	c.cfg.Places.OutcomeUnknown() // waiting instances may start sooner
	return c.reload(ctx, ids)
}

// rewound ends the pass and tells what it did.
func (c *Claimer) rewound() {
	if n := c.rewind.done; n > 0 {
		c.cfg.Log.Warn("tasks were ahead of their schedule, as a clock that was ahead leaves them; they are set back", "tasks", n)
	}
	if n := c.rewind.far; n > 0 {
		c.cfg.Log.Error("tasks have fired over a day ahead of the clock; they wait for it, see axctl doctor", "tasks", n)
	}
	c.rewind = rewind{}
}

// without leaves the used slots out of a firing.
func without(f ax.Firing, used []int64, tt rules.Timetable) ax.Firing {
	taken := make(map[int64]bool, len(used))
	for _, ms := range used {
		taken[ms] = true
	}
	var starts []ax.FiringStart
	for _, st := range f.Starts {
		if !taken[st.DueMs] {
			st.Place = nil
			starts = append(starts, st)
		}
	}
	var skipped []ax.SkippedStretch
	for _, sk := range f.Skipped {
		skipped = append(skipped, cut(sk, used, tt)...)
	}
	f.Starts, f.Skipped = starts, skipped
	return f
}

// cut returns the pieces of a stretch between the used slots, which are in due
// order.
func cut(sk ax.SkippedStretch, used []int64, tt rules.Timetable) []ax.SkippedStretch {
	var pieces []ax.SkippedStretch
	piece := func(toMs int64) {
		n, over := tt.Count(sk.FromMs, toMs, ax.MaxCountedSlots)
		if n == 0 {
			return
		}
		p := sk
		p.FromMs, _ = tt.Next(sk.FromMs - 1)
		p.ToMs, _ = tt.Prev(toMs + 1)
		if p.Slots = n; over {
			p.Slots = -1
		}
		pieces = append(pieces, p)
	}
	for _, ms := range used {
		if ms >= sk.FromMs && ms <= sk.ToMs {
			piece(ms - 1)
			sk.FromMs = ms + 1
		}
	}
	piece(sk.ToMs)
	return pieces
}
