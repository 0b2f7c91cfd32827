package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/axctl/ax/failpoint"
)

// reachWithin is how soon a process must come to its failpoint.
const reachWithin = 30 * time.Second

// prunable is how old history must be before axctl store gc deletes any.
const prunable = 75 * time.Second

// diesOf is who comes to a failpoint, and what makes it come there.
type diesOf struct {
	axctl bool // else axd
	often bool // it comes there again and again
	bring func(ctx context.Context, s *stage) error
}

// howTo says how a process is brought to a point.
func howTo(p failpoint.Point) diesOf {
	operation, _, _ := strings.Cut(string(p), ".")
	switch {
	case p == failpoint.Order, p == failpoint.Ordered:
		return diesOf{bring: cancelOne}
	case operation == "dispatch": // what is born waiting
		return diesOf{bring: triggerOne}
	case operation == "apply", operation == "cancel", operation == "prune":
		return diesOf{axctl: true}
	default:
		return diesOf{often: operation != "recover"}
	}
}

// failpoints lets axd die at each named point, and axctl beside it, in turn.
func failpoints(ctx context.Context, s *stage) (report, error) {
	rep := report{}
	if err := s.failing(); err != nil {
		return rep, err
	}
	s.axd = s.failingAxd // one program, so that its executors are taken over by the next axd
	begun := time.Now()
	if err := s.manyTasks(ctx); err != nil {
		return rep, err
	}
	var worst figures
	points := s.inTurn()
	for n := range s.rounds {
		p := points[n%len(points)]
		// A cycle of all points lasts longer than that, so it waits in a short run only.
		if operation, _, _ := strings.Cut(string(p), "."); operation == "prune" {
			if err := sleep(ctx, prunable-time.Since(begun)); err != nil {
				return rep, err
			}
		}
		f, err := s.dieAt(ctx, p)
		if err != nil {
			return rep, fmt.Errorf("round %d, %s: %w", n+1, p, err)
		}
		rep.faults++
		worst = worst.max(f)
	}
	if err := sleep(ctx, 7*time.Second); err != nil { // the long ones end, with no axd or one
		return rep, err
	}
	if err := s.settle(ctx, &rep); err != nil {
		return rep, err
	}
	rep.worst = worst.claim
	rep.note = worst.String() + rep.note
	return rep, nil
}

// failing fetches the programs that have failpoints.
func (s *stage) failing() error {
	for name, to := range map[string]*string{"axd": &s.failingAxd, "axctl": &s.failingAxctl} {
		*to = s.path(name + "-failpoint")
		if err := copyProgram(s.failpointDir+"/"+name, *to); err != nil {
			return fmt.Errorf("programs with failpoints (go build -tags failpoint, see the Makefile): %w", err)
		}
	}
	return nil
}

// manyTasks applies 50 tasks that fire each second, and one that runs long when
// it is told to.
func (s *stage) manyTasks(ctx context.Context) error {
	text := s.tasksText(50, "") + fmt.Sprintf(`
task "long" {
  handler "shell" { command = [%q, %q, "6s"] }
  overlap     = "allow"
  concurrency = 100
}
`, s.ledger, s.ledgerPath())
	if err := s.write("drill.hcl", text); err != nil {
		return err
	}
	_, err := s.run(ctx, "apply", "-auto-approve", "drill.hcl")
	return err
}

// inTurn returns all points in an order of this seed. Those that need history
// come last.
func (s *stage) inTurn() []failpoint.Point {
	var soon, late []failpoint.Point
	all := failpoint.Points()
	for _, i := range s.rnd.Perm(len(all)) {
		if operation, _, _ := strings.Cut(string(all[i]), "."); operation == "prune" {
			late = append(late, all[i])
		} else {
			soon = append(soon, all[i])
		}
	}
	return append(soon, late...)
}

// dieAt lets a process die at a point, starts axd again, measures how it
// recovers, and kills that too.
func (s *stage) dieAt(ctx context.Context, p failpoint.Point) (figures, error) {
	how := howTo(p)
	value := string(p)
	switch {
	case p == failpoint.Statement:
		value += fmt.Sprintf("=%d", 1+s.rnd.IntN(500))
	case how.often:
		value += fmt.Sprintf("=%d", 1+s.rnd.IntN(20))
	}
	env := failpoint.Env + "=" + value
	if how.axctl {
		d, f, err := s.restart(ctx)
		if err != nil {
			return f, err
		}
		if err := s.axctlDies(ctx, p, env); err != nil {
			return f, err
		}
		return f, d.kill()
	}
	d, err := s.launch(s.failingAxd, env)
	if err != nil {
		return figures{}, err
	}
	if how.bring != nil {
		if err := how.bring(ctx, s); err != nil {
			return figures{}, err
		}
	}
	if err := d.died(reachWithin); err != nil {
		return figures{}, err
	}
	d, f, err := s.restart(ctx)
	if err != nil {
		return f, err
	}
	if err := sleep(ctx, s.between(100*time.Millisecond, 700*time.Millisecond)); err != nil {
		return f, err
	}
	return f, d.kill()
}

// died waits until axd was killed, by whomever.
func (d *daemon) died(limit time.Duration) error {
	err := d.wait(limit)
	var exit *exec.ExitError
	if errors.As(err, &exit) && killed(exit.ProcessState) {
		return nil
	}
	return fmt.Errorf("axd did not come to its failpoint: %v", err)
}

func killed(s *os.ProcessState) bool {
	w, ok := s.Sys().(syscall.WaitStatus)
	return ok && w.Signaled() && w.Signal() == syscall.SIGKILL
}

// axctlDies lets axctl die at a point, and then do its work.
func (s *stage) axctlDies(ctx context.Context, p failpoint.Point, env string) error {
	var args []string
	switch operation, _, _ := strings.Cut(string(p), "."); operation {
	case "apply":
		if err := s.change(); err != nil {
			return err
		}
		args = []string{"apply", "-auto-approve", "drill.hcl"}
	case "cancel":
		id, err := s.trigger(ctx, "long")
		if err != nil {
			return err
		}
		args = []string{"cancel", id}
	case "prune":
		args = []string{"store", "gc", "-retain", "1m", "-retain-last", "1"}
	}
	for deadline := time.Now().Add(prunable); ; {
		cmd := s.command(ctx, args...)
		cmd.Path, cmd.Env = s.failingAxctl, append(cmd.Env, env)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if errors.As(err, &exit) && killed(exit.ProcessState) {
			break
		}
		// An earlier round may have left nothing old enough to delete yet.
		if err != nil || args[0] != "store" || time.Now().After(deadline) {
			return fmt.Errorf("axctl %v did not come to its failpoint: %v: %s", args, err, out)
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	if args[0] == "cancel" {
		return nil // whether it was written or not
	}
	_, err := s.run(ctx, args...) // nothing has to be cleaned up first
	return err
}

// change gives the configuration something to apply.
func (s *stage) change() error {
	text, err := os.ReadFile(s.path("drill.hcl"))
	if err != nil {
		return err
	}
	s.changes++
	out := regexp.MustCompile(`task "long" \{\n(  description.*\n)?`).ReplaceAllString(string(text),
		fmt.Sprintf("task \"long\" {\n  description = \"change %d\"\n", s.changes))
	return s.write("drill.hcl", out)
}

var idPattern = regexp.MustCompile(`^Instance (\d+) `)

// trigger starts a task and returns the id of its instance.
func (s *stage) trigger(ctx context.Context, task string) (string, error) {
	out, err := s.run(ctx, "trigger", "task."+task)
	if err != nil {
		return "", err
	}
	m := idPattern.FindStringSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("axctl trigger said %q", out)
	}
	return m[1], nil
}

func triggerOne(ctx context.Context, s *stage) error {
	_, err := s.trigger(ctx, "long")
	return err
}

// cancelOne triggers the long task and cancels it when it runs.
func cancelOne(ctx context.Context, s *stage) error {
	id, err := s.trigger(ctx, "long")
	if err != nil {
		return err
	}
	db, err := s.database()
	if err != nil {
		return err
	}
	defer db.Close()
	for limit := time.Now().Add(reachWithin); ; {
		var status string
		if err := db.QueryRowContext(ctx, `SELECT status FROM instance WHERE id = ?`, id).Scan(&status); err != nil {
			return err
		}
		switch {
		case status == "dispatched":
			_, err := s.run(ctx, "cancel", id)
			return err
		case time.Now().After(limit):
			return fmt.Errorf("instance %s is %s for %s", id, status, reachWithin)
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}
