package sqlite

import (
	"context"
	"fmt"
	"math"

	"github.com/axctl/ax"
	"github.com/axctl/ax/failpoint"
)

const (
	// countPage is how many rows one look at the index of ids counts: short
	// snapshots keep the write-ahead log short.
	countPage = 20_000
	// prunePage is how many instances one look for old ones reads.
	prunePage = 2000
	// runAtMost is how many instances one statement deletes the attempts and
	// life lines of: few enough that a step stays near its size.
	runAtMost = 20
)

// Prune implements ax.Retention. It goes by ids, whose order is that in which
// instances were made, and needs no index but that of the ids.
//
// First it finds, newest first, where the newest of each task end: below that
// nothing is ever among the newest again, so this may be old when it is used,
// and several may prune at once. Then it walks up from the oldest. Neither is
// one snapshot. An instance that has ended and stopped does not change, so what
// was found deletable still is when it is deleted.
func (s *Store) Prune(ctx context.Context, q ax.PruneQuery, step func(ax.Pruned) error) error {
	beyond, err := s.beyondNewest(ctx, q.KeepLast)
	if err != nil {
		return fmt.Errorf("find old instances: %w", err)
	}
	steps := newPace(ax.PruneStep)
	for after := int64(0); len(beyond) > 0; {
		page, err := s.oldest(ctx, q, after)
		if err != nil {
			return fmt.Errorf("find old instances: %w", err)
		}
		if len(page) == 0 {
			break
		}
		after = page[len(page)-1].ID
		ripe := deletable(page, beyond, q.EndedByMs)
		for len(ripe) > 0 {
			deleted, n, err := s.deleteInstances(ctx, ripe, steps)
			if err != nil {
				return fmt.Errorf("delete old instances: %w", err)
			}
			ripe = ripe[n:]
			if err := step(deleted); err != nil {
				return err
			}
		}
		if page[len(page)-1].ClaimedMs > q.EndedByMs && page[0].ClaimedMs > q.EndedByMs {
			break // made too late, and so was all that follows
		}
	}
	if err := s.pruneStretches(ctx, q, steps, step); err != nil {
		return err
	}
	return s.pruneKeys(ctx, q.KeysByMs, steps, step)
}

// beyondNewest returns, for each task with more than keep instances, the id of
// the newest one that is not among its newest keep.
func (s *Store) beyondNewest(ctx context.Context, keep int) (map[int64]int64, error) {
	seen, beyond := map[int64]int{}, map[int64]int64{}
	for before, n := int64(math.MaxInt64), countPage; n == countPage; {
		n = 0
		err := s.read(ctx, func(c *conn) error {
			return c.query(ctx, func(r *row) error {
				id, task := r.int64(), r.int64()
				before = id
				n++
				if seen[task] == keep {
					beyond[task] = id
				}
				seen[task]++
				return nil
			}, `SELECT i.id, i.task_id FROM instance i WHERE i.id < ? ORDER BY i.id DESC LIMIT ?`, before, countPage)
		})
		if err != nil {
			return nil, err
		}
	}
	return beyond, nil
}

// oldest returns a page of instances in order of their ids.
func (s *Store) oldest(ctx context.Context, q ax.PruneQuery, after int64) ([]ax.Instance, error) {
	var page []ax.Instance
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, func(r *row) error {
			page = append(page, ax.Instance{
				Ref: scanRef(r), Kind: ax.InstanceKind(r.text()), Status: ax.Status(r.text()),
				ClaimedMs: r.int64(), HandedMs: r.int64(), EndedMs: r.int64(), StoppedMs: r.int64(),
			})
			return nil
		}, `SELECT i.id, i.due_ms, i.task_id, i.slot_key, i.kind, i.status, i.claimed_ms, i.handed_ms, i.ended_ms, i.stopped_ms
			FROM instance i WHERE i.id > ? ORDER BY i.id LIMIT ?`, after, prunePage)
	})
	return page, err
}

// deletable selects what of a page may go. A task of which one must stay, or
// whose newest are reached, is taken out of beyond.
func deletable(page []ax.Instance, beyond map[int64]int64, endedByMs int64) []ripeInstance {
	var ripe []ripeInstance
	run := 0
	for _, in := range page {
		last, ok := beyond[in.TaskID]
		if ok && in.ID <= last && in.Prunable(endedByMs) {
			ripe = append(ripe, ripeInstance{in, run})
			continue
		}
		run++
		if ok {
			delete(beyond, in.TaskID)
		}
	}
	return ripe
}

// ripeInstance is one that may be deleted. Between two of one run there is no
// instance that stays.
type ripeInstance struct {
	ax.Instance
	run int
}

// deleteInstances deletes the first n of them, one step's rows, in one
// transaction, and says from when on their tasks' slots can be checked.
func (s *Store) deleteInstances(ctx context.Context, ripe []ripeInstance, steps *pace) (deleted ax.Pruned, n int, err error) {
	failpoint.Hit(failpoint.PruneBegin)
	held, err := s.background(ctx, kindPrune, func(t *tx) error {
		failpoint.Hit(failpoint.PruneBegun)
		deleted, n = ax.Pruned{}, 0
		horizons := map[int64]int64{}
		for n < len(ripe) && deleted.Rows() < int64(steps.rows) {
			first := n
			for n < len(ripe) && ripe[n].run == ripe[first].run && n-first < runAtMost {
				in := ripe[n]
				n++
				gone, err := t.exec(`DELETE FROM instance WHERE due_ms = ? AND task_id = ? AND slot_key = ? AND id = ?`,
					in.DueMs, in.TaskID, in.SlotKey, in.ID)
				if err != nil {
					return err
				}
				deleted.Instances += gone
				if in.Kind == ax.InstanceSchedule || in.Kind == ax.InstanceBackfill {
					horizons[in.TaskID] = max(horizons[in.TaskID], in.DueMs)
				}
			}
			attempts, err := t.exec(`DELETE FROM attempt WHERE instance_id BETWEEN ? AND ?`, ripe[first].ID, ripe[n-1].ID)
			if err != nil {
				return err
			}
			transitions, err := t.exec(`DELETE FROM transition WHERE instance_id BETWEEN ? AND ?`, ripe[first].ID, ripe[n-1].ID)
			if err != nil {
				return err
			}
			deleted = deleted.Plus(ax.Pruned{Attempts: attempts, Transitions: transitions})
		}
		for _, beside := range []string{`signal`, `progress`} {
			_, err := t.exec(`DELETE FROM `+beside+` WHERE instance_id BETWEEN ? AND ? AND NOT EXISTS (SELECT 1 FROM instance i WHERE i.id = instance_id)`,
				ripe[0].ID, ripe[n-1].ID)
			if err != nil {
				return err
			}
		}
		err := raiseHorizons(t, horizons)
		failpoint.Hit(failpoint.PruneCommit)
		return err
	})
	failpoint.Hit(failpoint.PruneCommitted)
	steps.took(held)
	return deleted, n, err
}

func raiseHorizons(t *tx, horizons map[int64]int64) error {
	for task, ms := range horizons {
		_, err := t.exec(`UPDATE object SET checked_from = ?1 WHERE id = ?2 AND COALESCE(checked_from, 0) < ?1`, ms, task)
		if err != nil {
			return err
		}
	}
	return nil
}

// pruneStretches deletes old skipped stretches, task by task.
func (s *Store) pruneStretches(ctx context.Context, q ax.PruneQuery, steps *pace, step func(ax.Pruned) error) error {
	var tasks []int64
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, func(r *row) error { tasks = append(tasks, r.int64()); return nil },
			`SELECT task_id FROM skipped GROUP BY task_id HAVING count(*) > ? ORDER BY task_id`, q.KeepLast)
	})
	if err != nil {
		return fmt.Errorf("find old stretches: %w", err)
	}
	for i := 0; i < len(tasks); {
		most := steps.rows
		n, err := s.deleteStretches(ctx, tasks[i], q, steps)
		if err != nil {
			return fmt.Errorf("delete old stretches: %w", err)
		}
		if n < int64(most) {
			i++
		}
		if n == 0 {
			continue
		}
		if err := step(ax.Pruned{Stretches: n}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) deleteStretches(ctx context.Context, task int64, q ax.PruneQuery, steps *pace) (n int64, err error) {
	held, err := s.background(ctx, kindPrune, func(t *tx) error {
		n = 0
		have := 0
		err := t.query(func(r *row) error { have = r.int(); return nil }, `SELECT count(*) FROM skipped WHERE task_id = ?`, task)
		if err != nil {
			return err
		}
		var ids []int64
		var horizon int64
		err = t.query(func(r *row) error {
			id, to := r.int64(), r.int64()
			if to <= q.EndedByMs {
				ids, horizon = append(ids, id), max(horizon, to)
			}
			return nil
		}, `SELECT id, to_ms FROM skipped WHERE task_id = ? ORDER BY from_ms, id LIMIT ?`, task, max(0, min(steps.rows, have-q.KeepLast)))
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			if _, err := t.exec(`DELETE FROM skipped WHERE id = ?`, id); err != nil {
				return err
			}
		}
		n = int64(len(ids))
		return raiseHorizons(t, map[int64]int64{task: horizon})
	})
	steps.took(held)
	return n, err
}

// pruneKeys deletes old keys of triggers. Most sweeps find none, and then do
// not take the writer.
func (s *Store) pruneKeys(ctx context.Context, byMs int64, steps *pace, step func(ax.Pruned) error) error {
	for {
		old := false
		err := s.read(ctx, func(c *conn) error {
			return c.query(ctx, func(r *row) error { old = r.flag(); return nil },
				`SELECT EXISTS (SELECT 1 FROM trigger_key WHERE at_ms <= ?)`, byMs)
		})
		if err != nil {
			return fmt.Errorf("find old keys of triggers: %w", err)
		}
		if !old {
			return nil
		}
		var n int64
		held, err := s.background(ctx, kindPrune, func(t *tx) (err error) {
			n, err = t.exec(`DELETE FROM trigger_key WHERE (object_id, key) IN
				(SELECT object_id, key FROM trigger_key WHERE at_ms <= ? ORDER BY at_ms LIMIT ?)`, byMs, steps.rows)
			return err
		})
		steps.took(held)
		if err != nil {
			return fmt.Errorf("delete old keys of triggers: %w", err)
		}
		if err := step(ax.Pruned{Keys: n}); err != nil {
			return err
		}
	}
}
