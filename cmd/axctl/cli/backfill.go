package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

type backfillArgs struct {
	address     string
	from, to    string
	modes       [3]bool // missing, failed, all
	parallel    int
	plan        bool
	autoApprove bool
}

func backfillCommand(c *call) *cobra.Command {
	var a backfillArgs
	cmd := &cobra.Command{
		Use:               "backfill ADDRESS -from=WHEN [-to=WHEN]",
		ValidArgsFunction: c.completeAddress,
		Short:             "Run slots that have passed, a few at a time; pause, resume or cancel that",
		Long: "backfill runs slots of a task's schedule that have passed, both ends of the range\n" +
			"included, as instances of their own. It shows how many and which, asks, and axd then\n" +
			"makes them one by one in due order, also of a task that is disabled or paused. The\n" +
			"schedule goes first: a firing waits for at most what the backfill has at work, and none\n" +
			"is skipped for it. Slots and command are those of the version now in force, whatever is\n" +
			"applied meanwhile.\n\n" +
			"What became of a slot is told by all its instances, of the schedule, by hand or of\n" +
			"earlier backfills: missing when there is none or only skipped ones; failed when the last\n" +
			"that was not skipped ended without success. A verdict (mark) counts as the status. A\n" +
			"slot that waits or runs is left alone. Of slots whose history retention has deleted\n" +
			"nobody knows whether they ran, so only -all runs them.",
		Example: "  axctl backfill task.report -from 2026-11-01 -to 2026-11-30T02:00 -plan\n" +
			"  axctl backfill task.report -from 7d -failed -parallel 4\n" +
			"  axctl backfill pause 3",
		Args: argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.address = args[0]
			return c.backfill(cmd.Context(), a)
		},
	}
	f := cmd.Flags()
	f.StringVar(&a.from, "from", "", "the first instant `WHEN`: an instant, a date (its midnight), or 7d for so long ago")
	f.StringVar(&a.to, "to", "now", "the last instant `WHEN`")
	f.BoolVar(&a.modes[0], "only-missing", false, "slots that nothing ran for (the default)")
	f.BoolVar(&a.modes[1], "failed", false, "slots whose last run ended without success")
	f.BoolVar(&a.modes[2], "all", false, "all slots but those that wait or run")
	f.IntVar(&a.parallel, "parallel", 1, fmt.Sprintf("at most `N` of it at once, 1 to %d, within the task's concurrency", ax.MaxBackfillParallel))
	f.BoolVar(&a.plan, "plan", false, "show what would be run, and change nothing")
	f.BoolVar(&a.autoApprove, "auto-approve", false, "do not ask")
	cmd.AddCommand(
		moveBackfillCommand(c, "pause", ax.BackfillPaused, "Make nothing more of a backfill for now; what it has made goes on"),
		moveBackfillCommand(c, "resume", ax.BackfillRunning, "Go on with a backfill that is paused"),
		moveBackfillCommand(c, "cancel", ax.BackfillCancelled, "End a backfill with its waiting instances; those that run go on"),
	)
	return cmd
}

// request reads the flags; task and version are not set.
func (a backfillArgs) request(c *call, t task) (ax.BackfillRequest, error) {
	r := ax.BackfillRequest{TaskID: t.ID, Version: t.Version, Mode: ax.BackfillMissing, Parallel: a.parallel, Slots: -1, Who: c.env.User}
	given := 0
	for i, set := range a.modes {
		if set {
			given++
			r.Mode = ax.BackfillModes[i]
		}
	}
	switch {
	case given > 1:
		return r, ax.Diagnostic{Severity: ax.SeverityError, Summary: "-only-missing, -failed and -all do not go together", Detail: "Each says which slots to run."}
	case a.parallel < 1 || a.parallel > ax.MaxBackfillParallel:
		return r, ax.Diagnostic{Severity: ax.SeverityError, Summary: fmt.Sprintf("-parallel=%d is not from 1 to %d", a.parallel, ax.MaxBackfillParallel)}
	case a.from == "":
		return r, ax.Diagnostic{Severity: ax.SeverityError, Summary: "-from is missing", Detail: "It is the first instant of the range, as in -from=2026-11-01 or -from=7d."}
	}
	var err error
	if r.FromMs, err = parseAgo("from", a.from, t.Zone, c.env.Now()); err != nil {
		return r, err
	}
	if r.ToMs, err = parseAgo("to", a.to, t.Zone, c.env.Now()); err != nil {
		return r, err
	}
	r.ToMs++ // to is included, as in what axctl shows of slots that were not run
	if r.FromMs >= r.ToMs {
		return r, ax.Diagnostic{
			Severity: ax.SeverityError, Summary: "-from is after -to",
			Detail: fmt.Sprintf("The range would be from %s to %s.", when(r.FromMs, t.Zone), when(r.ToMs-1, t.Zone)),
		}
	}
	return r, nil
}

func (c *call) backfill(ctx context.Context, a backfillArgs) error {
	s, err := c.open(ctx, OpenOptions{ReadOnly: a.plan})
	if err != nil {
		return err
	}
	defer s.Close()
	t, err := resolve(ctx, s, a.address, false)
	if err != nil {
		return err
	}
	if t.Broken == nil && len(t.Spec.Schedules) == 0 {
		return ax.Diagnostic{
			Severity: ax.SeverityError, Summary: t.Address() + " has no schedule, so it has no slots",
			Detail: fmt.Sprintf("axctl trigger %s -due=WHEN runs it for an instant.", shellWord(t.Address())),
		}
	}
	request, err := a.request(c, t)
	if err != nil {
		return err
	}
	r, err := c.surveyBackfill(ctx, s, t, request)
	if err != nil {
		return err
	}
	if a.plan || r.nothing() {
		return c.print(r)
	}
	if !c.globals.json {
		if err := c.print(r); err != nil {
			return err
		}
	}
	question := fmt.Sprintf("Run them in %s?", c.storeName())
	if err := c.approve(ctx, a.autoApprove, question, "and -plan only shows it."); err != nil {
		return err
	}
	r.request.AtMs = c.nowMs()
	b, err := s.StartBackfill(ctx, r.request)
	switch {
	case errors.Is(err, ax.ErrConflict):
		return c.overlapping(ctx, s, r)
	case errors.Is(err, ax.ErrStale) || errors.Is(err, ax.ErrNotFound):
		return withCode(ExitStale, ax.Diagnostic{
			Severity: ax.SeverityError, Summary: t.Address() + " was changed since this was shown",
			Detail: "Nothing was changed. Run it again to see its slots now.",
		})
	case err != nil:
		return fmt.Errorf("backfill %s: %w", t.Address(), err)
	}
	r.made, r.asleep = &b, !c.daemonRuns()
	return c.print(r)
}

// overlapping names the backfill that is in the way.
func (c *call) overlapping(ctx context.Context, s Store, r backfillSurvey) error {
	all, err := s.Backfills(ctx, ax.BackfillFilter{TaskID: r.task.ID, States: openBackfills})
	if err != nil {
		return err
	}
	d := ax.Diagnostic{
		Severity: ax.SeverityError, Summary: "A backfill of " + r.task.Address() + " that has not ended has slots of this range",
		Detail: "Nothing was changed. axctl backfills lists it.",
	}
	for _, b := range all {
		if b.FromMs < r.request.ToMs && b.ToMs > r.request.FromMs {
			d.Detail = fmt.Sprintf("Nothing was changed. It is backfill %d, from %s to %s, %s: wait for its end, or axctl backfill cancel %d.",
				b.ID, when(b.FromMs, r.task.Zone), when(b.ToMs-1, r.task.Zone), b.State, b.ID)
		}
	}
	return d
}

// openBackfills are the states of those that have not ended.
var openBackfills = []ax.BackfillState{ax.BackfillRunning, ax.BackfillPaused}

const (
	// maxRangeSlots is how many slots of a range are counted, and
	// maxExaminedSlots of how many it is looked up what became of them.
	maxRangeSlots    = 1_000_000
	maxExaminedSlots = 100_000
	examinedAtOnce   = 1000
	// recentRuns is how many runs an estimate is made from.
	recentRuns = 20
)

// backfillSurvey is what a backfill would run.
type backfillSurvey struct {
	task    task
	request ax.BackfillRequest
	first   int64 // slots of the range; 0 none
	last    int64
	states  map[rules.SlotState]int // nil: not looked up, too many
	toRun   int                     // -1 not known
	runs    [2]int64                // first and last that is run
	cutMs   int64                   // slots from it on are left to axd; 0 none are
	ahead   int64                   // end of a range that is wholly in the future; 0 it is not
	taskMs  int64                   // how long a run takes; 0 not known
	made    *ax.Backfill            // it was started
	asleep  bool                    // no axd is running
}

func (r backfillSurvey) nothing() bool { return r.toRun == 0 }

// surveyBackfill finds out which slots a request is about.
func (c *call) surveyBackfill(ctx context.Context, s Store, t task, request ax.BackfillRequest) (backfillSurvey, error) {
	r := backfillSurvey{task: t, request: request, toRun: -1}
	timetable, err := t.timetable()
	if err != nil {
		return r, err
	}
	if end := rules.BackfillEnd(timetable, t.Spec.Misfire, t.Row, c.nowMs()); end < r.request.ToMs {
		if at, ok := timetable.Next(max(end, r.request.FromMs) - 1); ok && at < r.request.ToMs && at <= c.nowMs() {
			r.cutMs = at
		}
		if r.request.FromMs > c.nowMs() {
			r.ahead = r.request.ToMs
		}
		r.request.ToMs = max(end, r.request.FromMs)
	}
	n, over := timetable.Count(r.request.FromMs, r.request.ToMs-1, maxRangeSlots)
	if n > 0 {
		r.first, _ = timetable.Next(r.request.FromMs - 1)
		r.last, _ = timetable.Prev(r.request.ToMs)
	}
	if !over {
		r.request.Slots = int64(n)
	}
	if n == 0 {
		r.toRun = 0
		return r, nil
	}
	if r.taskMs, err = usualRun(ctx, s, t); err != nil {
		return r, err
	}
	if n > maxExaminedSlots {
		return r, nil
	}
	return r, r.examine(ctx, s, timetable)
}

// examine looks up what became of every slot.
func (r *backfillSurvey) examine(ctx context.Context, s Store, tt rules.Timetable) error {
	r.states, r.toRun = map[rules.SlotState]int{}, 0
	at, ok := tt.Next(r.request.FromMs - 1)
	for ok && at < r.request.ToMs {
		var dues []int64
		for ok && at < r.request.ToMs && len(dues) < examinedAtOnce {
			dues = append(dues, at)
			at, ok = tt.Next(at)
		}
		tries, err := s.Tries(ctx, r.task.ID, dues)
		if err != nil {
			return fmt.Errorf("instances of %s: %w", r.task.Address(), err)
		}
		for _, due := range dues {
			n := 0
			for n < len(tries) && tries[n].DueMs == due {
				n++
			}
			state := rules.StateOf(tries[:n], due <= r.task.Row.CheckedFromMs)
			tries = tries[n:]
			r.states[state]++
			if !rules.Wanted(r.request.Mode, state) {
				continue
			}
			if r.toRun++; r.toRun == 1 {
				r.runs[0] = due
			}
			r.runs[1] = due
		}
	}
	return nil
}

// usualRun returns how long a run of the task takes, by its last ones that
// succeeded; 0 when there is none.
func usualRun(ctx context.Context, q ax.Queries, t task) (int64, error) {
	rows, err := q.Instances(ctx, ax.InstanceFilter{TaskID: t.ID, Status: []ax.Status{ax.StatusSuccess}, Limit: recentRuns})
	var took []int64
	for _, in := range rows {
		if in.StartedMs != 0 {
			took = append(took, max(in.EndedMs-in.StartedMs, 1))
		}
	}
	if len(took) == 0 {
		return 0, err
	}
	slices.Sort(took)
	return took[len(took)/2], err
}

// modeFlags are the flags of the modes.
var modeFlags = map[ax.BackfillMode]string{ax.BackfillMissing: "-only-missing", ax.BackfillFailed: "-failed", ax.BackfillAll: "-all"}

func (r backfillSurvey) human(s *screen) {
	if b := r.made; b != nil {
		s.line("")
		s.line("%s", s.paint(green, fmt.Sprintf("Backfill %d is started.", b.ID)))
		s.line("progress  axctl backfills")
		s.line("undo      axctl backfill cancel %d ends it; axctl backfill pause %d lets it rest", b.ID, b.ID)
		if r.asleep {
			s.line("No axd is running on this store; it goes on when one does.")
		}
		return
	}
	t := r.task
	s.line("Backfill of %s v%d, %s, from %s to %s", clean(t.Address()), t.Version, modeFlags[r.request.Mode],
		s.at(r.request.FromMs, t.Zone), s.at(r.shownTo(), t.Zone))
	switch {
	case r.ahead != 0:
		s.line("  The range is in the future: none of its slots has passed, and axd fires them when they are due.")
	case r.first == 0:
		s.line("  The range has no slot that has passed.")
	case r.request.Slots < 0:
		s.line("  over %d slots, from %s to %s", maxRangeSlots, s.at(r.first, t.Zone), s.at(r.last, t.Zone))
	default:
		s.line("  %s, from %s to %s%s", plural(int(r.request.Slots), "slot"), s.at(r.first, t.Zone), s.at(r.last, t.Zone), r.stateWords())
	}
	if r.cutMs != 0 {
		s.line("  The slots from %s on are left out: they are not claimed yet, and axd decides on them.", s.at(r.cutMs, t.Zone))
	}
	if n := r.states[rules.SlotForgotten]; n > 0 && r.request.Mode != ax.BackfillAll {
		s.line("  %s up to %s left out: their history was deleted as old, so whether they ran is not known; -all runs them.",
			plural(n, "slot"), s.at(t.Row.CheckedFromMs, t.Zone))
	}
	switch {
	case r.nothing():
		s.line("Nothing to run.")
		return
	case r.toRun < 0:
		s.line("Which of them are run is decided as it goes, in due order, at most %d at a time.", r.atOnce())
	case r.toRun == 1:
		s.line("1 to run: %s.", s.at(r.runs[0], t.Zone))
	default:
		s.line("%d to run, at most %d at a time, in due order: first %s, last %s.", r.toRun, r.atOnce(), s.at(r.runs[0], t.Zone), s.at(r.runs[1], t.Zone))
	}
	s.line("%s", r.estimate())
	if r.request.Parallel > t.Spec.Concurrency {
		s.line("The task's concurrency of %d bounds -parallel=%d.", t.Spec.Concurrency, r.request.Parallel)
	}
	r.forced(s)
}

// forced says that what keeps the schedule from firing does not keep this.
func (r backfillSurvey) forced(s *screen) {
	if h := r.task.Row.Hold; h != nil {
		s.line("The task is %s; this starts all the same.", s.hold(*h, r.task.Zone))
	}
	if !r.task.Row.Enabled {
		s.line("The task is disabled; this starts all the same.")
	}
}

// shownTo is the last instant of the range: of what has passed of it, unless
// nothing has.
func (r backfillSurvey) shownTo() int64 { return max(r.request.ToMs-1, r.request.FromMs, r.ahead-1) }

func (r backfillSurvey) atOnce() int { return min(r.request.Parallel, max(r.task.Spec.Concurrency, 1)) }

// stateWords tells how many slots are in which state.
func (r backfillSurvey) stateWords() string {
	var words []string
	for _, state := range rules.SlotStates {
		if n := r.states[state]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, state))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return ": " + strings.Join(words, ", ")
}

// estimate tells how long it takes.
func (r backfillSurvey) estimate() string {
	runs := int64(r.toRun)
	if runs < 0 {
		runs = r.request.Slots
	}
	switch {
	case r.taskMs == 0:
		return "How long that takes is not known: no run of it has succeeded yet."
	case runs < 0:
		return fmt.Sprintf("A run takes some %s, by the last that succeeded.", ax.Duration(r.taskMs).Rough())
	}
	return fmt.Sprintf("That takes some %s: a run takes %s, by the last that succeeded.", ax.Duration(r.spanMs(runs)).Rough(), ax.Duration(r.taskMs).Rough())
}

func (r backfillSurvey) spanMs(runs int64) int64 {
	at := int64(r.atOnce())
	return (runs + at - 1) / at * r.taskMs
}

func (r backfillSurvey) json() document {
	zone := r.task.Zone
	plan := document{
		"address": r.task.Address(), "version": r.task.Version, "mode": r.request.Mode, "parallel": r.request.Parallel,
		"from": stamp(r.request.FromMs, zone), "from_ms": r.request.FromMs,
		"to": stamp(r.shownTo(), zone), "to_ms": r.shownTo(),
		"slots": counted(int(r.request.Slots)), "to_run": counted(r.toRun), "states": nil, "span_ms": nil,
		"first": stamp(r.runs[0], zone), "first_ms": stampMs(r.runs[0]), "last": stamp(r.runs[1], zone), "last_ms": stampMs(r.runs[1]),
		"held": r.task.Row.Hold != nil, "enabled": r.task.Row.Enabled,
	}
	if r.states != nil {
		states := document{}
		for _, state := range rules.SlotStates {
			states[string(state)] = r.states[state]
		}
		plan["states"] = states
	}
	if r.taskMs > 0 && r.toRun >= 0 {
		plan["span_ms"] = r.spanMs(int64(r.toRun))
	}
	doc := document{"plan": plan, "backfill": nil}
	if r.made != nil {
		doc["backfill"] = backfillJSON(*r.made, r.task.Address(), zone)
	}
	return doc
}
