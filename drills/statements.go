package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/failpoint"
)

// statements lets axctl apply die before each statement that it writes, those
// that make the store for the first: all of it is there afterwards or nothing,
// and the next apply needs nothing to be cleaned up. It goes through all
// statements whatever the rounds are.
func statements(ctx context.Context, s *stage) (report, error) {
	rep := report{}
	if err := s.failing(); err != nil {
		return rep, err
	}
	task := func(name, gen string) string {
		return fmt.Sprintf("task %q {\n  description = \"generation %s\"\n  schedule { cron = \"0 0 1 1 *\" }\n  handler \"shell\" { command = \"true\" }\n}\n", name, gen)
	}
	for gen, text := range []string{
		task("a", "0") + task("b", "0"),                  // creates, and the store with it
		task("a", "1") + task("b", "1"),                  // updates
		task("b", "2"),                                   // an update and a deletion
		task("a", "3") + task("b", "3") + task("c", "3"), // one that comes back
	} {
		if err := s.write("drill.hcl", text); err != nil {
			return rep, err
		}
		whole := fmt.Sprintf("generation %d", gen)
		for n := 1; ; n++ {
			committed, err := s.applyDies(ctx, n)
			if err != nil {
				return rep, fmt.Errorf("generation %d, statement %d: %w", gen, n, err)
			}
			from := time.Now()
			gens, err := s.generations(ctx)
			switch {
			case gen == 0 && !committed && errors.Is(err, ax.ErrNoStore):
			case err != nil:
				return rep, err
			case (gens[whole] > 0) != committed || len(gens) > 1:
				return rep, fmt.Errorf("generation %d, killed before statement %d: %v", gen, n, gens)
			}
			rep.worst = max(rep.worst, time.Since(from))
			if committed {
				break
			}
			rep.faults++
		}
	}
	return rep, nil
}

// applyDies lets an apply die before its n-th statement; true means that it had
// none left.
func (s *stage) applyDies(ctx context.Context, n int) (committed bool, err error) {
	cmd := s.command(ctx, "apply", "-auto-approve", "drill.hcl")
	cmd.Path, cmd.Env = s.failingAxctl, append(cmd.Env, fmt.Sprintf("%s=%s=%d", failpoint.Env, failpoint.Statement, n))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &exit) && killed(exit.ProcessState):
		return false, nil
	default:
		return false, fmt.Errorf("axctl apply: %w: %s", err, out)
	}
}
