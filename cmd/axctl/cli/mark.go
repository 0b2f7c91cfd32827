package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/axctl/ax"
)

type markArgs struct {
	id      int64
	verdict string
	reason  string
}

func markCommand(c *call) *cobra.Command {
	var a markArgs
	cmd := &cobra.Command{
		Use:   "mark ID success|skipped -reason=TEXT",
		Short: "Give a verdict on an ended instance, beside its status",
		Long: "mark says what an ended instance is to count as. Its status stays what it was; the\n" +
			"verdict is shown beside it, and its life tells who gave it, when and why. Another\n" +
			"mark takes the place of the last.",
		Example: "  axctl mark 42 success -reason='loaded by hand'",
		Args:    argumentCount(2, 2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if a.id, err = parseID("instance", args[0]); err != nil {
				return err
			}
			a.verdict = args[1]
			result, err := c.mark(cmd.Context(), a)
			if err != nil {
				return err
			}
			return c.print(result)
		},
	}
	cmd.Flags().StringVar(&a.reason, "reason", "", "`TEXT` that says why, for whoever sees it later (needed)")
	return cmd
}

type markResult struct {
	mark   ax.Mark
	status ax.Status
	before ax.Verdict
}

func (c *call) mark(ctx context.Context, a markArgs) (markResult, error) {
	verdict, err := oneOf("verdict", a.verdict, ax.Verdicts)
	if err != nil {
		return markResult{}, err
	}
	if a.reason == "" {
		return markResult{}, ax.Diagnostic{
			Severity: ax.SeverityError, Summary: "-reason is missing",
			Detail: "Say why, for whoever finds the verdict: -reason=\"loaded by hand\".",
		}
	}
	s, err := c.open(ctx, OpenOptions{})
	if err != nil {
		return markResult{}, err
	}
	defer s.Close()
	l, err := life(ctx, s, a.id)
	if err != nil {
		return markResult{}, err
	}
	m := ax.Mark{InstanceID: a.id, Verdict: verdict, Reason: a.reason, NowMs: c.nowMs(), Who: c.env.User}
	err = s.Mark(ctx, m)
	switch {
	case errors.Is(err, ax.ErrConflict):
		return markResult{}, notEnded(l, fmt.Sprintf("axctl cancel %d ends it.", a.id))
	case err != nil:
		return markResult{}, fmt.Errorf("mark instance %d: %w", a.id, err)
	}
	return markResult{mark: m, status: l.Status, before: l.Verdict}, nil
}

func (r markResult) human(s *screen) {
	line := fmt.Sprintf("Instance %d, %s, is marked %s.", r.mark.InstanceID, r.status, r.mark.Verdict)
	if r.before != ax.VerdictNone {
		line += fmt.Sprintf(" That takes the place of the verdict %s.", r.before)
	}
	s.line("%s", line)
}

func (r markResult) json() document {
	return document{"id": r.mark.InstanceID, "status": r.status, "verdict": r.mark.Verdict, "reason": r.mark.Reason}
}
