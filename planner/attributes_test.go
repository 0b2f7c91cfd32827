package planner_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/planner"
)

func shown(t *testing.T, before, after *ax.Definition) []string {
	t.Helper()
	var b json.RawMessage
	if before != nil {
		b, _ = before.Canonical()
	}
	a, _ := after.Canonical()
	diffs, err := planner.Attributes(b, a)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, d := range diffs {
		lines = append(lines, fmt.Sprintf("%s: %s -> %s", d.Path, d.Before, d.After))
	}
	return lines
}

func TestAttributes(t *testing.T) {
	t.Parallel()
	body := func(text string) func(*ax.TaskSpec) {
		return func(s *ax.TaskSpec) { s.Handler.Body = json.RawMessage(text) }
	}
	hourly := cron("0 * * * *", "UTC")
	for name, c := range map[string]struct {
		before, after []func(*ax.TaskSpec)
		want          []string
	}{
		"nothing": {nil, nil, nil},
		"the kind of a schedule": {
			[]func(*ax.TaskSpec){hourly},
			[]func(*ax.TaskSpec){every(time.Hour)},
			[]string{`schedule.cron: "0 * * * *" -> `, `schedule.every:  -> "1h"`},
		},
		"a second schedule": {
			[]func(*ax.TaskSpec){hourly},
			[]func(*ax.TaskSpec){hourly, cron("5 5 * * *", "Asia/Tokyo")},
			[]string{`schedule[1].cron:  -> "5 5 * * *"`, `schedule[1].timezone:  -> "Asia/Tokyo"`},
		},
		"an error class": {
			[]func(*ax.TaskSpec){func(s *ax.TaskSpec) {
				s.ErrorClasses = []ax.ErrorClassSpec{{Class: ax.ClassPermanent, ExitCodes: []int{2}}, {Class: ax.ClassTransient, ExitCodes: []int{75}, Match: "x"}}
			}},
			[]func(*ax.TaskSpec){func(s *ax.TaskSpec) {
				s.ErrorClasses = []ax.ErrorClassSpec{{Class: ax.ClassResource, HTTPStatus: []int{507}}, {Class: ax.ClassTransient, ExitCodes: []int{7, 75}, Match: "x"}}
			}},
			[]string{`error_class.permanent.exit_codes: [2] -> `, `error_class.resource.http_status:  -> [507]`, `error_class.transient.exit_codes: [75] -> [7,75]`},
		},
		"limits": {
			nil,
			[]func(*ax.TaskSpec){func(s *ax.TaskSpec) { s.StartWithin, s.FreezeAfter = 600_000, 3 }},
			[]string{`start_within:  -> "10m"`, `freeze_after:  -> 3`},
		},
		"a body": {
			[]func(*ax.TaskSpec){body(`{"command":"a","env":{"A":"1","B":"2"}}`)},
			[]func(*ax.TaskSpec){body(`{"command":"b && c","env":{"B":"2","C.D":"3"}}`)},
			[]string{`handler.command: "a" -> "b && c"`, `handler.env.A: "1" -> `, `handler.env["C.D"]:  -> "3"`},
		},
		"a handler": {
			nil,
			[]func(*ax.TaskSpec){func(s *ax.TaskSpec) {
				s.Handler = ax.HandlerSpec{Name: "http", Body: json.RawMessage(`{"url":"http://x"}`)}
			}},
			[]string{
				`handler: "shell" -> "http"`, `handler.command: "true" -> `, `handler.url:  -> "http://x"`,
			},
		},
		"in the language's order": {
			nil,
			[]func(*ax.TaskSpec){func(s *ax.TaskSpec) {
				s.Owner, s.Concurrency, s.Retry.Max, s.Retry.Factor, s.Timeout = "ann", 2, 5, 1.5, 0
				s.Labels = map[string]string{"team": "a"}
			}},
			[]string{
				`timeout: "1h" -> "0s"`, `retry.factor: 2 -> 1.5`, `retry.max: 3 -> 5`, `concurrency: 1 -> 2`, `labels.team:  -> "a"`, `owner:  -> "ann"`,
			},
		},
		"a list is one value": {
			nil,
			[]func(*ax.TaskSpec){func(s *ax.TaskSpec) { s.Retry.On = []ax.ErrorClass{ax.ClassLost} }},
			[]string{`retry.on: ["transient","resource","lost"] -> ["lost"]`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := task("t", c.before...), task("t", c.after...)
			if got := shown(t, &before, &after); !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// A new object is told by what is not the default.
func TestAttributesOfANewObject(t *testing.T) {
	t.Parallel()
	plain := task("t", cron("0 2 * * *", "UTC"))
	want := []string{`handler:  -> "shell"`, `handler.command:  -> "true"`, `schedule.cron:  -> "0 2 * * *"`}
	if got := shown(t, nil, &plain); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	special := task("t", cron("0 2 * * *", "Asia/Tokyo"), disabled, timeout(time.Minute), func(s *ax.TaskSpec) {
		s.Retry.On = ax.RetryBlockOn
		s.Misfire.Max = 7
	})
	want = []string{
		`handler:  -> "shell"`, `handler.command:  -> "true"`, `schedule.cron:  -> "0 2 * * *"`, `schedule.timezone:  -> "Asia/Tokyo"`,
		`enabled:  -> false`, `timeout:  -> "1m"`, `retry.on:  -> ["transient","resource","failed","timeout","lost"]`, `misfire.max:  -> 7`,
	}
	if got := shown(t, nil, &special); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAttributesOfWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	after, _ := task("t").Canonical()
	diffs, err := planner.Attributes(json.RawMessage(`{"`), after)
	if err != nil || len(diffs) == 0 || diffs[0].Before != nil {
		t.Errorf("an unreadable before: %v, %v", diffs, err)
	}
	if _, err := planner.Attributes(nil, json.RawMessage(`[]`)); err == nil {
		t.Error("an after that is no definition was taken")
	}
}
