package sqlite

import (
	"context"
	"fmt"

	"github.com/axctl/ax"
	"github.com/axctl/ax/failpoint"
)

// Apply implements ax.Definitions: one transaction for all of cs. An apply id
// that was committed before gives the answer it had, so an apply whose answer
// was lost can be sent again.
func (s *Store) Apply(ctx context.Context, cs ax.ChangeSet) (ax.Applied, error) {
	for _, c := range cs.Changes {
		if c.Kind == ax.KindTask && c.Action != ax.ActionDelete && c.Task == nil {
			return ax.Applied{}, fmt.Errorf("change of %s has no task", ax.Address(c.Kind, c.Name))
		}
	}
	var done ax.Applied
	failpoint.Hit(failpoint.ApplyBegin)
	_, err := s.writeAs(ctx, kindApply, len(cs.Changes)+1, func(t *tx) (err error) {
		failpoint.Hit(failpoint.ApplyBegun)
		done, err = (&apply{tx: t, cs: cs, commitMs: max(s.now().UnixMilli(), cs.NowMs)}).run()
		failpoint.Hit(failpoint.ApplyCommit)
		return err
	})
	failpoint.Hit(failpoint.ApplyCommitted)
	done.StoreMade = s.made && err == nil
	return done, err
}

// apply is an Apply inside its transaction.
type apply struct {
	*tx
	cs       ax.ChangeSet
	commitMs int64
	stackID  int64
	revision int64 // id of the row
}

// objectRow is an object and its hot row as they are before the change.
type objectRow struct {
	id      int64
	fresh   bool // inserted by this apply
	version int
	deleted bool
	hash    string
	nextMs  int64
	lastMs  int64
	lock    int64
	waiting int
}

func (a *apply) run() (ax.Applied, error) {
	var storeID string
	var earlier ax.Revision
	err := a.query(func(r *row) error { earlier = scanRevision(r); return nil }, selectRevision, a.cs.ApplyID)
	if err != nil || earlier.ApplyID != "" {
		return ax.Applied{Serial: earlier.Serial, Revision: earlier}, err
	}
	if err := a.query(func(r *row) error { storeID = r.text(); return nil }, `SELECT store_id FROM meta`); err != nil {
		return ax.Applied{}, err
	}
	if a.cs.StoreID != "" && a.cs.StoreID != storeID {
		return ax.Applied{}, fmt.Errorf("the change was computed from another store (%s): %w", a.cs.StoreID, ax.ErrStale)
	}
	serial, err := a.readStack()
	if err != nil {
		return ax.Applied{}, err
	}
	r := a.cs.Revision
	r.ApplyID, r.Stack, r.Serial, r.AtMs = a.cs.ApplyID, a.cs.Stack, serial+1, a.cs.NowMs
	if err := a.writeRevision(r); err != nil {
		return ax.Applied{}, err
	}
	for _, c := range a.cs.Changes {
		if err := a.change(c); err != nil {
			return ax.Applied{}, err
		}
	}
	if serial != a.cs.BaseSerial {
		return ax.Applied{}, a.staleStack(serial)
	}
	if a.cs.ValidUntilMs != 0 && a.commitMs >= a.cs.ValidUntilMs {
		return ax.Applied{}, fmt.Errorf("a new next fire time has passed: %w", ax.ErrMoved)
	}
	return ax.Applied{Serial: r.Serial, Revision: r}, nil
}

// readStack finds or makes the stack's row and returns its serial.
func (a *apply) readStack() (serial int64, err error) {
	err = a.query(func(r *row) error {
		a.stackID, serial = r.int64(), r.int64()
		return nil
	}, `SELECT id, serial FROM stack WHERE name = ?`, a.cs.Stack)
	if err == nil && a.stackID == 0 {
		_, a.stackID, err = a.insert(`INSERT INTO stack (name, serial) VALUES (?, 0)`, a.cs.Stack)
	}
	return serial, err
}

func (a *apply) writeRevision(r ax.Revision) (err error) {
	_, a.revision, err = a.insert(`INSERT INTO revision (apply_id, stack_id, serial, at_ms, who, host, origin, git_remote, git_commit,
		git_dirty, plan_hash, config_hash, message, added, changed, deleted) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`,
		r.ApplyID, a.stackID, r.Serial, r.AtMs, text(r.Who), text(r.Host), text(r.Origin), text(r.GitRemote), text(r.GitCommit),
		r.GitDirty, text(r.PlanHash), text(r.ConfigHash), text(ax.CleanText(r.Message, ax.MaxErrorBytes)), r.Added, r.Changed, r.Deleted)
	if err != nil {
		return err
	}
	if _, err := a.exec(`UPDATE stack SET serial = ?, origin = ? WHERE id = ?`, r.Serial, text(r.Origin), a.stackID); err != nil {
		return err
	}
	_, err = a.exec(`UPDATE meta SET serial = serial + 1`)
	return err
}

func (a *apply) staleStack(serial int64) error {
	stale := &ax.StaleError{Read: int(a.cs.BaseSerial), Found: int(serial)}
	err := a.query(func(r *row) error {
		stale.Who, stale.AtMs = r.text(), r.int64()
		return nil
	}, `SELECT who, at_ms FROM revision WHERE stack_id = ? AND serial = ?`, a.stackID, serial)
	if err != nil {
		return err
	}
	return stale
}

func (a *apply) change(c ax.Change) error {
	o, err := a.object(c)
	if err != nil {
		return err
	}
	deleted := c.Action == ax.ActionDelete
	if o.fresh || o.deleted || deleted || c.Hash != o.hash {
		o.version++
		if err := a.writeVersion(o, c); err != nil {
			return err
		}
	}
	switch {
	case c.Kind != ax.KindTask: // it has no hot row
		return nil
	case deleted:
		return a.deleteTask(o, c)
	case o.fresh:
		return a.createTask(o, *c.Task)
	default:
		return a.updateTask(o, *c.Task)
	}
}

// object finds or makes the row of a change's object and refuses one that is
// not as the change's author read it.
func (a *apply) object(c ax.Change) (objectRow, error) {
	if c.Action == ax.ActionCreate && c.ObjectID == 0 && c.BaseVersion == 0 {
		var fingerprint string
		if c.Task != nil && c.Task.Timetable != nil {
			fingerprint = c.Task.Timetable.Fingerprint
		}
		n, id, err := a.insert(`INSERT INTO object (stack_id, kind, name, version, defined, hash, fingerprint)
			VALUES (?, ?, ?, 1, 1, ?, ?) ON CONFLICT DO NOTHING`, a.stackID, string(c.Kind), c.Name, c.Hash, text(fingerprint))
		if err != nil || n == 1 {
			return objectRow{id: id, fresh: true}, err
		}
	}
	var o objectRow
	err := a.query(func(r *row) error {
		o = objectRow{
			id: r.int64(), version: r.int(), deleted: r.flag(), hash: r.text(),
			nextMs: r.int64(), lastMs: r.int64(), lock: r.int64(), waiting: r.int(),
		}
		return nil
	}, `SELECT o.id, o.version, o.deleted_ms, o.hash, t.next_fire_time, t.last_slot, t.lock_version, t.waiting
		FROM object o LEFT JOIN task t ON t.object_id = o.id WHERE o.stack_id = ? AND o.kind = ? AND o.name = ?`,
		a.stackID, string(c.Kind), c.Name)
	if err != nil {
		return objectRow{}, err
	}
	found := o.version
	if o.deleted {
		found = 0
	}
	sameID := c.ObjectID == o.id || c.ObjectID == 0 && o.deleted
	if found != c.BaseVersion || !sameID || (c.Action == ax.ActionCreate) != (found == 0) {
		return objectRow{}, a.staleObject(o.id, &ax.StaleError{Address: ax.Address(c.Kind, c.Name), Read: c.BaseVersion, Found: found})
	}
	return o, nil
}

func (a *apply) staleObject(id int64, stale *ax.StaleError) error {
	err := a.query(func(r *row) error {
		stale.Who, stale.AtMs = r.text(), r.int64()
		return nil
	}, `SELECT r.who, r.at_ms FROM definition d JOIN revision r ON r.id = d.revision_id
		WHERE d.object_id = ? ORDER BY d.version DESC LIMIT 1`, id)
	if err != nil {
		return err
	}
	return stale
}

// writeVersion adds the version o.version; a deletion has no body and leaves
// the object its last definition.
func (a *apply) writeVersion(o objectRow, c ax.Change) (err error) {
	switch {
	case o.fresh: // inserted with its first version
	case c.Action == ax.ActionDelete:
		_, err = a.exec(`UPDATE object SET version = ?, deleted_ms = ? WHERE id = ?`, o.version, a.cs.NowMs, o.id)
	default:
		_, err = a.exec(`UPDATE object SET version = ?1, defined = ?1, hash = ?2, deleted_ms = NULL WHERE id = ?3`, o.version, c.Hash, o.id)
	}
	if err != nil {
		return err
	}
	var hash, body any
	if c.Action != ax.ActionDelete {
		hash, body = c.Hash, string(c.Definition)
	}
	_, err = a.exec(`INSERT INTO definition (object_id, version, revision_id, effective_ms, hash, body) VALUES (?, ?, ?, ?, ?, ?)`,
		o.id, o.version, a.revision, a.cs.NowMs, hash, body)
	return err
}

func (a *apply) createTask(o objectRow, t ax.TaskChange) error {
	var tt ax.Timetable
	if t.Timetable != nil {
		tt = *t.Timetable
	}
	_, err := a.exec(`INSERT INTO task (object_id, next_fire_time, last_slot, lock_version, active, waiting, max_active, version, enabled, overlap, freeze_after)
		VALUES (?, ?, ?, 1, 0, ?, ?, ?, ?, ?, ?)`,
		o.id, null(tt.NextMs), null(tt.LastSlotMs), len(tt.Starts), t.MaxActive, o.version, t.Enabled, string(t.Overlap), t.FreezeAfter)
	if err != nil {
		return err
	}
	return writeSlots(a.tx, o.id, tt, a.cs.NowMs)
}

func (a *apply) updateTask(o objectRow, t ax.TaskChange) error {
	_, err := a.exec(`UPDATE task SET lock_version = lock_version + 1, max_active = ?, version = ?, enabled = ?, overlap = ?, freeze_after = ?
		WHERE object_id = ?`, t.MaxActive, o.version, t.Enabled, string(t.Overlap), t.FreezeAfter, o.id)
	if err != nil {
		return err
	}
	if t.SkipPending != ax.ReasonNone && o.waiting > 0 {
		if err := skipWaiting(a.tx, o.id, t.SkipPending, a.cs.NowMs); err != nil {
			return err
		}
	}
	return a.timetable(o, t.Timetable)
}

// deleteTask ends all that waits; attempts that run finish.
func (a *apply) deleteTask(o objectRow, c ax.Change) error {
	if c.Task != nil {
		if err := a.timetable(o, c.Task.Timetable); err != nil {
			return err
		}
	}
	_, err := a.exec(`UPDATE task SET lock_version = lock_version + 1, version = ?, next_fire_time = NULL WHERE object_id = ?`, o.version, o.id)
	if err != nil {
		return err
	}
	if err := skipWaiting(a.tx, o.id, ax.ReasonDeleted, a.cs.NowMs); err != nil {
		return err
	}
	return endBackfills(a.tx, o.id, a.cs.Revision.Who, a.cs.NowMs)
}

func (a *apply) timetable(o objectRow, tt *ax.Timetable) error {
	if tt == nil {
		return nil
	}
	if o.overtakes(*tt, tt.Settled, a.commitMs) {
		return fmt.Errorf("task %d: %w", o.id, ax.ErrMoved)
	}
	return writeTimetable(a.tx, o.id, *tt, a.cs.NowMs)
}

// overtakes reports whether a claim or time has moved the row since tt was
// computed.
func (o objectRow) overtakes(tt ax.Timetable, exact bool, nowMs int64) bool {
	switch {
	case exact && (o.nextMs != tt.ExpectNextMs || o.lock != tt.ExpectLockVersion):
		return true
	case !exact && o.nextMs != 0 && o.nextMs <= nowMs:
		return true
	default:
		return tt.NextMs != 0 && tt.NextMs <= max(o.lastMs, tt.LastSlotMs)
	}
}

// writeTimetable moves a task's next_fire_time and accounts for the slots in
// between.
func writeTimetable(t *tx, taskID int64, tt ax.Timetable, nowMs int64) error {
	_, err := t.exec(`UPDATE task SET next_fire_time = ?, last_slot = NULLIF(MAX(COALESCE(last_slot, 0), ?), 0),
		waiting = waiting + ? WHERE object_id = ?`, null(tt.NextMs), tt.LastSlotMs, len(tt.Starts), taskID)
	if err != nil {
		return err
	}
	if tt.Fingerprint != "" {
		if _, err := t.exec(`UPDATE object SET fingerprint = ? WHERE id = ?`, tt.Fingerprint, taskID); err != nil {
			return err
		}
	}
	return writeSlots(t, taskID, tt, nowMs)
}

// writeSlots writes the instances and stretches of a timetable.
func writeSlots(t *tx, taskID int64, tt ax.Timetable, nowMs int64) error {
	for _, st := range tt.Starts {
		ref := ax.Ref{DueMs: st.DueMs, TaskID: taskID, SlotKey: ax.ScheduleSlotKey(st.DueMs)}
		err := insertWaiting(t, &ref, waitingRow{st.Version, ax.InstanceSchedule, st.DueMs, nowMs})
		switch {
		case code(err) == codeConstraint:
			return fmt.Errorf("slot %d of task %d is used: %w", st.DueMs, taskID, ax.ErrMoved)
		case err != nil:
			return err
		}
	}
	return insertSkipped(t, taskID, tt.Skipped)
}

// skipWaiting ends the waiting instances of a task that is disabled (the
// scheduled ones) or deleted (all).
func skipWaiting(t *tx, taskID int64, why ax.Reason, nowMs int64) error {
	kind, cause := any("schedule"), ax.CauseDisabled
	if why == ax.ReasonDeleted {
		kind, cause = nil, ax.CauseDeleted
	}
	waiting, err := waitingOf(t, taskID, kind)
	if err != nil {
		return err
	}
	for _, w := range waiting {
		if _, err := skipOne(t, w, why, ax.Transition{AtMs: nowMs, Actor: "apply", Cause: cause}); err != nil {
			return err
		}
	}
	return nil
}
