package claim

import (
	"context"
	"errors"
	"slices"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
	"github.com/axctl/ax/runtime/wheel"
)

// scanRows is the size of a page of DueTasks.
const scanRows = 1000

// scan is the walk through the tasks that are due soon, page by page between
// claims. Every Scan it covers what is due until the scan after the next one,
// with no lower bound; every half horizon it covers the whole horizon.
type scan struct {
	soon    bool  // asked for: begin one now
	at      int64 // when the next one begins
	wholeAt int64 // when the next one of the whole horizon begins
	untilMs int64 // of the one under way, 0 none
	after   ax.DueCursor
}

func (s *scan) under() bool { return s.untilMs != 0 }

// scanPage begins a scan when it is time, and reads a page of it.
func (c *Claimer) scanPage(ctx context.Context, now int64) error {
	s := &c.scan
	every := c.cfg.Scan.Milliseconds()
	switch {
	case s.under():
	case s.soon || now >= s.at:
		s.soon = false
		s.at, s.after, s.untilMs = now+every, ax.DueCursor{}, now+2*every
		if err := c.readHolds(ctx); err != nil {
			return err
		}
	case now >= s.wholeAt:
		horizon := c.cfg.Horizon.Milliseconds()
		s.wholeAt, s.after, s.untilMs = now+horizon/2, ax.DueCursor{}, now+horizon
	default:
		return nil
	}
	rows, err := c.cfg.Store.DueTasks(ctx, s.untilMs, s.after, scanRows)
	if err != nil {
		return err
	}
	for _, row := range rows {
		c.update(row)
	}
	if len(rows) < scanRows {
		s.untilMs = 0
		return nil
	}
	last := rows[len(rows)-1]
	s.after = ax.DueCursor{NextMs: last.NextMs, TaskID: last.TaskID}
	return nil
}

// reload brings tasks to what their rows say now.
func (c *Claimer) reload(ctx context.Context, ids []int64) error {
	for chunk := range slices.Chunk(ids, scanRows) {
		rows, err := c.cfg.Store.ReloadTasks(ctx, chunk)
		if err != nil {
			return err
		}
		there := make(map[int64]bool, len(rows))
		for _, row := range rows {
			there[row.TaskID] = true
			c.update(row)
		}
		for _, id := range chunk {
			t := c.tasks[id]
			switch {
			case t == nil:
			case !there[id]:
				c.forget(id)
			case !t.queued:
				c.schedule(t)
			}
		}
	}
	return nil
}

// readHolds puts the ends of holds into the wheel.
func (c *Claimer) readHolds(ctx context.Context) error {
	held, err := c.cfg.Store.EndingHolds(ctx, c.lastMs+c.cfg.Horizon.Milliseconds())
	if err != nil {
		return err
	}
	for _, h := range held {
		if c.holds[h.TaskID] != h.Hold.UntilMs {
			c.holds[h.TaskID] = h.Hold.UntilMs
			c.wheel.Add(wheel.Entry{Kind: kindHold, ID: h.TaskID, DueMs: h.Hold.UntilMs})
		}
	}
	return nil
}

// endHolds resumes the tasks whose hold has ended. One that moved meanwhile, or
// that the store refuses, is found again by the next scan and keeps nobody.
func (c *Claimer) endHolds(ctx context.Context, now int64) error {
	held, err := c.cfg.Store.EndingHolds(ctx, now)
	if err != nil {
		return err
	}
	keys := make([]ax.VersionKey, 0, len(held))
	for _, h := range held {
		keys = append(keys, ax.VersionKey{ObjectID: h.TaskID, Version: h.Version})
	}
	if err := c.versions.load(ctx, keys); err != nil {
		return err
	}
	ended := false
	for i, h := range held {
		if lock, ok := c.quarantined[h.TaskID]; ok && lock == h.LockVersion {
			continue
		}
		v := c.versions.get(keys[i])
		if v == nil || v.err != nil {
			c.quarantine(&task{DueTask: h.DueTask}, v.fault())
			continue
		}
		row := ax.TaskRow{
			Enabled: h.Enabled, Hold: &h.Hold, NextMs: h.NextMs,
			LastSlotMs: h.LastSlotMs, LockVersion: h.LockVersion,
		}
		if h.Enabled {
			row.Fingerprint = v.timetable.Fingerprint()
		}
		tt := rules.Resume(v.timetable, v.Spec.Misfire, h.Version, h.TaskID, row,
			row.Fingerprint, ax.ReasonHeld, now)
		err := c.cfg.Store.Resume(ctx, h.TaskID, tt, now)
		switch {
		case err == nil:
			ended = true
			c.cfg.Log.Info("a hold has ended", "task", c.versions.address(keys[i]), "who", h.Hold.Who)
			c.cfg.Places.OutcomeUnknown() // on_resume may have made rows
		case errors.Is(err, ax.ErrMoved) || errors.Is(err, ax.ErrConflict) || errors.Is(err, ax.ErrNotFound):
		case ctx.Err() != nil:
			return err
		default:
			c.cfg.Log.Error("a hold cannot be ended; the next scan tries again", "task", c.versions.address(keys[i]), "error", err)
		}
	}
	// Only for what can fire now: one that cannot be resumed would be found by
	// scan after scan, without a pause.
	c.scan.soon = c.scan.soon || ended
	return nil
}
