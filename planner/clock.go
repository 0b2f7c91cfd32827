package planner

import (
	"fmt"
	"slices"
	"time"

	"github.com/axctl/ax/schedule"
)

// clockHorizon is how far ahead a change of the clocks is told of.
const clockHorizon = 400 * 24 * time.Hour

// clockNotes tells of the first gap and the first repeat of local time that a
// cron schedule's fixed times fall into.
func clockNotes(v version, nowMs int64) []string {
	const wall = "2006-01-02 15:04"
	var notes []string
	for _, spec := range v.spec.Schedules {
		for _, c := range schedule.ClockChanges(spec, nowMs, clockHorizon) {
			note := fmt.Sprintf("%s does not exist in %s: it fires at %s",
				c.Reading.Format(wall), spec.Timezone, c.At.Format(wall+" -07:00"))
			if c.Repeats {
				note = fmt.Sprintf("%s comes twice in %s: it fires the first time", c.Reading.Format(wall), spec.Timezone)
			}
			if !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	return notes
}
