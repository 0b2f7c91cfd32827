package ax

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Duration is a length of time in milliseconds. It reads and writes as Go
// writes durations ("90m", "1h30m"), without trailing zero units.
type Duration int64

// DurationOf converts d, cutting off what is below a millisecond.
func DurationOf(d time.Duration) Duration { return Duration(d.Milliseconds()) }

// Std returns d as a time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) * time.Millisecond }

// String returns the shortest Go form: 2h rather than 2h0m0s.
func (d Duration) String() string {
	s := d.Std().String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Rough returns d for people, in the two largest units that matter: "1 h 30 min",
// "1.5 s", "3 d"; of a negative one with a minus.
func (d Duration) Rough() string {
	if d < 0 {
		return "-" + (-d).Rough()
	}
	if d >= 1000 && d < 60_000 && d%1000 != 0 {
		return fmt.Sprintf("%.3g s", float64(d)/1000)
	}
	units := []struct {
		length Duration
		name   string
	}{{86_400_000, "d"}, {3_600_000, "h"}, {60_000, "min"}, {1000, "s"}, {1, "ms"}}
	for i, u := range units {
		n := d / u.length
		if n == 0 {
			continue
		}
		text := fmt.Sprintf("%d %s", n, u.name)
		if i+1 < len(units) {
			if rest := d % u.length / units[i+1].length; rest > 0 {
				text += fmt.Sprintf(" %d %s", rest, units[i+1].name)
			}
		}
		return text
	}
	return "0 s"
}

// ParseDuration reads Go's form. It refuses negative durations and ones that
// are no whole number of milliseconds.
func ParseDuration(s string) (Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no duration; write it like \"30s\", \"1h30m\" or, for a day, \"24h\"", s)
	case d < 0:
		return 0, fmt.Errorf("duration %q is negative", s)
	case d%time.Millisecond != 0:
		return 0, fmt.Errorf("duration %q is finer than a millisecond", s)
	}
	return DurationOf(d), nil
}

// MarshalJSON writes the String form.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads what MarshalJSON writes.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("duration: %w", err)
	}
	v, err := ParseDuration(s)
	if err != nil {
		return err
	}
	*d = v
	return nil
}
