package rules

import "github.com/axctl/ax"

// MaxAhead is how far last_slot may lie ahead of a clock that is believed, in
// milliseconds: far enough for any mix-up of time zones. Beyond it the clock
// itself may be what is wrong (a machine that starts in 1970), and rows are left
// alone.
const MaxAhead = int64(24 * 60 * 60 * 1000)

// Rewind says where an undeleted task goes back to when its row is ahead of its
// schedule; ok is false when it is not, or when it must be left alone.
//
// With last_slot in the past, next_fire_time must be the first slot after it:
// what lies between is due, late or not. With last_slot in the future the clock
// was ahead: it falls to the last slot up to now, so that what was skipped under
// that clock comes again at its true time; what ran then stays used. A row that
// never accounted for a slot has nothing to be compared with.
func Rewind(tt Timetable, row ax.ScheduledTask, nowMs int64) (nextMs, lastMs int64, ok bool) {
	lastMs = row.LastSlotMs
	if lastMs == 0 || lastMs > nowMs+MaxAhead {
		return 0, 0, false
	}
	if lastMs > nowMs {
		lastMs, _ = tt.Prev(nowMs + 1)
	}
	if row.Enabled {
		nextMs = next(tt, lastMs)
	}
	ahead := lastMs < row.LastSlotMs || nextMs != 0 && (row.NextMs == 0 || row.NextMs > nextMs)
	return nextMs, lastMs, ahead
}
