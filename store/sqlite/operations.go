package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/axctl/ax"
	"github.com/axctl/ax/failpoint"
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
		if tr.Key == "" {
			return startByHand(t, &ref, version, ax.Transition{AtMs: tr.NowMs, Actor: tr.Who, Cause: ax.CauseTrigger})
		}
		return triggerOnce(t, &ref, version, tr)
	})
	if err != nil {
		return ax.Ref{}, err
	}
	return ref, nil
}

// triggerOnce makes an instance unless the task was triggered with this key;
// then ref becomes the first one's.
func triggerOnce(t *tx, ref *ax.Ref, version int, tr ax.Trigger) error {
	err := t.query(func(r *row) error {
		ref.ID, ref.DueMs, ref.SlotKey = r.int64(), r.int64(), r.text()
		return nil
	}, `SELECT instance_id, due_ms, slot_key FROM trigger_key WHERE object_id = ? AND key = ? AND at_ms > ?`,
		tr.ObjectID, tr.Key, tr.NowMs-ax.TriggerKeyMs)
	if err != nil || ref.ID != 0 {
		return err
	}
	err = startByHand(t, ref, version, ax.Transition{AtMs: tr.NowMs, Actor: tr.Who, Cause: ax.CauseTrigger, Detail: "key " + tr.Key})
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT OR REPLACE INTO trigger_key (object_id, key, at_ms, instance_id, due_ms, slot_key) VALUES (?, ?, ?, ?, ?, ?)`,
		tr.ObjectID, tr.Key, tr.NowMs, ref.ID, ref.DueMs, ref.SlotKey)
	return err
}

// startByHand makes a waiting instance that a person asked for; birth says
// when, who and why.
func startByHand(t *tx, ref *ax.Ref, version int, birth ax.Transition) error {
	if err := insertWaiting(t, ref, waitingRow{version, ax.InstanceManual, birth.AtMs, birth.AtMs}); err != nil {
		return err
	}
	birth.InstanceID, birth.Attempt, birth.To = ref.ID, 1, ax.StatusPending
	if err := note(t, birth); err != nil {
		return err
	}
	return count(t, ref.TaskID, 0, +1)
}

// Retry implements ax.Operations.
func (s *Store) Retry(ctx context.Context, re ax.Retry) (ax.Ref, error) {
	var ref ax.Ref
	err := s.write(ctx, 1, func(t *tx) error {
		var status ax.Status
		var version, current int
		var deleted bool
		ref = ax.Ref{}
		err := t.query(func(r *row) error {
			ref.DueMs, ref.TaskID, status = r.int64(), r.int64(), ax.Status(r.text())
			version, current, deleted = r.int(), r.int(), r.flag()
			return nil
		}, `SELECT i.due_ms, i.task_id, i.status, i.version, t.version, o.deleted_ms IS NOT NULL
			FROM instance i JOIN task t ON t.object_id = i.task_id JOIN object o ON o.id = i.task_id WHERE i.id = ?`, re.InstanceID)
		switch {
		case err != nil:
			return err
		case status == "":
			return fmt.Errorf("instance %d: %w", re.InstanceID, ax.ErrNotFound)
		case !status.Final():
			return fmt.Errorf("instance %d has not ended: %w", re.InstanceID, ax.ErrConflict)
		case deleted:
			return fmt.Errorf("task %d of instance %d: %w", ref.TaskID, re.InstanceID, ax.ErrNotFound)
		}
		// Retention deletes no retry before what it is a retry of, so their
		// number gives no key twice.
		n := 1
		from, to := retryKeys(re.InstanceID)
		err = t.query(func(r *row) error { n += r.int(); return nil },
			`SELECT count(*) FROM instance WHERE due_ms = ? AND task_id = ? AND slot_key > ? AND slot_key < ?`, ref.DueMs, ref.TaskID, from, to)
		if err != nil {
			return err
		}
		ref.SlotKey = ax.RetrySlotKey(re.InstanceID, n)
		if re.WithCurrent {
			version = current
		}
		return startByHand(t, &ref, version, ax.Transition{
			AtMs: re.NowMs, Actor: re.Who, Cause: ax.CauseRetryOf, Detail: fmt.Sprintf("instance %d", re.InstanceID),
		})
	})
	if err != nil {
		return ax.Ref{}, err
	}
	return ref, nil
}

// retryKeys returns what the slot keys of an instance's retries lie between.
func retryKeys(instance int64) (from, to string) {
	from = ax.RetrySlotPrefix(instance)
	return from, from[:len(from)-1] + ";" // the byte after the colon
}

// Mark implements ax.Operations.
func (s *Store) Mark(ctx context.Context, m ax.Mark) error {
	return s.write(ctx, 1, func(t *tx) error {
		var ref ax.Ref
		var status ax.Status
		var attempt int
		err := t.query(func(r *row) error {
			ref, status, attempt = scanRef(r), ax.Status(r.text()), r.int()
			return nil
		}, `SELECT i.id, i.due_ms, i.task_id, i.slot_key, i.status, i.attempt FROM instance i WHERE i.id = ?`, m.InstanceID)
		switch {
		case err != nil:
			return err
		case status == "":
			return fmt.Errorf("instance %d: %w", m.InstanceID, ax.ErrNotFound)
		case !status.Final():
			return fmt.Errorf("instance %d has not ended: %w", m.InstanceID, ax.ErrConflict)
		}
		_, err = t.exec(`UPDATE instance SET verdict = ? WHERE due_ms = ? AND task_id = ? AND slot_key = ?`,
			text(m.Verdict), ref.DueMs, ref.TaskID, ref.SlotKey)
		if err != nil {
			return err
		}
		return note(t, ax.Transition{
			InstanceID: ref.ID, AtMs: m.NowMs, Attempt: attempt, From: status, To: status, Actor: m.Who, Cause: ax.CauseMark,
			Detail: m.Detail(),
		})
	})
}

// Cancel implements ax.Operations. A second intent changes nothing.
func (s *Store) Cancel(ctx context.Context, id int64, who string, nowMs int64) (ax.Status, error) {
	var status ax.Status
	failpoint.Hit(failpoint.CancelBegin)
	err := s.write(ctx, 1, func(t *tx) error {
		failpoint.Hit(failpoint.CancelBegun)
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
		err = note(t, ax.Transition{
			InstanceID: id, AtMs: nowMs, Attempt: attempt, From: from, To: status, Actor: who, Cause: ax.CauseCancel,
		})
		failpoint.Hit(failpoint.CancelCommit)
		return err
	})
	failpoint.Hit(failpoint.CancelCommitted)
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
		alive := false
		err := t.query(func(*row) error { alive = true; return nil },
			`SELECT 1 FROM task t JOIN object o ON o.id = t.object_id WHERE o.id = ? AND o.deleted_ms IS NULL`, objectID)
		switch {
		case err != nil:
			return err
		case !alive:
			return fmt.Errorf("task %d: %w", objectID, ax.ErrNotFound)
		}
		return putHold(t, objectID, h)
	})
}

// putHold holds a task, or replaces the hold it has. Its next_fire_time stays:
// the held stretch begins there.
func putHold(t *tx, taskID int64, h ax.Hold) error {
	_, err := t.exec(`UPDATE task SET hold = ?, lock_version = lock_version + 1 WHERE object_id = ?`, string(h.Kind), taskID)
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT OR REPLACE INTO hold (task_id, kind, who, since_ms, until_ms, reason) VALUES (?, ?, ?, ?, ?, ?)`,
		taskID, string(h.Kind), h.Who, h.SinceMs, null(h.UntilMs), text(ax.CleanText(h.Reason, ax.MaxErrorBytes)))
	return err
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
		if _, err := t.exec(`UPDATE task SET failure_streak = CASE WHEN hold = 'frozen' THEN 0 ELSE failure_streak END,
				hold = NULL, lock_version = lock_version + 1 WHERE object_id = ?`, objectID); err != nil {
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
	var pools []byte
	if h.Pools != nil {
		if pools, err = json.Marshal(h.Pools); err != nil {
			return fmt.Errorf("host %q: %w", h.Name, err)
		}
	}
	return s.write(ctx, 1, func(t *tx) error {
		_, err := t.exec(`INSERT INTO host (name, boot, pid, data_dir, listen, version, tzdata, handlers, pools, started_ms)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET boot = excluded.boot, pid = excluded.pid,
			data_dir = excluded.data_dir, listen = excluded.listen, version = excluded.version, tzdata = excluded.tzdata,
			handlers = excluded.handlers, pools = excluded.pools, started_ms = excluded.started_ms, left_ms = NULL`,
			h.Name, h.Boot, h.PID, text(h.DataDir), text(h.Listen), text(h.Version), text(h.TZData), string(handlers), text(string(pools)), h.StartedMs)
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
