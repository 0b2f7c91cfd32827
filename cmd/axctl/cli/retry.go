package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/axctl/ax"
)

type retryArgs struct {
	id          int64
	asWas       bool
	withCurrent bool
	wait        bool
}

func retryCommand(c *call) *cobra.Command {
	var a retryArgs
	cmd := &cobra.Command{
		Use:   "retry ID",
		Short: "Do an ended instance's work again, as a new instance",
		Long: "retry makes a new instance for the same due instant, with all attempts of its task's\n" +
			"retry block before it; the ended one stays as it is. It starts as soon as the task's\n" +
			"concurrency allows, also when the task is disabled or paused.",
		Example: "  axctl retry 42 -wait",
		Args:    argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if a.id, err = parseID("instance", args[0]); err != nil {
				return err
			}
			return c.retry(cmd.Context(), a)
		},
	}
	cmd.Flags().BoolVar(&a.asWas, "as-was", false, "by the version that the ended one had (the default)")
	cmd.Flags().BoolVar(&a.withCurrent, "with-current", false, "by the task's current version")
	cmd.Flags().BoolVar(&a.wait, "wait", false, "wait for its end: 0 when it succeeds, else 8")
	return cmd
}

func (c *call) retry(ctx context.Context, a retryArgs) error {
	if a.asWas && a.withCurrent {
		return ax.Diagnostic{Severity: ax.SeverityError, Summary: "-as-was and -with-current do not go together", Detail: "Each names the version to run."}
	}
	s, err := c.open(ctx, OpenOptions{})
	if err != nil {
		return err
	}
	defer s.Close()
	old, err := life(ctx, s, a.id)
	if err != nil {
		return err
	}
	t, err := taskOf(ctx, s, old)
	if err != nil {
		return err
	}
	ref, err := s.Retry(ctx, ax.Retry{InstanceID: a.id, WithCurrent: a.withCurrent, NowMs: c.nowMs(), Who: c.env.User})
	switch {
	case errors.Is(err, ax.ErrNotFound):
		return ax.Diagnostic{
			Severity: ax.SeverityError,
			Summary:  fmt.Sprintf("%s of instance %d is deleted", old.Task, a.id),
			Detail:   "Nothing was changed. Declare it again and apply; then it can be retried.",
		}
	case errors.Is(err, ax.ErrConflict):
		return notEnded(old, fmt.Sprintf("It retries by itself as its retry block says; axctl cancel %d ends it.", a.id))
	case err != nil:
		return fmt.Errorf("retry instance %d: %w", a.id, err)
	}
	version := old.Version
	if a.withCurrent {
		version = t.Version
	}
	return c.started(ctx, s, triggerResult{task: t, version: version, ref: ref, asleep: !c.daemonRuns()}, a.wait)
}

// notEnded refuses what only ended instances can have.
func notEnded(l ax.Life, remedy string) error {
	return ax.Diagnostic{
		Severity: ax.SeverityError,
		Summary:  fmt.Sprintf("Instance %d has not ended: %s", l.ID, statusWord(l.Instance)),
		Detail:   "Nothing was changed. " + remedy,
	}
}

// taskOf returns the task of an instance, deleted or not.
func taskOf(ctx context.Context, q ax.Queries, l ax.Life) (task, error) {
	objects, err := q.Objects(ctx, ax.ObjectFilter{IDs: []int64{l.TaskID}})
	switch {
	case len(objects) == 1:
		return newTask(objects[0]), nil
	case err == nil:
		err = fmt.Errorf("task of instance %d: %w", l.ID, ax.ErrNotFound)
	}
	return task{}, err
}
