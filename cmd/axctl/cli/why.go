package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/axctl/ax"
	"github.com/axctl/ax/why"
)

type whyArgs struct {
	address string // or an instance's id
	at      string
}

func whyCommand(c *call) *cobra.Command {
	var a whyArgs
	cmd := &cobra.Command{
		Use:               "why ADDRESS|ID [-at=WHEN]",
		ValidArgsFunction: c.completeAddress,
		Short:             "Say why a task does or does not run now, or fired or not at an instant",
		Long: "why goes through the causes one by one: does the task exist, is it held, does axd run,\n" +
			"was the instant a slot of the version in force then, what became of it. The first \"no\"\n" +
			"is the answer, told above the list with what to do. It reads the store only, so it works\n" +
			"while axd is down. An instance's ID asks about that instance.",
		Example: "  axctl why task.report\n" +
			"  axctl why task.report -at 2026-12-01T02:00",
		Args: argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.address = args[0]
			result, err := c.why(cmd.Context(), a)
			if err != nil {
				return err
			}
			return c.print(result)
		},
	}
	cmd.Flags().StringVar(&a.at, "at", "", "ask about the instant `WHEN`, a local time of the task's zone or RFC 3339 (default now)")
	return cmd
}

type whyResult struct {
	task        task
	atMs        int64
	explanation why.Explanation
}

func (c *call) why(ctx context.Context, a whyArgs) (whyResult, error) {
	var r whyResult
	s, err := c.open(ctx, OpenOptions{ReadOnly: true})
	if err != nil {
		return r, err
	}
	defer s.Close()
	q := why.Question{NowMs: c.nowMs(), Daemon: c.daemonRuns(), Clock: c.clock()}
	if r.task, q.InstanceID, err = subject(ctx, s, a); err != nil {
		return r, err
	}
	q.Object, q.Zone = r.task.Object, r.task.Zone
	if c.zone != nil {
		q.Zone = c.zone
	}
	if a.at != "" {
		if q.AtMs, err = parseInstant("at", a.at, r.task.Zone, c.env.Now()); err != nil {
			return r, err
		}
		q.AtMs = max(q.AtMs, 1) // 0 is now, and no store is that old
	}
	facts, err := why.Gather(ctx, s, q)
	if err != nil {
		return r, err
	}
	r.atMs, r.explanation = facts.AtMs, why.Explain(facts)
	return r, nil
}

// subject finds the task that is asked about, and the instance where an id is.
func subject(ctx context.Context, q ax.Queries, a whyArgs) (task, int64, error) {
	id, err := strconv.ParseInt(a.address, 10, 64)
	if err != nil || id < 1 {
		t, err := resolve(ctx, q, a.address, true)
		return t, 0, err
	}
	if a.at != "" {
		return task{}, 0, ax.Diagnostic{
			Severity: ax.SeverityError, Summary: "-at does not go with an instance's id",
			Detail: fmt.Sprintf("Instance %d is one firing; -at asks about a task.", id),
		}
	}
	l, err := life(ctx, q, id)
	if err != nil {
		return task{}, 0, err
	}
	t, err := taskOf(ctx, q, l)
	return t, id, err
}

func (r whyResult) human(s *screen) {
	x := r.explanation
	s.line("%s", s.paint(bold, clean(x.Answer.Text)))
	if x.Answer.Remedy != "" {
		s.line("-> %s", clean(x.Answer.Remedy))
	}
	s.line("")
	for _, check := range x.Checks {
		colour := map[why.Outcome]style{why.Yes: green, why.No: red, why.Unknown: yellow}[check.Outcome]
		s.line("%s  %s  %s", s.paint(colour, fmt.Sprintf("%-7s", check.Outcome)), check.Question, clean(check.Evidence))
	}
}

func (r whyResult) json() document {
	x := r.explanation
	checks := []document{}
	for _, check := range x.Checks {
		checks = append(checks, document{"question": check.Question, "outcome": check.Outcome, "evidence": check.Evidence})
	}
	return document{
		"address": r.task.Address(), "at": stamp(r.atMs, r.task.Zone), "at_ms": stampMs(r.atMs),
		"answer": document{"code": x.Answer.Code, "text": x.Answer.Text, "remedy": orNil(x.Answer.Remedy)}, "checks": checks,
	}
}
