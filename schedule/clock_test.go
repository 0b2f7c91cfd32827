package schedule

import (
	"slices"
	"testing"
	"time"

	"github.com/axctl/ax"
	"pgregory.net/rapid"
)

const horizon = 400 * 24 * time.Hour

// What is told of a change is what Next does at it, and no change that hits a
// time is missed.
func TestClockChangesAreWhatNextDoes(t *testing.T) {
	t.Parallel()
	names := ZoneNames()
	rapid.Check(t, func(t *rapid.T) {
		spec := ax.ScheduleSpec{
			Cron:     rapid.SampledFrom([]string{"0-59 0-23 * * *", "0-59 1 * * *", "0 1-3 * * *", "15 0-3 * * *"}).Draw(t, "cron"),
			Timezone: rapid.SampledFrom(names).Draw(t, "zone"),
		}
		s := mustCompile(t, spec)
		now := rapid.Int64Range(0, time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).Unix()).Draw(t, "now") * 1000
		begin := now
		if rapid.Bool().Draw(t, "from") {
			spec.From = time.UnixMilli(begin).UTC().Format(time.RFC3339)
			now = 0
			s = mustCompile(t, spec)
		}
		const form = "2006-01-02 15:04"
		changes := ClockChanges(spec, now, horizon)
		for _, c := range changes {
			if at := c.At.UnixMilli(); at < begin || at > begin+horizon.Milliseconds() {
				t.Errorf("told of %s", c.At)
			}
			before := c.At.Add(-time.Millisecond)
			next, _ := s.Next(before.UnixMilli())
			if !c.Repeats {
				if next != c.At.UnixMilli() || c.Reading.Format(form) >= c.At.Format(form) || c.Reading.Format(form) <= before.Format(form) {
					t.Errorf("%s is not skipped at %s", c.Reading, c.At)
				}
				continue
			}
			wall := time.UnixMilli(next).In(c.At.Location())
			if c.Reading.Format(form) < c.At.Format(form) || wall.Format(form) <= before.Format(form) {
				t.Errorf("%s does not come again at %s: the next is %s", c.Reading, c.At, wall)
			}
		}
		if len(changes) > 2 || len(changes) == 2 && (changes[0].Repeats == changes[1].Repeats || changes[1].At.Before(changes[0].At)) {
			t.Errorf("told %v", changes)
		}
		if spec.Cron == "0-59 0-23 * * *" && spec.From == "" {
			if want := kindsOfChange(t, spec.Timezone, now); len(changes) != want {
				t.Errorf("told %v, there are %d", changes, want)
			}
		}
	})
}

// kindsOfChange counts, by the library's own zones, whether clocks go forward
// and whether they go back within the horizon.
func kindsOfChange(t *rapid.T, name string, nowMs int64) int {
	location, err := Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[bool]bool{}
	offset := func(at time.Time) time.Duration {
		_, seconds := at.In(location).Zone()
		return time.Duration(seconds) * time.Second
	}
	const step = 30 * time.Minute
	for at := time.UnixMilli(nowMs); at.Before(time.UnixMilli(nowMs).Add(horizon - step)); at = at.Add(step) {
		if d := offset(at.Add(step)) - offset(at); d != 0 && d.Abs() < 3*time.Hour && d.Abs() >= time.Minute {
			kinds[d > 0] = true
		}
	}
	return len(kinds)
}

// The first of each kind is told, and a re-setting of the clocks is none.
func TestClockChangesTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cron, zone, now, from string
		want                  []string
	}{
		{"30 2 * * *", "Europe/Berlin", "2026-03-01", "", []string{"2026-03-29T02:30:00Z", "2026-10-25T02:30:00Z"}},
		{"30 1 * * *", "America/New_York", "2026-10-20", "", []string{"2026-11-01T01:30:00Z"}}, // the next is in 383 days
		{"30 2 * * *", "Europe/Berlin", "2024-01-01", "2026-06-01", []string{"2026-10-25T02:30:00Z", "2027-03-28T02:30:00Z"}},
		{"0 3 * * *", "Europe/Berlin", "2026-03-01", "", nil},
		{"30 12 30 12 *", "Pacific/Apia", "2011-12-01", "", nil}, // a day that never was
	} {
		spec := ax.ScheduleSpec{Cron: c.cron, Timezone: c.zone, From: c.from}
		now, err := time.Parse(time.DateOnly, c.now)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, change := range ClockChanges(spec, now.UnixMilli(), horizon) {
			got = append(got, change.Reading.Format(time.RFC3339))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %s: told %v, want %v", c.cron, c.zone, got, c.want)
		}
	}
}

func TestClockChangesOfOtherRules(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	for _, spec := range []ax.ScheduleSpec{
		{Cron: "*/30 * * * *", Timezone: "Europe/Berlin"},
		{Cron: "@hourly", Timezone: "Europe/Berlin"},
		{Cron: "30 2 * * *"},
		{Cron: "30 2 * *", Timezone: "Europe/Berlin"},
		{Cron: "30 2 * * *", Timezone: "Europe/Berlim"},
		{Every: 1000, Timezone: "Europe/Berlin"},
		{At: []string{"2026-03-29T02:30"}, Timezone: "Europe/Berlin"},
		{},
	} {
		if got := ClockChanges(spec, now, horizon); got != nil {
			t.Errorf("%+v: told %v", spec, got)
		}
	}
}
