package rules

import "github.com/axctl/ax"

// Backlog accounts for the slots of one version of a task from FirstMs to
// EndMs, both inclusive: what runs, and as one stretch what does not.
type Backlog struct {
	TaskID  int64
	Version int
	FirstMs int64
	EndMs   int64
	Policy  ax.MisfirePolicy
	Max     int       // most slots that Policy all runs
	Reason  ax.Reason // of the stretch that does not run
}

// Account settles b and writes the outcome into t: Starts, Skipped, LastSlotMs
// and Settled. NextMs becomes the first slot after EndMs, or after lastSlotMs,
// the row's, where that is later: a slot is never used twice.
func (b Backlog) Account(tt Timetable, lastSlotMs int64, t *ax.Timetable) {
	s := Settle(tt, b.Policy, b.Max, b.FirstMs, b.EndMs)
	for _, due := range s.Starts {
		t.Starts = append(t.Starts, ax.Start{DueMs: due, Version: b.Version})
	}
	if s.Skipped != nil {
		t.Skipped = append(t.Skipped, ax.SkippedStretch{
			TaskID: b.TaskID, FromMs: s.Skipped.FromMs, ToMs: s.Skipped.ToMs,
			Slots: s.Skipped.Slots, Reason: b.Reason, Version: b.Version,
		})
	}
	if s.LastMs != 0 {
		t.LastSlotMs = max(lastSlotMs, s.LastMs)
		t.Settled = true
	}
	t.NextMs = next(tt, max(b.EndMs, lastSlotMs))
}

// Resume ends a hold (reason held) or a disabled stretch (reason disabled) of a
// task: its slots are decided on as a whole by on_resume, and the task goes on
// with the first slot strictly after nowMs. It is computed from the row as read.
//
// A held row keeps the next_fire_time it had when the hold began, so the
// stretch begins there; a disabled row has none, and its stretch begins after
// last_slot, up to which the disabling apply accounted. A hold with an end that
// has passed lasted only until then: slots from that instant on are due as
// usual, and misfires if nobody claimed them. Ending the hold of a disabled
// task moves nothing; the disabled stretch goes on.
//
// It takes apart what Backlog holds, because claim and axctl have exactly these.
func Resume(tt Timetable, m ax.MisfireSpec, version int, taskID int64, row ax.TaskRow,
	fingerprint string, reason ax.Reason, nowMs int64,
) ax.Timetable {
	t := ax.Timetable{
		ExpectNextMs: row.NextMs, ExpectLockVersion: row.LockVersion,
		Fingerprint: fingerprint,
	}
	if reason == ax.ReasonHeld && !row.Enabled {
		t.NextMs, t.Fingerprint = row.NextMs, row.Fingerprint
		return t
	}
	b := Backlog{
		TaskID: taskID, Version: version, FirstMs: FirstUnclaimed(tt, row), EndMs: nowMs,
		Policy: m.OnResume, Max: m.Max, Reason: reason,
	}
	if reason == ax.ReasonHeld && row.Hold != nil && row.Hold.UntilMs > 0 && row.Hold.UntilMs <= nowMs {
		b.EndMs = row.Hold.UntilMs - 1
	}
	if b.FirstMs == 0 {
		return t
	}
	b.Account(tt, row.LastSlotMs, &t)
	return t
}

// FirstUnclaimed returns the first slot that row does not account for, 0 when
// there is none: next_fire_time, or on a row that has none the first slot after
// last_slot.
func FirstUnclaimed(tt Timetable, row ax.TaskRow) int64 {
	if row.NextMs != 0 {
		return row.NextMs
	}
	return next(tt, row.LastSlotMs)
}
