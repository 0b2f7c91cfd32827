package sqlite

import (
	"context"
	"errors"
	"iter"

	"github.com/axctl/ax"
)

// Audit implements ax.Auditor. Sequences may run one after another or inside
// one another, but each text only once at a time.
func (s *Store) Audit(ctx context.Context, read func(ax.Records) error) error {
	return s.read(ctx, func(c *conn) error { return read(records{ctx, c}) })
}

type records struct {
	ctx context.Context // lives as long as one Audit
	c   *conn
}

// errEnough ends a sequence that its reader left.
var errEnough = errors.New("enough")

func stream[T any](r records, scan func(*row) T, sql string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := r.c.query(r.ctx, func(row *row) error {
			if !yield(scan(row), nil) {
				return errEnough
			}
			return nil
		}, sql)
		if err != nil && !errors.Is(err, errEnough) {
			var none T
			yield(none, err)
		}
	}
}

func (r records) Objects() iter.Seq2[ax.Object, error] {
	return stream(r, scanObject, selectObjects+` ORDER BY o.id`)
}

func (r records) Versions() iter.Seq2[ax.VersionRow, error] {
	return stream(r, scanVersion, selectVersions+` ORDER BY d.object_id, d.version`)
}

func (r records) Instances() iter.Seq2[ax.Instance, error] {
	return stream(r, scanInstance, `SELECT `+instanceColumns+` FROM instance i ORDER BY i.id`)
}

func (r records) Attempts() iter.Seq2[ax.Attempt, error] {
	return stream(r, scanAttempt, selectAttempts+` ORDER BY instance_id, attempt`)
}

func (r records) Transitions() iter.Seq2[ax.Transition, error] {
	return stream(r, scanTransition, selectTransitions+` ORDER BY instance_id, seq`)
}

func (r records) Slots() iter.Seq2[ax.SlotRecord, error] {
	return stream(r, func(row *row) ax.SlotRecord {
		return ax.SlotRecord{
			TaskID: row.int64(), FromMs: row.int64(), ToMs: row.int64(), Version: row.int(), Stretch: row.flag(),
		}
	}, `SELECT task_id, due_ms, due_ms AS to_ms, version, 0 FROM instance WHERE kind = 'schedule'
		UNION ALL SELECT task_id, from_ms, to_ms, version, 1 FROM skipped ORDER BY 1, 2, 3`)
}

// Unindexed compares history with the ledger. What retention deleted stays in
// history until it is taken out in a batch; EXCEPT finds it in one pass, where
// NOT IN would read all of history_gone for each row.
func (r records) Unindexed() iter.Seq2[ax.IndexFault, error] {
	return stream(r, func(row *row) ax.IndexFault { return ax.IndexFault{Ref: scanRef(row), Missing: row.flag()} },
		`SELECT NULL, h.due_ms, h.task_id, h.slot_key, 0 FROM history h
			WHERE NOT EXISTS (SELECT 1 FROM instance i WHERE i.due_ms = h.due_ms AND i.task_id = h.task_id AND i.slot_key = h.slot_key)
		EXCEPT SELECT NULL, due_ms, task_id, slot_key, 0 FROM history_gone
		UNION ALL SELECT i.id, i.due_ms, i.task_id, i.slot_key, 1 FROM instance i
			WHERE i.id <= (SELECT COALESCE(history_to, 0) FROM meta)
				AND NOT EXISTS (SELECT 1 FROM history h WHERE h.task_id = i.task_id AND h.due_ms = i.due_ms AND h.slot_key = i.slot_key)
		ORDER BY 1, 2, 3, 4`)
}

func (r records) Backfills() iter.Seq2[ax.Backfill, error] {
	return stream(r, scanBackfill, selectBackfills+` ORDER BY b.id`)
}
