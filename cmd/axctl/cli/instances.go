package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/axctl/ax"
)

type instancesArgs struct {
	address string
	status  []string
	kind    []string
	since   string
	limit   int
}

func instancesCommand(c *call) *cobra.Command {
	var a instancesArgs
	cmd := &cobra.Command{
		Use:               "instances [ADDRESS]",
		ValidArgsFunction: c.completeAddress,
		Short:             "List what ran, runs and waits, newest first",
		Long: "instances lists what ran, runs and waits, newest first. Of one task it also tells the\n" +
			"slots that were not run and have no instance, as those of a pause, and why.",
		Example: "  axctl instances task.report -status failed,timeout -since 24h",
		Args:    argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				a.address = args[0]
			}
			result, err := c.instances(cmd.Context(), a)
			if err != nil {
				return err
			}
			return c.print(result)
		},
	}
	cmd.Flags().StringSliceVar(&a.status, "status", nil, "only those with a status of `LIST`, with commas between")
	cmd.Flags().StringSliceVar(&a.kind, "kind", nil, "only those of a kind of `LIST`: schedule, manual, backfill")
	cmd.Flags().StringVar(&a.since, "since", "", "only those due since `WHEN`: 24h, 7d or an instant")
	cmd.Flags().IntVar(&a.limit, "limit", 100, "at most `N`, up to 100000")
	return cmd
}

type instancesResult struct {
	rows        []ax.InstanceRow
	more        bool
	of          *task               // the one task asked for, nil: all
	stretches   []ax.SkippedStretch // of that task
	incarnation string
	zones       map[int64]*time.Location
}

func (c *call) instances(ctx context.Context, a instancesArgs) (instancesResult, error) {
	var r instancesResult
	filter, err := c.instanceFilter(a)
	if err != nil {
		return r, err
	}
	s, err := c.open(ctx, OpenOptions{ReadOnly: true})
	if err != nil {
		return r, err
	}
	defer s.Close()
	if a.address != "" {
		t, err := resolve(ctx, s, a.address, true)
		if err != nil {
			return r, err
		}
		filter.TaskID, r.of = t.ID, &t
		r.zones = map[int64]*time.Location{t.ID: t.Zone}
		if r.stretches, err = stretches(ctx, s, filter, a.limit); err != nil {
			return r, err
		}
	}
	info, err := s.Info(ctx)
	if err != nil {
		return r, err
	}
	r.incarnation = info.Incarnation
	if r.rows, err = s.Instances(ctx, filter); err != nil {
		return r, err
	}
	if len(r.rows) > a.limit {
		r.rows, r.more = r.rows[:a.limit], true
	}
	if r.zones == nil { // of any task
		r.zones, err = zones(ctx, s, r.rows)
	}
	return r, err
}

// stretches returns the slots of a task that have no instance, as far as the
// filter lets them through.
func stretches(ctx context.Context, q ax.Queries, f ax.InstanceFilter, limit int) ([]ax.SkippedStretch, error) {
	if len(f.Status) > 0 && !slices.Contains(f.Status, ax.StatusSkipped) || len(f.Kinds) > 0 && !slices.Contains(f.Kinds, ax.InstanceSchedule) {
		return nil, nil
	}
	found, err := q.Stretches(ctx, f.TaskID, limit)
	return slices.DeleteFunc(found, func(s ax.SkippedStretch) bool { return s.ToMs < f.SinceMs }), err
}

// instanceFilter reads the flags. One row more than asked for tells whether
// there are more.
func (c *call) instanceFilter(a instancesArgs) (ax.InstanceFilter, error) {
	f := ax.InstanceFilter{Limit: a.limit + 1}
	if a.limit < 1 || a.limit > 100_000 {
		return f, ax.Diagnostic{Severity: ax.SeverityError, Summary: fmt.Sprintf("-limit=%d is not from 1 to 100000", a.limit)}
	}
	for _, word := range a.status {
		status, err := oneOf("status", word, ax.Statuses)
		if err != nil {
			return f, err
		}
		f.Status = append(f.Status, status)
	}
	for _, word := range a.kind {
		kind, err := oneOf("kind", word, ax.InstanceKinds)
		if err != nil {
			return f, err
		}
		f.Kinds = append(f.Kinds, kind)
	}
	var err error
	if a.since != "" {
		f.SinceMs, err = parseAgo("since", a.since, c.zone, c.env.Now())
	}
	return f, err
}

func (r instancesResult) human(s *screen) {
	if len(r.rows) == 0 {
		s.line("No instances.")
	} else {
		r.table(s)
	}
	if len(r.stretches) > 0 {
		s.line("")
		s.line("Not run, without an instance:")
	}
	for _, gap := range r.stretches {
		span := "at " + s.at(gap.FromMs, r.of.Zone)
		if gap.ToMs != gap.FromMs {
			span = fmt.Sprintf("from %s to %s", s.at(gap.FromMs, r.of.Zone), s.at(gap.ToMs, r.of.Zone))
		}
		s.line("  %s %s, of v%d: %s", slotCount(gap.Slots), span, gap.Version, gap.Reason)
	}
}

func (r instancesResult) table(s *screen) {
	var rows [][]string
	for _, in := range r.rows {
		late, ran := "", ""
		if in.StartedMs != 0 && in.Kind == ax.InstanceSchedule && in.Attempt == 1 { // a retry is meant to be later
			late = ax.Duration(in.StartedMs - in.DueMs).Rough()
		}
		if in.StartedMs != 0 && in.EndedMs != 0 {
			ran = ax.Duration(in.EndedMs - in.StartedMs).Rough()
		}
		rows = append(rows, []string{
			fmt.Sprint(in.ID), clean(in.Task), fmt.Sprintf("v%d", in.Version), string(in.Kind),
			s.at(in.DueMs, r.zones[in.TaskID]), rowWord(in), fmt.Sprint(in.Attempt), late, ran, firstLine(cmp.Or(in.Error, in.LastError)),
		})
	}
	s.table([]string{"ID", "TASK", "VERSION", "KIND", "DUE", "STATUS", "ATTEMPT", "LATE", "RAN", "ERROR"}, rows)
	if r.more {
		s.line("There are more; -limit=N shows them.")
	}
}

// statusWord is a status with its reason and a person's verdict, if it has them.
func statusWord(in ax.Instance) string {
	word := string(in.Status)
	if in.Reason != ax.ReasonNone {
		word = fmt.Sprintf("%s (%s)", in.Status, in.Reason)
	}
	if in.Verdict != ax.VerdictNone {
		word += ", marked " + string(in.Verdict)
	}
	return word
}

// rowWord is statusWord, and whether its processes defy being killed.
func rowWord(in ax.InstanceRow) string {
	if in.Unkillable != "" {
		return statusWord(in.Instance) + ", unkillable"
	}
	return statusWord(in.Instance)
}

// firstLine cuts an error text to what fits a table.
func firstLine(text string) string {
	line, rest, _ := strings.Cut(text, "\n")
	line = clean(line)
	if r := []rune(line); len(r) > 60 {
		return string(r[:57]) + "..."
	}
	if rest != "" {
		return line + " ..."
	}
	return line
}

func (r instancesResult) json() document {
	instances := make([]document, 0, len(r.rows))
	for _, in := range r.rows {
		instances = append(instances, instanceJSON(in, r.incarnation, r.zones[in.TaskID]))
	}
	doc := document{"instances": instances}
	if r.of == nil {
		return doc
	}
	skipped := make([]document, 0, len(r.stretches))
	for _, gap := range r.stretches {
		skipped = append(skipped, document{
			"from": stamp(gap.FromMs, r.of.Zone), "from_ms": gap.FromMs, "to": stamp(gap.ToMs, r.of.Zone), "to_ms": gap.ToMs,
			"slots": counted(gap.Slots), "reason": gap.Reason, "version": gap.Version,
		})
	}
	doc["skipped_stretches"] = skipped
	return doc
}

// counted writes a number of slots that was too large to count as null.
func counted(slots int) any {
	if slots < 0 {
		return nil
	}
	return slots
}

// instanceJSON is an instance as scripts see it. The last three keys belong to
// what is not built yet; they are there, so that scripts need not ask.
func instanceJSON(in ax.InstanceRow, incarnation string, zone *time.Location) document {
	doc := document{
		"id": in.ID, "task": in.Task, "stack": in.Stack, "version": in.Version, "kind": in.Kind,
		"status": in.Status, "reason": orNil(in.Reason), "attempt": in.Attempt, "batch_no": nil,
		"host": orNil(in.Host), "executor": orNil(in.Executor),
		"error": orNil(in.Error), "error_class": orNil(in.ErrorClass), "last_error": orNil(in.LastError), "unkillable": orNil(in.Unkillable), "output_dropped": in.OutputDropped,
		"verdict": orNil(in.Verdict), "retry_of": idOrNil(in.RetryOf()), "backfill_id": idOrNil(in.BackfillID()), "run_id": nil, "shard_index": nil, "shard_count": nil,
	}
	if in.HandedMs != 0 || in.Status == ax.StatusDispatched {
		doc["batch_no"] = ax.BatchNo(incarnation, in.ID, in.Attempt)
	}
	for key, ms := range map[string]int64{
		"due": in.DueMs, "not_before": in.NotBeforeMs, "claimed": in.ClaimedMs, "dispatched": in.HandedMs,
		"started": in.StartedMs, "ended": in.EndedMs, "stopped": in.StoppedMs,
	} {
		doc[key], doc[key+"_ms"] = stamp(ms, zone), stampMs(ms)
	}
	return doc
}

// idOrNil writes an id that is none as null.
func idOrNil(id int64) any {
	if id == 0 {
		return nil
	}
	return id
}

// orNil writes an empty text as null.
func orNil[S ~string](text S) any {
	if text == "" {
		return nil
	}
	return text
}
