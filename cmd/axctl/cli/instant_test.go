package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax/schedule"
)

func TestParseInstant(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 15, 0, 0, 0, time.UTC)
	berlin, err := schedule.Zone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ in, want string }{
		{"now", "2026-11-30T15:00:00Z"},
		{"2026-12-01T02:00:00+08:00", "2026-11-30T18:00:00Z"},
		{"2026-12-01T02:00", "2026-12-01T01:00:00Z"},
		{"2026-12-01 02:00:30", "2026-12-01T01:00:30Z"},
		{"2026-12-01", "2026-11-30T23:00:00Z"},
		{"2026-03-29T02:30", "2026-03-29T01:00:00Z"}, // skipped: as a schedule has it
		{"2026-10-25T02:30", "2026-10-25T00:30:00Z"}, // comes twice
		{"2026-12-01T02:00:00.0001Z", ""},
		{"tomorrow", ""},
		{"", ""},
		{"2026-13-01", ""},
	}
	for _, tt := range tests {
		ms, err := parseInstant("due", tt.in, berlin, now)
		got := ""
		if err == nil {
			got = time.UnixMilli(ms).UTC().Format(time.RFC3339)
		}
		if got != tt.want {
			t.Errorf("parseInstant(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
	if _, err := parseInstant("due", "tomorrow", berlin, now); err == nil || !strings.HasPrefix(err.Error(), `-due: "tomorrow" is no instant`) {
		t.Errorf("told %v", err)
	}
	if ms, err := parseAgo("since", "2d", nil, now); err != nil || ms != now.Add(-48*time.Hour).UnixMilli() {
		t.Errorf("2d ago is %d, %v", ms, err)
	}
	if ms, err := parseAgo("since", "90m", nil, now); err != nil || ms != now.Add(-90*time.Minute).UnixMilli() {
		t.Errorf("90m ago is %d, %v", ms, err)
	}
	for _, bad := range []string{"d", "-1d", "99999999999d", "1 d"} {
		if _, err := parseLength(bad); err == nil {
			t.Errorf("%q is taken as a length", bad)
		}
	}
}

func TestWhenHasWeekdayAndOffset(t *testing.T) {
	t.Parallel()
	shanghai, err := schedule.Zone("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC).UnixMilli()
	if got := when(at, shanghai); got != "Tue 2026-12-01 02:00 +08:00" {
		t.Error(got)
	}
	if got := when(at+5000, shanghai); got != "Tue 2026-12-01 02:00:05 +08:00" {
		t.Error(got)
	}
}
