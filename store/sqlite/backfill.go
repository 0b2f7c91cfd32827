package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

const selectBackfills = `SELECT b.id, b.task_id, b.version, b.from_ms, b.to_ms, b.mode, b.parallel, COALESCE(b.slots, -1), b.who, b.at_ms,
	b.state, b.position_ms, b.made, b.passed, b.by_who, b.by_ms, b.reason, b.ended_ms FROM backfill b`

func scanBackfill(r *row) ax.Backfill {
	return ax.Backfill{
		ID: r.int64(),
		BackfillRequest: ax.BackfillRequest{
			TaskID: r.int64(), Version: r.int(), FromMs: r.int64(), ToMs: r.int64(), Mode: ax.BackfillMode(r.text()),
			Parallel: r.int(), Slots: r.int64(), Who: r.text(), AtMs: r.int64(),
		},
		State: ax.BackfillState(r.text()), PositionMs: r.int64(), Made: r.int64(), Passed: r.int64(),
		By: r.text(), ByMs: r.int64(), Reason: ax.Reason(r.text()), EndedMs: r.int64(),
	}
}

// StartBackfill implements ax.BackfillOperations.
func (s *Store) StartBackfill(ctx context.Context, b ax.BackfillRequest) (ax.Backfill, error) {
	made := ax.Backfill{BackfillRequest: b, State: ax.BackfillRunning, PositionMs: b.FromMs}
	err := s.write(ctx, 1, func(t *tx) error {
		version, other := 0, int64(0)
		err := t.query(func(r *row) error { version = r.int(); return nil },
			`SELECT t.version FROM task t JOIN object o ON o.id = t.object_id WHERE o.id = ? AND o.deleted_ms IS NULL`, b.TaskID)
		switch {
		case err != nil:
			return err
		case version == 0:
			return fmt.Errorf("task %d: %w", b.TaskID, ax.ErrNotFound)
		case version != b.Version:
			return fmt.Errorf("task %d is at version %d: %w", b.TaskID, version, ax.ErrStale)
		}
		err = t.query(func(r *row) error { other = r.int64(); return nil },
			`SELECT b.id FROM backfill b WHERE b.task_id = ? AND b.ended_ms IS NULL AND b.from_ms < ? AND b.to_ms > ? LIMIT 1`, b.TaskID, b.ToMs, b.FromMs)
		switch {
		case err != nil:
			return err
		case other != 0:
			return fmt.Errorf("backfill %d overlaps: %w", other, ax.ErrConflict)
		}
		var slots any
		if b.Slots >= 0 {
			slots = b.Slots
		}
		_, made.ID, err = t.insert(`INSERT INTO backfill (task_id, version, from_ms, to_ms, mode, parallel, slots, who, at_ms, state, position_ms, made, passed)
			VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'running', ?3, 0, 0)`,
			b.TaskID, b.Version, b.FromMs, b.ToMs, string(b.Mode), b.Parallel, slots, b.Who, b.AtMs)
		return err
	})
	if err != nil {
		return ax.Backfill{}, err
	}
	return made, nil
}

// readBackfill returns one, with ID 0 when there is none.
func readBackfill(t *tx, id int64) (b ax.Backfill, err error) {
	err = t.query(func(r *row) error { b = scanBackfill(r); return nil }, selectBackfills+` WHERE b.id = ?`, id)
	return b, err
}

// MoveBackfill implements ax.BackfillOperations.
func (s *Store) MoveBackfill(ctx context.Context, m ax.BackfillMove) (ax.Backfill, error) {
	var b ax.Backfill
	err := s.write(ctx, 1, func(t *tx) (err error) {
		b, err = readBackfill(t, m.ID)
		switch {
		case err != nil:
			return err
		case b.ID == 0:
			return fmt.Errorf("backfill %d: %w", m.ID, ax.ErrNotFound)
		case b.State.Final() || b.State == m.To:
			return fmt.Errorf("backfill %d is %s: %w", m.ID, b.State, ax.ErrConflict)
		}
		b.State, b.By, b.ByMs = m.To, m.Who, m.NowMs
		if m.To == ax.BackfillCancelled {
			b.EndedMs = m.NowMs
		}
		_, err = t.exec(`UPDATE backfill SET state = ?, by_who = ?, by_ms = ?, ended_ms = ? WHERE id = ?`,
			string(b.State), b.By, b.ByMs, null(b.EndedMs), b.ID)
		if err != nil || m.To != ax.BackfillCancelled {
			return err
		}
		return cancelBackfilled(t, b, m)
	})
	return b, err
}

// cancelBackfilled ends what of a backfill waits.
func cancelBackfilled(t *tx, b ax.Backfill, m ax.BackfillMove) error {
	all, err := waitingOf(t, b.TaskID, "backfill")
	if err != nil {
		return err
	}
	for _, w := range all {
		if w.BackfillID() != b.ID {
			continue
		}
		if err := cancelWaiting(t, w.Ref, m.Who, m.NowMs); err != nil {
			return err
		}
		err := note(t, ax.Transition{
			InstanceID: w.ID, AtMs: m.NowMs, Attempt: w.attempt, From: ax.StatusPending, To: ax.StatusCancelled, Actor: m.Who, Cause: ax.CauseCancel,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// endBackfills cancels those of a task whose definition is deleted.
func endBackfills(t *tx, taskID int64, who string, nowMs int64) error {
	_, err := t.exec(`UPDATE backfill SET state = 'cancelled', by_who = ?1, by_ms = ?2, reason = 'deleted', ended_ms = ?2
		WHERE task_id = ?3 AND ended_ms IS NULL`, text(who), nowMs, taskID)
	return err
}

// Backfills implements ax.BackfillOperations and ax.Fills.
func (s *Store) Backfills(ctx context.Context, f ax.BackfillFilter) ([]ax.Backfill, error) {
	where, args := []string{"1"}, []any{}
	if f.ID != 0 {
		where, args = append(where, `b.id = ?`), append(args, f.ID)
	}
	if f.TaskID != 0 {
		where, args = append(where, `b.task_id = ?`), append(args, f.TaskID)
	}
	if len(f.States) > 0 {
		where = append(where, `b.state IN (?`+strings.Repeat(`, ?`, len(f.States)-1)+`)`)
		open := true
		for _, st := range f.States {
			args, open = append(args, string(st)), open && !st.Final()
		}
		if open {
			where = append(where, `b.ended_ms IS NULL`) // these have an index
		}
	}
	var all []ax.Backfill
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, func(r *row) error { all = append(all, scanBackfill(r)); return nil },
			selectBackfills+` WHERE `+strings.Join(where, ` AND `)+` ORDER BY b.id DESC LIMIT ?`, append(args, cmp.Or(f.Limit, 1000))...)
	})
	return all, err
}

// readTries returns the tries of a slot, which are few, as query reads them.
func readTries(query func(scan func(*row) error, sql string, args ...any) error, taskID, dueMs int64) ([]ax.Try, error) {
	var tries []ax.Try
	err := query(func(r *row) error {
		tries = append(tries, ax.Try{Ref: scanRef(r), Status: ax.Status(r.text()), Verdict: ax.Verdict(r.text())})
		return nil
	}, `SELECT i.id, i.due_ms, i.task_id, i.slot_key, i.status, i.verdict FROM instance i WHERE i.due_ms = ? AND i.task_id = ?`, dueMs, taskID)
	slices.SortFunc(tries, func(a, b ax.Try) int { return cmp.Compare(a.ID, b.ID) })
	return tries, err
}

// Tries implements ax.BackfillOperations.
func (s *Store) Tries(ctx context.Context, taskID int64, dues []int64) ([]ax.Try, error) {
	var tries []ax.Try
	err := s.read(ctx, func(c *conn) error {
		query := func(scan func(*row) error, sql string, args ...any) error { return c.query(ctx, scan, sql, args...) }
		for _, due := range dues {
			of, err := readTries(query, taskID, due)
			if err != nil {
				return err
			}
			tries = append(tries, of...)
		}
		return nil
	})
	return tries, err
}

// Fill implements ax.Fills.
func (s *Store) Fill(ctx context.Context, f ax.Fill) (ax.Filled, error) {
	var done ax.Filled
	err := s.write(ctx, max(1, len(f.Slots)), func(t *tx) error {
		done = ax.Filled{Lost: true}
		b, err := readBackfill(t, f.BackfillID)
		if err != nil || b.State != ax.BackfillRunning || b.PositionMs != f.ExpectPositionMs {
			return err
		}
		done, err = fill(t, f, b)
		return err
	})
	if err != nil {
		return ax.Filled{}, err
	}
	return done, nil
}

// fill goes on with a backfill as it was read.
func fill(t *tx, f ax.Fill, b ax.Backfill) (ax.Filled, error) {
	done := ax.Filled{PositionMs: b.PositionMs, State: b.State}
	var checkedFromMs int64
	err := t.query(func(r *row) error {
		done.MaxActive, done.Overlap, checkedFromMs = r.int(), ax.Overlap(r.text()), r.int64()
		return nil
	}, `SELECT t.max_active, t.overlap, o.checked_from FROM task t JOIN object o ON o.id = t.object_id
		WHERE t.object_id = ? AND o.deleted_ms IS NULL`, b.TaskID)
	if err != nil {
		return done, err
	}
	if done.MaxActive == 0 { // an ax that knows no backfills deleted it
		done.State = ax.BackfillCancelled
		return done, endBackfills(t, b.TaskID, "", f.NowMs)
	}
	if done.Open, err = openOf(t, b); err != nil {
		return done, err
	}
	room := rules.BackfillRoom(b.Parallel, done.MaxActive, done.Open)
	n := 0
	for ; n < len(f.Slots) && len(done.Made) < room; n++ {
		due := f.Slots[n]
		done.PositionMs = due + 1
		tries, err := readTries(t.query, b.TaskID, due)
		if err != nil {
			return done, err
		}
		if !rules.Wanted(b.Mode, rules.StateOf(tries, due <= checkedFromMs)) {
			b.Passed++
			continue
		}
		b.Made++
		ref, err := insertBackfilled(t, b, due, f.NowMs)
		if err != nil {
			return done, err
		}
		done.Made = append(done.Made, ref)
	}
	done.Open += len(done.Made)
	if f.Last && n == len(f.Slots) {
		done.PositionMs = b.ToMs
		if done.Open == 0 {
			done.State, b.EndedMs = ax.BackfillDone, f.NowMs
		}
	}
	if done.PositionMs == b.PositionMs && done.State == b.State {
		return done, nil
	}
	_, err = t.exec(`UPDATE backfill SET position_ms = ?, made = ?, passed = ?, state = ?, ended_ms = ? WHERE id = ?`,
		done.PositionMs, b.Made, b.Passed, string(done.State), null(b.EndedMs), b.ID)
	if err != nil || len(done.Made) == 0 {
		return done, err
	}
	return done, count(t, b.TaskID, 0, len(done.Made))
}

// insertBackfilled makes a waiting instance of a backfill. The caller counts it.
func insertBackfilled(t *tx, b ax.Backfill, dueMs, nowMs int64) (ax.Ref, error) {
	ref := ax.Ref{DueMs: dueMs, TaskID: b.TaskID, SlotKey: ax.BackfillSlotKey(b.ID, dueMs)}
	if err := insertWaiting(t, &ref, waitingRow{b.Version, ax.InstanceBackfill, nowMs, nowMs}); err != nil {
		return ref, err
	}
	return ref, note(t, ax.Transition{
		InstanceID: ref.ID, AtMs: nowMs, Attempt: 1, To: ax.StatusPending, Actor: b.Who, Cause: ax.CauseBackfill,
		Detail: fmt.Sprintf("backfill %d", b.ID),
	})
}

// openOf counts the instances of a backfill that are not over: a walk over what
// waits of its task and over all that runs, which is little.
func openOf(t *tx, b ax.Backfill) (open int, err error) {
	from := ax.BackfillSlotPrefix(b.ID)
	to := from[:len(from)-1] + ";" // the byte after the colon
	err = t.query(func(r *row) error { open = r.int() + r.int(); return nil },
		`SELECT (SELECT count(*) FROM instance i WHERE i.status = 'pending' AND i.task_id = ?1 AND i.slot_key > ?2 AND i.slot_key < ?3),
			(SELECT count(*) FROM instance i INDEXED BY instance_open WHERE i.handed_ms IS NOT NULL AND i.stopped_ms IS NULL
				AND i.task_id = ?1 AND i.slot_key > ?2 AND i.slot_key < ?3)`, b.TaskID, from, to)
	return open, err
}

// liveBackfills counts a task's instances of backfills that are not over.
func liveBackfills(t *tx, taskID int64) (l rules.Live, err error) {
	err = t.query(func(r *row) error { l.Waiting, l.Active = r.int(), r.int(); return nil },
		`SELECT (SELECT count(*) FROM instance i WHERE i.status = 'pending' AND i.task_id = ?1 AND i.kind = 'backfill'),
			(SELECT count(*) FROM instance i INDEXED BY instance_open WHERE i.handed_ms IS NOT NULL AND i.stopped_ms IS NULL
				AND i.task_id = ?1 AND i.kind = 'backfill')
		WHERE EXISTS (SELECT 1 FROM backfill b WHERE b.task_id = ?1)`, taskID)
	return l, err
}
