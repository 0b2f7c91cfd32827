package schedule

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/axctl/ax"
)

func ms(t testing.TB, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMilli()
}

func rfc3339(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano) }

// TestFirings are firings in a row, strictly after a given instant; "-" is none.
func TestFirings(t *testing.T) {
	t.Parallel()
	cron := func(text, zone string) []ax.ScheduleSpec {
		return []ax.ScheduleSpec{{Cron: text, Timezone: zone}}
	}
	for _, c := range []struct {
		name  string
		specs []ax.ScheduleSpec
		after string
		want  string
	}{
		{"B040: the firing itself is not after itself", cron("0 0 * * *", "Europe/London"), "2024-03-31T00:00:00Z", "2024-03-31T23:00:00Z"},
		{"B042: skipped reading", cron("30 2 * * *", "America/New_York"), "2026-03-07T17:00:00Z", "2026-03-08T07:00:00Z 2026-03-09T06:30:00Z"},
		{"B042: floating over the gap", cron("*/20 * * * *", "America/New_York"), "2026-03-08T06:20:00Z", "2026-03-08T06:40:00Z 2026-03-08T07:00:00Z"},
		{"B044: fixed in the second showing", cron("30 1 * * *", "America/New_York"), "2026-11-01T06:00:00Z", "2026-11-02T06:30:00Z"},
		{"B044: floating in the second showing", cron("* * * * *", "America/New_York"), "2026-11-01T06:30:15Z", "2026-11-01T06:31:00Z"},
		{"B044: a rare date in the second showing", cron("*/30 1 1 11 *", "America/New_York"), "2026-11-01T05:45:00Z", "2026-11-01T06:00:00Z 2026-11-01T06:30:00Z 2027-11-01T05:00:00Z"},
		{"B046: a day without midnight", cron("0 6 * * *", "America/Santiago"), "2026-09-05T12:00:00Z", "2026-09-06T09:00:00Z"},
		{"B046: a month search over such a day", cron("0 12 11,26 * *", "America/Sao_Paulo"), "2014-10-12T00:00:00Z", "2014-10-26T14:00:00Z"},
		{"B048: a 23-hour Sunday", cron("0 12 * * 0", "Europe/Berlin"), "2027-03-25T11:00:00Z", "2027-03-28T10:00:00Z"},
		{"B049: abolished summer time", cron("0 8 * * *", "Asia/Tehran"), "2023-03-21T12:00:00Z", "2023-03-22T04:30:00Z"},
		{"B054: either day field", cron("0 16 4 * fri", "UTC"), "2016-11-03T00:00:00Z", "2016-11-04T16:00:00Z 2016-11-11T16:00:00Z 2016-11-18T16:00:00Z"},
		{"B054: either day field", cron("30 0 1 * 1", "UTC"), "2026-03-03T00:00:00Z", "2026-03-09T00:30:00Z 2026-03-16T00:30:00Z 2026-03-23T00:30:00Z"},
		{"B055: Sunday is 7", cron("0 0 * * 6,7", "UTC"), "2026-03-04T00:00:00Z", "2026-03-07T00:00:00Z 2026-03-08T00:00:00Z 2026-03-14T00:00:00Z"},
		{"B055: a range ends in sun", cron("0 0 * * sat-sun", "UTC"), "2026-03-04T00:00:00Z", "2026-03-07T00:00:00Z 2026-03-08T00:00:00Z 2026-03-14T00:00:00Z"},
		{"B055: a range ends in 7", cron("0 0 * * 5-7", "UTC"), "2026-03-04T00:00:00Z", "2026-03-06T00:00:00Z 2026-03-07T00:00:00Z 2026-03-08T00:00:00Z 2026-03-13T00:00:00Z"},
		{"B055: Sunday named twice", cron("0 0 * * 0,7", "UTC"), "2026-03-04T00:00:00Z", "2026-03-08T00:00:00Z 2026-03-15T00:00:00Z"},
		{"B055: 7 with a step is the week from Sunday on", cron("0 0 * * 7/3", "UTC"), "2026-03-04T00:00:00Z", "2026-03-07T00:00:00Z 2026-03-08T00:00:00Z 2026-03-11T00:00:00Z"},
		{"B058: the anchor is fixed", []ax.ScheduleSpec{{Every: ax.Duration(6 * 3600_000)}}, "2026-03-01T00:00:00Z", "2026-03-01T06:00:00Z 2026-03-01T12:00:00Z 2026-03-01T18:00:00Z 2026-03-02T00:00:00Z"},
		{"B095: day 30 of February or Monday", cron("0 0 30 2 1", "UTC"), "2026-03-01T00:00:00Z", "2027-02-01T00:00:00Z 2027-02-08T00:00:00Z"},
		{"a leap day that is a Sunday, over 2100: one field begins with *, so both must match", cron("0 0 29 2 */7", "UTC"), "2060-03-01T00:00:00Z", "2088-02-29T00:00:00Z 2128-02-29T00:00:00Z"},

		{"every counts elapsed time over a change", []ax.ScheduleSpec{{Every: ax.Duration(24 * 3600_000), From: "2026-03-07T12:00", Timezone: "America/New_York"}}, "2026-03-07T16:59:59.999Z", "2026-03-07T17:00:00Z 2026-03-08T17:00:00Z"},
		{"every is anchored at local 1970 without from", []ax.ScheduleSpec{{Every: ax.Duration(24 * 3600_000), Timezone: "Asia/Tokyo"}}, "2026-03-01T00:00:00Z", "2026-03-01T15:00:00Z"},
		{"every does not fire before from", []ax.ScheduleSpec{{Every: ax.Duration(60_000), From: "2026-03-01T06:00:30Z"}}, "2020-01-01T00:00:00Z", "2026-03-01T06:00:30Z 2026-03-01T06:01:30Z"},
		{"every below a second", []ax.ScheduleSpec{{Every: 250, From: "2026-03-01T06:00:00Z"}}, "2026-03-01T06:00:00.1Z", "2026-03-01T06:00:00.25Z 2026-03-01T06:00:00.5Z"},
		{"cron may fire at from itself", []ax.ScheduleSpec{{Cron: "0 6 * * *", From: "2026-03-01T06:00:00Z"}}, "2020-01-01T00:00:00Z", "2026-03-01T06:00:00Z 2026-03-02T06:00:00Z"},
		{"cron does not fire before from", []ax.ScheduleSpec{{Cron: "0 6 * * *", From: "2026-03-01T06:00:00.001Z"}}, "2020-01-01T00:00:00Z", "2026-03-02T06:00:00Z"},

		{"at in any order, twice, in two forms", []ax.ScheduleSpec{{At: []string{"2026-05-01T09:00", "2026-03-01 06:30:15", "2026-05-01T09:00:00+02:00", "2026-04-01"}, Timezone: "Europe/Berlin"}}, "2026-01-01T00:00:00Z", "2026-03-01T05:30:15Z 2026-03-31T22:00:00Z 2026-05-01T07:00:00Z -"},
		{"at in a gap, and shown twice", []ax.ScheduleSpec{{At: []string{"2026-03-08T02:30", "2026-11-01T01:30"}, Timezone: "America/New_York"}}, "2026-01-01T00:00:00Z", "2026-03-08T07:00:00Z 2026-11-01T05:30:00Z -"},
		{"at before from is left out", []ax.ScheduleSpec{{At: []string{"2026-03-01", "2026-04-01"}, From: "2026-03-02"}}, "2026-01-01T00:00:00Z", "2026-04-01T00:00:00Z -"},
		{"at is exhausted", []ax.ScheduleSpec{{At: []string{"2026-03-01T00:00:00Z"}}}, "2026-03-01T00:00:00Z", "-"},

		{"a union fires once at equal instants", []ax.ScheduleSpec{{Cron: "0 */2 * * *"}, {Every: ax.Duration(3 * 3600_000)}, {At: []string{"2026-03-01T05:00:00Z"}}}, "2026-03-01T00:00:00Z", "2026-03-01T02:00:00Z 2026-03-01T03:00:00Z 2026-03-01T04:00:00Z 2026-03-01T05:00:00Z 2026-03-01T06:00:00Z 2026-03-01T08:00:00Z"},
		{"no schedule", nil, "2026-03-01T00:00:00Z", "-"},
		{"the end of RFC 3339", cron("0 0 * * *", "Europe/Berlin"), "9999-12-30T12:00:00Z", "9999-12-30T23:00:00Z -"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := mustCompile(t, c.specs...)
			at := ms(t, c.after)
			for i, want := range strings.Fields(c.want) {
				next, ok := s.Next(at)
				got := rfc3339(next)
				if !ok {
					got = "-"
				}
				if got != want {
					t.Fatalf("firing %d is %s, want %s", i+1, got, want)
				}
				at = next
			}
		})
	}
}

// TestNextIsAfter goes through the second showing of an hour second by second,
// and through random instants of random schedules.
func TestNextIsAfter(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"30 1 * * *", "* * * * *", "0 0 * * *"} {
		s := mustCompile(t, ax.ScheduleSpec{Cron: text, Timezone: "America/New_York"})
		for at := ms(t, "2026-11-01T04:59:59Z"); at < ms(t, "2026-11-01T07:00:01Z"); at += 1000 {
			if next, ok := s.Next(at); !ok || next <= at {
				t.Fatalf("%q after %s: %s", text, rfc3339(at), rfc3339(next))
			}
		}
	}
}

// specs draws a union of a few blocks of all kinds.
func drawSpecs(t *rapid.T) []ax.ScheduleSpec {
	var specs []ax.ScheduleSpec
	for range rapid.IntRange(0, 3).Draw(t, "blocks") {
		spec := ax.ScheduleSpec{Timezone: rapid.SampledFrom([]string{"", "UTC", "Europe/Berlin", "Africa/Casablanca", "Pacific/Apia"}).Draw(t, "zone")}
		if rapid.Bool().Draw(t, "has from") {
			spec.From = rfc3339(rapid.Int64Range(0, 4e12).Draw(t, "from"))
		}
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			spec.Cron = rapid.SampledFrom([]string{"0 3 * * *", "*/20 * * * *", "* * 1 1 *", "30 2 29 2 *", "0 0 31 * 5"}).Draw(t, "cron")
		case 1:
			spec.Every = ax.Duration(rapid.Int64Range(1, 1e10).Draw(t, "every"))
		default:
			for range rapid.IntRange(1, 4).Draw(t, "instants") {
				spec.At = append(spec.At, rfc3339(rapid.Int64Range(0, 4e12).Draw(t, "at")))
			}
		}
		specs = append(specs, spec)
	}
	return specs
}

// TestLaws are those of any schedule: Next is after, and the first such; Prev
// undoes it; Count agrees with both; the order of blocks is nothing.
func TestLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		specs := drawSpecs(t)
		s := mustCompile(t, specs...)
		at := rapid.OneOf(rapid.Int64Range(0, 5e12), rapid.Int64()).Draw(t, "at")
		next, ok := s.Next(at)
		var each []int64
		for _, spec := range specs {
			if first, ok := mustCompile(t, spec).Next(at); ok {
				each = append(each, first)
			}
		}
		if ok != (len(each) > 0) || ok && (next <= at || next != slices.Min(each)) {
			t.Fatalf("next %d (%t), the blocks alone have %v", next, ok, each)
		}
		if prev, ok := s.Prev(at); ok {
			if again, more := s.Next(prev); prev >= at || more && again < at {
				t.Fatalf("prev of %d is %d, but then comes %d", at, prev, again)
			}
			if again, _ := s.Next(prev - 1); again != prev {
				t.Fatalf("prev %d is no instant of it", prev)
			}
		} else if first, ok := s.Next(math.MinInt64); ok && first < at {
			t.Fatalf("prev of %d is none, but there is %d", at, first)
		}
		if ok {
			if prev, found := s.Prev(next + 1); !found || prev != next {
				t.Fatalf("prev just after %d is %d", next, prev)
			}
			if n, over := s.Count(at+1, next, 5); n != 1 || over {
				t.Fatalf("count up to the next is %d (%t)", n, over)
			}
			if n, over := s.Count(at+1, next-1, 5); n != 0 || over {
				t.Fatalf("count before the next is %d (%t)", n, over)
			}
		}
		turned := slices.Clone(specs)
		slices.Reverse(turned)
		if again := mustCompile(t, turned...); again.Fingerprint() != s.Fingerprint() {
			t.Fatal("the order of blocks changes the fingerprint")
		}
	})
}

// TestEndsOfTime asks beyond all instants there can be.
func TestEndsOfTime(t *testing.T) {
	t.Parallel()
	for _, spec := range []ax.ScheduleSpec{
		{Cron: "* * * * *", Timezone: "Europe/Berlin"},
		{Every: 1},
		{Every: math.MaxInt64},
		{At: []string{"0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"}},
	} {
		s := mustCompile(t, spec)
		first, ok := s.Next(math.MinInt64)
		if !ok || first < minMs {
			t.Errorf("%+v: first %d (%t)", spec, first, ok)
		}
		last, ok := s.Prev(math.MaxInt64)
		if !ok || last > maxMs || last < first {
			t.Errorf("%+v: last %d (%t)", spec, last, ok)
		}
		for _, at := range []int64{maxMs, maxMs + 1, math.MaxInt64 - 1, math.MaxInt64} {
			if next, ok := s.Next(at); ok {
				t.Errorf("%+v: next after %d is %d", spec, at, next)
			}
		}
		for _, at := range []int64{minMs, minMs - 1, math.MinInt64 + 1, math.MinInt64} {
			if prev, ok := s.Prev(at); ok {
				t.Errorf("%+v: prev of %d is %d", spec, at, prev)
			}
		}
		if n, over := s.Count(math.MinInt64, math.MaxInt64, 3); n < 1 || n == 3 != over {
			t.Errorf("%+v: count %d (%t)", spec, n, over)
		}
	}
}

func TestCountsLongRanges(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, ax.ScheduleSpec{Cron: "* * * * *", Timezone: "America/New_York"})
	for _, c := range []struct {
		from, to string
		limit, n int
		over     bool
	}{
		{"2026-03-08T05:00:00Z", "2026-03-09T03:59:59Z", 5000, 23 * 60, false}, // the short day
		{"2026-11-01T04:00:00Z", "2026-11-02T04:59:59Z", 5000, 25 * 60, false}, // the long one
		{"2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z", 1000, 1000, true},
		{"2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", 1, 1, false},
		{"2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", 0, 0, true},
		{"2026-01-01T00:00:00.001Z", "2026-01-01T00:00:59.999Z", 0, 0, false},
		{"2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z", 10, 0, false},
	} {
		if n, over := s.Count(ms(t, c.from), ms(t, c.to), c.limit); n != c.n || over != c.over {
			t.Errorf("from %s to %s: %d (%t), want %d (%t)", c.from, c.to, n, over, c.n, c.over)
		}
	}
}

// TestNoAllocation holds what the scheduler's loop calls to no garbage at all.
func TestNoAllocation(t *testing.T) { // not parallel: AllocsPerRun counts the process's
	for _, spec := range []ax.ScheduleSpec{
		{Cron: "*/5 * * * *"},
		{Cron: "30 2 29 2 *", Timezone: "America/New_York"},
		{Every: 90_000, From: "2026-01-01"},
		{At: []string{"2026-01-01", "2027-01-01"}, Timezone: "Asia/Tokyo"},
	} {
		s := mustCompile(t, spec)
		at := ms(t, "2026-03-08T06:59:00Z")
		allocs := testing.AllocsPerRun(100, func() {
			s.Next(at)
			s.Prev(at)
			s.Count(at-86_400_000, at, 100)
		})
		if allocs != 0 {
			t.Errorf("%+v: %v allocations", spec, allocs)
		}
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	print := func(specs ...ax.ScheduleSpec) string { return mustCompile(t, specs...).Fingerprint() }
	daily := ax.ScheduleSpec{Cron: "0 3 * * *", Timezone: "Europe/Berlin"}
	for name, same := range map[string][2]string{
		"blanks and zeros": {print(daily), print(ax.ScheduleSpec{Cron: " 00  03 * * *\n", Timezone: "Europe/Berlin"})},
		"macro":            {print(ax.ScheduleSpec{Cron: "@weekly"}), print(ax.ScheduleSpec{Cron: "0 0 * * sun"})},
		"block twice":      {print(daily), print(daily, daily)},
		"UTC is default":   {print(ax.ScheduleSpec{Cron: "0 3 * * *"}), print(ax.ScheduleSpec{Cron: "0 3 * * *", Timezone: "UTC"})},
		"other name of zone": {
			print(ax.ScheduleSpec{Cron: "0 3 * * *", Timezone: "Asia/Kolkata"}),
			print(ax.ScheduleSpec{Cron: "0 3 * * *", Timezone: "Asia/Calcutta"}),
		},
		"same anchor": {
			print(ax.ScheduleSpec{Every: 60_000, From: "2026-03-01T00:00:00Z"}),
			print(ax.ScheduleSpec{Every: 60_000, From: "2026-03-01T01:00", Timezone: "Europe/Berlin"}),
		},
		"order of at": {
			print(ax.ScheduleSpec{At: []string{"2026-03-01", "2026-04-01"}}),
			print(ax.ScheduleSpec{At: []string{"2026-04-01T00:00", "2026-03-01"}}),
		},
	} {
		if same[0] != same[1] {
			t.Errorf("%s: differ", name)
		}
	}
	// Stored fingerprints outlive the program: a change here makes every task
	// look rescheduled after an upgrade.
	for want, spec := range map[string]ax.ScheduleSpec{
		"ec171e65e3c8e397319930d57a988de5": {Cron: "0 3 * * *"},
		"582c0a5619a704eca04ed24e5303a256": {Every: 60_000},
		"9b52c636d4ad137331e8fba578d87af2": {At: []string{"2026-03-01"}},
	} {
		if got := print(spec); got != want {
			t.Errorf("%+v has the fingerprint %s, was %s", spec, got, want)
		}
	}
	seen := map[string]int{}
	for i, specs := range [][]ax.ScheduleSpec{
		nil,
		{daily},
		{{Cron: "0 3 * * *", Timezone: "Europe/Paris"}},
		{{Cron: "0 3 * * *", Timezone: "Europe/Berlin", From: "2026-03-01"}},
		{{Cron: "0 3/24 * * *", Timezone: "Europe/Berlin"}}, // the same times, but floating
		{{Cron: "0 0 1-31 * 1"}},
		{{Cron: "0 0 * * 1"}},
		{{Every: 60_000}},
		{{Every: 61_000}},
		{{Every: 60_000, From: "2026-03-01T00:00:00Z"}},
		{{Every: 60_000, From: "2026-03-01T00:00:01Z"}},
		{{At: []string{"2026-03-01"}}},
		{{At: []string{"2026-03-02"}}},
		{daily, {Every: 60_000}},
	} {
		p := print(specs...)
		if other, taken := seen[p]; taken {
			t.Errorf("%d and %d have one fingerprint", other, i)
		}
		seen[p] = i
	}
}

func TestSpecErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		spec      ax.ScheduleSpec
		attribute string
		says      string
	}{
		{"no kind", ax.ScheduleSpec{}, "", "No kind of schedule"},
		{"two kinds", ax.ScheduleSpec{Cron: "@daily", Every: 1000}, "", "More than one kind"},
		{"negative", ax.ScheduleSpec{Every: -1000}, "every", "-1s is negative"},
		{"bad from", ax.ScheduleSpec{Cron: "@daily", From: "tomorrow"}, "from", `"tomorrow" is no instant`},
		{"no seconds with an offset", ax.ScheduleSpec{At: []string{"2026-03-01T00:00Z"}}, "at", "no instant"},
		{"too fine", ax.ScheduleSpec{At: []string{"2026-03-01T00:00:00.0001Z"}}, "at", "whole millisecond"},
		{"31 February", ax.ScheduleSpec{At: []string{"2026-02-31"}}, "at", "no instant"},
		{"a lost day", ax.ScheduleSpec{At: []string{"2011-12-30T12:00"}, Timezone: "Pacific/Apia"}, "at", "never was in Pacific/Apia"},
		{"misspelt zone", ax.ScheduleSpec{Cron: "@daily", Timezone: "Europe/Berlim"}, "timezone", `Did you mean "Europe/Berlin"?`},
		{"a city", ax.ScheduleSpec{Cron: "@daily", Timezone: "berlin"}, "timezone", `Did you mean "Europe/Berlin"?`},
		{"a city with a blank", ax.ScheduleSpec{Cron: "@daily", Timezone: "new york"}, "timezone", `Did you mean "America/New_York"?`},
		{"case", ax.ScheduleSpec{Cron: "@daily", Timezone: "utc"}, "timezone", `Did you mean "UTC"?`},
		{"nothing near", ax.ScheduleSpec{Cron: "@daily", Timezone: "Mars/Olympus"}, "timezone", `such as "Europe/Berlin"`},
		{"the machine's", ax.ScheduleSpec{Cron: "@daily", Timezone: "Local"}, "timezone", "never used"},
		{"the machine's, as people write it", ax.ScheduleSpec{Cron: "@daily", Timezone: "local"}, "timezone", "never used"},
		{"a short name that is not near", ax.ScheduleSpec{Cron: "@daily", Timezone: "Mars"}, "timezone", `such as "Europe/Berlin"`},
		{"a path", ax.ScheduleSpec{Cron: "@daily", Timezone: "../etc/localtime"}, "timezone", "Unknown timezone"},
		{"a folder", ax.ScheduleSpec{Cron: "@daily", Timezone: "Europe/"}, "timezone", "Unknown timezone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Compile([]ax.ScheduleSpec{{Cron: "@daily"}, c.spec})
			var fault *Error
			if !errors.As(err, &fault) {
				t.Fatalf("error is %v", err)
			}
			if fault.Attribute != c.attribute || fault.Index != 1 || !strings.Contains(fault.Error(), c.says) {
				t.Errorf("got %+v, want %q at %q", fault, c.says, c.attribute)
			}
		})
	}
}

// TestAllErrors holds that one look finds all faults: of each field, each
// instant and each block.
func TestAllErrors(t *testing.T) {
	t.Parallel()
	_, err := Compile([]ax.ScheduleSpec{
		{Cron: "60 * * foo *", Timezone: "Nowhere"},
		{At: []string{"x", "2026-03-01", "y"}, From: "z"},
	})
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("not joined: %v", err)
	}
	var got []string
	for _, e := range joined.Unwrap() {
		fault := e.(*Error)
		got = append(got, fmt.Sprintf("%d %s %d", fault.Index, fault.Attribute, fault.Item))
	}
	want := []string{"0 timezone 0", "0 cron 0", "0 cron 0", "1 from 0", "1 at 0", "1 at 2"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLocation(t *testing.T) {
	t.Parallel()
	two := mustCompile(t, ax.ScheduleSpec{Cron: "@daily", Timezone: "Asia/Tokyo"}, ax.ScheduleSpec{Cron: "@daily"})
	if got := two.Location().String(); got != "Asia/Tokyo" {
		t.Errorf("location %s, want the first block's", got)
	}
	if got := mustCompile(t).Location(); got != time.UTC {
		t.Errorf("location without a block is %s", got)
	}
}
