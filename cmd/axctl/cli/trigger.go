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
	key     *string // nil: none
	wait    bool
}

func triggerCommand(c *call) *cobra.Command {
	var a triggerArgs
	var key string
	cmd := &cobra.Command{
		Use:               "trigger ADDRESS",
		ValidArgsFunction: c.completeAddress,
		Short:             "Start one instance now, whatever the schedule says",
		Long: "trigger makes one instance of a task, also of one that is disabled or paused. axd\n" +
			"starts it as soon as the task's concurrency allows. With -wait it ends with 0 when\n" +
			"the instance succeeds and with 8 when it ends otherwise. With -key it can be called\n" +
			"again without harm: for 30 days the same key gives back the instance it made first.",
		Args: argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.address = args[0]
			if cmd.Flags().Changed("key") {
				a.key = &key
			}
			return c.trigger(cmd.Context(), a)
		},
	}
	cmd.Flags().StringVar(&a.due, "due", "", "the nominal instant `WHEN` that it is for (default now)")
	cmd.Flags().StringVar(&key, "key", "", "`NAME` for this start, so that it is made once")
	cmd.Flags().BoolVar(&a.wait, "wait", false, "wait for its end")
	return cmd
}

func (c *call) trigger(ctx context.Context, a triggerArgs) error {
	key, err := a.checkKey()
	if err != nil {
		return err
	}
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
	uid := uuid.NewString()
	ref, err := s.Trigger(ctx, ax.Trigger{ObjectID: t.ID, UID: uid, DueMs: due, NowMs: now, Who: c.env.User, Key: key})
	if err != nil {
		return fmt.Errorf("trigger %s: %w", t.Address(), err)
	}
	r := triggerResult{task: t, version: t.Version, ref: ref, asleep: !c.daemonRuns()}
	if ref.SlotKey != ax.ManualSlotKey(uid) {
		if r.first, err = known(ctx, s, ref, key); err != nil {
			return err
		}
		a.wait = a.wait && !r.first.gone
	}
	return c.started(ctx, s, r, a.wait)
}

// checkKey returns the key of the start, "" for none.
func (a triggerArgs) checkKey() (string, error) {
	switch {
	case a.key == nil:
		return "", nil
	case *a.key == "" || len(*a.key) > ax.MaxTriggerKeyBytes || *a.key != ax.CleanText(*a.key, ax.MaxTriggerKeyBytes):
		return "", ax.Diagnostic{
			Severity: ax.SeverityError,
			Summary:  fmt.Sprintf("-key is no text of 1 to %d bytes", ax.MaxTriggerKeyBytes),
			Detail:   "Nothing was changed. A key names what is started, as in -key=load-2026-11-30.",
		}
	}
	return *a.key, nil
}

// firstStart is the instance that a key made before.
type firstStart struct {
	key      string
	instance ax.Instance
	gone     bool // retention deleted it
}

func known(ctx context.Context, q ax.Queries, ref ax.Ref, key string) (*firstStart, error) {
	l, err := q.Instance(ctx, ref.ID)
	if errors.Is(err, ax.ErrNotFound) {
		return &firstStart{key: key, gone: true}, nil
	}
	return &firstStart{key: key, instance: l.Instance}, err
}

// started tells what a person started, and waits for its end if that is asked
// for.
func (c *call) started(ctx context.Context, s Store, r triggerResult, wait bool) error {
	if !wait {
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
		if err != nil {
			return afterwards(ctx, err, fmt.Sprintf("instance %d goes on", r.ref.ID), fmt.Sprintf("axctl instance %d tells what becomes of it.", r.ref.ID))
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
	task    task
	version int
	ref     ax.Ref
	first   *firstStart // its key was known: nothing was made
	asleep  bool        // no axd is running
	end     *ax.Life    // with -wait, when it has ended
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
	if r.first != nil {
		state := statusWord(r.first.instance)
		if r.first.gone {
			state = "deleted meanwhile, since it was old"
		}
		s.line("Instance %d of %s is what the key %s started before: %s. Nothing was started now.", r.ref.ID, clean(r.task.Address()), clean(r.first.key), state)
		return
	}
	what := ""
	if of := r.ref.RetryOf(); of != 0 {
		what = fmt.Sprintf(", a retry of instance %d", of)
	}
	s.line("Instance %d of %s v%d is to start, due %s%s.", r.ref.ID, clean(r.task.Address()), r.version, s.at(r.ref.DueMs, r.task.Zone), what)
	if h := r.task.Row.Hold; h != nil {
		s.line("The task is %s; this starts all the same.", s.hold(*h, r.task.Zone))
	}
	if !r.task.Row.Enabled {
		s.line("The task is disabled; this starts all the same.")
	}
	if r.asleep {
		s.line("No axd is running on this store; it starts when one does.")
	}
}

func (r triggerResult) json() document {
	doc := document{
		"id": r.ref.ID, "task": r.task.Address(), "version": r.version, "due": stamp(r.ref.DueMs, r.task.Zone), "due_ms": r.ref.DueMs,
		"status": ax.StatusPending, "retry_of": idOrNil(r.ref.RetryOf()), "made": r.first == nil,
	}
	if r.first != nil {
		doc["status"], doc["version"] = orNil(r.first.instance.Status), nil
		if !r.first.gone {
			doc["version"] = r.first.instance.Version
		}
	}
	if r.end != nil {
		doc["status"], doc["reason"], doc["error"] = r.end.Status, orNil(r.end.Reason), orNil(r.end.Error)
	}
	return doc
}
