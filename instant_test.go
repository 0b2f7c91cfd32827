package ax_test

import (
	"testing"
	"time"

	"github.com/axctl/ax"
	"pgregory.net/rapid"
)

func TestFormatInstant(t *testing.T) {
	t.Parallel()
	shanghai := time.FixedZone("", 8*3600)
	for want, c := range map[string]struct {
		ms   int64
		zone *time.Location
	}{
		"1970-01-01T00:00:00Z":        {0, time.UTC},
		"1970-01-01T08:00:00.5+08:00": {500, shanghai},
		"1969-12-31T23:59:59.999Z":    {-1, time.UTC},
		"2026-12-01T02:00:00+08:00":   {1_796_061_600_000, shanghai},
		"2026-11-30T18:00:00.001Z":    {1_796_061_600_001, time.UTC},
		"9999-12-31T23:59:59.999Z":    {253_402_300_799_999, time.UTC},
	} {
		if got := ax.FormatInstant(c.ms, c.zone); got != want {
			t.Errorf("%d is written %s, want %s", c.ms, got, want)
		}
	}
}

// What is written names the very instant.
func TestFormattedInstantReadsBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(-62_135_000_000_000, 253_402_000_000_000).Draw(t, "ms")
		zone := time.FixedZone("", 60*rapid.IntRange(-720, 840).Draw(t, "offset"))
		text := ax.FormatInstant(ms, zone)
		at, err := time.Parse(time.RFC3339, text)
		if err != nil || at.UnixMilli() != ms {
			t.Fatalf("%d is written %s, which is %d: %v", ms, text, at.UnixMilli(), err)
		}
	})
}
