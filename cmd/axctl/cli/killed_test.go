package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// An apply that is killed or interrupted at any moment has happened whole or
// not at all, and what it says of that is true. The real program runs as a
// process of its own, on the real store.
func TestApplyCutShort(t *testing.T) {
	t.Parallel()
	const tasks, rounds = 300, 12
	dir := t.TempDir()
	write := func(timeout int) {
		var b strings.Builder
		for i := range tasks {
			fmt.Fprintf(&b, "task \"t%d\" {\n  timeout = \"%dm\"\n  schedule { cron = \"%d 3 * * *\" }\n  handler \"shell\" { command = \"true\" }\n}\n", i, timeout, i%60)
		}
		if err := os.WriteFile(filepath.Join(dir, "main.hcl"), []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	axctl := func(args ...string) (*exec.Cmd, *bytes.Buffer) {
		var out bytes.Buffer
		cmd := exec.Command("axctl", args...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
		return cmd, &out
	}
	exitCode := func(cmd *exec.Cmd) int {
		err := cmd.Wait()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode()
	}
	// pending says whether the change of a round is still to be made, and fails
	// when it was made in part.
	pending := func(out string) bool {
		t.Helper()
		cmd, plan := axctl("plan", "-detailed-exitcode")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		switch code := exitCode(cmd); {
		case code == 0:
			return false
		case code == 2 && (strings.Contains(plan.String(), fmt.Sprintf("Plan: 0 to add, %d to change, 0 to delete.", tasks)) ||
			strings.Contains(plan.String(), fmt.Sprintf("Plan: %d to add, 0 to change, 0 to delete.", tasks))):
			return true
		default:
			t.Fatalf("after %s\nplan ends with %d and %s", out, code, plan)
			return false
		}
	}
	longest := 200 * time.Millisecond
	for round := range rounds {
		write(round + 1)
		cmd, out := axctl("apply", "-auto-approve")
		begin := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		sig := []os.Signal{syscall.SIGKILL, syscall.SIGINT, syscall.SIGTERM}[round%3]
		timer := time.AfterFunc(rand.N(longest), func() { _ = cmd.Process.Signal(sig) })
		code := exitCode(cmd)
		timer.Stop()
		todo := pending(out.String())
		says := strings.Contains(out.String(), "Apply complete!")
		switch code {
		case 0:
			longest = max(longest, time.Since(begin))
			if todo || !says {
				t.Errorf("exit code 0, but %v is to be done:\n%s", todo, out)
			}
		case 130, 143:
			if says == todo {
				t.Errorf("exit code %d, %v is to be done, and it says\n%s", code, todo, out)
			}
		case -1: // by the signal itself: before the program watched for it, or SIGKILL
		default:
			t.Errorf("exit code %d after %v\n%s", code, sig, out)
		}
	}
}
