package schedule

import (
	"time"

	"github.com/axctl/ax"
)

// ClockChange is a change of a zone's offset that skips or repeats fixed times.
type ClockChange struct {
	At      time.Time // the first instant after the change, in the zone
	Reading time.Time // the first of the times that is hit, as its clock shows it; in UTC
	Repeats bool      // it comes twice and fires the first time; else it is skipped and fires at At
}

// ClockChanges returns the first change of the clocks that skips, and the first
// that repeats, a fixed time of a cron spec, in the order they come. It looks
// at changes after nowMs, or from spec's from on when that is later, for the
// length of horizon. A spec that follows real instants has none, nor one that
// does not compile.
func ClockChanges(spec ax.ScheduleSpec, nowMs int64, horizon time.Duration) []ClockChange {
	z, r, faults := compileSpec(spec)
	if len(faults) > 0 {
		return nil
	}
	rule, ok := r.(*cronRule)
	if !ok || rule.floating {
		return nil
	}
	begin := floorDiv(max(nowMs, rule.fromMs-1), 1000)
	last := begin + int64(horizon/time.Second)
	var told []ClockChange
	gap, repeat := false, false
	for s := z.at(begin); s.end <= last && !(gap && repeat); {
		s = z.at(s.end)
		if isResetting(s) {
			continue
		}
		// Of the readings between the two offsets' the change skips each, or
		// repeats each.
		from, to := s.start+s.before, s.start+s.offset
		repeats := to < from
		if repeats {
			from, to = to, from
		}
		reading, ok := rule.match(from)
		if !ok || reading >= to || repeats && repeat || !repeats && gap {
			continue
		}
		gap, repeat = gap || !repeats, repeat || repeats
		told = append(told, ClockChange{
			At: time.Unix(s.start, 0).In(z.location), Reading: time.Unix(reading, 0).UTC(), Repeats: repeats,
		})
	}
	return told
}
