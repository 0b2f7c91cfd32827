package sqlite

import (
	"encoding/json"
	"strings"

	"github.com/axctl/ax"
)

// instanceColumns are read by scanInstance.
const instanceColumns = `i.id, i.due_ms, i.task_id, i.slot_key, i.version, i.kind, i.status, i.reason, i.attempt, i.host, i.boot, i.executor,
	i.cancel_by, i.not_before_ms, i.claimed_ms, i.assigned_ms, i.handed_ms, i.started_ms, i.ended_ms, i.stopped_ms, i.deadline_ms,
	i.error_class, i.error, i.output, i.output_bytes, i.output_dropped, i.verdict`

func scanInstance(r *row) ax.Instance {
	in := ax.Instance{
		Ref: scanRef(r), Version: r.int(), Kind: ax.InstanceKind(r.text()), Status: ax.Status(r.text()), Reason: ax.Reason(r.text()),
		Attempt: r.int(), Host: r.text(), Boot: r.text(), Executor: r.text(), CancelBy: r.text(), NotBeforeMs: r.int64(),
		ClaimedMs: r.int64(), AssignedMs: r.int64(), HandedMs: r.int64(), StartedMs: r.int64(), EndedMs: r.int64(),
		StoppedMs: r.int64(), DeadlineMs: r.int64(), ErrorClass: ax.ErrorClass(r.text()), Error: r.text(),
	}
	if out := r.text(); out != "" {
		in.Outputs = json.RawMessage(out)
	}
	in.OutputBytes, in.OutputDropped, in.Verdict = r.int64(), r.int64(), ax.Verdict(r.text())
	return in
}

func scanRef(r *row) ax.Ref {
	return ax.Ref{ID: r.int64(), DueMs: r.int64(), TaskID: r.int64(), SlotKey: r.text()}
}

// waitingRow is what a pending instance has beyond its Ref.
type waitingRow struct {
	version   int
	kind      ax.InstanceKind
	notBefore int64
	claimedMs int64
}

// insertWaiting adds a pending instance under a fresh id, which it sets in
// ref. The caller counts it in task.waiting.
func insertWaiting(t *tx, ref *ax.Ref, w waitingRow) (err error) {
	if ref.ID, err = t.takeID(); err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO instance (due_ms, task_id, slot_key, id, version, kind, status, attempt, not_before_ms, claimed_ms)
		VALUES (?, ?, ?, ?, ?, ?, 'pending', 1, ?, ?)`,
		ref.DueMs, ref.TaskID, ref.SlotKey, ref.ID, w.version, string(w.kind), w.notBefore, w.claimedMs)
	return err
}

// insertDispatched adds an instance that is born on a host. The caller counts
// it in task.active.
func insertDispatched(t *tx, ref *ax.Ref, version int, h ax.Handover) (err error) {
	if ref.ID, err = t.takeID(); err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO instance (due_ms, task_id, slot_key, id, version, kind, status, attempt, not_before_ms,
			claimed_ms, assigned_ms, handed_ms, deadline_ms, host, boot, executor)
		VALUES (?1, ?2, 's:' || ?1, ?3, ?4, 'schedule', 'dispatched', 1, ?1, ?5, ?5, ?5, ?6, ?7, ?8, ?9)`,
		ref.DueMs, ref.TaskID, ref.ID, version, h.AtMs, null(h.DeadlineMs), text(h.Host), text(h.Boot), text(h.Executor))
	return err
}

// insertSkippedSlot adds an instance that is born skipped.
func insertSkippedSlot(t *tx, ref *ax.Ref, version int, reason ax.Reason, nowMs int64) (err error) {
	if ref.ID, err = t.takeID(); err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO instance (due_ms, task_id, slot_key, id, version, kind, status, reason, attempt, not_before_ms, claimed_ms, ended_ms)
		VALUES (?1, ?2, 's:' || ?1, ?3, ?4, 'schedule', 'skipped', ?5, 1, ?1, ?6, ?6)`,
		ref.DueMs, ref.TaskID, ref.ID, version, string(reason), nowMs)
	return err
}

func insertSkipped(t *tx, taskID int64, stretches []ax.SkippedStretch) error {
	for _, st := range stretches {
		var slots any
		if st.Slots >= 0 {
			slots = st.Slots
		}
		_, err := t.exec(`INSERT INTO skipped (task_id, from_ms, to_ms, slots, reason, version) VALUES (?, ?, ?, ?, ?, ?)`,
			taskID, st.FromMs, st.ToMs, slots, string(st.Reason), st.Version)
		if err != nil {
			return err
		}
	}
	return nil
}

// note adds one entry to an instance's life line.
func note(t *tx, n ax.Transition) error {
	_, err := t.exec(`INSERT INTO transition (instance_id, seq, at_ms, attempt, from_status, to_status, actor, cause, detail)
		VALUES (?1, (SELECT COALESCE(MAX(seq), 0) + 1 FROM transition WHERE instance_id = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8)`,
		n.InstanceID, n.AtMs, n.Attempt, text(n.From), string(n.To), ax.CleanText(n.Actor, ax.MaxErrorBytes), string(n.Cause),
		text(ax.CleanText(n.Detail, ax.MaxErrorBytes)))
	return err
}

// waiting is a pending instance of a task.
type waiting struct {
	ax.Ref
	attempt int
}

// waitingOf returns a task's pending instances in due order; kind nil is all.
func waitingOf(t *tx, taskID int64, kind any) ([]waiting, error) {
	var found []waiting
	err := t.query(func(r *row) error {
		found = append(found, waiting{Ref: scanRef(r), attempt: r.int()})
		return nil
	}, `SELECT i.id, i.due_ms, i.task_id, i.slot_key, i.attempt FROM instance i
		WHERE i.status = 'pending' AND i.task_id = ?1 AND (?2 IS NULL OR i.kind = ?2) ORDER BY i.due_ms, i.slot_key`, taskID, kind)
	return found, err
}

// skipOne takes an instance that is pending in this attempt to skipped, and
// reports whether it was; n says when, who and why.
func skipOne(t *tx, w waiting, why ax.Reason, n ax.Transition) (bool, error) {
	changed, err := t.exec(`UPDATE instance SET status = 'skipped', reason = ?, ended_ms = ?
		WHERE due_ms = ? AND task_id = ? AND slot_key = ? AND id = ? AND attempt = ? AND status = 'pending'`,
		string(why), n.AtMs, w.DueMs, w.TaskID, w.SlotKey, w.ID, w.attempt)
	if err != nil || changed == 0 {
		return false, err
	}
	n.InstanceID, n.Attempt, n.From, n.To = w.ID, w.attempt, ax.StatusPending, ax.StatusSkipped
	if err := note(t, n); err != nil {
		return false, err
	}
	return true, count(t, w.TaskID, 0, -1)
}

// count moves a task's counters.
func count(t *tx, taskID int64, active, waiting int) error {
	_, err := t.exec(`UPDATE task SET active = active + ?, waiting = waiting + ? WHERE object_id = ?`, active, waiting, taskID)
	return err
}

// outputs returns what of an attempt's outputs is stored: JSON in valid UTF-8
// that is not too long, else nothing.
func outputs(o json.RawMessage) any {
	if len(o) == 0 || len(o) > ax.MaxOutputsBytes || !json.Valid(o) || strings.ContainsRune(string(o), 0) {
		return nil
	}
	return strings.ToValidUTF8(string(o), "\uFFFD")
}
