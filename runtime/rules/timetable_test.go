package rules_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
	"github.com/axctl/ax/schedule"
)

// slots is a timetable as a plain ascending list: the model of all others.
type slots []int64

var _ rules.Timetable = slots(nil)

func (s slots) Next(afterMs int64) (int64, bool) {
	for _, ms := range s {
		if ms > afterMs {
			return ms, true
		}
	}
	return 0, false
}

func (s slots) Prev(beforeMs int64) (int64, bool) {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] < beforeMs {
			return s[i], true
		}
	}
	return 0, false
}

func (s slots) Count(fromMs, toMs int64, limit int) (int, bool) {
	in := s.between(fromMs, toMs)
	return min(len(in), limit), len(in) > limit
}

func (s slots) between(fromMs, toMs int64) slots {
	var in slots
	for _, ms := range s {
		if ms >= fromMs && ms <= toMs {
			in = append(in, ms)
		}
	}
	return in
}

// drawSlots draws some slots between 1 s and 1,000 s.
func drawSlots(t *rapid.T) slots {
	var s slots
	at := int64(0)
	for _, gap := range rapid.SliceOfN(rapid.Int64Range(1, 40_000), 0, 25).Draw(t, "gaps") {
		at += gap
		s = append(s, 1000+at)
	}
	return s
}

func drawPolicy(t *rapid.T) ax.MisfirePolicy {
	return rapid.SampledFrom(ax.MisfirePolicies).Draw(t, "policy")
}

// cron compiles a cron schedule.
func cron(t *testing.T, expr, zone string) *schedule.Schedule {
	t.Helper()
	s, err := schedule.Compile([]ax.ScheduleSpec{{Cron: expr, Timezone: zone}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ms reads RFC 3339.
func ms(t *testing.T, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMilli()
}
