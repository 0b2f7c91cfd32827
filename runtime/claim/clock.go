package claim

import (
	"context"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

// Spans of the clock's judgement.
const (
	rewindRows = 500
	markEvery  = 30 * time.Second // the clock is kept in the store this often
	doubtLook  = time.Second      // and looked at this often while it is not believed
	sleptOver  = 30 * time.Second // a look that comes this late is told
)

// rewind is the pass through all tasks that sets back those whose row is ahead
// of their schedule: one at the start, one after each step back.
type rewind struct {
	under   bool
	afterID int64
	done    int // tasks set back
	far     int // tasks too far ahead to believe the clock
}

// clock is what the claimer knows of the wall clock.
type clock struct {
	rules.Clock
	begun  bool  // the mark was read
	markAt int64 // when the next one is kept, by the clock that nobody sets
}

// look reads the clocks. Nothing is claimed while the wall clock is not
// believed: after it was set, and at a start before the last instant that the
// store has seen, until a second witness speaks for it. What was due meanwhile is
// late then, as after an outage.
func (c *Claimer) look(ctx context.Context) (now int64, believed bool, err error) {
	r := c.reading()
	if !c.clock.begun {
		mark, err := c.cfg.Store.ClockMark(ctx)
		if err != nil {
			return 0, false, err
		}
		c.clock.begun = true
		news := rules.ClockSteady
		c.clock.Clock, news = rules.StartClock(mark, r)
		c.tellClock(news, rules.ClockStep(mark, r.ClockMark), rules.ClockStep(mark, r.ClockMark), r.Synced)
		c.lastMs, c.elapsed = r.WallMs, r.ElapsedMs
	}
	late := r.ElapsedMs - c.elapsed
	news, stepMs, allMs := c.clock.Look(r)
	if ms, ok := c.clock.Believed(); ok {
		c.believed.Store(&ms)
	}
	c.tellClock(news, stepMs, allMs, r.Synced)
	switch {
	case c.clock.Doubted():
		c.elapsed = r.ElapsedMs
		return r.WallMs, false, nil
	case news != rules.ClockSteady:
		c.reset(r.WallMs)
		c.rewind = rewind{under: true}
	case r.WallMs < c.lastMs-1000:
		c.cfg.Log.Warn("the clock went back; all tasks are read again", "ms", c.lastMs-r.WallMs)
		c.reset(r.WallMs)
	case late > (sleptOver + c.cfg.Scan).Milliseconds():
		c.cfg.Log.Warn("the machine slept, or axd was stopped; what was due meanwhile is late", "ms", late)
	}
	c.lastMs, c.elapsed = r.WallMs, r.ElapsedMs
	c.keepClock(ctx, r.ElapsedMs)
	return r.WallMs, true, nil
}

func (c *Claimer) reading() rules.Reading {
	r := rules.Reading{ClockMark: ax.ClockMark{
		WallMs: c.nowMs(), ElapsedMs: c.cfg.Elapsed().Milliseconds(), Kernel: c.cfg.Kernel,
	}}
	r.Synced = c.clock.Doubted() && c.cfg.Synced != nil && c.cfg.Synced() // a system call, asked only when it counts
	return r
}

// keepClock keeps a clock that is believed, now and then. A store that does not
// take it is told of by the claims; the mark only gets older.
func (c *Claimer) keepClock(ctx context.Context, elapsed int64) {
	if elapsed < c.clock.markAt {
		return
	}
	c.clock.markAt = elapsed + markEvery.Milliseconds()
	if err := c.cfg.Store.KeepClock(ctx, c.clock.Mark()); err != nil && ctx.Err() == nil && !passing(err) {
		c.cfg.Log.Error("the clock's mark cannot be kept; a clock that goes wrong while axd is down will not be seen", "error", err)
	}
}

func (c *Claimer) tellClock(news rules.ClockNews, stepMs, allMs int64, synced bool) {
	c.stats.clockDoubted.Store(c.clock.Doubted())
	if stepMs != 0 {
		c.metrics.steps.WithLabelValues(direction(stepMs)).Inc()
	}
	switch news {
	case rules.ClockSteady:
		return
	case rules.ClockStepped:
		c.cfg.Log.Warn("the clock was set "+direction(stepMs)+"; claims wait until it is confirmed, by the kernel's synchronisation or by "+
			(rules.Persistence*time.Millisecond).String()+" without another step", "ms", max(stepMs, -stepMs))
	case rules.ClockReturned:
		c.cfg.Log.Warn("the clock is back where it was; claims go on, and tasks ahead of their schedule are set back")
	case rules.ClockConfirmed:
		c.cfg.Log.Warn("the clock is confirmed; claims go on: what was due meanwhile is late, and tasks ahead of their schedule are set back",
			"way", direction(allMs), "ms", max(allMs, -allMs), "synchronised", synced)
	}
	c.clock.markAt = 0 // from here on it is to be known
}

func direction(stepMs int64) string {
	if stepMs < 0 {
		return "back"
	}
	return "forward"
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
