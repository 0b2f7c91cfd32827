package planner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/schedule"
)

// A change of the clocks is told of when it comes within clockHorizon. Changes
// of three hours and more are re-settings of a zone, not summer time.
const (
	clockHorizon = 400 * 24 * time.Hour
	resetting    = 3 * time.Hour
)

// clockNotes tells of the first gap and the first repeat of local time that a
// cron schedule's fixed times fall into.
func clockNotes(v version, nowMs int64) []string {
	var notes []string
	for _, spec := range v.spec.Schedules {
		if !fixedTimes(spec) {
			continue
		}
		loc, err := schedule.Zone(spec.Timezone)
		if err != nil {
			continue // Compile has accepted the zone
		}
		// The same rule on clocks that never change says which local readings
		// it names.
		wall, err := schedule.Compile([]ax.ScheduleSpec{{Cron: spec.Cron, Timezone: "UTC"}})
		if err != nil {
			continue
		}
		for _, note := range changesOfClock(wall, loc, max(nowMs, begins(spec))) {
			if !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	return notes
}

// begins returns a day before spec's first firing when it has a from, else 0.
func begins(spec ax.ScheduleSpec) int64 {
	if spec.From == "" {
		return 0
	}
	times, err := schedule.Compile([]ax.ScheduleSpec{spec})
	if err != nil {
		return 0
	}
	return first(times, 0) - 24*time.Hour.Milliseconds()
}

// changesOfClock returns at most one note about a gap and one about a repeat.
func changesOfClock(wall *schedule.Schedule, loc *time.Location, nowMs int64) []string {
	var notes []string
	gap, repeat := false, false
	at := time.UnixMilli(nowMs).In(loc)
	end := at.Add(clockHorizon)
	for {
		_, next := at.ZoneBounds()
		if !next.IsZero() && !next.After(at) {
			// Of a yearly rule's last leap day ZoneBounds ends before it.
			next = time.Date(at.UTC().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC).In(loc)
		}
		if next.IsZero() || next.After(end) {
			return notes
		}
		before, after := offset(next.Add(-time.Millisecond)), offset(next)
		at = next
		shift := after - before
		if shift.Abs() >= resetting {
			continue
		}
		// Readings are instants of wall: what the clock shows, as if in UTC.
		reading := next.UnixMilli() + before.Milliseconds()
		switch {
		case shift > 0 && !gap:
			if r, ok := readingIn(wall, reading, shift); ok {
				gap = true
				notes = append(notes, fmt.Sprintf("%s does not exist in %s: it fires at %s",
					r.Format(wallForm), loc, next.Format(wallForm+" -07:00")))
			}
		case shift < 0 && !repeat:
			if r, ok := readingIn(wall, reading+shift.Milliseconds(), -shift); ok {
				repeat = true
				notes = append(notes, fmt.Sprintf("%s comes twice in %s: it fires the first time",
					r.Format(wallForm), loc))
			}
		}
	}
}

const wallForm = "2006-01-02 15:04"

// readingIn returns the first slot of wall in [fromMs, fromMs+length).
func readingIn(wall *schedule.Schedule, fromMs int64, length time.Duration) (time.Time, bool) {
	ms := first(wall, fromMs-1)
	if ms == 0 || ms >= fromMs+length.Milliseconds() {
		return time.Time{}, false
	}
	return time.UnixMilli(ms).UTC(), true
}

func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

// fixedTimes reports whether spec names times of day, which a change of the
// clocks can skip or repeat. With * or a step in minute or hour a schedule
// follows real instants.
func fixedTimes(spec ax.ScheduleSpec) bool {
	fields := strings.Fields(spec.Cron)
	if len(fields) < 2 {
		return spec.Cron != "" && spec.Cron != "@hourly"
	}
	return !strings.ContainsAny(fields[0]+fields[1], "*/")
}
