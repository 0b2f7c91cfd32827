package sqlite

import (
	"cmp"
	"context"
	"fmt"

	"github.com/axctl/ax"
	"github.com/axctl/ax/failpoint"
)

// maxLateResults bounds the late_result notes of one instance.
const maxLateResults = 3

const selectPending = `SELECT i.id, i.due_ms, i.task_id, i.slot_key, i.version, i.kind, i.attempt, i.not_before_ms,
	t.max_active, t.overlap, t.hold IS NOT NULL FROM instance i JOIN task t ON t.object_id = i.task_id WHERE i.status = 'pending'`

// Pending implements ax.Dispatches.
func (s *Store) Pending(ctx context.Context, q ax.PendingQuery) ([]ax.Waiting, error) {
	sql, from := selectPending+` AND i.not_before_ms <= ? ORDER BY i.not_before_ms, i.id LIMIT ?`, q.UntilMs
	if q.AfterID != 0 {
		sql, from = selectPending+` AND i.id > ? ORDER BY i.id LIMIT ?`, q.AfterID
	}
	var ws []ax.Waiting
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, func(r *row) error {
			ws = append(ws, ax.Waiting{
				Ref: scanRef(r), Version: r.int(), Kind: ax.InstanceKind(r.text()), Attempt: r.int(), NotBeforeMs: r.int64(),
				MaxActive: r.int(), Overlap: ax.Overlap(r.text()), Held: r.flag(),
			})
			return nil
		}, sql, from, q.Limit)
	})
	return ws, err
}

// Dispatch implements ax.Dispatches.
func (s *Store) Dispatch(ctx context.Context, hs []ax.Handover) ([]ax.HandoverResult, error) {
	var results []ax.HandoverResult
	failpoint.Hit(failpoint.DispatchBegin)
	err := s.write(ctx, len(hs), func(t *tx) error {
		failpoint.Hit(failpoint.DispatchBegun)
		results = make([]ax.HandoverResult, len(hs))
		for i, h := range hs {
			var err error
			if results[i], err = dispatch(t, h); err != nil {
				return err
			}
		}
		failpoint.Hit(failpoint.DispatchCommit)
		return nil
	})
	if err != nil {
		return nil, err
	}
	failpoint.Hit(failpoint.DispatchCommitted)
	return results, nil
}

// dispatch takes the task's place first, which tells most often all there is
// to know, and gives it back if the instance is not there to take it.
func dispatch(t *tx, h ax.Handover) (ax.HandoverResult, error) {
	manual := h.ByPerson()
	took, err := t.exec(`UPDATE task SET active = active + 1, waiting = waiting - 1
		WHERE object_id = ? AND active < max_active AND (hold IS NULL OR ?)`, h.TaskID, manual)
	if err != nil {
		return "", err
	}
	if took == 1 {
		n, err := t.exec(`UPDATE instance SET status = 'dispatched', host = ?, boot = ?, executor = ?,
				assigned_ms = ?4, handed_ms = ?4, deadline_ms = ?5
			WHERE due_ms = ? AND task_id = ? AND slot_key = ? AND id = ? AND attempt = ? AND status = 'pending'`,
			text(h.Host), text(h.Boot), text(h.Executor), h.AtMs, null(h.DeadlineMs), h.DueMs, h.TaskID, h.SlotKey, h.ID, h.Attempt)
		if err != nil || n == 1 {
			return ax.HandedOver, err
		}
		return ax.HandoverGone, count(t, h.TaskID, -1, +1)
	}
	result := ax.HandoverGone
	err = t.query(func(r *row) error {
		result = ax.HandoverBlocked
		if held := r.flag(); held && !manual {
			result = ax.HandoverHeld
		}
		return nil
	}, `SELECT t.hold IS NOT NULL FROM instance i JOIN task t ON t.object_id = i.task_id
		WHERE i.due_ms = ? AND i.task_id = ? AND i.slot_key = ? AND i.id = ? AND i.attempt = ? AND i.status = 'pending'`,
		h.DueMs, h.TaskID, h.SlotKey, h.ID, h.Attempt)
	return result, err
}

// Started implements ax.Dispatches.
func (s *Store) Started(ctx context.Context, ss []ax.Started) error {
	failpoint.Hit(failpoint.StartedBegin)
	err := s.write(ctx, len(ss), func(t *tx) error {
		for _, st := range ss {
			_, err := t.exec(`UPDATE instance SET started_ms = ?, deadline_ms = ?
				WHERE due_ms = ? AND task_id = ? AND slot_key = ? AND id = ? AND attempt = ? AND status = 'dispatched'`,
				null(st.StartedMs), null(st.DeadlineMs), st.DueMs, st.TaskID, st.SlotKey, st.ID, st.Attempt)
			if err != nil {
				return err
			}
		}
		failpoint.Hit(failpoint.StartedCommit)
		return nil
	})
	failpoint.Hit(failpoint.StartedCommitted)
	return err
}

// Finish implements ax.Dispatches.
func (s *Store) Finish(ctx context.Context, es []ax.Ending) ([]ax.Ended, error) {
	for _, e := range es {
		if e.Status == ax.StatusPending && e.StoppedMs == 0 {
			return nil, fmt.Errorf("instance %d: a retry before its attempt has stopped", e.ID)
		}
	}
	var ended []ax.Ended
	failpoint.Hit(failpoint.FinishBegin)
	err := s.write(ctx, len(es), func(t *tx) error {
		failpoint.Hit(failpoint.FinishBegun)
		ended = make([]ax.Ended, len(es))
		for i, e := range es {
			var err error
			if ended[i], err = finish(t, e); err != nil {
				return err
			}
		}
		failpoint.Hit(failpoint.FinishCommit)
		return nil
	})
	if err != nil {
		return nil, err
	}
	failpoint.Hit(failpoint.FinishCommitted)
	return ended, nil
}

// finish ends one attempt. The happy path needs no reading: a success without
// a cancel intent.
func finish(t *tx, e ax.Ending) (ax.Ended, error) {
	if e.Status == ax.StatusSuccess && e.Cause == "" {
		n, err := end(t, e, ax.StatusSuccess, `AND cancel_by IS NULL`)
		switch {
		case err != nil:
			return ax.Ended{}, err
		case n == 1:
			return ax.Ended{Status: ax.StatusSuccess, Freed: e.StoppedMs != 0}, succeed(t, e)
		}
	}
	at, err := findAttempt(t, e.Ref)
	if err != nil || at == nil {
		return ax.Ended{Late: true}, err
	}
	current := at.attempt == e.Attempt
	switch {
	case e.Status == "" && e.Cause == ax.CauseUnkillable:
		return ax.Ended{Status: at.status}, unkillable(t, e, at)
	case e.Status == "":
		freed := false
		if current && at.status.Final() {
			freed, err = stop(t, e)
		}
		if err == nil && freed && e.Cause != "" {
			err = at.note(t, e, at.status, at.status, e.Cause, e.Detail)
		}
		return ax.Ended{Status: at.status, Freed: freed}, err
	case !current || at.status != ax.StatusDispatched:
		return late(t, e, at)
	case e.Status == ax.StatusPending:
		return retry(t, e, at)
	default:
		return at.end(t, e, e.Status, e.Cause)
	}
}

// unkillable notes what of an attempt cannot be killed, once, while it holds its
// place.
func unkillable(t *tx, e ax.Ending, at *attemptRow) error {
	open := false
	err := t.query(func(*row) error { open = true; return nil },
		`SELECT 1 FROM instance i WHERE i.due_ms = ? AND i.task_id = ? AND i.slot_key = ? AND i.attempt = ? AND i.handed_ms IS NOT NULL AND i.stopped_ms IS NULL
			AND NOT EXISTS (SELECT 1 FROM transition WHERE instance_id = i.id AND attempt = i.attempt AND cause = 'unkillable')`,
		e.DueMs, e.TaskID, e.SlotKey, e.Attempt)
	if err != nil || !open {
		return err
	}
	return at.note(t, e, at.status, at.status, e.Cause, e.Detail)
}

// attemptRow is an instance as an ending finds it.
type attemptRow struct {
	id                       int64
	attempt                  int
	status                   ax.Status
	cancelBy, host, executor string
	handedMs, startedMs      int64
	scheduled                bool
	// The task's:
	deleted, enabled, held bool
	streak, freezeAfter    int
}

func findAttempt(t *tx, ref ax.Ref) (found *attemptRow, err error) {
	err = t.query(func(r *row) error {
		found = &attemptRow{
			id: ref.ID, attempt: r.int(), status: ax.Status(r.text()), cancelBy: r.text(), host: r.text(), executor: r.text(),
			handedMs: r.int64(), startedMs: r.int64(), scheduled: r.flag(), deleted: r.flag(), enabled: r.flag(),
			held: r.flag(), streak: r.int(), freezeAfter: r.int(),
		}
		return nil
	}, `SELECT i.attempt, i.status, i.cancel_by, i.host, i.executor, i.handed_ms, i.started_ms, i.kind = 'schedule',
			o.deleted_ms IS NOT NULL, t.enabled, t.hold IS NOT NULL, t.failure_streak, t.freeze_after
		FROM instance i JOIN task t ON t.object_id = i.task_id JOIN object o ON o.id = i.task_id
		WHERE i.due_ms = ? AND i.task_id = ? AND i.slot_key = ? AND i.id = ?`, ref.DueMs, ref.TaskID, ref.SlotKey, ref.ID)
	return found, err
}

func (at *attemptRow) note(t *tx, e ax.Ending, from, to ax.Status, cause ax.Cause, detail string) error {
	return note(t, ax.Transition{
		InstanceID: at.id, AtMs: e.NowMs, Attempt: at.attempt, From: from, To: to, Actor: "dispatch", Cause: cause, Detail: detail,
	})
}

// end writes a final state, once, and returns how many rows it found.
func end(t *tx, e ax.Ending, status ax.Status, and string) (int64, error) {
	return t.exec(`UPDATE instance SET status = ?, started_ms = COALESCE(?, started_ms), ended_ms = ?, stopped_ms = ?,
			output_bytes = ?, output_dropped = ?, error_class = ?, error = ?, output = ?
		WHERE due_ms = ? AND task_id = ? AND slot_key = ? AND id = ? AND attempt = ? AND status = 'dispatched' `+and,
		string(status), null(e.StartedMs), cmp.Or(e.EndedMs, e.NowMs), null(e.StoppedMs), null(e.OutputBytes), null(e.OutputDropped),
		text(e.ErrorClass), text(ax.CleanText(e.Error, ax.MaxErrorBytes)), outputs(e.Outputs),
		e.DueMs, e.TaskID, e.SlotKey, e.ID, e.Attempt)
}

// end takes a dispatched attempt to a final status, with what its life line
// should say beyond that.
func (at *attemptRow) end(t *tx, e ax.Ending, status ax.Status, cause ax.Cause) (ax.Ended, error) {
	ended := ax.Ended{Status: status, Freed: e.StoppedMs != 0}
	if _, err := end(t, e, status, ``); err != nil {
		return ended, err
	}
	if cause != "" {
		if err := at.note(t, e, ax.StatusDispatched, status, cause, e.Detail); err != nil {
			return ended, err
		}
	}
	if status == ax.StatusSuccess && at.cancelBy != "" {
		if err := at.note(t, e, status, status, ax.CauseCancelLate, ""); err != nil {
			return ended, err
		}
	}
	if ended.Freed {
		if err := count(t, e.TaskID, -1, 0); err != nil {
			return ended, err
		}
	}
	var err error
	ended.FrozenAfter, err = at.streakOn(t, e, status)
	return ended, err
}

// stop sets stopped_ms of an ended attempt if it was not set; only then its
// place is free.
func stop(t *tx, e ax.Ending) (freed bool, err error) {
	if e.StoppedMs == 0 {
		return false, nil
	}
	n, err := t.exec(`UPDATE instance SET stopped_ms = ?
		WHERE due_ms = ? AND task_id = ? AND slot_key = ? AND id = ? AND attempt = ? AND handed_ms IS NOT NULL AND stopped_ms IS NULL`,
		e.StoppedMs, e.DueMs, e.TaskID, e.SlotKey, e.ID, e.Attempt)
	if err != nil || n == 0 {
		return false, err
	}
	return true, count(t, e.TaskID, -1, 0)
}

// late keeps a report for an attempt that had ended: a note, if there are not
// many already, and stopped_ms if that was not known.
func late(t *tx, e ax.Ending, at *attemptRow) (ax.Ended, error) {
	ended := ax.Ended{Status: at.status, Late: true}
	current := at.attempt == e.Attempt
	if !current || at.status != e.Status {
		notes := 0
		err := t.query(func(r *row) error { notes = r.int(); return nil },
			`SELECT count(*) FROM transition WHERE instance_id = ? AND cause = 'late_result'`, e.ID)
		if err != nil {
			return ended, err
		}
		if notes < maxLateResults {
			if err := at.note(t, e, at.status, at.status, ax.CauseLateResult, ax.LateDetail(e)); err != nil {
				return ended, err
			}
		}
	}
	var err error
	if current && at.status.Final() {
		ended.Freed, err = stop(t, e)
	}
	return ended, err
}

// retry makes room for the next attempt, unless a cancel intent, the end of
// the definition or its switch says that there is none.
func retry(t *tx, e ax.Ending, at *attemptRow) (ax.Ended, error) {
	switch {
	case at.cancelBy != "":
		e.ErrorClass, e.Detail = ax.ClassCancelled, ax.CancelDetail(at.cancelBy)
		return at.end(t, e, ax.StatusCancelled, ax.CauseCancel)
	case at.deleted:
		return at.end(t, e, e.RetryStatus, ax.CauseDeleted)
	case !at.enabled && at.scheduled:
		return at.end(t, e, e.RetryStatus, ax.CauseDisabled)
	}
	_, err := t.exec(`INSERT INTO attempt (instance_id, attempt, host, executor, status, error_class, error, handed_ms, started_ms, ended_ms, stopped_ms)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, e.ID, e.Attempt, text(at.host), text(at.executor), string(e.RetryStatus),
		text(e.ErrorClass), text(ax.CleanText(e.Error, ax.MaxErrorBytes)), at.handedMs, null(cmp.Or(e.StartedMs, at.startedMs)),
		cmp.Or(e.EndedMs, e.NowMs), e.StoppedMs)
	if err != nil {
		return ax.Ended{}, err
	}
	if err := at.note(t, e, ax.StatusDispatched, ax.StatusPending, cmp.Or(e.Cause, ax.CauseRetry), ax.RetryDetail(e)); err != nil {
		return ax.Ended{}, err
	}
	_, err = t.exec(`UPDATE instance SET status = 'pending', attempt = attempt + 1, not_before_ms = ?, host = NULL, boot = NULL, executor = NULL,
			assigned_ms = NULL, handed_ms = NULL, started_ms = NULL, ended_ms = NULL, stopped_ms = NULL, deadline_ms = NULL
		WHERE due_ms = ? AND task_id = ? AND slot_key = ? AND attempt = ? AND status = 'dispatched'`,
		e.NotBeforeMs, e.DueMs, e.TaskID, e.SlotKey, e.Attempt)
	if err != nil {
		return ax.Ended{}, err
	}
	return ax.Ended{Status: ax.StatusPending, Freed: true}, count(t, e.TaskID, -1, +1)
}

// Open implements ax.Dispatches.
func (s *Store) Open(ctx context.Context, host string) ([]ax.Instance, error) {
	var open []ax.Instance
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, func(r *row) error { open = append(open, scanInstance(r)); return nil },
			`SELECT `+instanceColumns+` FROM instance i
			WHERE i.host = ? AND i.handed_ms IS NOT NULL AND i.stopped_ms IS NULL ORDER BY i.due_ms, i.task_id, i.slot_key`, host)
	})
	return open, err
}

// Cancels implements ax.CancelIntents.
func (s *Store) Cancels(ctx context.Context, host string) ([]ax.CancelIntent, error) {
	var intents []ax.CancelIntent
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, func(r *row) error {
			in := ax.CancelIntent{Ref: scanRef(r), Attempt: r.int(), By: r.text()}
			in.Replaced = in.By == ax.CancelByOverlap
			intents = append(intents, in)
			return nil
		}, `SELECT i.id, i.due_ms, i.task_id, i.slot_key, i.attempt, i.cancel_by FROM instance i
			WHERE i.host = ? AND i.handed_ms IS NOT NULL AND i.stopped_ms IS NULL AND i.status = 'dispatched' AND i.cancel_by IS NOT NULL
			ORDER BY i.due_ms, i.task_id, i.slot_key`, host)
	})
	return intents, err
}
