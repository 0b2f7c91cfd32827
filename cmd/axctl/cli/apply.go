package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/axctl/ax"
	"github.com/axctl/ax/planner"
)

type applyArgs struct {
	planArgs
	autoApprove bool
	message     string
}

func (a *applyArgs) registerApply(cmd *cobra.Command) {
	a.register(cmd.Flags())
	a.registerStrict(cmd.Flags())
	cmd.Flags().BoolVar(&a.autoApprove, "auto-approve", false, "do not ask")
	cmd.Flags().StringVar(&a.message, "message", "", "`TEXT` that says why, for the history")
}

func applyCommand(c *call) *cobra.Command {
	a := applyArgs{planArgs: planArgs{next: planner.DefaultNext}}
	cmd := &cobra.Command{
		Use:   "apply [PATH|PLANFILE]",
		Short: "Make the store as the configuration says, in one transaction",
		Long: "apply shows the plan, asks, and writes all of it in one transaction, or nothing. It\n" +
			"makes the store if there is none. A saved plan is applied as it was reviewed, without\n" +
			"asking again, and refused with 5 when something that it read has changed since.",
		Args: argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				a.path = args[0]
			}
			return c.apply(cmd.Context(), a)
		},
	}
	a.registerApply(cmd)
	return cmd
}

func (c *call) apply(ctx context.Context, a applyArgs) error {
	d, err := c.applyDraft(ctx, a)
	if err != nil {
		return err
	}
	defer d.close()
	c.warn(d.warnings)
	r := applyResult{planResult: planResult{plan: d.plan, warnings: d.warnings, store: c.storeName(), known: d.known}, destroy: a.destroy}
	if d.plan.Empty() {
		return c.print(r)
	}
	if !c.globals.json {
		if d.store == nil {
			r.notes = append(r.notes, fmt.Sprintf("The store %s will be made.", c.storeName()))
		}
		if err := c.print(r.planResult); err != nil {
			return err
		}
	}
	rev := c.revision(ctx, d.plan.Origin, a.message)
	if !d.reviewed {
		if err := c.confirm(ctx, a, d.plan); err != nil {
			return err
		}
	}
	if err := c.commit(ctx, d, rev, &r); err != nil {
		return err
	}
	return c.committed(ctx, d, r)
}

// applyDraft makes the plan to apply: of a configuration, or the saved one as
// it is now.
func (c *call) applyDraft(ctx context.Context, a applyArgs) (*draft, error) {
	if a.path == "" || a.destroy || !isPlan(c.path(a.path)) {
		return c.draft(ctx, a.planArgs)
	}
	if len(a.vars)+len(a.varFiles) > 0 {
		return nil, ax.Diagnostic{Severity: ax.SeverityError, Summary: "A saved plan takes no variables", Detail: "Their values were fixed when the plan was made."}
	}
	d := draft{reviewed: true}
	var err error
	if d.plan, err = c.readPlan(a.path); err != nil {
		return nil, err
	}
	if err := c.openDraft(ctx, &d, d.plan.Stack); err != nil {
		return nil, err
	}
	fresh, shifts, err := d.plan.Refresh(d.state, planner.Options{NextN: a.next}, c.nowMs())
	if err != nil {
		d.close()
		return nil, err
	}
	d.plan = fresh
	c.tellShifts(shifts)
	return &d, nil
}

// tellShifts says which next fires are no longer those that were reviewed.
func (c *call) tellShifts(shifts []planner.Shift) {
	if c.globals.json || len(shifts) == 0 {
		return
	}
	s := c.screen(c.env.Stderr, c.env.Terminals.Stderr)
	for _, sh := range shifts {
		s.line("Time has passed: the next fire of %s is %s, no longer %s.", clean(sh.Address), s.instant(sh.After, sh.AfterMs), s.instant(sh.Before, sh.BeforeMs))
	}
	_ = s.flush()
}

// revision gathers who applies and from where.
func (c *call) revision(ctx context.Context, origin, message string) ax.Revision {
	rev := ax.Revision{Who: c.env.User, Host: c.env.Host, Message: message}
	rev.GitRemote, rev.GitCommit, rev.GitDirty = gitState(ctx, origin, c.env.Environ)
	return rev
}

// confirm asks whether to apply.
func (c *call) confirm(ctx context.Context, a applyArgs, p *planner.Plan) error {
	what := fmt.Sprintf("Apply these changes to stack %s in %s?", p.Stack, c.storeName())
	if a.destroy {
		what = fmt.Sprintf("Delete everything of stack %s in %s?", p.Stack, c.storeName())
	}
	return c.approve(ctx, a.autoApprove, what, "and a plan that plan -out saved needs no asking.")
}

// approve asks whether to go on; unasked says what else goes on without it. Only
// "yes" is one.
func (c *call) approve(ctx context.Context, autoApprove bool, question, unasked string) error {
	if autoApprove {
		return nil
	}
	if !c.env.Terminals.Stdin || c.globals.json {
		return withCode(ExitDeclined, ax.Diagnostic{
			Severity: ax.SeverityError,
			Summary:  "Nobody to ask; nothing was changed",
			Detail:   "There is no terminal, or -json is set. -auto-approve goes on without asking, " + unasked,
		})
	}
	fmt.Fprintf(c.env.Stderr, "\n%s\nOnly yes is a yes: ", question)
	answer, err := c.ask(ctx)
	if err != nil {
		return err
	}
	if answer == "" {
		fmt.Fprintln(c.env.Stderr) // the end of the input leaves the prompt's line open
	}
	if answer != "yes" {
		return withCode(ExitDeclined, ax.Diagnostic{Severity: ax.SeverityError, Summary: "Declined; nothing was changed"})
	}
	return nil
}

// ask reads one line of stdin, unless ctx ends first; the read then ends with
// the program.
func (c *call) ask(ctx context.Context) (string, error) {
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(c.env.Stdin).ReadString('\n') // no line: no yes
		line <- strings.TrimSpace(text)
	}()
	select {
	case text := <-line:
		return text, nil
	case <-ctx.Done():
		fmt.Fprintln(c.env.Stderr) // the prompt stands on this line
		return "", context.Cause(ctx)
	}
}

// commit writes the plan. What a claim or time overtakes is computed again;
// what somebody else changed ends it.
func (c *call) commit(ctx context.Context, d *draft, rev ax.Revision, r *applyResult) error {
	made := d.store == nil
	if err := c.openForApply(ctx, d); err != nil {
		return err
	}
	for range maxTries {
		// A store that was not there has nothing to be read, until somebody
		// else makes it; Apply then says so.
		if !made {
			state, err := d.store.ReadStack(ctx, d.plan.Stack)
			if err != nil {
				return fmt.Errorf("read stack %s: %w", d.plan.Stack, err)
			}
			d.state = state
		}
		now := c.nowMs()
		fresh, shifts, err := d.plan.Refresh(d.state, planner.Options{NextN: planner.DefaultNext}, now)
		if err != nil {
			return err
		}
		cs, err := fresh.ChangeSet(d.state, uuid.NewString(), rev, now)
		if err != nil {
			return err
		}
		c.tellShifts(shifts)
		d.plan, r.plan = fresh, fresh
		r.applied, err = c.write(ctx, d.store, cs)
		if !errors.Is(err, ax.ErrMoved) {
			return err
		}
	}
	return ax.WithHint(fmt.Errorf("apply: %w %d times", ax.ErrMoved, maxTries), "Nothing was changed; try again.")
}

// openForApply opens the store for writing, and makes it where there is none.
func (c *call) openForApply(ctx context.Context, d *draft) error {
	d.close()
	s, err := c.env.Open(ctx, c.storeURL, OpenOptions{Create: d.store == nil})
	d.store = s
	if err != nil {
		d.store = nil
		return err
	}
	return nil
}

// lookAgain bounds the search for an apply whose answer was lost.
const lookAgain = 10 * time.Second

// write applies cs. When it cannot tell from the answer whether the change was
// committed, it asks the store.
func (c *call) write(ctx context.Context, s Store, cs ax.ChangeSet) (*ax.Applied, error) {
	applied, err := s.Apply(ctx, cs)
	if err == nil {
		return &applied, nil
	}
	for _, known := range []error{ax.ErrStale, ax.ErrMoved, ax.ErrBusy, ax.ErrConflict, ax.ErrTooNew, ax.ErrDenied} {
		if errors.Is(err, known) {
			return nil, err
		}
	}
	again, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookAgain)
	defer cancel()
	rev, lookErr := s.Revision(again, cs.ApplyID)
	switch {
	case lookErr == nil:
		return &ax.Applied{Serial: rev.Serial, Revision: rev}, nil
	case errors.Is(lookErr, ax.ErrNotFound):
		return nil, ax.WithHint(fmt.Errorf("apply: %w", err), "Nothing was changed.")
	default:
		return nil, withCode(ExitError, ax.WithHint(fmt.Errorf("apply: %w; and then: %w", err, lookErr),
			"It is not known whether the change was committed; axctl plan tells as soon as the store can be read."))
	}
}

// committed prints what was done, and the soonest firings.
func (c *call) committed(ctx context.Context, d *draft, r applyResult) error {
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookAgain)
	defer cancel()
	if all, err := tasks(after, d.store, false); err == nil {
		mine := all[:0]
		for _, t := range all {
			if t.Stack == d.plan.Stack {
				mine = append(mine, t)
			}
		}
		r.coming = soonest(mine, 0, 3)
	}
	r.asleep = !c.daemonRuns()
	var i *Interrupt
	if !errors.As(context.Cause(ctx), &i) {
		return c.print(r)
	}
	late := ax.Diagnostic{
		Severity: ax.SeverityWarning,
		Summary:  fmt.Sprintf("Interrupted (%s), but the change was committed", i.Signal),
	}
	r.warnings = append(r.warnings, late)
	if err := c.print(r); err != nil {
		return err
	}
	c.warn(ax.Diagnostics{late})
	return exit(i.Code)
}

type applyResult struct {
	planResult
	destroy bool
	applied *ax.Applied // nil: there was nothing to do
	coming  []firing
	asleep  bool // no axd is running
}

func (r applyResult) human(s *screen) {
	if r.applied == nil {
		if r.destroy {
			s.line("No changes. Stack %s is empty (serial %d).", r.plan.Stack, r.plan.BaseSerial)
			return
		}
		s.line("No changes. Stack %s is as configured (serial %d).", r.plan.Stack, r.plan.BaseSerial)
		return
	}
	word, rev := "Apply", r.applied.Revision
	if r.destroy {
		word = "Destroy"
	}
	s.line("")
	s.line("%s", s.paint(green, fmt.Sprintf("%s complete! %d added, %d changed, %d deleted. Serial %d.",
		word, rev.Added, rev.Changed, rev.Deleted, r.applied.Serial)))
	s.line("store  %s", r.store)
	for i, f := range r.coming {
		s.line("%-6s %s  %s", first(i, "next"), s.at(f.dueMs, f.zone), clean(f.address))
	}
	if r.asleep && len(r.coming) > 0 {
		s.line("axd    does not run on this store yet; nothing fires until it does")
	}
	switch {
	case r.destroy:
		s.line("undo   axctl apply brings all of it back")
	case rev.Changed+rev.Deleted > 0:
		s.line("undo   bring back the former configuration (git revert) and apply again")
	default:
		s.line("undo   axctl destroy, or take the new blocks out and apply again")
	}
}

func (r applyResult) json() document {
	doc := document{"plan": planJSON(r.plan), "store": r.store, "diagnostics": list(r.warnings), "applied": nil}
	if r.applied != nil {
		rev := r.applied.Revision
		doc["applied"] = document{
			"serial": r.applied.Serial, "added": rev.Added, "changed": rev.Changed, "deleted": rev.Deleted,
			"revision": revisionJSON(rev),
		}
		doc["firings"] = nextResult{firings: r.coming}.json()["firings"]
	}
	return doc
}
