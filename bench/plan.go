package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/hashicorp/hcl/v2/hclparse"
)

const planTasks = 10_000

// benchPlan measures whole axctl processes on 100 files of 100 tasks, against a
// parse of the same files, and the writing of as many rows.
func benchPlan(ctx context.Context, b *bench) error {
	dir := b.path("plan")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for f := range planTasks / 100 {
		if err := os.WriteFile(fmt.Sprintf("%s/tasks%03d.hcl", dir, f), planFile(f), 0o600); err != nil {
			return err
		}
	}
	bare, err := median(3, func() error { return bareParse(dir) })
	if err != nil {
		return err
	}
	ctl := func(args ...string) func() error {
		return func() error {
			cmd := exec.CommandContext(ctx, b.ctl, args...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "AX_STORE=sqlite:"+b.path("plan.db"))
			out, err := cmd.CombinedOutput()
			if err != nil {
				return fmt.Errorf("axctl %v: %w: %.500s", args, err, out)
			}
			return nil
		}
	}
	tell := func(what string, d time.Duration) {
		fmt.Printf("  %-34s %8s   ratio to bare parsing %.2f\n", what, round(d), float64(d)/float64(bare))
	}
	fmt.Printf("  %-34s %8s\n", "bare hclparse, one goroutine", round(bare))
	d, err := median(3, ctl("validate"))
	if err != nil {
		return err
	}
	tell("validate", d)
	if d, err = median(1, ctl("apply", "-auto-approve")); err != nil {
		return err
	}
	tell("apply, 10,000 new", d)
	if d, err = median(3, ctl("plan")); err != nil {
		return err
	}
	tell("plan, no change", d)
	for f := range planTasks / 100 {
		path := fmt.Sprintf("%s/tasks%03d.hcl", dir, f)
		text := bytes.ReplaceAll(planFile(f), []byte(`timeout     = "30m"`), []byte(`timeout     = "31m"`))
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
	}
	if d, err = median(3, ctl("plan")); err != nil {
		return err
	}
	tell("plan, 10,000 changed", d)
	if d, err = median(1, ctl("apply", "-auto-approve")); err != nil {
		return err
	}
	tell("apply, 10,000 changed", d)
	return nil
}

func planFile(f int) []byte {
	var b bytes.Buffer
	for i := range 100 {
		n := 100*f + i
		fmt.Fprintf(&b, `task "task_%05d" {
  description = "task number %d of the bench"
  owner       = "team-%d"
  timeout     = "30m"
  kill_after  = "20s"
  concurrency = 2
  overlap     = "skip"
  labels      = { tier = "%d", kind = "bench" }
  schedule {
    cron     = "%d %d * * *"
    timezone = "Europe/Berlin"
  }
  handler "shell" {
    command = "/usr/local/bin/job --number %d"
    env     = { MODE = "batch" }
  }
  retry {
    max     = 2
    initial = "30s"
  }
}

`, n, n, n%17, n%3, n%60, n%24, n)
	}
	return b.Bytes()
}

func bareParse(dir string) error {
	for f := range planTasks / 100 {
		_, diags := hclparse.NewParser().ParseHCLFile(fmt.Sprintf("%s/tasks%03d.hcl", dir, f))
		if diags.HasErrors() {
			return diags
		}
	}
	return nil
}

func median(n int, f func() error) (time.Duration, error) {
	var took []time.Duration
	for range n {
		begin := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(begin))
	}
	return percentile(took, 0.5), nil
}
