package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/config"
	"github.com/axctl/ax/planner"
	"github.com/axctl/ax/plugins/builtin/schemas"
	"github.com/axctl/ax/store"
	"github.com/axctl/ax/store/check"
	"github.com/google/uuid"
)

// Prepare makes the store of cfg and applies one file to it, for axd -demo; env
// gives AX_VAR_NAME=value. Diagnostics come back as one error with file:line
// each.
func Prepare(ctx context.Context, cfg Config, file string, env []string) (*ax.Configuration, error) {
	desired, diags := config.Load(file, config.Options{Env: env, Schemas: schemas.Find, HandlerNames: schemas.Names()})
	if diags.HasErrors() {
		return nil, diagnosticsError(diags)
	}
	st, err := store.Open(ctx, cfg.StoreURL, store.Options{Create: true, Now: cfg.Now, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	defer st.Close()
	state, err := st.ReadStack(ctx, desired.Stack)
	if err != nil {
		return nil, fmt.Errorf("read store: %w", err)
	}
	now := cfg.Now().UnixMilli()
	plan, err := planner.Diff(*desired, state, planner.Options{}, now)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	id := uuid.NewString()
	cs, err := plan.ChangeSet(state, id, ax.Revision{
		ApplyID: id, Stack: desired.Stack, AtMs: now, Who: "axd -demo", Origin: desired.Origin, ConfigHash: desired.Hash,
	}, now)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if _, err := st.Apply(ctx, cs); err != nil {
		return nil, fmt.Errorf("apply: %w", err)
	}
	return desired, nil
}

func diagnosticsError(diags ax.Diagnostics) error {
	lines := make([]string, 0, len(diags))
	for _, d := range diags {
		line := d.Error()
		if d.Range != nil {
			line = d.Range.String() + ": " + line
		}
		lines = append(lines, line)
	}
	return errors.New(strings.Join(lines, "\n"))
}

// Summary is what became of everything that was due in a store.
type Summary struct {
	Fired     int // instances that were to run
	Succeeded int
	Failed    int // failed, timed out or cancelled
	Skipped   int // slots that a rule did not run
	Open      int // not ended: a retry was still to come
	// Lost tells, a line each, where the ledger breaks a promise.
	Lost []string
}

// Summarise reads the whole ledger and checks it against the invariants.
func Summarise(ctx context.Context, st store.Store, now time.Time) (Summary, error) {
	var s Summary
	f := ax.InstanceFilter{Limit: 1000}
	for {
		rows, err := st.Instances(ctx, f)
		if err != nil {
			return s, fmt.Errorf("read instances: %w", err)
		}
		for _, r := range rows {
			s.count(r.Status)
		}
		if len(rows) < f.Limit {
			break
		}
		f.Before = &rows[len(rows)-1].Ref
	}
	findings, err := check.Check(ctx, st, now)
	if err != nil {
		return s, fmt.Errorf("check store: %w", err)
	}
	for _, f := range findings {
		s.Lost = append(s.Lost, f.String())
	}
	return s, nil
}

func (s *Summary) count(status ax.Status) {
	if status == ax.StatusSkipped {
		s.Skipped++
		return
	}
	s.Fired++
	switch {
	case status == ax.StatusSuccess:
		s.Succeeded++
	case status.Final():
		s.Failed++
	default:
		s.Open++
	}
}
