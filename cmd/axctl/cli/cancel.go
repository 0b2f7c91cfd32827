package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/axctl/ax"
)

func cancelCommand(c *call) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel ID",
		Short: "End an instance that waits or runs",
		Args:  argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseID("instance", args[0])
			if err != nil {
				return err
			}
			result, err := c.cancel(cmd.Context(), id)
			if err != nil {
				return err
			}
			return c.print(result)
		},
	}
}

type cancelResult struct {
	id     int64
	status ax.Status
	asleep bool // no axd is running
}

func (c *call) cancel(ctx context.Context, id int64) (cancelResult, error) {
	s, err := c.open(ctx, OpenOptions{})
	if err != nil {
		return cancelResult{}, err
	}
	defer s.Close()
	status, err := s.Cancel(ctx, id, c.env.User, c.nowMs())
	switch {
	case errors.Is(err, ax.ErrNotFound):
		return cancelResult{}, noInstance(id)
	case errors.Is(err, ax.ErrConflict):
		l, err := life(ctx, s, id)
		if err != nil {
			return cancelResult{}, err
		}
		return cancelResult{}, ax.Diagnostic{
			Severity: ax.SeverityError,
			Summary:  fmt.Sprintf("Instance %d has ended already: %s", id, statusWord(l.Instance)),
			Detail:   "Nothing was changed.",
		}
	case err != nil:
		return cancelResult{}, fmt.Errorf("cancel instance %d: %w", id, err)
	}
	return cancelResult{id: id, status: status, asleep: !c.daemonRuns()}, nil
}

func (r cancelResult) human(s *screen) {
	if r.status.Final() {
		s.line("Instance %d is %s; it had not started.", r.id, r.status)
		return
	}
	if r.asleep {
		s.line("Instance %d is to stop. No axd is running on this store; the next one ends it.", r.id)
		return
	}
	s.line("Instance %d is asked to stop: TERM now, KILL after its kill_after.", r.id)
}

func (r cancelResult) json() document {
	return document{"id": r.id, "status": r.status}
}
