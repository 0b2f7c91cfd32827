package planner_test

import (
	"slices"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/planner"
)

func TestChangesOfTheClockAreTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		expr, zone, from string
		want             []string
	}{
		"a gap and a repeat": {
			"30 2 * * *", "Europe/Berlin", "", []string{
				"2026-03-29 02:30 does not exist in Europe/Berlin: it fires at 2026-03-29 03:00 +02:00",
				"2026-10-25 02:30 comes twice in Europe/Berlin: it fires the first time",
			},
		},
		"in New York": {
			"30 1,2 * * *", "America/New_York", "", []string{
				"2026-03-08 02:30 does not exist in America/New_York: it fires at 2026-03-08 03:00 -04:00",
				"2026-11-01 01:30 comes twice in America/New_York: it fires the first time",
			},
		},
		"in the southern half": {
			"15 2 * * *", "Australia/Sydney", "", []string{
				"2026-04-05 02:15 comes twice in Australia/Sydney: it fires the first time",
				"2026-10-04 02:15 does not exist in Australia/Sydney: it fires at 2026-10-04 03:00 +11:00",
			},
		},
		"half an hour": {
			"15 2 * * *", "Australia/Lord_Howe", "", []string{
				"2026-10-04 02:15 does not exist in Australia/Lord_Howe: it fires at 2026-10-04 02:30 +11:00",
			},
		},
		"at midnight": {
			"@daily", "America/Santiago", "", []string{
				"2026-09-06 00:00 does not exist in America/Santiago: it fires at 2026-09-06 01:00 -03:00",
			},
		},
		"a weekday that meets no change":  {"30 2 * * mon", "Europe/Berlin", "", nil},
		"a time that exists always":       {"30 4 * * *", "Europe/Berlin", "", nil},
		"the first instant after the gap": {"0 3 * * *", "Europe/Berlin", "", nil},
		"real instants":                   {"*/30 * * * *", "Europe/Berlin", "", nil},
		"each hour":                       {"30 * * * *", "Europe/Berlin", "", nil},
		"@hourly":                         {"@hourly", "Europe/Berlin", "", nil},
		"no summer time":                  {"30 2 * * *", "Asia/Tokyo", "", nil},
		"UTC":                             {"30 2 * * *", "UTC", "", nil},
		"not before from": {
			"30 2 * * *", "Europe/Berlin", "2026-06-01", []string{
				"2026-10-25 02:30 comes twice in Europe/Berlin: it fires the first time",
				"2027-03-28 02:30 does not exist in Europe/Berlin: it fires at 2027-03-28 03:00 +02:00",
			},
		},
		"beyond 400 days": {"30 2 29 3 *", "Europe/Berlin", "2026-12-01", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "2026-03-01T00:00:00Z")
			p := w.plan(task("t", func(s *ax.TaskSpec) {
				s.Schedules = []ax.ScheduleSpec{{Cron: c.expr, Timezone: c.zone, From: c.from}}
			}))
			if got := change(t, p).Effects.Notes; !slices.Equal(got, c.want) {
				t.Errorf("told %q, want %q", got, c.want)
			}
		})
	}
}

// They are told once: when the schedule is new, not at each later edit.
func TestChangesOfTheClockAreToldOnce(t *testing.T) {
	t.Parallel()
	rule := cron("30 2 * * *", "Europe/Berlin")
	w := newWorld(t, "2026-03-01T00:00:00Z")
	w.apply(task("t", rule))
	if got := change(t, w.plan(task("t", rule, timeout(time.Minute)))).Effects.Notes; got != nil {
		t.Errorf("told again: %q", got)
	}
	twice := task("t", rule, cron("30 2 1 1 *", "Europe/Berlin"))
	if got := change(t, w.plan(twice)).Effects.Notes; len(got) != 2 {
		t.Errorf("two schedules: %q", got)
	}
}

func TestDifference(t *testing.T) {
	t.Parallel()
	const minute, hour, day = 60_000, 3_600_000, 86_400_000
	for ms, want := range map[int64]string{
		0:                   "",
		1:                   "1 ms later",
		-1500:               "1.5 s earlier",
		-hour:               "1 h earlier",
		25*hour + 30*minute: "1 d 1 h later",
		90 * minute:         "1 h 30 min later",
		day + 5*minute:      "1 d later",
		-400 * day:          "400 d earlier",
	} {
		if got := planner.Difference(1_000_000_000_000, 1_000_000_000_000+ms); got != want {
			t.Errorf("%d ms: %q, want %q", ms, got, want)
		}
	}
}
