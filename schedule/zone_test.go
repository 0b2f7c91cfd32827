package schedule

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestVersionIsTrue holds the release and the data together: whoever replaces
// one without the other is told.
func TestVersionIsTrue(t *testing.T) {
	t.Parallel()
	release, sum, _ := strings.Cut(strings.TrimSpace(zoneinfoVersion), " ")
	if got := sha256.Sum256(zoneinfo); hex.EncodeToString(got[:]) != sum {
		t.Errorf("zoneinfo.zip has the sum %x, zoneinfo.version says %s: run go generate ./schedule", got, sum)
	}
	if !regexp.MustCompile(`^20\d\d[a-z]$`).MatchString(release) || release != TZDataVersion() {
		t.Errorf("release is %q, TZDataVersion %q", release, TZDataVersion())
	}
}

// TestZoneTables compares every zone's table with package time, beside each
// change and at instants through the centuries.
func TestZoneTables(t *testing.T) {
	t.Parallel()
	names := ZoneNames()
	if len(names) < 590 || !slices.Contains(names, "UTC") || !slices.Contains(names, "Europe/Berlin") {
		t.Fatalf("%d zones", len(names))
	}
	for _, name := range names {
		z, err := loadZone(name)
		if err != nil {
			t.Fatal(err)
		}
		check := func(at int64) {
			t.Helper()
			s := z.at(at)
			if want := offset(z.location, at); s.offset != want || at < s.start || at >= s.end {
				t.Fatalf("%s at %d: %+v, want offset %d", name, at, s, want)
			}
			if s.end != forever && s.end < repeatEnd && z.at(s.end).before != s.offset {
				t.Fatalf("%s at %d: the next stretch does not follow %+v", name, at, s)
			}
		}
		for _, c := range z.changes {
			check(c.at - 1)
			check(c.at)
		}
		const month, year = 2_629_746, 31_556_952
		for at := tableStart; at < repeatEnd; at += 17 * month {
			check(at)
		}
		for at := repeatEnd - year; at < repeatEnd+2*year; at += 7 * month / 2 {
			check(at)
		}
		for at := repeatEnd; at < maxMs/1000; at += 411*year + month {
			check(at)
		}
	}
}

// TestStretchesMeet walks a zone's stretches over the seam where the table
// repeats itself.
func TestStretchesMeet(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"America/New_York", "Australia/Lord_Howe", "Antarctica/Troll", "Europe/Dublin"} {
		z, err := loadZone(name)
		if err != nil {
			t.Fatal(err)
		}
		s := z.at(repeatEnd - 3*366*day)
		for range 2000 {
			next := z.at(s.end)
			if next.start != s.end || next.before != s.offset || next.offset == s.offset || next.end-next.start > 366*day {
				t.Fatalf("%s: %+v follows %+v", name, next, s)
			}
			if offset(z.location, next.start) != next.offset || offset(z.location, next.start-1) != s.offset {
				t.Fatalf("%s: no change at %d", name, next.start)
			}
			s = next
		}
	}
}

// TestWallReadings maps instants to readings and back.
func TestWallReadings(t *testing.T) {
	t.Parallel()
	zones := changingZones(t)
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range zones {
			if !yield(name) {
				return
			}
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "zone")
		at := rapid.SampledFrom(zones[name]).Draw(t, "change") + rapid.Int64Range(-7200, 7200).Draw(t, "seconds")
		z, err := loadZone(name)
		if err != nil {
			t.Fatal(err)
		}
		first, skipped := z.instant(at + offset(z.location, at))
		if skipped || first > at || first+offset(z.location, first) != at+offset(z.location, at) {
			t.Fatalf("%s: the reading at %d comes first at %d (skipped %t)", name, at, first, skipped)
		}
	})
	z, _ := loadZone("America/New_York")
	gap := time.Date(2026, 3, 8, 2, 30, 0, 0, time.UTC).Unix()
	if at, skipped := z.instant(gap); !skipped || time.Unix(at, 0).UTC().Format(time.RFC3339) != "2026-03-08T07:00:00Z" {
		t.Errorf("a skipped reading is %d (%t)", at, skipped)
	}
}

func TestZoneIsShared(t *testing.T) {
	t.Parallel()
	var wait sync.WaitGroup
	found := make([]*time.Location, 8)
	for i := range found {
		wait.Go(func() { found[i], _ = Zone("Indian/Kerguelen") })
	}
	wait.Wait()
	if len(slices.Compact(found)) != 1 || found[0] == nil {
		t.Errorf("zones %v", found)
	}
	if _, err := Zone("Indian/Kergelen"); err == nil || !strings.Contains(err.Error(), "Kerguelen") {
		t.Errorf("error is %v", err)
	}
}

// TestCivil goes through all days of eight centuries beside package time.
func TestCivil(t *testing.T) {
	t.Parallel()
	date := time.Date(1799, 12, 31, 0, 0, 0, 0, time.UTC)
	for d := date.Unix() / day; date.Year() < 2601; d++ {
		year, month, dom := civil(d)
		if year != date.Year() || month != int(date.Month()) || dom != date.Day() {
			t.Fatalf("day %d is %d-%d-%d, want %v", d, year, month, dom, date)
		}
		if dateOf(year, month)+int64(dom)-1 != d || monthDays(year, month)&(1<<dom) == 0 {
			t.Fatalf("%v is not day %d", date, d)
		}
		if next := date.AddDate(0, 0, 1); next.Day() == 1 && monthDays(year, month)&(^uint32(0)<<(dom+1)) != 0 {
			t.Fatalf("%v has days after %v", monthDays(year, month), date)
		}
		date = date.AddDate(0, 0, 1)
	}
	for _, date := range []time.Time{time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)} {
		year, month, dom := civil(date.Unix() / day)
		if year != date.Year() || month != int(date.Month()) || dom != date.Day() {
			t.Errorf("%v is %d-%d-%d", date, year, month, dom)
		}
	}
}

// A local time of any zone is read, a machine's too, in the schedule's way.
func TestParseInstant(t *testing.T) {
	t.Parallel()
	berlin, err := Zone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"2026-07-01T02:30":     "2026-07-01T00:30:00Z",
		"2026-03-29T02:30":     "2026-03-29T01:00:00Z",
		"2026-10-25 02:30":     "2026-10-25T00:30:00Z",
		"2026-10-25T02:30:00Z": "2026-10-25T02:30:00Z",
	} {
		if ms, err := ParseInstant(text, berlin); err != nil || rfc3339(ms) != want {
			t.Errorf("%s is %s, want %s: %v", text, rfc3339(ms), want, err)
		}
	}
	if ms, err := ParseInstant("2026-07-01", time.FixedZone("", 3600)); err != nil || rfc3339(ms) != "2026-06-30T23:00:00Z" {
		t.Errorf("with a fixed offset: %s, %v", rfc3339(ms), err)
	}
	if _, err := ParseInstant("soon", berlin); err == nil || !strings.Contains(err.Error(), "no instant") {
		t.Errorf("got %v", err)
	}
}
