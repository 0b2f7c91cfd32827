package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/axctl/ax"
	"github.com/axctl/ax/planner"
)

type planArgs struct {
	sourceArgs
	destroy  bool
	next     int
	out      string
	detailed bool
}

func planCommand(c *call) *cobra.Command {
	var a planArgs
	cmd := &cobra.Command{
		Use:   "plan [PATH]",
		Short: "Show what an apply would change, and what that does to time",
		Long: "plan compares a configuration with the store and shows what an apply would change:\n" +
			"which attributes, and which firings move. It changes nothing.",
		Args: argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				a.path = args[0]
			}
			return c.plan(cmd.Context(), a)
		},
	}
	a.register(cmd.Flags())
	a.registerStrict(cmd.Flags())
	cmd.Flags().BoolVar(&a.destroy, "destroy", false, "plan to delete everything of the stack")
	cmd.Flags().IntVar(&a.next, "next", planner.DefaultNext, "list `N` firings after the next one")
	cmd.Flags().StringVar(&a.out, "out", "", "save the plan to `FILE`, for axctl apply FILE")
	cmd.Flags().BoolVar(&a.detailed, "detailed-exitcode", false, "end with 2 when there are changes")
	return cmd
}

func (c *call) plan(ctx context.Context, a planArgs) error {
	if a.next < 1 || a.next > planner.MaxNext {
		return ax.Diagnostic{Severity: ax.SeverityError, Summary: fmt.Sprintf("-next=%d is not from 1 to %d", a.next, planner.MaxNext)}
	}
	d, err := c.draft(ctx, a)
	if err != nil {
		return err
	}
	defer d.close()
	r := planResult{plan: d.plan, warnings: d.warnings, store: c.storeName(), known: d.known}
	if d.store == nil {
		r.notes = append(r.notes, fmt.Sprintf("There is no store at %s yet; axctl apply makes one.", c.storeName()))
	}
	if a.out != "" {
		if err := c.savePlan(a.out, d.plan); err != nil {
			return err
		}
		r.notes = append(r.notes, fmt.Sprintf("Saved; apply exactly this with: axctl apply %s", shellWord(a.out)))
	}
	c.warn(d.warnings)
	if err := c.print(r); err != nil {
		return err
	}
	if a.detailed && !d.plan.Empty() {
		return exit(ExitChanges)
	}
	return nil
}

// draft is a plan with what it was computed from.
type draft struct {
	conf     *ax.Configuration
	warnings ax.Diagnostics
	known    *catalog // what bodies were checked with; nil for a saved plan
	store    Store    // nil when there is none
	state    ax.StackState
	plan     *planner.Plan
	reviewed bool // it was saved, and is applied without asking
}

func (d *draft) close() {
	if d.store != nil {
		d.store.Close()
	}
}

// draft reads the configuration and the store, which is empty where there is
// none, and compares them.
func (c *call) draft(ctx context.Context, a planArgs) (*draft, error) {
	var d draft
	var err error
	if d.conf, d.known, d.warnings, err = c.load(ctx, a.sourceArgs, c.storeOffers(ctx)); err != nil {
		return nil, err
	}
	if err := c.openDraft(ctx, &d, d.conf.Stack); err != nil {
		return nil, err
	}
	if d.store != nil {
		warnings, err := c.poolWarnings(ctx, d.store, d.conf.Definitions)
		if err != nil {
			d.close()
			return nil, err
		}
		waiting, err := d.known.unrunnable(ctx, d.store, d.state)
		if err != nil {
			d.close()
			return nil, err
		}
		d.warnings = append(append(d.warnings, warnings...), waiting...)
	}
	d.plan, err = planner.Diff(*d.conf, d.state, planner.Options{Destroy: a.destroy, NextN: a.next}, c.nowMs())
	if err != nil {
		d.close()
		return nil, fmt.Errorf("plan: %w", err)
	}
	return &d, nil
}

// openDraft reads a stack. A store that is not there is an empty one.
func (c *call) openDraft(ctx context.Context, d *draft, stack string) error {
	s, err := c.env.Open(ctx, c.storeURL, OpenOptions{ReadOnly: true})
	if errors.Is(err, ax.ErrNoStore) {
		d.state = ax.StackState{Stack: stack}
		return nil
	}
	if err != nil {
		return err
	}
	if d.state, err = s.ReadStack(ctx, stack); err != nil {
		s.Close()
		return fmt.Errorf("read stack %s: %w", stack, err)
	}
	d.store = s
	return nil
}

// savePlan writes a plan for its owner alone: it tells what runs and how.
func (c *call) savePlan(file string, p *planner.Plan) error {
	text, err := planner.Encode(p)
	if err != nil {
		return fmt.Errorf("encode plan: %w", err)
	}
	return writeFile(c.path(file), text, 0o600)
}

// isPlan reports whether path is a saved plan rather than a configuration.
func isPlan(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	first := make([]byte, 1)
	n, _ := f.Read(first)
	return n == 1 && first[0] == '{'
}

// readPlan reads a saved plan.
func (c *call) readPlan(file string) (*planner.Plan, error) {
	path := c.path(file)
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > planner.MaxPlanBytes {
		return nil, fmt.Errorf("read plan: %s is no plan file", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	p, err := planner.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.short(path), err)
	}
	return p, nil
}

type planResult struct {
	plan     *planner.Plan
	warnings ax.Diagnostics
	store    string
	notes    []string
	known    *catalog // finds schemas of handlers; nil: built-in ones alone
}

func (r planResult) json() document {
	doc := planJSON(r.plan)
	doc["store"], doc["diagnostics"], doc["notes"] = orNil(r.store), list(r.warnings), list(r.notes)
	return doc
}

// planJSON is a plan's own JSON, as a document that more can be added to.
func planJSON(p *planner.Plan) document {
	text, err := planner.Encode(p)
	doc := document{}
	var fields map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		panic("plan is no JSON object: " + err.Error())
	}
	for key, value := range fields {
		doc[key] = value
	}
	return doc
}
