package claim

import (
	"context"
	"slices"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

// pick is a firing with what it was decided from.
type pick struct {
	task    *task
	version *version
	firing  ax.Firing
	again   bool // used slots were left out of it
}

// claim accounts for the due slots of tasks, at most maxSlots a transaction.
// Each task is back in the wheel, in the backlog or gone when it returns.
func (c *Claimer) claim(ctx context.Context, tasks []*task, now int64) {
	var picks []pick
	slots := 0
	flush := func() {
		c.write(ctx, picks)
		picks, slots = nil, 0
		now = c.nowMs()
	}
	for _, t := range tasks {
		v := c.versions.get(t.key())
		if v == nil || v.err != nil {
			c.quarantine(t, v.fault())
			continue
		}
		if t.NextMs > now {
			c.schedule(t)
			continue
		}
		if t.alone {
			flush()
		}
		f, backlog, err := decide(t.DueTask, &v.Spec, v.timetable, maxSlots, now)
		if err != nil {
			c.quarantine(t, err)
			continue
		}
		if !backlog {
			c.reserve(&f, v, now)
		}
		picks = append(picks, pick{task: t, version: v, firing: f})
		if slots += len(f.Starts) + 1; slots >= maxSlots || t.alone {
			flush()
		}
	}
	flush()
}

// byRank puts due tasks in the order in which they take places: by priority,
// where one has any.
func (c *Claimer) byRank(live []*task) {
	priority := func(t *task) int { return c.versions.get(t.key()).Spec.Priority }
	if !slices.ContainsFunc(live, func(t *task) bool { return priority(t) != 0 }) {
		return // they are in due order
	}
	rank := func(t *task) rules.Rank {
		return rules.RankOf(ax.Ref{DueMs: t.NextMs, ID: t.TaskID}, priority(t), false)
	}
	slices.SortStableFunc(live, func(a, b *task) int { return rank(a).Compare(rank(b)) })
}

// reserve takes places for the starts that may begin at once.
func (c *Claimer) reserve(f *ax.Firing, v *version, now int64) {
	pool, handler := v.Spec.PoolName(), v.Spec.Handler
	for i := range f.Starts[:min(len(f.Starts), v.Spec.Concurrency)] {
		if f.Starts[i].Skip != "" {
			continue
		}
		if !c.cfg.Places.Reserve(pool, handler) {
			return
		}
		f.Starts[i].Place = &ax.Handover{
			Attempt: 1, Host: c.cfg.Host, Boot: c.cfg.Boot, Executor: handler.Name,
			AtMs: now, DeadlineMs: now + ax.HandoverWithin.Milliseconds(),
		}
	}
}

// write makes one transaction of picks and acts on its outcome.
func (c *Claimer) write(ctx context.Context, picks []pick) {
	if len(picks) == 0 {
		return
	}
	firings := make([]ax.Firing, len(picks))
	for i, p := range picks {
		firings[i] = p.firing
	}
	claimed, err := c.cfg.Store.Claim(ctx, firings)
	if err != nil {
		c.unknown(ctx, picks, err)
		return
	}
	c.failures = 0
	var b birth
	var lost, again []pick
	for i, p := range picks {
		p.task.alone = false
		if claimed[i].Lost {
			c.metrics.lost.Inc()
			c.release(p)
			if used := claimed[i].Used; len(used) > 0 && !p.again {
				p.firing, p.again = without(p.firing, used, p.version.timetable), true
				again = append(again, p)
			} else {
				lost = append(lost, p)
			}
			continue
		}
		c.metrics.won.Inc()
		p.task.LockVersion = claimed[i].LockVersion
		p.task.NextMs, p.task.LastSlotMs = p.firing.NextMs, p.firing.LastSlotMs
		c.schedule(p.task)
		c.born(&b, p, claimed[i].Born)
		if ahead := claimed[i].Ahead; len(ahead) > 0 {
			c.cfg.Places.Behind(p.firing.TaskID, ahead)
		}
	}
	c.deliver(b)
	c.write(ctx, again) // slots that ran under a clock that was ahead
	c.readAgain(ctx, lost)
	for _, p := range lost {
		if t := p.task; c.tasks[t.TaskID] == t && t.NextMs == p.firing.ExpectNextMs && t.LockVersion == p.firing.ExpectLockVersion {
			// Nobody moved the row, so its slot was used before. Do not spin.
			c.cfg.Log.Error("a slot that is due was used before; the task is tried again in a minute",
				"task", c.versions.address(t.key()), "due_ms", t.NextMs)
			c.park(t)
		}
	}
}

// unknown deals with a transaction whose outcome is unknown: nothing is
// assumed, the rows say. When it was refused for no passing reason, its tasks
// are tried one by one, and one that is refused alone is parked.
func (c *Claimer) unknown(ctx context.Context, picks []pick, err error) {
	for _, p := range picks {
		c.release(p)
	}
	c.cfg.Places.OutcomeUnknown()
	c.failures++
	pause(ctx, c.failures)
	c.readAgain(ctx, picks)
	switch {
	case ctx.Err() != nil || passing(err):
	case len(picks) == 1:
		t := picks[0].task
		c.cfg.Log.Error("a task's claim was refused; it is tried again in a minute", "task", c.versions.address(t.key()), "error", err)
		if c.tasks[t.TaskID] == t {
			c.park(t)
		}
	default:
		c.cfg.Log.Error("a claim was refused; its tasks are claimed one by one", "tasks", len(picks), "error", err)
		for _, p := range picks {
			p.task.alone = true
		}
	}
}

// readAgain brings the tasks of picks to what their rows say.
func (c *Claimer) readAgain(ctx context.Context, picks []pick) {
	ids := make([]int64, len(picks))
	for i, p := range picks {
		ids[i] = p.task.TaskID
	}
	if err := c.reload(ctx, ids); err != nil && ctx.Err() == nil {
		c.cfg.Log.Error("tasks cannot be read again; the next scan finds them", "error", err)
		for _, id := range ids {
			c.forget(id)
		}
	}
}

// pause waits before a store is tried again, longer with each failure in a row,
// at most a second.
func pause(ctx context.Context, failures int) {
	timer := time.NewTimer(min(25*time.Millisecond<<min(failures, 6), time.Second))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (c *Claimer) release(p pick) {
	for _, s := range p.firing.Starts {
		if s.Place != nil {
			c.cfg.Places.Release(p.version.Spec.PoolName())
		}
	}
}

// birth gathers what one transaction brought forth.
type birth struct {
	takenVersions, waitVersions []*ax.TaskVersion
	taken                       []ax.Handover
	waits                       []ax.Waiting
	cancels                     bool
}

// born sorts the instances of one firing.
func (c *Claimer) born(b *birth, p pick, born []ax.Born) {
	v := &p.version.TaskVersion
	for i, in := range born {
		place := p.firing.Starts[i].Place
		if place != nil && in.Status != ax.StatusDispatched {
			c.cfg.Places.Release(v.Spec.PoolName())
		}
		c.stats.claimed.Add(1)
		switch in.Status {
		case ax.StatusDispatched:
			h := *place
			h.Ref = in.Ref
			b.takenVersions = append(b.takenVersions, v)
			b.taken = append(b.taken, h)
		case ax.StatusPending:
			b.waitVersions = append(b.waitVersions, v)
			b.waits = append(b.waits, ax.Waiting{
				Ref: in.Ref, Version: p.firing.Version, Kind: ax.InstanceSchedule, Attempt: 1,
				NotBeforeMs: in.DueMs, MaxActive: v.Spec.Concurrency, Overlap: v.Spec.Overlap,
			})
		case ax.StatusSkipped:
			c.skipped(v, in.Ref, in.Reason, 1)
		default:
			panic("an instance was born as " + string(in.Status))
		}
		if in.Replaced != 0 {
			c.skipped(v, ax.Ref{ID: in.Replaced, TaskID: in.TaskID}, ax.ReasonReplaced, 1)
		}
		b.cancels = b.cancels || in.Cancelled != 0
	}
	for _, s := range p.firing.Skipped {
		c.cfg.Log.Warn("slots were missed and are not run", "task", ax.Address(ax.KindTask, v.Name),
			"slots", s.Slots, "from_ms", s.FromMs, "to_ms", s.ToMs)
		c.skipped(v, ax.Ref{TaskID: s.TaskID, DueMs: s.ToMs}, s.Reason, s.Slots)
	}
}

func (c *Claimer) skipped(v *ax.TaskVersion, ref ax.Ref, reason ax.Reason, slots int) {
	c.stats.skipped.Add(1)
	c.metrics.skipped.WithLabelValues(string(reason)).Inc()
	if c.cfg.OnSkipped != nil {
		c.cfg.OnSkipped(v, ref, reason, slots)
	}
}

func (c *Claimer) deliver(b birth) {
	if len(b.taken) > 0 {
		c.cfg.Places.Take(b.takenVersions, b.taken)
	}
	if len(b.waits) > 0 {
		c.cfg.Places.Wait(b.waitVersions, b.waits)
	}
	if b.cancels {
		c.cfg.Places.CancelAsked()
	}
}
