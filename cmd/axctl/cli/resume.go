package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

func resumeCommand(c *call) *cobra.Command {
	return endHoldCommand(c, ax.HoldPaused, &cobra.Command{
		Use:   "resume ADDRESS",
		Short: "End a pause: the task fires again",
	})
}

// endHoldCommand completes a command that ends holds of one kind.
func endHoldCommand(c *call, kind ax.HoldKind, cmd *cobra.Command) *cobra.Command {
	cmd.ValidArgsFunction, cmd.Args = c.completeAddress, argumentCount(1, 1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		result, err := c.resume(cmd.Context(), args[0], kind)
		if err != nil {
			return err
		}
		return c.print(result)
	}
	return cmd
}

// maxTries bounds how often a change is computed again because a claim or time
// itself overtook it.
const maxTries = 10

func (c *call) resume(ctx context.Context, address string, kind ax.HoldKind) (resumeResult, error) {
	s, err := c.open(ctx, OpenOptions{})
	if err != nil {
		return resumeResult{}, err
	}
	defer s.Close()
	for range maxTries {
		r, err := c.resumeOnce(ctx, s, address, kind)
		if !errors.Is(err, ax.ErrMoved) {
			return r, err
		}
	}
	return resumeResult{}, ax.WithHint(fmt.Errorf("resume %s: %w %d times", address, ax.ErrMoved, maxTries), "Nothing was changed; try again.")
}

func (c *call) resumeOnce(ctx context.Context, s Store, address string, kind ax.HoldKind) (resumeResult, error) {
	t, err := resolve(ctx, s, address, false)
	if err != nil {
		return resumeResult{}, err
	}
	if h := t.Row.Hold; h == nil || h.Kind != kind {
		return resumeResult{}, notHeld(t, kind)
	}
	timetable, err := t.timetable()
	if err != nil {
		return resumeResult{}, err
	}
	now := c.nowMs()
	move := rules.Resume(timetable, t.Spec.Misfire, t.Version, t.ID, t.Row, timetable.Fingerprint(), ax.ReasonHeld, now)
	err = s.Resume(ctx, t.ID, move, now)
	if err != nil {
		return resumeResult{}, fmt.Errorf("resume %s: %w", t.Address(), err)
	}
	return resumeResult{task: t, move: move}, nil
}

// notHeld refuses to end a hold that is not there. A person who ends a pause must
// not end a freezing by the way.
func notHeld(t task, kind ax.HoldKind) ax.Diagnostic {
	d := ax.Diagnostic{Severity: ax.SeverityError, Summary: fmt.Sprintf("%s is not %s", t.Address(), kind), Detail: "Nothing was changed."}
	if t.Row.Hold == nil {
		return d
	}
	other := "resume"
	if t.Row.Hold.Kind == ax.HoldFrozen {
		other = "unfreeze"
	}
	d.Detail = fmt.Sprintf("It is %s; axctl %s ends that. Nothing was changed.", t.Row.Hold.Kind, other)
	return d
}

type resumeResult struct {
	task task
	move ax.Timetable
}

func (r resumeResult) human(s *screen) {
	t := r.task
	switch {
	case !t.Row.Enabled:
		s.line("%s is no longer %s, but it is disabled: it does not fire.", clean(t.Address()), t.Row.Hold.Kind)
	case r.move.NextMs == 0:
		s.line("%s is no longer %s. No firing is left.", clean(t.Address()), t.Row.Hold.Kind)
	default:
		s.line("%s is no longer %s. It fires next %s.", clean(t.Address()), t.Row.Hold.Kind, s.at(r.move.NextMs, t.Zone))
	}
	if n := len(r.move.Starts); n > 0 {
		hold := "pause"
		if t.Row.Hold.Kind == ax.HoldFrozen {
			hold = "freezing"
		}
		s.line("%s of the %s to be run now (misfire.on_resume = %q).", plural(n, "slot"), hold, t.Spec.Misfire.OnResume)
	}
	for _, skipped := range r.move.Skipped {
		s.line("%s from %s to %s not run.", slotCount(skipped.Slots), s.at(skipped.FromMs, t.Zone), s.at(skipped.ToMs, t.Zone))
	}
}

// slotCount writes how many slots a stretch has.
func slotCount(n int) string {
	if n < 0 {
		return fmt.Sprintf("more than %d slots", ax.MaxCountedSlots)
	}
	return plural(n, "slot")
}

func (r resumeResult) json() document {
	return document{
		"address": r.task.Address(), "starts": len(r.move.Starts), "skipped": len(r.move.Skipped),
		"next_fire": stamp(r.move.NextMs, r.task.Zone), "next_fire_ms": stampMs(r.move.NextMs),
	}
}
