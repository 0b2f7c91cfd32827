package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/schedule"
)

// instant asks why the task fired, or did not, at AtMs.
func (e *explainer) instant() {
	if e.Slot != nil {
		e.fired(*e.Slot)
		return
	}
	v, ok := e.inForce()
	if !ok || !e.readable(v) || !e.slot(v) {
		return
	}
	if s, ok := e.stretch(); ok {
		e.skipped(s)
		return
	}
	if e.AtMs > e.NowMs {
		if e.enabled() {
			e.unclaimed()
		}
		return
	}
	if !v.spec.Enabled {
		e.no("Was it enabled then?", e.by(v.row), Answer{
			Code:   DisabledThen,
			Text:   fmt.Sprintf("%s was disabled (enabled = false) at %s, by %s.", e.Object.Address(), e.at(e.AtMs), e.by(v.row)),
			Remedy: e.enableRemedy(),
		})
		return
	}
	e.yes("Was it enabled then?", "")
	e.unclaimed()
}

// byHand tells what people started for the minute that was asked about, or what
// is to be started for the slot. It adds to the answer, whichever that is.
func (e *explainer) byHand() {
	for _, in := range e.Around {
		told := e.Slot != nil && (in.ID == e.Slot.ID || in.RetryOf() == e.Slot.ID)
		if !in.Kind.ByPerson() || told {
			continue
		}
		e.yes("Was it started by hand then?", e.life(in))
		how := "by hand"
		if id := in.BackfillID(); id != 0 {
			how = fmt.Sprintf("by backfill %d", id)
		}
		e.Answer.Text += fmt.Sprintf(" Instance %d, due %s, was started %s (%s).", in.ID, e.at(in.DueMs), how, e.state(in))
		return
	}
	for _, b := range e.Backfills {
		if b.PositionMs > e.AtMs || b.ToMs <= e.AtMs || e.Slot != nil && !e.Slot.Status.Final() {
			continue
		}
		e.yes("Will a backfill decide on it?", e.backfill(b))
		e.Answer.Text += fmt.Sprintf(" Backfill %d by %s has still to decide on it.", b.ID, b.Who)
		if b.State == ax.BackfillPaused {
			e.Answer.Text = strings.TrimSuffix(e.Answer.Text, ".") + fmt.Sprintf(", and is paused by %s: axctl backfill resume %d goes on with it.", b.By, b.ID)
		}
	}
}

func (e *explainer) enableRemedy() string {
	if e.Object.Row.Enabled {
		return "it is enabled now; axctl trigger " + e.address() + " runs it by hand"
	}
	return "set enabled = true there and apply"
}

// inForce returns the version whose slots those of AtMs are: the newest written
// before it, since a version's first slot is after its apply.
func (e *explainer) inForce() (version, bool) {
	const question = "Did the task exist then?"
	i := slices.IndexFunc(e.Versions, func(v ax.VersionRow) bool { return v.Revision.AtMs < e.AtMs })
	if i < 0 {
		first := e.latest
		if len(e.Versions) > 0 {
			first = e.Versions[len(e.Versions)-1]
		}
		e.no(question, e.by(first), Answer{
			Code:   BeforeBirth,
			Text:   fmt.Sprintf("%s did not exist at %s: it was created by %s.", e.Object.Address(), e.at(e.AtMs), e.by(first)),
			Remedy: "axctl trigger " + e.address() + " -due WHEN runs it for an instant that has passed",
		})
		return version{}, false
	}
	row := e.Versions[i]
	if !row.Deleted {
		e.yes(question, e.by(row))
		return e.read(row, row.Definition), true
	}
	remedy := "declare it again and apply; it goes on with its history"
	text := fmt.Sprintf("%s did not exist at %s: it was deleted by %s", e.Object.Address(), e.at(e.AtMs), e.by(row))
	if i > 0 {
		remedy = "it exists again now; axctl trigger " + e.address() + " -due WHEN runs it for an instant that has passed"
		text += fmt.Sprintf(" and made again by %s", e.by(e.Versions[i-1]))
	}
	e.no(question, e.by(row), Answer{Code: DeletedThen, Text: text + ".", Remedy: remedy})
	return version{}, false
}

// isSlot reports whether an instant is one of a timetable.
func isSlot(times *schedule.Schedule, ms int64) bool {
	next, ok := times.Next(ms - 1)
	return ok && next == ms
}

// slot asks whether AtMs is a slot of the version in force, and tells the
// nearest ones of it.
func (e *explainer) slot(v version) bool {
	question := fmt.Sprintf("Is it a slot of version %d?", v.row.Version)
	if len(v.spec.Schedules) == 0 {
		e.no(question, "it has no schedule", Answer{
			Code:   NoSchedule,
			Text:   fmt.Sprintf("%s had no schedule at %s, by %s: it started only by hand.", e.Object.Address(), e.at(e.AtMs), e.by(v.row)),
			Remedy: "axctl trigger " + e.address() + ", or add a schedule block and apply",
		})
		return false
	}
	near := e.nearest(v)
	if isSlot(v.times, e.AtMs) {
		if note := e.clockNote(v); note != "" {
			near = note + "; " + near
		}
		e.yes(question, near)
		return true
	}
	e.no(question, near, e.noSlot(v, near))
	return false
}

// nearest tells the slots beside AtMs.
func (e *explainer) nearest(v version) string {
	before, after := "none", "none"
	if ms, ok := v.times.Prev(e.AtMs); ok {
		before = e.at(ms)
	}
	if ms, ok := v.times.Next(e.AtMs); ok {
		after = e.at(ms)
	}
	return fmt.Sprintf("%s; the slot before is %s, the one after %s", rulesOf(v.spec.Schedules), before, after)
}

// noSlot finds out why somebody may have taken AtMs for a slot.
func (e *explainer) noSlot(v version, near string) Answer {
	remedy := "axctl next " + e.address() + " lists what comes"
	if a, ok := e.clocks(v); ok {
		return a
	}
	if from, ok := beforeFrom(v.spec.Schedules, e.AtMs); ok {
		return Answer{
			Code:   BeforeFrom,
			Text:   fmt.Sprintf("%s lies before from = %q of version %d, by %s.", e.at(e.AtMs), from, v.row.Version, e.by(v.row)),
			Remedy: "change from and apply; axctl trigger " + e.address() + " -due WHEN runs it for one instant",
		}
	}
	for _, row := range e.Versions { // newest first
		other := e.read(row, row.Definition)
		if row.Deleted || other.fault != nil || row.Version == v.row.Version || !isSlot(other.times, e.AtMs) {
			continue
		}
		order := "was in force only later"
		if row.Version < v.row.Version {
			order = "was replaced before"
		}
		return Answer{
			Code: OtherVersion,
			Text: fmt.Sprintf("%s is a slot of version %d (%s), which %s: version %d, by %s, was in force then and has %s.",
				e.at(e.AtMs), row.Version, rulesOf(other.spec.Schedules), order, v.row.Version, e.by(v.row), rulesOf(v.spec.Schedules)),
			Remedy: "axctl history " + e.address() + " tells what changed",
		}
	}
	return Answer{
		Code:   NotASlot,
		Text:   fmt.Sprintf("%s is no slot of version %d, which was in force then: %s.", e.at(e.AtMs), v.row.Version, near),
		Remedy: remedy,
	}
}

// beforeFrom returns the from that keeps atMs from being a slot, if one does.
func beforeFrom(specs []ax.ScheduleSpec, atMs int64) (string, bool) {
	for _, s := range specs {
		if s.From == "" {
			continue
		}
		begun, err := schedule.Compile([]ax.ScheduleSpec{s})
		if err != nil {
			continue
		}
		first, ok := begun.Next(-1 << 62)
		if !ok || atMs >= first {
			continue
		}
		free := s
		free.From = ""
		if s.Every != 0 {
			if (first-atMs)%int64(s.Every) == 0 {
				return s.From, true
			}
			continue
		}
		if times, err := schedule.Compile([]ax.ScheduleSpec{free}); err == nil && isSlot(times, atMs) {
			return s.From, true
		}
	}
	return "", false
}

// clockReach is how far from a change of the clocks somebody may look for a
// firing that it moved.
const clockReach = 3 * time.Hour

// changes returns the changes of the clocks near AtMs that hit the schedule.
func (e *explainer) changes(v version) []schedule.ClockChange {
	var all []schedule.ClockChange
	for _, s := range v.spec.Schedules {
		all = append(all, schedule.ClockChanges(s, e.AtMs-clockReach.Milliseconds()-1, 2*clockReach)...)
	}
	return all
}

// clocks tells a firing that a change of the clocks moved away from AtMs.
func (e *explainer) clocks(v version) (Answer, bool) {
	const wall = "2006-01-02 15:04"
	for _, c := range e.changes(v) {
		zone := c.At.Location()
		reading := time.UnixMilli(e.AtMs).In(zone).Format(wall)
		change := c.At.UnixMilli()
		switch {
		case c.Repeats && e.AtMs >= change:
			first, ok := v.times.Prev(change)
			for ok && change-first <= clockReach.Milliseconds() && time.UnixMilli(first).In(zone).Format(wall) != reading {
				first, ok = v.times.Prev(first)
			}
			if ok && time.UnixMilli(first).In(zone).Format(wall) == reading {
				return Answer{
					Code:   ClockRepeats,
					Text:   fmt.Sprintf("%[1]s comes twice in %[2]s, and only the first, %[4]s, is a slot of version %[3]d.", reading, zone, v.row.Version, e.at(first)),
					Remedy: "a schedule in timezone UTC, or every, has no such days",
				}, true
			}
		case !c.Repeats && e.AtMs > change && e.AtMs-change <= time.Hour.Milliseconds() && isSlot(v.times, change):
			return Answer{
				Code:   ClockSkips,
				Text:   fmt.Sprintf("%[1]s does not exist in %[2]s, since the clocks skip it: the slot of version %[3]d is the change, %[4]s.", c.Reading.Format(wall), zone, v.row.Version, e.at(change)),
				Remedy: "a schedule in timezone UTC, or every, has no such days",
			}, true
		}
	}
	return Answer{}, false
}

// clockNote tells that the slot stands for a reading that the clocks skipped or
// repeat.
func (e *explainer) clockNote(v version) string {
	const wall = "2006-01-02 15:04"
	for _, c := range e.changes(v) {
		if !c.Repeats && c.At.UnixMilli() == e.AtMs {
			return fmt.Sprintf("%s does not exist in %s: it fires at the change of the clocks", c.Reading.Format(wall), c.At.Location())
		}
		if c.Repeats && time.UnixMilli(e.AtMs).In(c.At.Location()).Format(wall) == c.Reading.Format(wall) {
			return fmt.Sprintf("%s comes twice in %s: it fires the first time", c.Reading.Format(wall), c.At.Location())
		}
	}
	return ""
}

// stretch returns the skipped stretch that accounts for AtMs.
func (e *explainer) stretch() (ax.SkippedStretch, bool) {
	i := slices.IndexFunc(e.Stretches, func(s ax.SkippedStretch) bool { return s.FromMs <= e.AtMs && e.AtMs <= s.ToMs })
	if i < 0 {
		return ax.SkippedStretch{}, false
	}
	return e.Stretches[i], true
}

// skipped tells why a stretch of slots was not run.
func (e *explainer) skipped(s ax.SkippedStretch) {
	slots := "more than " + plural(ax.MaxCountedSlots, "slot")
	if s.Slots >= 0 {
		slots = plural(s.Slots, "slot")
	}
	what := fmt.Sprintf("%s from %s to %s", slots, e.at(s.FromMs), e.at(s.ToMs))
	if s.FromMs == s.ToMs {
		what = "the slot of " + e.at(s.FromMs)
	}
	a := Answer{Remedy: fmt.Sprintf("axctl backfill %s -from %s -to %s runs what was left out",
		e.address(), ax.FormatInstant(s.FromMs, time.UTC), ax.FormatInstant(s.ToMs, time.UTC))}
	policy := e.versionNamed(s.Version)
	switch s.Reason {
	case ax.ReasonHeld:
		a.Code = HeldThen
		a.Text = fmt.Sprintf("It was held then, and misfire.on_resume = %q of version %d left out %s.", policy.spec.Misfire.OnResume, s.Version, what)
	case ax.ReasonDisabled:
		a.Code = DisabledThen
		a.Text = fmt.Sprintf("It was disabled then, by %s, which left out %s.", e.by(policy.row), what)
		if policy.spec.Enabled {
			a.Text = fmt.Sprintf("It was disabled by %s before axd had claimed what was due, which left out %s.", e.by(e.after(policy.row)), what)
		}
	case ax.ReasonDeleted:
		a.Code = DeletedThen
		a.Text = fmt.Sprintf("It was deleted by %s before axd had claimed what was due, which left out %s.", e.by(e.after(policy.row)), what)
	default:
		a.Code = Misfired
		a.Text = fmt.Sprintf("axd did not claim it in time, and misfire.policy = %q of version %d left out %s: %s.",
			policy.spec.Misfire.Policy, s.Version, what, e.downAt())
		a.Remedy += "; policy = \"all\" runs missed slots"
	}
	e.no("Was it run?", "skipped ("+string(s.Reason)+"): "+what, a)
}

// versionNamed returns a version by its number.
func (e *explainer) versionNamed(number int) version {
	i := slices.IndexFunc(e.Versions, func(v ax.VersionRow) bool { return v.Version == number })
	if i < 0 {
		return e.current
	}
	return e.read(e.Versions[i], e.Versions[i].Definition)
}

// after returns the version that followed one, itself when it is the latest.
func (e *explainer) after(row ax.VersionRow) ax.VersionRow {
	i := slices.IndexFunc(e.Versions, func(v ax.VersionRow) bool { return v.Version == row.Version })
	return e.Versions[max(i-1, 0)]
}

// downAt tells what the rows of hosts say of axd at AtMs: they keep the last
// start and stop of each.
func (e *explainer) downAt() string {
	for _, h := range e.Hosts {
		if h.StartedMs <= e.AtMs && (h.LeftMs == 0 || h.LeftMs > e.AtMs) {
			return fmt.Sprintf("axd on %s had been started at %s, so it was stopped, starved or without its store", h.Name, e.at(h.StartedMs))
		}
	}
	return "axd did not run then as far as the store knows (" + e.hosts() + ")"
}

// unclaimed tells why a slot of an enabled version has neither an instance nor
// a stretch.
func (e *explainer) unclaimed() {
	row, h := e.Object.Row, e.Object.Row.Hold
	switch {
	case e.AtMs <= row.CheckedFromMs:
		e.no("Was it claimed?", "retention has deleted history up to the slot of "+e.at(row.CheckedFromMs), Answer{
			Code:   Forgotten,
			Text:   fmt.Sprintf("What became of the slot of %s is not kept any more: history up to the slot of %s was deleted as old.", e.at(e.AtMs), e.at(row.CheckedFromMs)),
			Remedy: "axd -retain and -retain-last say how much is kept; it never runs again by itself",
		})
		return
	case e.Object.Deleted || e.AtMs <= row.LastSlotMs:
		e.no("Was it claimed?", "neither an instance nor a skipped stretch is kept of it", Answer{
			Code:   NoRecord,
			Text:   fmt.Sprintf("The store accounts for all slots up to %s, and keeps nothing of that of %s.", e.at(row.LastSlotMs), e.at(e.AtMs)),
			Remedy: "axctl doctor says what is wrong",
		})
		return
	case h != nil && (h.UntilMs == 0 || h.UntilMs > e.AtMs):
		e.held(*h)
	default:
		e.yes("Is it free of holds?", "")
	}
	if row.Enabled {
		e.coming()
	}
	if e.daemon() {
		e.offers(e.current.spec.Handler)
	}
	if e.AtMs <= e.NowMs {
		e.due(e.AtMs)
		return
	}
	e.settle(Answer{
		Code: Comes,
		Text: fmt.Sprintf("%s is a slot to come, in %s, by version %d.", e.at(e.AtMs), ax.Duration(e.AtMs-e.NowMs).Rough(), e.latest.Version),
	})
}
