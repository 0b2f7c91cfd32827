package planner

import (
	"encoding/json"
	"fmt"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
	"github.com/axctl/ax/schedule"
)

// maxLate is how many slots of a version that ends are started late when none
// of them is a misfire yet. It is far above what a grace holds in practice.
const maxLate = ax.MaxWaiting

// version is one version of a task, compiled.
type version struct {
	spec   *ax.TaskSpec
	number int
	times  *schedule.Schedule
}

// step is one object's change, with all that its effects depend on. What is no
// task has empty versions: nothing of it is due.
type step struct {
	action ax.Action
	kind   ax.ObjectKind
	obj    ax.Object // as stored; zero when the name was never there
	old    version   // the one that ends; on create an empty one
	next   version   // the one that begins; on delete an empty one
	nowMs  int64
	faults []string // of reading the old version
}

// newStep compiles both sides of c: obj as stored, and next, nil on delete. A
// stored version that this program cannot read must not keep its task from
// being mended or deleted: it is told, and its backlog left alone.
func newStep(c *PlannedChange, obj ax.Object, next *ax.TaskSpec, nowMs int64) (*step, error) {
	s := &step{action: c.Action, kind: c.Kind, obj: obj, nowMs: nowMs}
	none, err := compile(nil)
	if err != nil {
		return nil, err
	}
	s.old = version{spec: &ax.TaskSpec{}, number: obj.Version, times: none}
	s.next = version{spec: &ax.TaskSpec{}, number: c.ToVersion, times: none}
	if next != nil {
		s.next.spec = next
		if s.next.times, err = compile(next.Schedules); err != nil {
			return nil, err
		}
	}
	if c.Action == ax.ActionCreate || c.Kind != ax.KindTask {
		return s, nil
	}
	var spec ax.TaskSpec
	if err := json.Unmarshal(obj.Definition, &spec); err != nil {
		s.faults = append(s.faults, fmt.Sprintf("version %d cannot be read (%v): slots it left are not accounted for", obj.Version, err))
		return s, nil
	}
	s.old.spec = &spec
	times, err := compile(spec.Schedules)
	if err != nil {
		s.faults = append(s.faults, fmt.Sprintf("version %d: %v: slots it left are not accounted for", obj.Version, err))
		return s, nil
	}
	s.old.times = times
	return s, nil
}

// cause says why next_fire_time is computed anew.
type cause int

const (
	causeNone     cause = iota // it is left exactly as it is
	causeNew                   // there is no old version
	causeGone                  // there is no next version
	causeSchedule              // the rule, or the rules of its zone, changed
	causeEnabled
	causeDisabled
	causeRepair // the stored value does not follow from schedule and last slot
)

func (s *step) cause() cause {
	row := s.obj.Row
	fingerprint := s.next.times.Fingerprint()
	switch {
	case s.kind != ax.KindTask:
		return causeNone
	case s.action == ax.ActionCreate:
		return causeNew
	case s.action == ax.ActionDelete:
		return causeGone
	case row.Enabled && !s.next.spec.Enabled:
		return causeDisabled
	case !row.Enabled && s.next.spec.Enabled:
		return causeEnabled
	case row.Fingerprint != fingerprint:
		return causeSchedule
	case !agrees(s.next.times, row):
		return causeRepair
	default:
		return causeNone
	}
}

// agrees reports whether next_fire_time is what it is a function of: the first
// slot after last_slot, and none on a task that is not enabled.
func agrees(times *schedule.Schedule, row ax.TaskRow) bool {
	if !row.Enabled {
		return row.NextMs == 0
	}
	return row.NextMs == first(times, row.LastSlotMs)
}

// timetable decides what the change does to next_fire_time: nil when it stays
// as it is. The slots that were due and not claimed are accounted for by the
// version that ends (backlog). What begins starts after now, so a moment that
// would have been due under the new rule but has passed is not missed: last_slot
// rises to the newest slot that is none of the new version's, which makes
// next_fire_time the first slot after last_slot at all times, and tells where
// the stretch of a disabled version begins.
func (s *step) timetable() *ax.Timetable {
	why := s.cause()
	if why == causeNone {
		return nil
	}
	row := s.obj.Row
	t := &ax.Timetable{
		ExpectNextMs: row.NextMs, ExpectLockVersion: row.LockVersion,
		Fingerprint: s.next.times.Fingerprint(),
	}
	for _, b := range s.backlogs(why) {
		b.Account(s.old.times, row.LastSlotMs, t)
	}
	t.NextMs = 0
	// A due slot that nothing is known of counts as settled too: the row must
	// not move under the decision.
	t.Settled = t.Settled || row.NextMs != 0 && row.NextMs <= s.nowMs
	if why == causeGone {
		t.Fingerprint = row.Fingerprint
		return t
	}
	last := max(row.LastSlotMs, t.LastSlotMs)
	if ms, ok := s.next.times.Prev(s.nowMs + 1); ok {
		last = max(last, ms)
	}
	if last > row.LastSlotMs {
		t.LastSlotMs = last
	}
	if s.next.spec.Enabled {
		t.NextMs = first(s.next.times, last)
	}
	return t
}

// backlogs returns the slots that the old version leaves unclaimed and how they
// are decided on; none when nothing is due.
func (s *step) backlogs(why cause) []rules.Backlog {
	row := s.obj.Row
	b := rules.Backlog{
		TaskID: s.obj.ID, Version: s.old.number,
		FirstMs: rules.FirstUnclaimed(s.old.times, row), EndMs: s.nowMs,
		Policy: ax.MisfireSkip, Max: s.old.spec.Misfire.Max,
	}
	if why == causeRepair { // next_fire_time says nothing; last_slot may
		b.FirstMs = 0
		if row.LastSlotMs != 0 {
			b.FirstMs = first(s.old.times, row.LastSlotMs)
		}
	}
	if why == causeNew || len(s.faults) > 0 || b.FirstMs == 0 || b.FirstMs > s.nowMs {
		return nil
	}
	switch {
	case why == causeRepair:
		b.Reason = ax.ReasonMisfire // and nothing is started on a guess
	case !row.Enabled:
		b.Reason = ax.ReasonDisabled
		if why == causeEnabled {
			b.Policy = s.old.spec.Misfire.OnResume
		}
	case row.Hold != nil && why == causeSchedule:
		return s.held(b)
	case row.Hold != nil:
		b.Reason = ax.ReasonHeld
	case why == causeDisabled:
		b.Reason = ax.ReasonDisabled
	case why == causeGone:
		b.Reason = ax.ReasonDeleted
	default:
		b = s.late(b)
	}
	return []rules.Backlog{b}
}

// held decides on the backlog of a task that is held and goes on. Where the
// hold has ended and axd has not seen it yet, what was due after it is late.
func (s *step) held(b rules.Backlog) []rules.Backlog {
	b.Reason, b.Policy = ax.ReasonHeld, s.old.spec.Misfire.OnResume
	until := s.obj.Row.Hold.UntilMs
	if until == 0 || until > s.nowMs {
		return []rules.Backlog{b}
	}
	var both []rules.Backlog
	after := b
	if b.FirstMs < until {
		b.EndMs = until - 1
		both = append(both, b)
		after.FirstMs = first(s.old.times, until-1)
	}
	if after.FirstMs != 0 && after.FirstMs <= s.nowMs {
		both = append(both, s.late(after))
	}
	return both
}

// late decides on slots that nothing kept from being claimed: by the misfire
// policy, or where none is that old each as usual.
func (s *step) late(b rules.Backlog) rules.Backlog {
	m := s.old.spec.Misfire
	b.Reason, b.Policy = ax.ReasonMisfire, m.Policy
	if !rules.Misfired(m, b.FirstMs, s.nowMs) {
		b.Policy, b.Max = ax.MisfireAll, maxLate
	}
	return b
}

// skipPending returns the reason with which waiting instances end, if they do.
func (s *step) skipPending() ax.Reason {
	switch s.cause() {
	case causeGone:
		return ax.ReasonDeleted
	case causeDisabled:
		return ax.ReasonDisabled
	default:
		return ax.ReasonNone
	}
}

func compile(specs []ax.ScheduleSpec) (*schedule.Schedule, error) {
	times, err := schedule.Compile(specs)
	if err != nil {
		return nil, fmt.Errorf("schedule: %w", err)
	}
	return times, nil
}

// first returns the first slot after afterMs, 0 when there is none.
func first(times *schedule.Schedule, afterMs int64) int64 {
	ms, ok := times.Next(afterMs)
	if !ok {
		return 0
	}
	return ms
}
