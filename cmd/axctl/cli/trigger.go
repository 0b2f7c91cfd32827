package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/axctl/ax"
)

type triggerArgs struct {
	address string
	due     string
	wait    bool
}

func triggerCommand(c *call) *cobra.Command {
	var a triggerArgs
	cmd := &cobra.Command{
		Use:               "trigger ADDRESS",
		ValidArgsFunction: c.completeAddress,
		Short:             "Start one instance now, whatever the schedule says",
		Long: "trigger makes one instance of a task, also of one that is disabled or paused. axd\n" +
			"starts it as soon as the task's concurrency allows. With -wait it ends with 0 when\n" +
			"the instance succeeds and with 8 when it ends otherwise.",
		Args: argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.address = args[0]
			return c.trigger(cmd.Context(), a)
		},
	}
	cmd.Flags().StringVar(&a.due, "due", "", "the nominal instant `WHEN` that it is for (default now)")
	cmd.Flags().BoolVar(&a.wait, "wait", false, "wait for its end")
	return cmd
}

func (c *call) trigger(ctx context.Context, a triggerArgs) error {
	s, err := c.open(ctx, OpenOptions{})
	if err != nil {
		return err
	}
	defer s.Close()
	t, err := resolve(ctx, s, a.address, false)
	if err != nil {
		return err
	}
	now := c.nowMs()
	due := now
	if a.due != "" {
		if due, err = parseInstant("due", a.due, t.Zone, c.env.Now()); err != nil {
			return err
		}
	}
	ref, err := s.Trigger(ctx, ax.Trigger{ObjectID: t.ID, UID: uuid.NewString(), DueMs: due, NowMs: now, Who: c.env.User})
	if err != nil {
		return fmt.Errorf("trigger %s: %w", t.Address(), err)
	}
	r := triggerResult{task: t, ref: ref, asleep: !c.daemonRuns()}
	if !a.wait {
		return c.print(r)
	}
	if !c.globals.json {
		if err := c.print(r); err != nil {
			return err
		}
	}
	return c.await(ctx, s, r)
}

// await waits for the end of the instance that trigger made.
func (c *call) await(ctx context.Context, s Store, r triggerResult) error {
	for {
		l, err := life(ctx, s, r.ref.ID)
		if err == nil && !l.Status.Final() {
			err = pause(ctx, pollInterval)
		}
		if i := (*Interrupt)(nil); errors.As(context.Cause(ctx), &i) {
			return withCode(i.Code, ax.WithHint(fmt.Errorf("interrupted (%s); instance %d goes on", i.Signal, r.ref.ID),
				"axctl instance %d tells what becomes of it.", r.ref.ID))
		}
		if err != nil {
			return err
		}
		if !l.Status.Final() {
			continue
		}
		r.end = &l
		if err := c.print(r); err != nil {
			return err
		}
		if l.Status != ax.StatusSuccess {
			return exit(ExitNotSuccess)
		}
		return nil
	}
}

type triggerResult struct {
	task   task
	ref    ax.Ref
	asleep bool     // no axd is running
	end    *ax.Life // with -wait, when it has ended
}

func (r triggerResult) human(s *screen) {
	if r.end != nil {
		line := fmt.Sprintf("Instance %d ended: %s.", r.ref.ID, statusWord(r.end.Instance))
		if r.end.Error != "" {
			first, _, _ := strings.Cut(r.end.Error, "\n")
			line += " " + clean(first)
		}
		s.line("%s", line)
		return
	}
	s.line("Instance %d of %s v%d is to start, due %s.", r.ref.ID, clean(r.task.Address()), r.task.Version, s.at(r.ref.DueMs, r.task.Zone))
	if r.asleep {
		s.line("No axd is running on this store; it starts when one does.")
	}
}

func (r triggerResult) json() document {
	doc := document{"id": r.ref.ID, "task": r.task.Address(), "due": stamp(r.ref.DueMs, r.task.Zone), "due_ms": r.ref.DueMs, "status": ax.StatusPending}
	if r.end != nil {
		doc["status"], doc["reason"], doc["error"] = r.end.Status, orNil(r.end.Reason), orNil(r.end.Error)
	}
	return doc
}
