package schedule

import (
	"fmt"
	"hash"
	"math/bits"
)

// cronRule fires when the clocks of zone show what the fields match, at second
// 0, but not before fromMs.
type cronRule struct {
	cronFields
	zone   *zone
	fromMs int64
}

const (
	minute int64 = 60
	hour         = 60 * minute
	day          = 24 * hour
)

// isResetting reports whether the change at s.start is too large for summer
// time: the clocks were set anew, as when Samoa crossed the date line.
func isResetting(s stretch) bool {
	const longest = 3 * hour
	return s.offset-s.before >= longest || s.before-s.offset >= longest
}

// next walks the stretches of one offset. In each it looks for a matching wall
// reading, which is plain calendar arithmetic. What a change of offset does to
// a fixed schedule is decided where a stretch begins: readings that the change
// skipped become one firing at the change, readings that come a second time
// are passed over.
func (r *cronRule) next(afterMs int64) (int64, bool) {
	t := floorDiv(max(afterMs, r.fromMs-1), 1000) + 1 // firings are whole seconds
	for {
		s := r.zone.at(t)
		wall := t + s.offset
		if !r.floating && s.offset != s.before && !isResetting(s) {
			switch skipFrom := s.start + s.before; { // a wall reading too
			case wall < skipFrom:
				wall = skipFrom
			case t == s.start && s.offset > s.before:
				if skipped, ok := r.match(skipFrom); ok && skipped < wall {
					return t * 1000, true
				}
			}
		}
		found, ok := r.match(wall)
		if !ok {
			return 0, false
		}
		at := found - s.offset
		if at < s.end {
			return at * 1000, true
		}
		// Nothing matches between wall and found. Offsets differ by less than
		// two days, so later stretches can match before at only within two
		// days of it, or within two days of t, where they show readings before
		// wall again.
		if s.end > t+2*day {
			t = max(s.end, at-2*day)
		} else {
			t = s.end
		}
	}
}

// match returns the first matching wall reading at or after wall.
func (r *cronRule) match(wall int64) (int64, bool) {
	wall += minute - 1 // the first whole minute
	date := floorDiv(wall, day)
	clock := (wall - date*day) / minute
	year, month, dom := civil(date)
	days := r.matchingDays(year, month)
	if days&(1<<dom) != 0 {
		if m, ok := r.clockFrom(clock); ok {
			return date*day + m*minute, true
		}
	}
	days &= ^uint32(1) << dom // the days after
	for days == 0 {
		if month++; month > 12 {
			month = 1
			if year++; year > 9999 {
				return 0, false
			}
		}
		days = r.matchingDays(year, month)
	}
	m, _ := r.clockFrom(0)
	dom = bits.TrailingZeros32(days)
	return (dateOf(year, month)+int64(dom)-1)*day + m*minute, true
}

// clockFrom returns the first matching minute of the day at or after clock.
func (r *cronRule) clockFrom(clock int64) (int64, bool) {
	h, m := clock/60, clock%60
	if r.hours&(1<<h) != 0 {
		if minutes := r.minutes &^ (1<<m - 1); minutes != 0 {
			return h*60 + int64(bits.TrailingZeros64(minutes)), true
		}
	}
	hours := r.hours & (^uint32(1) << h)
	if hours == 0 {
		return 0, false
	}
	return int64(bits.TrailingZeros32(hours)*60 + bits.TrailingZeros64(r.minutes)), true
}

// matchingDays returns the matching days of a month as bits 1 to 31.
func (r *cronRule) matchingDays(year, month int) uint32 {
	if r.months&(1<<month) == 0 {
		return 0
	}
	all := monthDays(year, month)
	if r.days == allDays && r.weekdays == allWeekdays {
		return all
	}
	// Bit i of weeks is the weekday i days after a Sunday, for six weeks.
	weeks := uint64(r.weekdays) * 0x8_1020_4081
	first := floorMod(dateOf(year, month)+4, 7) // 1970-01-01 was a Thursday
	byWeekday := uint32(weeks>>first) << 1
	if r.either {
		return (r.days | byWeekday) & all
	}
	return r.days & byWeekday & all
}

func (r *cronRule) digest(h hash.Hash) {
	// Fingerprints are stored: what is added here one day must leave the bytes
	// of a rule that does not use it as they are.
	fmt.Fprintf(h, "cron %x %d %x %x %x %x %x %t %t", r.zone.hash, r.fromMs,
		r.minutes, r.hours, r.days, r.months, r.weekdays, r.either, r.floating)
}

const (
	allDays     uint32 = 1<<32 - 2
	allWeekdays uint8  = 1<<7 - 1
)

// monthDays returns the days of a month as bits.
func monthDays(year, month int) uint32 {
	switch {
	case month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0):
		return allDays >> 2 &^ 1
	case month == 2:
		return allDays >> 3 &^ 1
	case month == 4 || month == 6 || month == 9 || month == 11:
		return allDays >> 1 &^ 1
	default:
		return allDays
	}
}

// civil and dateOf count days from 1970-01-01 and take years to begin in
// March, so that the leap day is a year's last and months follow one formula:
// (153*m + 2) / 5 days lie before the m-th month from March.
const (
	daysPer400 int64 = 146_097
	epochShift int64 = 719_468 // from 0000-03-01 to 1970-01-01
)

// civil returns the date of a day number.
func civil(date int64) (year, month, dom int) {
	z := date + epochShift
	era := floorDiv(z, daysPer400)
	doe := z - era*daysPer400
	yoe := (doe - doe/1460 + doe/36_524 - doe/146_096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	m := (5*doy + 2) / 153
	year, month = int(yoe+era*400), int(m+3)
	if month > 12 {
		year, month = year+1, month-12
	}
	return year, month, int(doy-(153*m+2)/5) + 1
}

// dateOf returns the day number of the first day of a month.
func dateOf(year, month int) int64 {
	if month < 3 {
		year, month = year-1, month+12
	}
	y := int64(year)
	era := floorDiv(y, 400)
	yoe := y - era*400
	return era*daysPer400 + yoe*365 + yoe/4 - yoe/100 + int64(153*(month-3)+2)/5 - epochShift
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
