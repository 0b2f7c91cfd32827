package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store"
	"github.com/axctl/ax/store/check"
)

// applyTasks is how many tasks each apply of the drill changes: some thousands.
const applyTasks = 3000

// killApply kills axctl apply at random moments: after each kill all
// definitions are the old ones or all are the new ones, and the next apply
// needs nothing to be cleaned up.
func killApply(ctx context.Context, s *stage) (report, error) {
	rep := report{}
	text := func(gen int) string {
		return fmt.Sprintf(`
locals { names = [for i in flatten([for k in range(%d) : range(1000 * k, 1000 * k + 1000)]) : "t${i}"] }
task "many" {
  for_each    = toset(local.names)
  description = "generation %d"
  schedule { cron = "0 0 1 1 *" }
  handler "shell" { command = "true" }
}
`, applyTasks/1000, gen)
	}
	if err := s.write("drill.hcl", text(0)); err != nil {
		return rep, err
	}
	begin := time.Now()
	if _, err := s.run(ctx, "apply", "-auto-approve", "drill.hcl"); err != nil {
		return rep, err
	}
	whole := time.Since(begin)
	wrote := 0
	for gen := 1; gen <= s.rounds; gen++ {
		if err := s.write("drill.hcl", text(gen)); err != nil {
			return rep, err
		}
		cmd := s.command(ctx, "apply", "-auto-approve", "drill.hcl")
		if err := cmd.Start(); err != nil {
			return rep, err
		}
		if err := sleep(ctx, s.between(whole/20, whole*5/4)); err != nil {
			return rep, err
		}
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
		rep.faults++
		back := time.Now()
		gens, err := s.generations(ctx)
		if err != nil {
			return rep, err
		}
		rep.worst = max(rep.worst, time.Since(back))
		if len(gens) != 1 {
			return rep, fmt.Errorf("a killed apply left a mixture: %v", gens)
		}
		if gens[fmt.Sprintf("generation %d", gen)] == applyTasks {
			wrote++
		}
	}
	rep.note = fmt.Sprintf("; %d of the killed applies had committed, %d left no trace", wrote, rep.faults-wrote)
	_, err := s.run(ctx, "apply", "-auto-approve", "drill.hcl")
	return rep, err
}

// generations counts the stored definitions by their description.
func (s *stage) generations(ctx context.Context) (map[string]int, error) {
	st, err := store.Open(ctx, "sqlite:"+s.storePath(), store.Options{ReadOnly: true, Now: time.Now})
	if err != nil {
		return nil, err
	}
	defer st.Close()
	state, err := st.ReadStack(ctx, "default")
	if err != nil {
		return nil, err
	}
	var keys []ax.VersionKey
	for _, o := range state.Objects {
		keys = append(keys, ax.VersionKey{ObjectID: o.ID, Version: o.Version})
	}
	versions, err := st.TaskVersions(ctx, keys)
	if err != nil {
		return nil, err
	}
	gens := map[string]int{}
	for _, v := range versions {
		gens[v.Spec.Description]++
	}
	findings, err := check.Check(ctx, st, time.Now())
	if err != nil {
		return nil, err
	}
	if len(findings) > 0 {
		return nil, fmt.Errorf("%d invariants do not hold: %s", len(findings), findings[0])
	}
	return gens, nil
}
