package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/axctl/ax"
	"github.com/axctl/ax/planner"
)

func TestNextFireOfAChange(t *testing.T) {
	t.Parallel()
	const one, two = "2026-12-01T02:00:00+08:00", "2026-12-01T01:00:00+08:00"
	oneMs, twoMs := int64(1_796_061_600_000), int64(1_796_058_000_000)
	tests := []struct {
		name   string
		action ax.Action
		e      planner.Effects
		want   string
	}{
		{"created", ax.ActionCreate, planner.Effects{NextFireAfter: one, NextFireAfterMs: oneMs}, "Tue 2026-12-01 02:00 +08:00"},
		{"created without schedule", ax.ActionCreate, planner.Effects{}, "none"},
		{"moved", ax.ActionUpdate, planner.Effects{NextFireBefore: one, NextFireBeforeMs: oneMs, NextFireAfter: two, NextFireAfterMs: twoMs, Difference: "1 h earlier"}, "Tue 2026-12-01 02:00 +08:00 -> Tue 2026-12-01 01:00 +08:00    1 h earlier"},
		{"left", ax.ActionUpdate, planner.Effects{NextFireBefore: one, NextFireBeforeMs: oneMs, NextFireAfter: one, NextFireAfterMs: oneMs}, "Tue 2026-12-01 02:00 +08:00 (not moved)"},
		{"none before and after", ax.ActionUpdate, planner.Effects{}, "none"},
		{"deleted", ax.ActionDelete, planner.Effects{NextFireBefore: one, NextFireBeforeMs: oneMs}, "Tue 2026-12-01 02:00 +08:00 -> none"},
	}
	for _, tt := range tests {
		s, _ := testScreen()
		if got := s.nextFire(planner.PlannedChange{Action: tt.action, Effects: tt.e}); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	s, _ := testScreen()
	s.zone = time.UTC
	if got := s.nextFire(planner.PlannedChange{Action: ax.ActionCreate, Effects: tests[0].e}); got != "Mon 2026-11-30 18:00 +00:00" {
		t.Errorf("with -zone: %q", got)
	}
}

// Where a task does not fire, the plan says why.
func TestNoNextFire(t *testing.T) {
	t.Parallel()
	for definition, want := range map[string]string{
		`{"enabled":true}`: "none: it has no schedule",
		`{"enabled":false,"schedule":[{"every":"1h","timezone":"UTC"}]}`:                 "none: it is disabled",
		`{"enabled":true,"schedule":[{"at":["2020-01-01T00:00:00Z"],"timezone":"UTC"}]}`: "none",
	} {
		s, _ := testScreen()
		ch := planner.PlannedChange{Action: ax.ActionUpdate, Definition: []byte(definition)}
		if got := s.nextFire(ch); got != want {
			t.Errorf("%s: %q, want %q", definition, got, want)
		}
		ch.Action = ax.ActionDelete
		if got := s.nextFire(ch); got != "none" {
			t.Errorf("%s, deleted: %q", definition, got)
		}
	}
}

// Offsets and years are shown where they are others than the next firing's.
func TestThenShowsWhatDiffers(t *testing.T) {
	t.Parallel()
	firing := func(text string) planner.Firing {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return planner.Firing{Due: text, DueMs: at.UnixMilli()}
	}
	next := firing("2026-10-24T02:30:00+02:00")
	e := planner.Effects{NextFireAfter: next.Due, NextFireAfterMs: next.DueMs, Then: []planner.Firing{
		firing("2026-10-25T02:30:00+02:00"), firing("2026-10-26T02:30:00+01:00"), firing("2027-01-01T02:30:05+01:00"),
	}}
	s, _ := testScreen()
	if got, want := s.then(e), "10-25 02:30, 10-26 02:30 +01:00, 2027-01-01 02:30:05 +01:00"; got != want {
		t.Errorf("then %q, want %q", got, want)
	}
}

func TestInFlight(t *testing.T) {
	t.Parallel()
	fly := func(ids ...int64) (all []planner.FlyingInstance) {
		for _, id := range ids {
			all = append(all, planner.FlyingInstance{ID: id, Version: 3})
		}
		return all
	}
	tests := []struct {
		f    planner.InFlight
		want string
	}{
		{planner.InFlight{Outcome: planner.OutcomeEnds, Count: 1, Instances: fly(8812)}, "instance 8812 ends on v3"},
		{planner.InFlight{Outcome: planner.OutcomeEnds, Count: 2, Instances: fly(1, 2)}, "2 instances (1, 2) end on v3"},
		{planner.InFlight{Outcome: planner.OutcomeEnds, Count: 9, Instances: fly(1, 2, 3)}, "9 instances (1, 2, 3, ...) end on v3"},
		{planner.InFlight{Outcome: planner.OutcomeSkip, Count: 1, Instances: fly(5)}, "instance 5 waiting, will be skipped"},
	}
	for _, tt := range tests {
		if got := inFlight(tt.f); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

func TestBacklog(t *testing.T) {
	t.Parallel()
	base := planner.Backlog{
		Version: 2, First: "2026-12-01T01:00:00Z", FirstMs: 1_796_086_800_000, Last: "2026-12-01T03:00:00Z", LastMs: 1_796_094_000_000,
		Reason: ax.ReasonMisfire,
	}
	stretch := "slots of v2 from Tue 2026-12-01 01:00 +00:00 to Tue 2026-12-01 03:00 +00:00"
	for want, change := range map[string]func(*planner.Backlog){
		": 1 to start late, 2 skipped (misfire)":  func(b *planner.Backlog) { b.Starts, b.Skipped = 1, 2 },
		": over 1000 skipped (misfire)":           func(b *planner.Backlog) { b.Skipped = -1 },
		": 3 to start late":                       func(b *planner.Backlog) { b.Starts = 3 },
		" are left to axd, under the new version": func(b *planner.Backlog) { b.Left = true },
	} {
		b := base
		change(&b)
		s, _ := testScreen()
		if got := s.backlog(b); got != stretch+want {
			t.Errorf("%q, want %q", got, stretch+want)
		}
	}
}

// Two long values are cut so that what differs can be seen.
func TestLongValuesAreCutAroundTheirDifference(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 500)
	before, after := apart(`"`+long+`x`+long+`"`, `"`+long+`y`+long+`"`)
	if !strings.Contains(before, "ax") || !strings.Contains(after, "ay") || len(before) > maxValue+8 {
		t.Errorf("%q and %q", before, after)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string {
			v, err := json.Marshal(rapid.StringN(0, 200, -1).Draw(t, name))
			if err != nil {
				t.Fatal(err)
			}
			return clean(string(v))
		}
		before, after := text("before"), text("after")
		b, a := apart(before, after)
		if !utf8.ValidString(b) || !utf8.ValidString(a) || len(b) > maxValue+10 || len(a) > maxValue+10 {
			t.Fatalf("%q and %q", b, a)
		}
		if before == after && b != a {
			t.Fatalf("equal values are shown as %q and %q", b, a)
		}
	})
}

func TestLineDiffIsBounded(t *testing.T) {
	t.Parallel()
	var before, after strings.Builder
	for i := range 100 {
		before.WriteString("old\n")
		after.WriteString("new\n")
		if i%2 == 0 {
			after.WriteString("both\n")
			before.WriteString("both\n")
		}
	}
	s, b := testScreen()
	s.lineDiff("handler.script", before.String(), after.String())
	_ = s.flush()
	if n := strings.Count(b.String(), "\n"); n != maxDiffLines+2 {
		t.Errorf("%d lines:\n%s", n, b)
	}
}
