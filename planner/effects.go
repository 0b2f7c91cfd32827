package planner

import (
	"fmt"

	"github.com/axctl/ax"
	"github.com/axctl/ax/schedule"
)

// shownFlying is how many open instances of a task are named.
const shownFlying = 3

// effects tells what the step does to time. t is its timetable, nil when
// next_fire_time stays.
func (s *step) effects(t *ax.Timetable, stored state, nextN int) Effects {
	row, flying := s.obj.Row, stored.inFlight[s.obj.ID]
	e := Effects{Moved: t != nil, InFlight: s.inFlight(flying)}
	if s.action != ax.ActionCreate {
		e.NextFireBeforeMs = row.NextMs
		e.NextFireBefore = instant(row.NextMs, s.old.times.Location())
	}
	e.NextFireAfterMs = row.NextMs
	if t != nil {
		e.NextFireAfterMs = t.NextMs
	}
	e.NextFireAfter = instant(e.NextFireAfterMs, s.next.times.Location())
	if e.NextFireBeforeMs != 0 && e.NextFireAfterMs != 0 && t != nil {
		e.Difference = Difference(e.NextFireBeforeMs, e.NextFireAfterMs)
	}
	if t != nil {
		e.Then = firings(s.next.times, t.NextMs, nextN)
	}
	e.Backlog = s.backlogEffect(t)
	e.Warnings = append(e.Warnings, s.faults...)
	s.remark(t, &e)
	if stored.cut && row.Active+row.Waiting > len(flying) {
		e.Notes = append(e.Notes, fmt.Sprintf("%d of its instances are open; not all are counted above", row.Active+row.Waiting))
	}
	return e
}

// firings lists the n slots after afterMs; none when that is 0.
func firings(times *schedule.Schedule, afterMs int64, n int) []Firing {
	var fs []Firing
	for at := afterMs; at != 0 && len(fs) < n; {
		if at = first(times, at); at != 0 {
			fs = append(fs, Firing{Due: instant(at, times.Location()), DueMs: at})
		}
	}
	return fs
}

// inFlight groups the open instances by what becomes of them.
func (s *step) inFlight(flying []ax.InFlight) []InFlight {
	skip := s.skipPending()
	ends, skipped := InFlight{Outcome: OutcomeEnds}, InFlight{Outcome: OutcomeSkip}
	for _, f := range flying {
		group := &ends
		waits := f.Status == ax.StatusPending
		if waits && (skip == ax.ReasonDeleted || skip == ax.ReasonDisabled && f.Kind == ax.InstanceSchedule) {
			group = &skipped
		}
		group.Count++
		if len(group.Instances) < shownFlying {
			group.Instances = append(group.Instances, FlyingInstance{ID: f.ID, Version: f.Version, Status: f.Status})
		}
	}
	var groups []InFlight
	for _, g := range []InFlight{ends, skipped} {
		if g.Count > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

// backlogEffect tells what becomes of the slots that are due and unclaimed.
func (s *step) backlogEffect(t *ax.Timetable) *Backlog {
	if t == nil {
		return s.leftBacklog()
	}
	bs := s.backlogs(s.cause())
	if len(bs) == 0 || len(t.Starts)+len(t.Skipped) == 0 {
		return nil
	}
	loc := s.old.times.Location()
	begin, decided := bs[0], bs[len(bs)-1]
	told := &Backlog{
		Version: begin.Version, Starts: len(t.Starts), Reason: decided.Reason, Policy: decided.Policy,
		First: instant(begin.FirstMs, loc), FirstMs: begin.FirstMs, LastMs: lastSettled(t),
	}
	for _, st := range t.Skipped {
		if told.Skipped += st.Slots; st.Slots < 0 {
			told.Skipped = -1
			break
		}
	}
	told.Last = instant(told.LastMs, loc)
	return told
}

// lastSettled is the newest slot that t accounts for.
func lastSettled(t *ax.Timetable) int64 {
	last := int64(0)
	for _, st := range t.Starts {
		last = max(last, st.DueMs)
	}
	for _, st := range t.Skipped {
		last = max(last, st.ToMs)
	}
	return last
}

// leftBacklog tells of slots that axd has yet to claim, on a change that does
// not move next_fire_time. A held or disabled task has none that axd would.
func (s *step) leftBacklog() *Backlog {
	row := s.obj.Row
	if !row.Enabled || row.Hold != nil || row.NextMs == 0 || row.NextMs > s.nowMs {
		return nil
	}
	loc := s.next.times.Location()
	last, _ := s.next.times.Prev(s.nowMs + 1)
	return &Backlog{
		Version: s.next.number, Left: true, Policy: s.next.spec.Misfire.Policy, Reason: ax.ReasonMisfire,
		First: instant(row.NextMs, loc), FirstMs: row.NextMs, Last: instant(last, loc), LastMs: last,
	}
}

// remark adds what a person should know besides.
func (s *step) remark(t *ax.Timetable, e *Effects) {
	why := s.cause()
	sameRule := s.next.times.Fingerprint() == s.old.times.Fingerprint()
	sameVersion := s.action == ax.ActionUpdate && s.next.number == s.old.number
	switch {
	case why == causeRepair || sameVersion && why != causeSchedule:
		e.Notes = append(e.Notes, "the stored next fire did not follow from the definition and is set right")
	case why == causeSchedule && sameRule:
		e.Notes = append(e.Notes, "the rules of its time zone changed (tzdata "+schedule.TZDataVersion()+")")
	case why == causeNew && s.obj.ID != 0:
		e.Notes = append(e.Notes, fmt.Sprintf("the name was there before: its history goes on with v%d", s.next.number))
	}
	if h := s.obj.Row.Hold; h != nil && s.action != ax.ActionDelete {
		e.Notes = append(e.Notes, fmt.Sprintf("%s by %s: it does not fire until that ends", h.Kind, h.Who))
	}
	if t == nil || s.action == ax.ActionDelete || !s.next.spec.Enabled {
		return
	}
	if t.NextMs == 0 && len(s.next.spec.Schedules) > 0 {
		e.Warnings = append(e.Warnings, "no next fire: the schedule has no instant left")
	}
	if why == causeNew || !sameRule {
		e.Notes = append(e.Notes, clockNotes(s.next, s.nowMs)...)
	}
}

// Difference says how far apart two instants are, and which way: "1 h earlier",
// "2 d 3 h later"; "" when equal.
func Difference(beforeMs, afterMs int64) string {
	switch d := ax.Duration(afterMs - beforeMs); {
	case d > 0:
		return d.Rough() + " later"
	case d < 0:
		return (-d).Rough() + " earlier"
	default:
		return ""
	}
}
