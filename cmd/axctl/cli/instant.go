package cli

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/schedule"
)

// when shows an instant: Tue 2026-12-01 02:00 +08:00. Seconds are shown where
// there are any.
func when(ms int64, zone *time.Location) string {
	t := time.UnixMilli(ms).In(zone)
	layout := "Mon 2006-01-02 15:04 -07:00"
	if t.Second() != 0 {
		layout = "Mon 2006-01-02 15:04:05 -07:00"
	}
	return t.Format(layout)
}

// stamp writes an instant as JSON documents have it; nil for "not yet".
func stamp(ms int64, zone *time.Location) any {
	if ms == 0 {
		return nil
	}
	if zone == nil {
		zone = time.UTC
	}
	return ax.FormatInstant(ms, zone)
}

// stampMs is the integer beside stamp.
func stampMs(ms int64) any {
	if ms == 0 {
		return nil
	}
	return ms
}

// loadZone reads a zone's name. "local" is the machine's, for the display only.
func loadZone(name string) (*time.Location, error) {
	if strings.EqualFold(name, "local") {
		return time.Local, nil
	}
	zone, err := schedule.Zone(name)
	var fault *schedule.Error
	if errors.As(err, &fault) {
		return nil, ax.Diagnostic{Severity: ax.SeverityError, Summary: fault.Summary, Detail: fault.Detail}
	}
	return zone, err
}

// parseInstant reads an instant of the command line: what a schedule takes, in
// zone (nil: UTC), or "now".
func parseInstant(flag, text string, zone *time.Location, now time.Time) (int64, error) {
	if text == "now" {
		return now.UnixMilli(), nil
	}
	if zone == nil {
		zone = time.UTC
	}
	ms, err := schedule.ParseInstant(text, zone)
	var fault *schedule.Error
	if errors.As(err, &fault) {
		return 0, ax.Diagnostic{
			Severity: ax.SeverityError, Summary: fmt.Sprintf("-%s: %s", flag, fault.Summary), Detail: fault.Detail,
		}
	}
	return ms, err
}

// parseAgo reads a stretch back from now (24h, 7d) or an instant.
func parseAgo(flag, text string, zone *time.Location, now time.Time) (int64, error) {
	d, err := parseLength(text)
	if err != nil {
		return parseInstant(flag, text, zone, now)
	}
	return now.Add(-d).UnixMilli(), nil
}

// parseLength reads a duration as Go writes it, or whole days: 7d.
func parseLength(text string) (time.Duration, error) {
	var days int64
	if n, err := fmt.Sscanf(text, "%dd", &days); err == nil && n == 1 && text == fmt.Sprintf("%dd", days) {
		if days < 0 || days > math.MaxInt64/int64(24*time.Hour) {
			return 0, fmt.Errorf("%q is too long", text)
		}
		return time.Duration(days) * 24 * time.Hour, nil
	}
	d, err := ax.ParseDuration(text)
	return d.Std(), err
}
