package sqlite

import (
	"context"
	"slices"

	"github.com/axctl/ax"
	"github.com/axctl/ax/failpoint"
	"github.com/axctl/ax/runtime/rules"
)

// DueTasks implements ax.Claims.
func (s *Store) DueTasks(ctx context.Context, untilMs int64, after ax.DueCursor, limit int) ([]ax.DueTask, error) {
	var due []ax.DueTask
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, func(r *row) error { due = append(due, scanDue(r)); return nil },
			`SELECT object_id, version, next_fire_time, last_slot, lock_version FROM task
			WHERE next_fire_time IS NOT NULL AND enabled = 1 AND hold IS NULL
				AND next_fire_time <= ? AND (next_fire_time, object_id) > (?, ?)
			ORDER BY next_fire_time, object_id LIMIT ?`, untilMs, after.NextMs, after.TaskID, limit)
	})
	return due, err
}

func scanDue(r *row) ax.DueTask {
	return ax.DueTask{TaskID: r.int64(), Version: r.int(), NextMs: r.int64(), LastSlotMs: r.int64(), LockVersion: r.int64()}
}

// ReloadTasks implements ax.Claims.
func (s *Store) ReloadTasks(ctx context.Context, ids []int64) ([]ax.DueTask, error) {
	var due []ax.DueTask
	err := s.read(ctx, func(c *conn) error {
		for _, id := range ids {
			err := c.query(ctx, func(r *row) error { due = append(due, scanDue(r)); return nil },
				`SELECT t.object_id, t.version, t.next_fire_time, t.last_slot, t.lock_version
				FROM task t JOIN object o ON o.id = t.object_id
				WHERE t.object_id = ? AND t.enabled = 1 AND t.hold IS NULL AND o.deleted_ms IS NULL`, id)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return due, err
}

// EndingHolds implements ax.Claims.
func (s *Store) EndingHolds(ctx context.Context, untilMs int64) ([]ax.HeldTask, error) {
	var held []ax.HeldTask
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, func(r *row) error {
			held = append(held, ax.HeldTask{DueTask: scanDue(r), Enabled: r.flag(), Hold: scanHold(r)})
			return nil
		}, `SELECT t.object_id, t.version, t.next_fire_time, t.last_slot, t.lock_version, t.enabled,
				h.kind, h.who, h.since_ms, h.until_ms, h.reason
			FROM hold h JOIN task t ON t.object_id = h.task_id JOIN object o ON o.id = h.task_id
			WHERE h.until_ms IS NOT NULL AND h.until_ms <= ? AND o.deleted_ms IS NULL ORDER BY t.object_id`, untilMs)
	})
	return held, err
}

// Claim implements ax.Claims.
func (s *Store) Claim(ctx context.Context, firings []ax.Firing) ([]ax.Claimed, error) {
	var claimed []ax.Claimed
	rows := 0
	for _, f := range firings {
		rows += max(1, len(f.Starts))
	}
	fast := true
	op := func(t *tx) error {
		failpoint.Hit(failpoint.ClaimBegun)
		claimed = make([]ax.Claimed, len(firings))
		for i, f := range firings {
			var err error
			if claimed[i], err = claim(t, f, fast); err != nil {
				return err
			}
		}
		failpoint.Hit(failpoint.ClaimCommit)
		return nil
	}
	failpoint.Hit(failpoint.ClaimBegin)
	err := s.write(ctx, rows, op)
	if code(err) == codeConstraint {
		// A slot is used, which compare-and-set makes impossible. Should it ever
		// be, that firing is lost and no other.
		fast = false
		err = s.write(ctx, rows, op)
	}
	if err != nil {
		return nil, err
	}
	failpoint.Hit(failpoint.ClaimCommitted)
	return claimed, nil
}

// hotRow is what the overlap rule reads and a claim changes.
type hotRow struct {
	active, waiting, maxActive int
}

// claim accounts for the due slots of one task. Most firings find their task
// idle and begin at once, so with fast that is tried first, without reading the
// row; the rule is asked in either case.
func claim(t *tx, f ax.Firing, fast bool) (ax.Claimed, error) {
	if f.ExpectNextMs == 0 {
		return ax.Claimed{Lost: true}, nil
	}
	if fast && len(f.Starts) == 1 && len(f.Skipped) == 0 && f.Starts[0].Skip == "" && (f.Starts[0].CatchUp || rules.Admit(f.Overlap, 0, 0, 1) == rules.Begin) {
		st := f.Starts[0]
		born := ax.Born{Status: ax.StatusPending, Ref: slotRef(f.TaskID, st.DueMs)}
		active, waiting := 0, 1
		if st.Place != nil && !st.CatchUp {
			born.Status, active, waiting = ax.StatusDispatched, 1, 0
		}
		n, err := t.exec(`UPDATE task SET next_fire_time = ?, last_slot = MAX(COALESCE(last_slot, 0), ?), lock_version = lock_version + 1,
				active = ?, waiting = ?
			WHERE object_id = ? AND lock_version = ? AND next_fire_time = ? AND active = 0 AND waiting = 0 AND max_active > 0
				AND enabled = 1 AND hold IS NULL`,
			null(f.NextMs), f.LastSlotMs, active, waiting, f.TaskID, f.ExpectLockVersion, f.ExpectNextMs)
		if err != nil {
			return ax.Claimed{}, err
		}
		if n == 1 {
			if active == 1 {
				err = insertDispatched(t, &born.Ref, f.Version, *st.Place)
			} else {
				err = insertWaiting(t, &born.Ref, waitingRow{f.Version, ax.InstanceSchedule, st.DueMs, f.NowMs})
			}
			return ax.Claimed{LockVersion: f.ExpectLockVersion + 1, Born: []ax.Born{born}}, err
		}
	}
	return claimBusy(t, f)
}

// claimBusy is claim for any task.
func claimBusy(t *tx, f ax.Firing) (ax.Claimed, error) {
	var hot *hotRow
	err := t.query(func(r *row) error {
		hot = &hotRow{r.int(), r.int(), r.int()}
		return nil
	}, `SELECT active, waiting, max_active FROM task
		WHERE object_id = ? AND lock_version = ? AND next_fire_time = ? AND enabled = 1 AND hold IS NULL`,
		f.TaskID, f.ExpectLockVersion, f.ExpectNextMs)
	if err != nil {
		return ax.Claimed{}, err
	}
	if hot == nil || err != nil {
		return ax.Claimed{Lost: true}, err
	}
	used, err := usedSlots(t, f)
	if len(used) > 0 || twice(f.Starts) || err != nil {
		return ax.Claimed{Lost: true, Used: used}, err
	}
	c := ax.Claimed{LockVersion: f.ExpectLockVersion + 1}
	waited := hot.waiting
	for _, st := range f.Starts {
		born, err := start(t, f, st, hot)
		if err != nil {
			return ax.Claimed{}, err
		}
		c.Born = append(c.Born, born)
	}
	_, err = t.exec(`UPDATE task SET next_fire_time = ?, last_slot = NULLIF(MAX(COALESCE(last_slot, 0), ?), 0), lock_version = lock_version + 1,
			active = ?, waiting = ? WHERE object_id = ?`,
		null(f.NextMs), f.LastSlotMs, hot.active, hot.waiting, f.TaskID)
	if err == nil && waited > 0 && f.Overlap != ax.OverlapAllow {
		c.Ahead, err = ahead(t, f.TaskID, c.Born)
	}
	if err != nil {
		return ax.Claimed{}, err
	}
	return c, insertSkipped(t, f.TaskID, f.Skipped)
}

// ahead returns what of a task waited before those that are born, when one of
// these waits.
func ahead(t *tx, taskID int64, born []ax.Born) (ids []int64, err error) {
	if !slices.ContainsFunc(born, func(b ax.Born) bool { return b.Status == ax.StatusPending }) {
		return nil, nil
	}
	err = t.query(func(r *row) error { ids = append(ids, r.int64()); return nil },
		`SELECT id FROM instance INDEXED BY instance_waiting WHERE status = 'pending' AND task_id = ? AND id < ?
			ORDER BY due_ms, id LIMIT ?`, taskID, born[0].ID, ax.MaxAhead)
	return ids, err
}

// twice reports whether a slot is started twice.
func twice(starts []ax.FiringStart) bool {
	seen := map[int64]bool{}
	for _, st := range starts {
		if seen[st.DueMs] {
			return true
		}
		seen[st.DueMs] = true
	}
	return false
}

// usedSlots returns the slots of f that have an instance, in due order. None
// after last_slot has, but for what ran while the clock was ahead.
func usedSlots(t *tx, f ax.Firing) ([]int64, error) {
	var used []int64
	settled := int64(0)
	if len(f.Skipped) > 0 {
		err := t.query(func(r *row) error { settled = r.int64(); return nil },
			`SELECT MAX(COALESCE(t.last_slot, 0), COALESCE(o.rewound_from, 0)) FROM task t JOIN object o ON o.id = t.object_id WHERE t.object_id = ?`, f.TaskID)
		if err != nil {
			return nil, err
		}
	}
	add := func(r *row) error { used = append(used, r.int64()); return nil }
	for _, st := range f.Starts {
		err := t.query(add, `SELECT due_ms FROM instance WHERE due_ms = ?1 AND task_id = ?2 AND slot_key = 's:' || ?1`, st.DueMs, f.TaskID)
		if err != nil {
			return nil, err
		}
	}
	for _, sk := range f.Skipped {
		if sk.FromMs > settled {
			continue
		}
		sk.ToMs = min(sk.ToMs, settled)
		found, err := usedIn(t, f.TaskID, sk)
		if err != nil {
			return nil, err
		}
		used = append(used, found...)
	}
	slices.Sort(used)
	return used, nil
}

// fewInstants is how many instants usedIn looks at one by one.
const fewInstants = 500

// usedIn returns the slots of a stretch that have an instance. A stretch is
// mostly a time when little ran, so it steps from one instant that any task has
// an instance for to the next; when these are many, only this task was away, and
// its history tells.
func usedIn(t *tx, task int64, sk ax.SkippedStretch) (used []int64, err error) {
	instants := 0
	err = t.query(func(r *row) error {
		instants++
		if ms := r.int64(); r.flag() {
			used = append(used, ms)
		}
		return nil
	}, `WITH RECURSIVE at(ms) AS (
			SELECT MIN(due_ms) FROM instance WHERE due_ms >= ?1 AND due_ms <= ?2
			UNION ALL
			SELECT (SELECT MIN(due_ms) FROM instance WHERE due_ms > at.ms AND due_ms <= ?2) FROM at WHERE at.ms IS NOT NULL LIMIT ?4)
		SELECT ms, EXISTS (SELECT 1 FROM instance WHERE due_ms = ms AND task_id = ?3 AND slot_key = 's:' || ms) FROM at WHERE ms IS NOT NULL`,
		sk.FromMs, sk.ToMs, task, fewInstants)
	if err != nil || instants < fewInstants {
		return used, err
	}
	used = nil
	err = t.query(func(r *row) error { used = append(used, r.int64()); return nil },
		`SELECT h.due_ms FROM history h CROSS JOIN instance i ON i.due_ms = h.due_ms AND i.task_id = h.task_id AND i.slot_key = h.slot_key
			WHERE h.task_id = ?1 AND h.due_ms >= ?2 AND h.due_ms <= ?3 AND h.slot_key = 's:' || h.due_ms
		UNION SELECT i.due_ms FROM instance i INDEXED BY instance_id
			WHERE i.id > (SELECT COALESCE(history_to, 0) FROM meta) AND i.task_id = ?1 AND i.due_ms >= ?2 AND i.due_ms <= ?3 AND i.slot_key = 's:' || i.due_ms`,
		task, sk.FromMs, sk.ToMs)
	return used, err
}

// start lets one slot be born as the overlap rule says. It moves the counters
// in hot, which the caller writes.
func start(t *tx, f ax.Firing, st ax.FiringStart, hot *hotRow) (ax.Born, error) {
	born := ax.Born{Ref: slotRef(f.TaskID, st.DueMs), Status: ax.StatusPending}
	verdict := rules.Wait
	var err error
	switch {
	case st.Skip != "":
		born.Status, born.Reason = ax.StatusSkipped, st.Skip
	case !st.CatchUp:
		if verdict, err = admit(t, f, hot); err != nil {
			return ax.Born{}, err
		}
	}
	switch verdict {
	case rules.Begin:
		if st.Place != nil {
			born.Status = ax.StatusDispatched
		}
	case rules.Wait:
	case rules.Skip:
		born.Status, born.Reason = ax.StatusSkipped, ax.ReasonOverlap
	case rules.TakePlace:
		if born.Replaced, err = takePlace(t, f, hot); err == nil && born.Replaced == 0 {
			born.Status, born.Reason = ax.StatusSkipped, ax.ReasonOverlap
		}
	case rules.CancelOldest:
		born.Cancelled, err = cancelOldest(t, f)
	}
	if err != nil {
		return ax.Born{}, err
	}
	switch born.Status {
	case ax.StatusDispatched:
		hot.active++
		err = insertDispatched(t, &born.Ref, f.Version, *st.Place)
	case ax.StatusPending:
		hot.waiting++
		err = insertWaiting(t, &born.Ref, waitingRow{f.Version, ax.InstanceSchedule, st.DueMs, f.NowMs})
	case ax.StatusSkipped:
		if err = insertSkippedSlot(t, &born.Ref, f.Version, born.Reason, f.NowMs); err == nil {
			err = note(t, ax.Transition{
				InstanceID: born.ID, AtMs: f.NowMs, Attempt: 1, To: ax.StatusSkipped, Actor: "claim", Cause: ax.SkipCause(born.Reason),
			})
		}
	}
	return born, err
}

// admit asks the overlap rule. Only where it would not simply let the slot start
// or wait, what backfills have open is counted.
func admit(t *tx, f ax.Firing, hot *hotRow) (rules.Verdict, error) {
	verdict := rules.Admit(f.Overlap, hot.active, hot.waiting, hot.maxActive)
	if verdict == rules.Begin || verdict == rules.Wait {
		return verdict, nil // AdmitBeside would say the same
	}
	backfills, err := liveBackfills(t, f.TaskID)
	if err != nil {
		return verdict, err
	}
	return rules.AdmitBeside(f.Overlap, rules.Live{Active: hot.active, Waiting: hot.waiting}, backfills, hot.maxActive), nil
}

// takePlace skips the newest waiting instance that is in no back-off and
// returns its id, 0 if there is none.
func takePlace(t *tx, f ax.Firing, hot *hotRow) (int64, error) {
	all, err := waitingOf(t, f.TaskID, "schedule")
	if err != nil {
		return 0, err
	}
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].attempt > 1 {
			continue
		}
		hot.waiting--
		n := ax.Transition{AtMs: f.NowMs, Actor: "claim", Cause: ax.CauseReplaced}
		_, err := skipOne(t, all[i], ax.ReasonReplaced, n)
		return all[i].ID, err
	}
	return 0, nil
}

// cancelOldest writes a cancel intent on the task's oldest running instance
// and returns its id, 0 if there is none or it has one already.
func cancelOldest(t *tx, f ax.Firing) (int64, error) {
	var old ax.Ref
	var by string
	var attempt int
	err := t.query(func(r *row) error {
		old, by, attempt = scanRef(r), r.text(), r.int()
		return nil
	}, `SELECT i.id, i.due_ms, i.task_id, i.slot_key, i.cancel_by, i.attempt FROM instance i INDEXED BY instance_open
		WHERE i.task_id = ? AND i.handed_ms IS NOT NULL AND i.stopped_ms IS NULL AND i.status = 'dispatched' AND i.kind <> 'backfill'
		ORDER BY i.due_ms, i.slot_key LIMIT 1`, f.TaskID)
	if err != nil || old.ID == 0 || by != "" {
		return 0, err
	}
	_, err = t.exec(`UPDATE instance SET cancel_by = ? WHERE due_ms = ? AND task_id = ? AND slot_key = ? AND status = 'dispatched'`,
		ax.CancelByOverlap, old.DueMs, old.TaskID, old.SlotKey)
	if err != nil {
		return 0, err
	}
	return old.ID, note(t, ax.Transition{
		InstanceID: old.ID, AtMs: f.NowMs, Attempt: attempt, From: ax.StatusDispatched, To: ax.StatusDispatched,
		Actor: "claim", Cause: ax.CauseReplaced,
	})
}

func slotRef(taskID, dueMs int64) ax.Ref {
	return ax.Ref{DueMs: dueMs, TaskID: taskID, SlotKey: ax.ScheduleSlotKey(dueMs)}
}
