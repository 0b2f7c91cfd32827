package check

import (
	"fmt"

	"github.com/axctl/ax"
)

// progress is a backfill with what its instances add up to.
type progress struct {
	ax.Backfill
	made int64
	open int
}

// readBackfills checks each backfill by itself.
func (c *checker) readBackfills(r ax.Records) error {
	for b, err := range r.Backfills() {
		if err != nil {
			return fmt.Errorf("backfills: %w", err)
		}
		c.backfills[b.ID] = &progress{Backfill: b}
		subject := fmt.Sprintf("backfill %d", b.ID)
		switch {
		case c.tasks[b.TaskID] == nil:
			c.find(13, report, subject, "its task %d does not exist", b.TaskID)
		case b.PositionMs < b.FromMs || b.PositionMs > b.ToMs:
			c.find(13, report, subject, "its position %s is not in its range", instant(b.PositionMs))
		case b.State.Final() && b.EndedMs == 0:
			c.find(13, report, subject, "it is %s, and has no end", b.State)
		case !b.State.Final() && b.EndedMs != 0:
			c.find(13, report, subject, "it is %s, and its end is %s", b.State, instant(b.EndedMs))
		case b.State == ax.BackfillDone && b.PositionMs != b.ToMs:
			c.find(13, report, subject, "it is done, and its position is %s", instant(b.PositionMs))
		case c.tasks[b.TaskID].deleted && !b.State.Final():
			c.find(13, report, subject, "it is %s, and %s is deleted", b.State, c.tasks[b.TaskID].address)
		}
	}
	return nil
}

// backfilled checks that an instance is what its backfill would make. That it
// made none twice is invariant 1, since the slot is in the key.
func (c *checker) backfilled(subject string, in ax.Instance) {
	id := in.BackfillID()
	if id == 0 && in.Kind != ax.InstanceBackfill {
		return
	}
	b := c.backfills[id]
	switch {
	case b == nil || in.Kind != ax.InstanceBackfill:
		c.find(13, report, subject, "its kind is %s and its key %s is of no backfill", in.Kind, in.SlotKey)
		return
	case in.TaskID != b.TaskID || in.Version != b.Version || in.SlotKey != ax.BackfillSlotKey(id, in.DueMs):
		c.find(13, report, subject, "its task, version or key differ from those of backfill %d", id)
	case in.DueMs < b.FromMs || in.DueMs >= b.PositionMs:
		c.find(13, report, subject, "it is due %s, which is not among the slots that backfill %d has decided on", instant(in.DueMs), id)
	}
	b.made++
	if in.Status == ax.StatusPending || in.HandedMs != 0 && in.StoppedMs == 0 {
		b.open++
	}
}

// backfillCounts compares backfills with what their instances add up to.
func (c *checker) backfillCounts(ax.Records) error {
	for id, b := range c.backfills {
		subject := fmt.Sprintf("backfill %d", id)
		pruned := c.tasks[b.TaskID] != nil && c.tasks[b.TaskID].row.CheckedFromMs != 0
		switch {
		case b.made > b.Made || b.made < b.Made && !pruned:
			c.find(13, report, subject, "it has made %d instances, and %d are there", b.Made, b.made)
		case b.open > b.Parallel:
			c.find(13, report, subject, "%d of its instances are open, and its parallel is %d", b.open, b.Parallel)
		case b.open > 0 && b.State == ax.BackfillDone:
			c.find(13, report, subject, "it is done, and %d of its instances are open", b.open)
		}
	}
	return nil
}
