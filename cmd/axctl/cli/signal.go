package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/axctl/ax"
)

// answerWithin is how long signal waits for the attempt's answer; after it,
// instance tells.
const answerWithin = 5 * time.Second

func signalCommand(c *call) *cobra.Command {
	return &cobra.Command{
		Use:   "signal ID pause|resume",
		Short: "Let a running attempt stand still, and go on",
		Long: "Lets the running attempt of an instance stand still, and go on. A shell task's process group is stopped\n" +
			"(SIGSTOP) and continued; other handlers must be made for it. What is paused holds its place; its timeout\n" +
			"and its heartbeat stand still. To keep a task from starting, see axctl pause.",
		Args: argumentCount(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseID("instance", args[0])
			if err != nil {
				return err
			}
			signal, err := oneOf("signal", args[1], []ax.Signal{ax.SignalPause, ax.SignalResume})
			if err != nil {
				return err
			}
			result, err := c.signal(cmd.Context(), id, signal)
			if err != nil {
				return err
			}
			return c.print(result)
		},
	}
}

type signalResult struct {
	id     int64
	state  ax.SignalState
	asleep bool // no axd is running
}

func (c *call) signal(ctx context.Context, id int64, signal ax.Signal) (signalResult, error) {
	r := signalResult{id: id, state: ax.SignalState{Signal: signal}, asleep: !c.daemonRuns()}
	s, err := c.open(ctx, OpenOptions{})
	if err != nil {
		return r, err
	}
	defer s.Close()
	err = s.Signal(ctx, ax.SignalRequest{InstanceID: id, Signal: signal, NowMs: c.nowMs(), Who: c.env.User})
	switch {
	case errors.Is(err, ax.ErrNotFound):
		return r, noInstance(id)
	case errors.Is(err, ax.ErrConflict):
		return r, c.cannotSignal(ctx, s, id, signal)
	case err != nil:
		return r, fmt.Errorf("signal instance %d: %w", id, err)
	}
	if r.asleep {
		return r, nil
	}
	if r.state, err = answer(ctx, s, id); err != nil {
		return r, afterwards(ctx, err, fmt.Sprintf("instance %d is asked to %s", id, signal), fmt.Sprintf("axctl instance %d tells what becomes of it.", id))
	}
	if r.state.Refused != "" {
		return r, ax.Diagnostic{
			Severity: ax.SeverityError,
			Summary:  fmt.Sprintf("Instance %d refuses to %s: %s", id, signal, firstLine(r.state.Refused)),
			Detail:   "It goes on as before.",
		}
	}
	return r, nil
}

// answer waits for what the attempt answers, and returns how it stands then or
// after answerWithin.
func answer(ctx context.Context, q ax.Queries, id int64) (ax.SignalState, error) {
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	late := time.After(answerWithin)
	for {
		l, err := life(ctx, q, id)
		switch {
		case err != nil:
			return ax.SignalState{}, err
		case l.Signal == nil || l.Status != ax.StatusDispatched:
			return ax.SignalState{}, ax.Diagnostic{
				Severity: ax.SeverityError, Summary: fmt.Sprintf("Instance %d has ended meanwhile: %s", id, statusWord(l.Instance)),
			}
		case l.Signal.Settled():
			return *l.Signal, nil
		}
		select {
		case <-poll.C:
		case <-late:
			return *l.Signal, nil
		case <-ctx.Done():
			return *l.Signal, context.Cause(ctx)
		}
	}
}

// cannotSignal tells why an instance cannot be signalled.
func (c *call) cannotSignal(ctx context.Context, s Store, id int64, signal ax.Signal) error {
	l, err := life(ctx, s, id)
	if err != nil {
		return err
	}
	d := ax.Diagnostic{Severity: ax.SeverityError, Detail: "Nothing was changed."}
	switch {
	case l.Status.Final():
		d.Summary = fmt.Sprintf("Instance %d has ended already: %s", id, statusWord(l.Instance))
	case l.Status != ax.StatusDispatched:
		d.Summary = fmt.Sprintf("Instance %d does not run: %s", id, statusWord(l.Instance))
		d.Detail = "Nothing was changed. axctl pause keeps its task from starting."
	case l.CancelBy != "":
		d.Summary = fmt.Sprintf("Instance %d is to be cancelled: %s", id, ax.CancelDetail(l.CancelBy))
	default:
		d.Summary = fmt.Sprintf("Instance %d is not paused", id)
	}
	return d
}

func (r signalResult) human(s *screen) {
	switch {
	case r.asleep:
		s.line("Instance %d is asked to %s. No axd is running on this store; the next one passes it on.", r.id, r.state.Signal)
	case !r.state.Settled():
		s.line("Instance %d is asked to %s and has not answered yet; axctl instance %d tells.", r.id, r.state.Signal, r.id)
	case r.state.Signal == ax.SignalPause:
		s.line("Instance %d is paused. It holds its place; axctl signal %d resume lets it go on.", r.id, r.id)
	default:
		s.line("Instance %d goes on.", r.id)
	}
}

func (r signalResult) json() document {
	return document{
		"id": r.id, "signal": r.state.Signal, "answered": r.state.Settled(), "paused": r.state.PausedMs != 0,
	}
}
