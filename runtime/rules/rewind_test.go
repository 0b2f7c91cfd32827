package rules_test

import (
	"testing"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
	"github.com/axctl/ax/schedule"
	"pgregory.net/rapid"
)

func hourly(t interface{ Fatal(...any) }) *schedule.Schedule {
	s, err := schedule.Compile([]ax.ScheduleSpec{{Every: 3_600_000, Timezone: "UTC"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRewind(t *testing.T) {
	t.Parallel()
	const h = int64(3_600_000)
	const now = 1000*h + h/2
	tests := []struct {
		name       string
		row        ax.ScheduledTask
		next, last int64
		ok         bool
	}{
		{"as it should be", scheduled(true, 1001*h, 1000*h), 1001 * h, 1000 * h, false},
		{"late is not ahead", scheduled(true, 998*h, 997*h), 998 * h, 997 * h, false},
		{"set ahead", scheduled(true, 1005*h, 1000*h), 1001 * h, 1000 * h, true},
		{"set ahead, and slots have passed", scheduled(true, 1005*h, 990*h), 991 * h, 990 * h, true},
		{"taken away", scheduled(true, 0, 1000*h), 1001 * h, 1000 * h, true},
		{"fired under a clock that was ahead", scheduled(true, 1003*h, 1002*h), 1001 * h, 1000 * h, true},
		{"one slot ahead", scheduled(true, 1002*h, 1001*h), 1001 * h, 1000 * h, true},
		{"disabled while the clock was ahead", scheduled(false, 0, 1002*h), 0, 1000 * h, true},
		{"disabled", scheduled(false, 0, 1000*h), 0, 1000 * h, false},
		{"never fired", scheduled(true, 1005*h, 0), 0, 0, false},
		{"a day ahead", scheduled(true, 1025*h, 1024*h), 1001 * h, 1000 * h, true},
		{"more than a day ahead", scheduled(true, 1026*h, 1025*h), 0, 0, false},
	}
	for _, tt := range tests {
		next, last, ok := rules.Rewind(hourly(t), tt.row, now)
		if ok != tt.ok || ok && (next != tt.next || last != tt.last) {
			t.Errorf("%s: next %d, last %d, %v", tt.name, next/h, last/h, ok)
		}
	}
}

func scheduled(enabled bool, nextMs, lastMs int64) ax.ScheduledTask {
	return ax.ScheduledTask{DueTask: ax.DueTask{NextMs: nextMs, LastSlotMs: lastMs}, Enabled: enabled}
}

// What is set back is as it should be, and no slot up to now comes again.
func TestRewindSettles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const h = int64(3_600_000)
		now := rapid.Int64Range(100*h, 200*h).Draw(t, "now")
		row := scheduled(true, rapid.Int64Range(0, 300).Draw(t, "next")*h, rapid.Int64Range(1, 300).Draw(t, "last")*h)
		next, last, ok := rules.Rewind(hourly(t), row, now)
		if !ok {
			return
		}
		if last > now || next != last+h || row.LastSlotMs > now && next <= now {
			t.Fatalf("next %d, last %d", next, last)
		}
		row.NextMs, row.LastSlotMs = next, last
		if _, _, again := rules.Rewind(hourly(t), row, now); again {
			t.Fatal("set back twice")
		}
	})
}
