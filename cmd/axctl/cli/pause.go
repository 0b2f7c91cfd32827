package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/axctl/ax"
)

type holdArgs struct {
	kind    ax.HoldKind
	address string
	reason  string
	length  string
	until   string
}

func pauseCommand(c *call) *cobra.Command {
	return holdCommand(c, ax.HoldPaused, &cobra.Command{
		Use:   "pause ADDRESS -reason=TEXT",
		Short: "Keep a task from firing until someone resumes it, or for a time",
		Long: "pause keeps a task from firing. What runs goes on, and trigger still works. Plans\n" +
			"show the hold and never change it. What becomes of the slots that pass meanwhile is\n" +
			"the task's misfire.on_resume (skip, unless it says otherwise).",
	})
}

// holdCommand completes a command that puts a hold on a task.
func holdCommand(c *call, kind ax.HoldKind, cmd *cobra.Command) *cobra.Command {
	a := holdArgs{kind: kind}
	cmd.ValidArgsFunction, cmd.Args = c.completeAddress, argumentCount(1, 1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a.address = args[0]
		result, err := c.hold(cmd.Context(), a)
		if err != nil {
			return err
		}
		return c.print(result)
	}
	cmd.Flags().StringVar(&a.reason, "reason", "", "`TEXT` that says why, for whoever sees it later (needed)")
	cmd.Flags().StringVar(&a.length, "for", "", "end by itself after `TIME`: 2h, 7d")
	cmd.Flags().StringVar(&a.until, "until", "", "end by itself at `WHEN`")
	return cmd
}

func (c *call) hold(ctx context.Context, a holdArgs) (holdResult, error) {
	switch {
	case a.reason == "":
		return holdResult{}, ax.Diagnostic{Severity: ax.SeverityError, Summary: "-reason is missing", Detail: fmt.Sprintf("Say why, for whoever finds the task %s: -reason=\"disk is full\".", a.kind)}
	case a.length != "" && a.until != "":
		return holdResult{}, ax.Diagnostic{Severity: ax.SeverityError, Summary: "-for and -until do not go together", Detail: "Both say when the hold ends."}
	}
	s, err := c.open(ctx, OpenOptions{})
	if err != nil {
		return holdResult{}, err
	}
	defer s.Close()
	t, err := resolve(ctx, s, a.address, false)
	if err != nil {
		return holdResult{}, err
	}
	hold := ax.Hold{Kind: a.kind, Who: c.env.User, SinceMs: c.nowMs(), Reason: a.reason}
	if hold.UntilMs, err = c.holdEnd(a, t); err != nil {
		return holdResult{}, err
	}
	r := holdResult{before: t.Row.Hold, running: t.Row.Active}
	if r.backfills, err = s.Backfills(ctx, ax.BackfillFilter{TaskID: t.ID, States: []ax.BackfillState{ax.BackfillRunning}}); err != nil {
		return r, fmt.Errorf("backfills of %s: %w", t.Address(), err)
	}
	if err := s.Hold(ctx, t.ID, hold); err != nil { // last: what fails before it has changed nothing
		return r, fmt.Errorf("hold %s: %w", t.Address(), err)
	}
	t.Row.Hold = &hold
	r.task = t
	return r, nil
}

// holdEnd reads when a hold ends; 0 never.
func (c *call) holdEnd(a holdArgs, t task) (int64, error) {
	now := c.env.Now()
	var until int64
	switch {
	case a.length != "":
		d, err := parseLength(a.length)
		if err != nil || d == 0 {
			return 0, ax.Diagnostic{Severity: ax.SeverityError, Summary: fmt.Sprintf("-for: %q is no length of time", a.length), Detail: "Write it like 30m, 2h or 7d."}
		}
		until = now.Add(d).UnixMilli()
	case a.until != "":
		var err error
		if until, err = parseInstant("until", a.until, t.Zone, now); err != nil {
			return 0, err
		}
	default:
		return 0, nil
	}
	if until <= now.UnixMilli() {
		return 0, ax.Diagnostic{Severity: ax.SeverityError, Summary: "The hold would be over already", Detail: when(until, t.Zone) + " is not after now."}
	}
	return until, nil
}

// holdResult is a task with the hold it has now, and the one it had.
type holdResult struct {
	task    task
	before  *ax.Hold
	running int
	// backfills go on in spite of it.
	backfills []ax.Backfill
}

func (r holdResult) human(s *screen) {
	t := r.task
	s.line("%s is %s", clean(t.Address()), s.hold(*t.Row.Hold, t.Zone))
	if r.before != nil {
		s.line("This takes the place of: %s", s.hold(*r.before, t.Zone))
	}
	if r.running > 0 {
		s.line("%s running; axctl cancel ends them.", plural(r.running, "instance"))
	}
	for _, b := range r.backfills {
		s.line("Backfill %d goes on all the same; axctl backfill pause %d lets it rest.", b.ID, b.ID)
	}
}

func (r holdResult) json() document {
	return document{"address": r.task.Address(), "hold": holdJSON(r.task.Row.Hold, r.task.Zone)}
}
