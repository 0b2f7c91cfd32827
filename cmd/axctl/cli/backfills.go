package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/axctl/ax"
)

func backfillsCommand(c *call) *cobra.Command {
	address, limit := "", 100
	cmd := &cobra.Command{
		Use:               "backfills [ADDRESS]",
		ValidArgsFunction: c.completeAddress,
		Short:             "List backfills with their progress, newest first",
		Args:              argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				address = args[0]
			}
			result, err := c.backfills(cmd.Context(), address, limit)
			if err != nil {
				return err
			}
			return c.print(result)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "at most `N`, up to 100000")
	return cmd
}

type backfillsResult struct {
	all    []ax.Backfill
	tasks  map[int64]task
	more   bool
	asleep bool
}

func (c *call) backfills(ctx context.Context, address string, limit int) (backfillsResult, error) {
	r := backfillsResult{tasks: map[int64]task{}, asleep: !c.daemonRuns()}
	if limit < 1 || limit > 100_000 {
		return r, ax.Diagnostic{Severity: ax.SeverityError, Summary: fmt.Sprintf("-limit=%d is not from 1 to 100000", limit)}
	}
	s, err := c.open(ctx, OpenOptions{ReadOnly: true})
	if err != nil {
		return r, err
	}
	defer s.Close()
	f := ax.BackfillFilter{Limit: limit + 1}
	var of []task
	if address != "" {
		t, err := resolve(ctx, s, address, true)
		if err != nil {
			return r, err
		}
		f.TaskID, of = t.ID, []task{t}
	} else if of, err = tasks(ctx, s, true); err != nil {
		return r, err
	}
	for _, t := range of {
		r.tasks[t.ID] = t
	}
	if r.all, err = s.Backfills(ctx, f); err != nil {
		return r, err
	}
	if len(r.all) > limit {
		r.all, r.more = r.all[:limit], true
	}
	return r, nil
}

func (r backfillsResult) human(s *screen) {
	if len(r.all) == 0 {
		s.line("No backfills.")
		return
	}
	var rows [][]string
	open := false
	for _, b := range r.all {
		t := r.tasks[b.TaskID]
		rows = append(rows, []string{
			fmt.Sprint(b.ID), clean(t.Address()), fmt.Sprintf("v%d", b.Version), modeFlags[b.Mode], s.at(b.FromMs, t.Zone), s.at(b.ToMs-1, t.Zone),
			s.backfillState(b, t.Zone), decided(b), fmt.Sprint(b.Made), fmt.Sprint(b.Parallel), clean(b.Who) + " " + s.at(b.AtMs, t.Zone),
		})
		open = open || b.State == ax.BackfillRunning
	}
	s.table([]string{"ID", "TASK", "VERSION", "MODE", "FROM", "TO", "STATE", "DECIDED", "MADE", "PARALLEL", "BY"}, rows)
	if r.more {
		s.line("There are more; -limit=N shows them.")
	}
	if open && r.asleep {
		s.line("No axd is running on this store; backfills go on when one does.")
	}
	s.line("axctl instances ADDRESS -kind backfill lists what they made.")
}

// decided tells on how many slots a backfill has decided.
func decided(b ax.Backfill) string {
	n := b.Made + b.Passed
	if b.Slots < 0 {
		return fmt.Sprintf("%d slots", n)
	}
	return fmt.Sprintf("%d of %d", n, b.Slots)
}

// backfillState tells how far a backfill is, and who took it there.
func (s *screen) backfillState(b ax.Backfill, zone *time.Location) string {
	switch {
	case b.State == ax.BackfillRunning && b.PositionMs == b.ToMs:
		return "running, all made"
	case b.State == ax.BackfillRunning:
		return "running"
	case b.Reason == ax.ReasonDeleted:
		return "cancelled (deleted) by " + clean(b.By)
	case b.State == ax.BackfillDone:
		return "done " + s.at(b.EndedMs, zone)
	default:
		return fmt.Sprintf("%s by %s", b.State, clean(b.By))
	}
}

func (r backfillsResult) json() document {
	list := make([]document, 0, len(r.all))
	for _, b := range r.all {
		t := r.tasks[b.TaskID]
		list = append(list, backfillJSON(b, t.Address(), t.Zone))
	}
	return document{"backfills": list}
}

// backfillJSON is a backfill as scripts see it; to is the last instant in its
// range, as on the command line.
func backfillJSON(b ax.Backfill, address string, zone *time.Location) document {
	doc := document{
		"id": b.ID, "task": address, "version": b.Version, "mode": b.Mode, "parallel": b.Parallel, "slots": counted(int(b.Slots)),
		"state": b.State, "reason": orNil(b.Reason), "made": b.Made, "passed": b.Passed, "who": b.Who, "by": orNil(b.By),
	}
	for key, ms := range map[string]int64{
		"from": b.FromMs, "to": b.ToMs - 1, "position": b.PositionMs, "asked": b.AtMs, "by_at": b.ByMs, "ended": b.EndedMs,
	} {
		doc[key], doc[key+"_ms"] = stamp(ms, zone), stampMs(ms)
	}
	return doc
}

func moveBackfillCommand(c *call, word string, to ax.BackfillState, short string) *cobra.Command {
	return &cobra.Command{
		Use:   word + " ID",
		Short: short,
		Args:  argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseID("backfill", args[0])
			if err != nil {
				return err
			}
			result, err := c.moveBackfill(cmd.Context(), id, to)
			if err != nil {
				return err
			}
			return c.print(result)
		},
	}
}

type moveResult struct {
	backfill ax.Backfill
	task     task
	asleep   bool
}

func (c *call) moveBackfill(ctx context.Context, id int64, to ax.BackfillState) (moveResult, error) {
	r := moveResult{asleep: !c.daemonRuns()}
	s, err := c.open(ctx, OpenOptions{})
	if err != nil {
		return r, err
	}
	defer s.Close()
	all, err := unread(ctx, s, ax.ObjectFilter{Kind: ax.KindTask}) // before the move: what fails here has changed nothing
	if err != nil {
		return r, err
	}
	r.backfill, err = s.MoveBackfill(ctx, ax.BackfillMove{ID: id, To: to, Who: c.env.User, NowMs: c.nowMs()})
	switch {
	case errors.Is(err, ax.ErrNotFound):
		return r, ax.Diagnostic{Severity: ax.SeverityError, Summary: fmt.Sprintf("No backfill %d in the store", id), Detail: "axctl backfills lists them."}
	case errors.Is(err, ax.ErrConflict):
		word := "is"
		if r.backfill.State.Final() {
			word = "has ended:"
		}
		return r, ax.Diagnostic{
			Severity: ax.SeverityError, Summary: fmt.Sprintf("Backfill %d %s %s", id, word, r.backfill.State), Detail: "Nothing was changed.",
		}
	case err != nil:
		return r, fmt.Errorf("backfill %d: %w", id, err)
	}
	for _, t := range all {
		if t.ID == r.backfill.TaskID {
			r.task = newTask(t.Object)
		}
	}
	return r, nil
}

func (r moveResult) human(s *screen) {
	b := r.backfill
	name := fmt.Sprintf("Backfill %d of %s", b.ID, clean(r.task.Address()))
	switch b.State {
	case ax.BackfillPaused:
		s.line("%s is paused, with %s decided. What it has made goes on; axctl backfill resume %d goes on with it.", name, decided(b), b.ID)
	case ax.BackfillCancelled:
		s.line("%s is cancelled, with %s decided. Its waiting instances are cancelled; those that run go on.", name, decided(b))
	default:
		s.line("%s goes on, with %s decided.", name, decided(b))
		if r.asleep {
			s.line("No axd is running on this store; it goes on when one does.")
		}
	}
}

func (r moveResult) json() document {
	return document{"backfill": backfillJSON(r.backfill, r.task.Address(), r.task.Zone)}
}
