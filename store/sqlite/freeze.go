package sqlite

import (
	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

// succeed is what a success does to its task's row, as rules.Streak says. Its place
// and the end of a streak are one statement; a streak that is none costs nothing.
func succeed(t *tx, e ax.Ending) error {
	if e.BackfillID() != 0 {
		if e.StoppedMs == 0 {
			return nil
		}
		return count(t, e.TaskID, -1, 0)
	}
	if e.StoppedMs != 0 {
		_, err := t.exec(`UPDATE task SET active = active - 1, failure_streak = 0 WHERE object_id = ?`, e.TaskID)
		return err
	}
	_, err := t.exec(`UPDATE task SET failure_streak = 0 WHERE object_id = ? AND failure_streak <> 0`, e.TaskID)
	return err
}

// streakOn counts a final status in the task's streak and freezes the task where
// that is due; it returns the streak then, else 0. A task that is held already,
// or deleted, keeps what it has.
func (at *attemptRow) streakOn(t *tx, e ax.Ending, status ax.Status) (int, error) {
	streak, freeze := rules.Streak(at.streak, at.freezeAfter, e.Ref, status, e.ErrorClass)
	if streak != at.streak {
		if _, err := t.exec(`UPDATE task SET failure_streak = ? WHERE object_id = ?`, streak, e.TaskID); err != nil {
			return 0, err
		}
	}
	if !freeze || at.held || at.deleted {
		return 0, nil
	}
	h, detail := ax.Freezing(e, streak)
	if err := at.note(t, e, status, status, ax.CauseFrozen, detail); err != nil {
		return 0, err
	}
	return streak, putHold(t, e.TaskID, h)
}
