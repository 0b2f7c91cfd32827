package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/axctl/ax"
)

// Trigger implements ax.Operations. The same UID again gives the same Ref.
func (s *Store) Trigger(ctx context.Context, tr ax.Trigger) (ax.Ref, error) {
	var ref ax.Ref
	err := s.write(ctx, 1, func(t *tx) error {
		ref = ax.Ref{DueMs: tr.DueMs, TaskID: tr.ObjectID, SlotKey: ax.ManualSlotKey(tr.UID)}
		version := 0
		err := t.query(func(r *row) error { version = r.int(); return nil },
			`SELECT t.version FROM task t JOIN object o ON o.id = t.object_id WHERE o.id = ? AND o.deleted_ms IS NULL`, tr.ObjectID)
		if err != nil {
			return err
		}
		if version == 0 {
			return fmt.Errorf("task %d: %w", tr.ObjectID, ax.ErrNotFound)
		}
		err = t.query(func(r *row) error { ref.ID = r.int64(); return nil },
			`SELECT id FROM instance WHERE due_ms = ? AND task_id = ? AND slot_key = ?`, ref.DueMs, ref.TaskID, ref.SlotKey)
		if err != nil || ref.ID != 0 {
			return err
		}
		if err := insertWaiting(t, &ref, waitingRow{version, ax.InstanceManual, tr.NowMs, tr.NowMs}); err != nil {
			return err
		}
		err = note(t, ax.Transition{
			InstanceID: ref.ID, AtMs: tr.NowMs, Attempt: 1, To: ax.StatusPending, Actor: tr.Who, Cause: ax.CauseTrigger,
		})
		if err != nil {
			return err
		}
		return count(t, tr.ObjectID, 0, +1)
	})
	if err != nil {
		return ax.Ref{}, err
	}
	return ref, nil
}

// Cancel implements ax.Operations. A second intent changes nothing.
func (s *Store) Cancel(ctx context.Context, id int64, who string, nowMs int64) (ax.Status, error) {
	var status ax.Status
	err := s.write(ctx, 1, func(t *tx) error {
		var ref ax.Ref
		var attempt int
		var by string
		status = ""
		err := t.query(func(r *row) error {
			ref, status, attempt, by = scanRef(r), ax.Status(r.text()), r.int(), r.text()
			return nil
		}, `SELECT i.id, i.due_ms, i.task_id, i.slot_key, i.status, i.attempt, i.cancel_by FROM instance i WHERE i.id = ?`, id)
		switch {
		case err != nil:
			return err
		case status == "":
			return fmt.Errorf("instance %d: %w", id, ax.ErrNotFound)
		case status.Final():
			return fmt.Errorf("instance %d ended as %s: %w", id, status, ax.ErrConflict)
		case status == ax.StatusDispatched && by != "":
			return nil
		}
		from := status
		if status == ax.StatusPending {
			status = ax.StatusCancelled
			err = cancelWaiting(t, ref, who, nowMs)
		} else {
			_, err = t.exec(`UPDATE instance SET cancel_by = ? WHERE due_ms = ? AND task_id = ? AND slot_key = ? AND status = 'dispatched'`,
				who, ref.DueMs, ref.TaskID, ref.SlotKey)
		}
		if err != nil {
			return err
		}
		return note(t, ax.Transition{
			InstanceID: id, AtMs: nowMs, Attempt: attempt, From: from, To: status, Actor: who, Cause: ax.CauseCancel,
		})
	})
	return status, err
}

func cancelWaiting(t *tx, ref ax.Ref, who string, nowMs int64) error {
	_, err := t.exec(`UPDATE instance SET status = 'cancelled', cancel_by = ?, error_class = 'cancelled', ended_ms = ?
		WHERE due_ms = ? AND task_id = ? AND slot_key = ? AND status = 'pending'`, who, nowMs, ref.DueMs, ref.TaskID, ref.SlotKey)
	if err != nil {
		return err
	}
	return count(t, ref.TaskID, 0, -1)
}

// Hold implements ax.Operations.
func (s *Store) Hold(ctx context.Context, objectID int64, h ax.Hold) error {
	return s.write(ctx, 1, func(t *tx) error {
		n, err := t.exec(`UPDATE task SET hold = ?, lock_version = lock_version + 1
			WHERE object_id = ? AND EXISTS (SELECT 1 FROM object WHERE id = object_id AND deleted_ms IS NULL)`, string(h.Kind), objectID)
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("task %d: %w", objectID, ax.ErrNotFound)
		}
		_, err = t.exec(`INSERT OR REPLACE INTO hold (task_id, kind, who, since_ms, until_ms, reason) VALUES (?, ?, ?, ?, ?, ?)`,
			objectID, string(h.Kind), h.Who, h.SinceMs, null(h.UntilMs), text(ax.CleanText(h.Reason, ax.MaxErrorBytes)))
		return err
	})
}

// Resume implements ax.Operations and ax.Claims.
func (s *Store) Resume(ctx context.Context, objectID int64, tt ax.Timetable, nowMs int64) error {
	return s.write(ctx, 1+len(tt.Starts), func(t *tx) error {
		var o objectRow
		held := false
		err := t.query(func(r *row) error {
			o = objectRow{id: objectID, nextMs: r.int64(), lastMs: r.int64(), lock: r.int64()}
			held = r.flag()
			return nil
		}, `SELECT t.next_fire_time, t.last_slot, t.lock_version, t.hold IS NOT NULL
			FROM task t JOIN object o ON o.id = t.object_id WHERE t.object_id = ? AND o.deleted_ms IS NULL`, objectID)
		switch {
		case err != nil:
			return err
		case o.id == 0:
			return fmt.Errorf("task %d: %w", objectID, ax.ErrNotFound)
		case !held:
			return fmt.Errorf("task %d is not held: %w", objectID, ax.ErrConflict)
		case o.overtakes(tt, true, nowMs):
			return fmt.Errorf("task %d: %w", objectID, ax.ErrMoved)
		}
		if _, err := t.exec(`UPDATE task SET hold = NULL, lock_version = lock_version + 1 WHERE object_id = ?`, objectID); err != nil {
			return err
		}
		if _, err := t.exec(`DELETE FROM hold WHERE task_id = ?`, objectID); err != nil {
			return err
		}
		return writeTimetable(t, objectID, tt, nowMs)
	})
}

// Join implements ax.Hosts.
func (s *Store) Join(ctx context.Context, h ax.Host) error {
	handlers, err := json.Marshal(h.Handlers)
	if err != nil {
		return fmt.Errorf("host %q: %w", h.Name, err)
	}
	return s.write(ctx, 1, func(t *tx) error {
		_, err := t.exec(`INSERT OR REPLACE INTO host (name, boot, pid, data_dir, listen, version, tzdata, handlers, started_ms)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			h.Name, h.Boot, h.PID, text(h.DataDir), text(h.Listen), text(h.Version), text(h.TZData), string(handlers), h.StartedMs)
		if err != nil {
			return err
		}
		_, err = t.exec(`UPDATE meta SET tzdata = ?`, text(h.TZData))
		return err
	})
}

// Leave implements ax.Hosts.
func (s *Store) Leave(ctx context.Context, name, boot string, nowMs int64) error {
	return s.write(ctx, 1, func(t *tx) error {
		_, err := t.exec(`UPDATE host SET left_ms = ? WHERE name = ? AND boot = ?`, nowMs, name, boot)
		return err
	})
}
