package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/axctl/ax"
	"github.com/axctl/ax/schedule"
)

type nextArgs struct {
	address  string
	dialect  string // cron or every, "" for the store's tasks
	expr     string
	timezone string
	from     string
	n        int
}

func nextCommand(c *call) *cobra.Command {
	var a nextArgs
	cmd := &cobra.Command{
		Use:               "next [ADDRESS] | next cron|every EXPRESSION",
		ValidArgsFunction: c.completeAddress,
		Short:             "List coming firings, of the store's tasks or of an expression",
		Long: "next lists coming firings: of all tasks in the store, of one, or of a cron or every\n" +
			"expression that need not be in any store. Of an interval, -from is the anchor, as in\n" +
			"a schedule block; firings are strictly after it.",
		Example: "  axctl next task.report -n 10\n" +
			"  axctl next cron \"30 2 * * mon-fri\" -timezone Europe/Berlin",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && isDialect(args[0]) {
				return argumentCount(2, 2)(cmd, args)
			}
			return argumentCount(0, 1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch len(args) {
			case 1:
				a.address = args[0]
			case 2:
				a.dialect, a.expr = args[0], args[1]
			}
			result, err := c.next(cmd.Context(), a)
			if err != nil {
				return err
			}
			return c.print(result)
		},
	}
	cmd.Flags().StringVar(&a.timezone, "timezone", "", "zone `NAME` of an expression (default UTC)")
	cmd.Flags().StringVar(&a.from, "from", "", "only firings strictly after `WHEN` (default now)")
	cmd.Flags().IntVarP(&a.n, "n", "n", 5, "list `N` firings, up to 10000")
	return cmd
}

// isDialect reports the words that are followed by an expression. Those of
// quartz are told as not built yet.
func isDialect(word string) bool {
	return slices.Contains([]string{"cron", "every", "cron6", "quartz"}, word)
}

type firing struct {
	dueMs   int64
	address string
	zone    *time.Location
}

type nextResult struct {
	firings  []firing
	warnings ax.Diagnostics
	single   bool   // of one expression or task: no address is shown
	none     string // why there are no firings
}

func (c *call) next(ctx context.Context, a nextArgs) (nextResult, error) {
	switch {
	case a.n < 1 || a.n > 10_000:
		return nextResult{}, ax.Diagnostic{Severity: ax.SeverityError, Summary: fmt.Sprintf("-n=%d is not from 1 to 10000", a.n)}
	case a.dialect != "":
		return c.nextOfExpression(a)
	case a.timezone != "":
		return nextResult{}, ax.Diagnostic{
			Severity: ax.SeverityError,
			Summary:  "-timezone is only for an expression",
			Detail:   "A task has its zone. -zone chooses in which zone times are shown.",
		}
	default:
		return c.nextOfStore(ctx, a)
	}
}

func (c *call) nextOfExpression(a nextArgs) (nextResult, error) {
	r := nextResult{single: true, none: "No firing is left."}
	spec := ax.ScheduleSpec{Timezone: a.timezone}
	switch a.dialect {
	case "cron":
		spec.Cron = a.expr
		if a.expr == "" {
			return r, expressionFault(a, &schedule.Error{Summary: "Empty expression", Detail: "A cron expression has five fields."})
		}
	case "every":
		every, err := ax.ParseDuration(strings.TrimSpace(a.expr))
		if err == nil && every == 0 {
			err = errors.New("an interval is longer than 0s")
		}
		if err != nil {
			return r, expressionFault(a, &schedule.Error{Summary: "Wrong interval", Detail: sentence(err.Error())})
		}
		spec.Every = every
	default:
		return r, ax.Diagnostic{Severity: ax.SeverityError, Summary: fmt.Sprintf("%s is designed but not built in this version", a.dialect)}
	}
	zone, err := schedule.Zone(orUTC(a.timezone))
	if err != nil {
		return r, expressionFault(a, err)
	}
	from := c.nowMs()
	if a.from != "" {
		if from, err = parseInstant("from", a.from, zone, c.env.Now()); err != nil {
			return r, err
		}
		if a.dialect == "every" {
			spec.From = ax.FormatInstant(from, time.UTC)
		}
	}
	timetable, err := schedule.Compile([]ax.ScheduleSpec{spec})
	if err != nil {
		return r, expressionFault(a, err)
	}
	for _, w := range schedule.Warnings(spec) {
		r.warnings = append(r.warnings, expressionDiagnostic(a, ax.SeverityWarning, schedule.Error{
			Attribute: w.Attribute, Summary: w.Summary, Detail: w.Detail, Column: w.Column, Len: w.Len,
		}))
	}
	r.firings = comingFirings(timetable, from, a.n, firing{zone: zone})
	c.warn(r.warnings)
	return r, nil
}

func orUTC(name string) string {
	if name == "" {
		return "UTC"
	}
	return name
}

// comingFirings lists the first n instants after fromMs.
func comingFirings(timetable *schedule.Schedule, fromMs int64, n int, like firing) []firing {
	var out []firing
	for len(out) < n {
		ms, ok := timetable.Next(fromMs)
		if !ok {
			break
		}
		like.dueMs, fromMs = ms, ms
		out = append(out, like)
	}
	return out
}

// expressionFault tells the first fault of an expression with its column.
func expressionFault(a nextArgs, err error) error {
	var fault *schedule.Error
	if !errors.As(err, &fault) {
		return err
	}
	return expressionDiagnostic(a, ax.SeverityError, *fault)
}

func expressionDiagnostic(a nextArgs, severity ax.Severity, e schedule.Error) ax.Diagnostic {
	d := ax.Diagnostic{Severity: severity, Summary: e.Summary, Detail: e.Detail}
	text := a.expr
	if e.Attribute == "timezone" {
		text = a.timezone
	}
	from, to := 0, len(text)
	if e.Column > 0 {
		from = min(e.Column-1, len(text))
		to = min(from+e.Len, len(text))
	}
	d.Range = &ax.Range{
		Filename: "<expression>",
		Start:    ax.Pos{Line: 1, Column: from + 1, Byte: from},
		End:      ax.Pos{Line: 1, Column: to + 1, Byte: to},
	}
	d.Snippet = d.Range.Snippet([]byte(text), "")
	return d
}

// nextOfStore lists what the store's tasks will do: each begins with its
// next_fire_time, which may be overdue, and goes on by its schedule.
func (c *call) nextOfStore(ctx context.Context, a nextArgs) (nextResult, error) {
	r := nextResult{none: "No task has a firing to come."}
	s, err := c.open(ctx, OpenOptions{ReadOnly: true})
	if err != nil {
		return r, err
	}
	defer s.Close()
	var all []task
	if a.address == "" {
		if all, err = tasks(ctx, s, false); err != nil {
			return r, err
		}
	} else {
		t, err := resolve(ctx, s, a.address, false)
		if err != nil {
			return r, err
		}
		if _, err := t.timetable(); err != nil {
			return r, err
		}
		all, r.single, r.none = []task{t}, true, fmt.Sprintf("%s has no firing to come: %s.", t.Address(), whyNone(t))
	}
	var from int64
	if a.from != "" {
		var own *time.Location
		if r.single {
			own = all[0].Zone
		}
		if from, err = parseInstant("from", a.from, own, c.env.Now()); err != nil {
			return r, err
		}
	}
	r.firings = soonest(all, from, a.n)
	return r, nil
}

// whyNone says why a task has no firing to come.
func whyNone(t task) string {
	switch {
	case len(t.Spec.Schedules) == 0:
		return "it has no schedule"
	case t.Row.Hold != nil:
		return "it is " + string(t.Row.Hold.Kind)
	case !t.Row.Enabled:
		return "it is disabled"
	default:
		return "its schedule is exhausted"
	}
}

// soonest merges the firings of tasks that can fire. fromMs 0 begins with each
// task's next_fire_time. A task that cannot be read has none: doctor tells.
func soonest(all []task, fromMs int64, n int) []firing {
	all = slices.DeleteFunc(slices.Clone(all), func(t task) bool {
		return t.Row.NextMs == 0 || t.Row.Hold != nil || !t.Row.Enabled
	})
	slices.SortStableFunc(all, func(a, b task) int { return cmp.Compare(a.Row.NextMs, b.Row.NextMs) })
	var out []firing
	for _, t := range all {
		if len(out) == n && t.Row.NextMs > out[n-1].dueMs {
			break // all that follow begin later still
		}
		timetable, err := t.timetable()
		if err != nil {
			continue
		}
		out = append(out, comingFirings(timetable, max(fromMs, t.Row.NextMs-1), n, firing{address: t.Address(), zone: t.Zone})...)
		slices.SortStableFunc(out, func(a, b firing) int {
			return cmp.Or(cmp.Compare(a.dueMs, b.dueMs), cmp.Compare(a.address, b.address))
		})
		out = out[:min(len(out), n)]
	}
	return out
}

func (r nextResult) human(s *screen) {
	if len(r.firings) == 0 {
		s.line("%s", r.none)
	}
	for _, f := range r.firings {
		if r.single {
			s.line("%s", s.at(f.dueMs, f.zone))
		} else {
			s.line("%s  %s", s.at(f.dueMs, f.zone), clean(f.address))
		}
	}
}

func (r nextResult) json() document {
	firings := []document{}
	for _, f := range r.firings {
		firings = append(firings, document{"due": stamp(f.dueMs, f.zone), "due_ms": f.dueMs, "address": orNil(f.address)})
	}
	doc := document{"firings": firings}
	if len(r.warnings) > 0 {
		doc["diagnostics"] = r.warnings
	}
	return doc
}
