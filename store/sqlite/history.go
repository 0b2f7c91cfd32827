package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/axctl/ax"
)

const (
	// A batch of history is worth its writes when many of its rows fall into one
	// page, so few are left to be read beside it, and many are taken at once.
	defaultHistoryLeast = 2_000
	historyBatch        = 50_000
	// historyStep is how many rows one of its transactions writes at most.
	historyStep = 2_000
)

// errOvertaken ends a batch that another process has indexed meanwhile.
var errOvertaken = errors.New("indexed meanwhile")

// IndexHistory implements ax.Upkeep. It takes what was made after the last
// batch, in order of id, sorts it by task and writes it in short transactions;
// with the last of them the watermark moves, so a batch that was cut short is
// simply done again. Then it takes out what retention has deleted, likewise.
func (s *Store) IndexHistory(ctx context.Context, step func() error) error {
	steps := newPace(historyStep)
	for more := true; more; {
		var err error
		if more, err = s.indexBatch(ctx, steps, step); errors.Is(err, errOvertaken) {
			return nil
		} else if err != nil {
			return fmt.Errorf("index history: %w", err)
		}
	}
	for more := true; more; {
		var err error
		if more, err = s.clearBatch(ctx, steps, step); err != nil {
			return fmt.Errorf("clear history: %w", err)
		}
	}
	return nil
}

// indexedTo returns the id up to which history has all instances.
func indexedTo(query func(scan func(*row) error, sql string, args ...any) error) (id int64, err error) {
	err = query(func(r *row) error { id = r.int64(); return nil }, `SELECT history_to FROM meta`)
	return id, err
}

// indexBatch adds the next instances to history and reports whether there are
// more.
func (s *Store) indexBatch(ctx context.Context, steps *pace, step func() error) (more bool, err error) {
	var from, to int64
	var batch []ax.Ref
	err = s.read(ctx, func(c *conn) error {
		batch = batch[:0]
		err := c.query(ctx, func(r *row) error { from, to = r.int64(), r.int64(); return nil }, `SELECT history_to, next_instance_id - 1 FROM meta`)
		if err != nil || to-from < s.historyLeast {
			return err
		}
		return c.query(ctx, func(r *row) error { batch = append(batch, scanRef(r)); return nil },
			`SELECT i.id, i.due_ms, i.task_id, i.slot_key FROM instance i INDEXED BY instance_id WHERE i.id > ? ORDER BY i.id LIMIT ?`, from, historyBatch)
	})
	if err != nil || to-from < s.historyLeast {
		return false, err
	}
	if more = len(batch) == historyBatch; more {
		to = batch[len(batch)-1].ID
	}
	slices.SortFunc(batch, byTask)
	for rest, done := batch, false; !done; {
		n := min(steps.rows, len(rest))
		done = n == len(rest)
		held, err := s.background(ctx, kindIndex, func(t *tx) error {
			if now, err := indexedTo(t.query); err != nil || now != from {
				return cmp.Or(err, errOvertaken)
			}
			for _, ref := range rest[:n] {
				_, err := t.exec(`INSERT OR IGNORE INTO history (task_id, due_ms, slot_key) VALUES (?, ?, ?)`, ref.TaskID, ref.DueMs, ref.SlotKey)
				if err != nil {
					return err
				}
			}
			if !done {
				return nil
			}
			_, err := t.exec(`UPDATE meta SET history_to = ?`, to)
			return err
		})
		if err != nil {
			return false, err
		}
		steps.took(held)
		rest = rest[n:]
		if err := step(); err != nil {
			return false, err
		}
	}
	return more, nil
}

// gone is a row of history_gone.
type gone struct {
	ax.Ref
	seq int64
}

// clearBatch takes deleted instances out of history and reports whether there
// are more. One that history does not have yet, or a batch under way may still
// put there, waits for the watermark.
func (s *Store) clearBatch(ctx context.Context, steps *pace, step func() error) (more bool, err error) {
	var to, last int64
	var batch []gone
	err = s.read(ctx, func(c *conn) (err error) {
		batch = batch[:0]
		if to, err = indexedTo(c.reader(ctx)); err != nil {
			return err
		}
		return c.query(ctx, func(r *row) error { batch = append(batch, gone{scanRef(r), r.int64()}); return nil },
			`SELECT id, due_ms, task_id, slot_key, seq FROM history_gone WHERE id <= ? ORDER BY seq LIMIT ?`, to, historyBatch)
	})
	if err != nil || len(batch) < int(s.historyLeast) {
		return false, err
	}
	last = batch[len(batch)-1].seq
	slices.SortFunc(batch, func(a, b gone) int { return byTask(a.Ref, b.Ref) })
	for rest := batch; len(rest) > 0; {
		n := min(steps.rows, len(rest))
		held, err := s.background(ctx, kindIndex, func(t *tx) error {
			for _, g := range rest[:n] {
				_, err := t.exec(`DELETE FROM history WHERE task_id = ? AND due_ms = ? AND slot_key = ?`, g.TaskID, g.DueMs, g.SlotKey)
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return false, err
		}
		steps.took(held)
		rest = rest[n:]
		if err := step(); err != nil {
			return false, err
		}
	}
	// Only now, so that a batch that was cut short is done again.
	for n := int64(1); n > 0; {
		held, err := s.background(ctx, kindIndex, func(t *tx) (err error) {
			n, err = t.exec(`DELETE FROM history_gone WHERE seq IN (SELECT seq FROM history_gone WHERE seq <= ? AND id <= ? ORDER BY seq LIMIT ?)`,
				last, to, steps.rows)
			return err
		})
		if err != nil {
			return false, err
		}
		steps.took(held)
		if err := step(); err != nil {
			return false, err
		}
	}
	return len(batch) == historyBatch, nil
}

// byTask is the order of history.
func byTask(a, b ax.Ref) int {
	return cmp.Or(cmp.Compare(a.TaskID, b.TaskID), cmp.Compare(a.DueMs, b.DueMs), cmp.Compare(a.SlotKey, b.SlotKey))
}
