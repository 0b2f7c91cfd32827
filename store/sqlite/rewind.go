package sqlite

import (
	"context"

	"github.com/axctl/ax"
)

// ScheduledTasks implements ax.Rewinds.
func (s *Store) ScheduledTasks(ctx context.Context, afterID int64, limit int) ([]ax.ScheduledTask, error) {
	var all []ax.ScheduledTask
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, func(r *row) error {
			all = append(all, ax.ScheduledTask{DueTask: scanDue(r), Enabled: r.flag(), Fingerprint: r.text()})
			return nil
		}, `SELECT t.object_id, t.version, t.next_fire_time, t.last_slot, t.lock_version, t.enabled, o.fingerprint
			FROM task t JOIN object o ON o.id = t.object_id
			WHERE t.object_id > ? AND o.deleted_ms IS NULL ORDER BY t.object_id LIMIT ?`, afterID, limit)
	})
	return all, err
}

// Rewind implements ax.Rewinds.
func (s *Store) Rewind(ctx context.Context, rs []ax.Rewind) ([]bool, error) {
	var done []bool
	err := s.write(ctx, len(rs), func(t *tx) error {
		done = make([]bool, len(rs))
		for i, r := range rs {
			var err error
			if done[i], err = rewind(t, r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return done, nil
}

func rewind(t *tx, r ax.Rewind) (bool, error) {
	// What ran up to now stays, so its slots are used, see usedIn.
	_, err := t.exec(`UPDATE object SET rewound_from = (SELECT last_slot FROM task WHERE object_id = ?1)
		WHERE id = ?1 AND deleted_ms IS NULL AND EXISTS (SELECT 1 FROM task WHERE object_id = ?1 AND lock_version = ?2 AND last_slot > COALESCE(rewound_from, 0))`,
		r.TaskID, r.ExpectLockVersion)
	if err != nil {
		return false, err
	}
	n, err := t.exec(`UPDATE task SET next_fire_time = ?, last_slot = ?, lock_version = lock_version + 1
		WHERE object_id = ? AND lock_version = ? AND next_fire_time IS ?
			AND EXISTS (SELECT 1 FROM object WHERE id = task.object_id AND deleted_ms IS NULL)`,
		null(r.NextMs), null(r.LastSlotMs), r.TaskID, r.ExpectLockVersion, null(r.ExpectNextMs))
	if n == 0 || err != nil {
		return false, err
	}
	if _, err = t.exec(`DELETE FROM skipped WHERE task_id = ? AND from_ms > ?`, r.TaskID, r.NowMs); err != nil {
		return false, err
	}
	_, err = t.exec(`UPDATE skipped SET to_ms = MAX(from_ms, ?1), slots = CASE WHEN from_ms >= ?1 THEN 1 END
		WHERE task_id = ?2 AND from_ms <= ?3 AND to_ms > ?3`, r.LastSlotMs, r.TaskID, r.NowMs)
	if err != nil {
		return false, err
	}
	_, err = t.exec(`UPDATE instance SET not_before_ms = ?1
		WHERE task_id = ?2 AND due_ms > ?1 AND status = 'pending' AND not_before_ms > ?1`, r.NowMs, r.TaskID)
	return err == nil, err
}
