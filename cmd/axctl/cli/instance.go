package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/axctl/ax"
)

func instanceCommand(c *call) *cobra.Command {
	return &cobra.Command{
		Use:   "instance ID",
		Short: "Tell the whole life of one instance",
		Args:  argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseID("instance", args[0])
			if err != nil {
				return err
			}
			result, err := c.instance(cmd.Context(), id)
			if err != nil {
				return err
			}
			return c.print(result)
		},
	}
}

// parseID reads the id of an instance or a backfill; the noun's plural is the
// command that lists them.
func parseID(noun, text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, ax.Diagnostic{
			Severity: ax.SeverityError,
			Summary:  fmt.Sprintf("%q is no %s id", text, noun),
			Detail:   fmt.Sprintf("An id is a number; axctl %ss lists them.", noun),
		}
	}
	return id, nil
}

// life reads an instance's life, and tells an unknown id.
func life(ctx context.Context, q ax.Queries, id int64) (ax.Life, error) {
	l, err := q.Instance(ctx, id)
	if errors.Is(err, ax.ErrNotFound) {
		return l, noInstance(id)
	}
	return l, err
}

func noInstance(id int64) error {
	return ax.Diagnostic{
		Severity: ax.SeverityError,
		Summary:  fmt.Sprintf("No instance %d in the store", id),
		Detail:   "axctl instances lists them. Old ones are deleted by axd (-retain, -retain-last) and by axctl store gc.",
	}
}

type instanceResult struct {
	life        ax.Life
	incarnation string
	zone        *time.Location
}

func (c *call) instance(ctx context.Context, id int64) (instanceResult, error) {
	var r instanceResult
	s, err := c.open(ctx, OpenOptions{ReadOnly: true})
	if err != nil {
		return r, err
	}
	defer s.Close()
	info, err := s.Info(ctx)
	if err != nil {
		return r, err
	}
	if r.life, err = life(ctx, s, id); err != nil {
		return r, err
	}
	t, err := taskOf(ctx, s, r.life)
	r.incarnation, r.zone = info.Incarnation, t.Zone
	return r, err
}

// happening is one line of a life.
type happening struct {
	atMs    int64
	attempt int
	what    string
	detail  string
}

// happenings tells a life in the order of time. What happened at one instant
// stays in the order of its causes.
func happenings(l ax.Life) []happening {
	out := []happening{{l.DueMs, 0, "due", ""}, {l.ClaimedMs, 0, "claimed", ""}}
	for n := 1; n <= l.Attempt; n++ {
		begun, ended := attemptLines(l, n)
		var causes, effects []happening
		for _, t := range l.Transitions {
			if min(max(t.Attempt, 1), l.Attempt) != n {
				continue
			}
			if t.Cause == ax.CauseStopped && t.From == t.To {
				continue // stopped_ms tells it
			}
			h := happening{t.AtMs, n, string(t.Cause), transitionDetail(t)}
			if leads(t.Cause) {
				causes = append(causes, h)
			} else {
				effects = append(effects, h)
			}
		}
		out = slices.Concat(out, begun, causes, ended, effects)
	}
	out = slices.DeleteFunc(out, func(h happening) bool { return h.atMs == 0 })
	slices.SortStableFunc(out, func(a, b happening) int { return cmp.Compare(a.atMs, b.atMs) })
	return out
}

// leads reports the causes that come before the end of their attempt, where both
// are of one instant; the others follow from it.
func leads(cause ax.Cause) bool {
	switch cause {
	case ax.CauseCancel, ax.CauseReplaced, ax.CauseOverlap, ax.CauseTimeout, ax.CauseDeleted, ax.CauseDisabled, ax.CauseTrigger, ax.CauseRetryOf, ax.CauseBackfill, ax.CauseNotAccepted:
		return true
	default:
		return false
	}
}

// attemptLines tells how the n-th attempt began and how it ended. The last one
// is told by the instance itself.
func attemptLines(l ax.Life, n int) (begun, ended []happening) {
	a := ax.Attempt{
		Host: l.Host, Executor: l.Executor, HandedMs: l.HandedMs, StartedMs: l.StartedMs,
		EndedMs: l.EndedMs, StoppedMs: l.StoppedMs, Status: l.Status, ErrorClass: l.ErrorClass, Error: l.Error,
	}
	if i := slices.IndexFunc(l.Attempts, func(a ax.Attempt) bool { return a.Attempt == n }); i >= 0 {
		a = l.Attempts[i]
	} else if n != l.Attempt {
		return nil, nil
	}
	where := "to " + a.Host
	if a.Executor != "" {
		where += ", executor " + a.Executor
	}
	begun = []happening{{a.HandedMs, n, "handed", where}, {a.StartedMs, n, "started", ""}}
	ended = []happening{{a.EndedMs, n, "ended", ending(a.Status, a.ErrorClass, a.Error)}, {a.StoppedMs, n, "stopped", "its processes are gone"}}
	return begun, ended
}

// ending says how an attempt ended.
func ending(status ax.Status, class ax.ErrorClass, text string) string {
	parts := []string{string(status)}
	if class != "" && string(class) != string(status) {
		parts[0] += " (" + string(class) + ")"
	}
	if text != "" {
		parts = append(parts, firstLine(text))
	}
	return strings.Join(parts, ": ")
}

func transitionDetail(t ax.Transition) string {
	var parts []string
	if t.From != t.To {
		parts = append(parts, fmt.Sprintf("%s -> %s", orWord(t.From, "nothing"), t.To))
	}
	if t.Actor != "" {
		parts = append(parts, "by "+clean(t.Actor))
	}
	if t.Detail != "" {
		parts = append(parts, clean(t.Detail))
	}
	return strings.Join(parts, ", ")
}

// orWord is a text, or a word for the empty one.
func orWord[S ~string](text S, word string) string {
	if text == "" {
		return word
	}
	return string(text)
}

func (r instanceResult) human(s *screen) {
	l := r.life
	s.line("%s", s.paint(bold, fmt.Sprintf("Instance %d of %s v%d: %s", l.ID, clean(l.Task), l.Version, rowWord(l.InstanceRow))))
	s.line("  stack       %s", clean(l.Stack))
	s.line("  kind        %s", l.Kind)
	s.line("  due         %s", s.at(l.DueMs, r.zone))
	if of := l.RetryOf(); of != 0 {
		s.line("  retry of    instance %d", of)
	}
	if id := l.BackfillID(); id != 0 {
		s.line("  backfill    %d", id)
	}
	if len(l.RetriedBy) > 0 {
		s.line("  retried by  instance %s", idList(l.RetriedBy))
	}
	if l.Verdict != ax.VerdictNone {
		s.line("  verdict     %s", l.Verdict)
	}
	if l.HandedMs != 0 || l.Status == ax.StatusDispatched {
		s.line("  batch no    %s", ax.BatchNo(r.incarnation, l.ID, l.Attempt))
	}
	if !l.Status.Final() && l.Status != ax.StatusDispatched && l.NotBeforeMs != 0 {
		s.line("  not before  %s", s.at(l.NotBeforeMs, r.zone))
	}
	if l.Status == ax.StatusDispatched && l.DeadlineMs != 0 {
		s.line("  deadline    %s", s.at(l.DeadlineMs, r.zone))
	}
	if l.Unkillable != "" {
		s.line("  unkillable  %s; its place stays taken until they are gone", clean(l.Unkillable))
	}
	if p := l.Progress; p != nil {
		s.line("  progress    %s", progressText(*p, l.Attempt, s.at(p.AtMs, r.zone)))
	}
	if l.PausedMs != 0 {
		s.line("  paused      by %s since %s; its timeout stands still", clean(l.PausedBy), s.at(l.PausedMs, r.zone))
	}
	if st := l.Signal; st != nil && !st.Settled() && l.Status == ax.StatusDispatched {
		s.line("  signal      %s asked for by %s, not answered yet", st.Signal, clean(st.Who))
	}
	if l.CancelBy != "" {
		s.line("  cancel      asked for by %s", clean(l.CancelBy))
	}
	if l.OutputBytes > 0 || l.OutputDropped > 0 {
		kept := fmt.Sprintf("%d bytes; axctl logs %d shows it", l.OutputBytes, l.ID)
		if l.OutputDropped > 0 {
			kept = fmt.Sprintf("%d bytes, %d of them not kept; axctl logs %d shows the rest", l.OutputBytes, l.OutputDropped, l.ID)
		}
		s.line("  output      %s", kept)
	}
	s.line("")
	all := happenings(l)
	var rows [][]string
	for _, h := range all {
		attempt := ""
		if h.attempt > 0 {
			attempt = fmt.Sprint(h.attempt)
		}
		rows = append(rows, []string{
			time.UnixMilli(h.atMs).In(s.place(r.zone)).Format("2006-01-02 15:04:05.000 -07:00"),
			offset(h.atMs - l.ClaimedMs), attempt, h.what, h.detail,
		})
	}
	s.table([]string{"AT", "SINCE CLAIM", "ATTEMPT", "WHAT", "DETAIL"}, rows)
	if l.Error != "" && l.Status != ax.StatusCancelled { // to be cancelled is no error; the life line says why
		s.line("")
		s.line("Error:")
		for _, text := range strings.Split(strings.TrimRight(l.Error, "\n"), "\n") {
			s.line("  %s", clean(text))
		}
	}
}

// progressText tells how far an attempt said that it is.
func progressText(p ax.Progress, attempt int, at string) string {
	var parts []string
	if p.Percent >= 0 {
		parts = append(parts, strconv.FormatFloat(p.Percent, 'f', -1, 64)+" %")
	}
	if p.Text != "" {
		parts = append(parts, clean(p.Text))
	}
	when := "at " + at
	if p.Attempt != attempt {
		when += fmt.Sprintf(", attempt %d", p.Attempt)
	}
	return strings.Join(append(parts, "("+when+")"), " ")
}

// idList writes ids with commas between.
func idList(ids []int64) string {
	var words []string
	for _, id := range ids {
		words = append(words, strconv.FormatInt(id, 10))
	}
	return strings.Join(words, ", ")
}

// offset shows a distance in time with its sign.
func offset(ms int64) string {
	if ms < 0 {
		return ax.Duration(ms).Rough()
	}
	return "+" + ax.Duration(ms).Rough()
}

func (r instanceResult) json() document {
	doc := instanceJSON(r.life.InstanceRow, r.incarnation, r.zone)
	doc["retried_by"] = append([]int64{}, r.life.RetriedBy...)
	doc["progress"], doc["paused"], doc["paused_ms"], doc["paused_by"] = nil, nil, nil, nil
	if p := r.life.Progress; p != nil {
		var percent any
		if p.Percent >= 0 {
			percent = p.Percent
		}
		doc["progress"] = document{"attempt": p.Attempt, "percent": percent, "text": p.Text, "at": stamp(p.AtMs, r.zone), "at_ms": p.AtMs}
	}
	if r.life.PausedMs != 0 {
		doc["paused"], doc["paused_ms"], doc["paused_by"] = stamp(r.life.PausedMs, r.zone), r.life.PausedMs, r.life.PausedBy
	}
	doc["cancel_by"] = orNil(r.life.CancelBy)
	doc["output_bytes"] = r.life.OutputBytes
	doc["outputs"] = orNull(r.life.Outputs)
	doc["deadline"], doc["deadline_ms"] = stamp(r.life.DeadlineMs, r.zone), stampMs(r.life.DeadlineMs)
	events := []document{}
	for _, h := range happenings(r.life) {
		event := document{"at": stamp(h.atMs, r.zone), "at_ms": h.atMs, "what": h.what, "detail": h.detail, "attempt": nil}
		if h.attempt > 0 {
			event["attempt"] = h.attempt
		}
		events = append(events, event)
	}
	return document{"instance": doc, "events": events}
}
