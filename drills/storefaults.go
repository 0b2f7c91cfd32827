package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/axctl/ax/failpoint"
)

// What axd says when the store is away, and when it is back, once each; and
// when somebody keeps it waiting.
const (
	saysAway   = "the store cannot be used"
	saysBack   = "the store can be used again"
	saysLocked = "store is locked by another process"
)

// said returns what axd has written to its log since an offset, and the offset
// for the next time.
func (s *stage) said(from int64) (string, int64, error) {
	text, err := os.ReadFile(s.path("axd.log"))
	if err != nil || int64(len(text)) < from {
		return "", from, err
	}
	return string(text[from:]), int64(len(text)), nil
}

// hears waits until axd says words.
func (s *stage) hears(ctx context.Context, from int64, words string, limit time.Duration) error {
	for deadline := time.Now().Add(limit); ; {
		text, _, err := s.said(from)
		switch {
		case err != nil:
			return err
		case strings.Contains(text, words):
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("in %s axd has not said %q; it said:\n%s", limit, words, text)
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// claims waits until axd claims again, and returns how long that took.
func (s *stage) claims(ctx context.Context) (time.Duration, error) {
	db, err := s.database()
	if err != nil {
		return 0, err
	}
	defer db.Close()
	for from := time.Now(); ; {
		took, err := firstClaim(ctx, db, from)
		if err != nil || took != 0 {
			return took, err
		}
		if time.Since(from) > giveUpAfter {
			return 0, fmt.Errorf("axd has claimed nothing for %s", giveUpAfter)
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// outages lets a store be at fault again and again under a living axd. Each
// fault returns when it has ended; from is where axd's log was when it began.
func (s *stage) outages(ctx context.Context, faults ...func(ctx context.Context, from int64) error) (report, error) {
	rep := report{}
	if err := s.tasks(ctx, 50, ""); err != nil {
		return rep, err
	}
	d, err := s.start()
	if err != nil {
		return rep, err
	}
	if _, err := s.claims(ctx); err != nil {
		return rep, err
	}
	for n := range s.rounds {
		_, from, err := s.said(0)
		if err != nil {
			return rep, err
		}
		if err := faults[n%len(faults)](ctx, from); err != nil {
			return rep, fmt.Errorf("round %d: %w", n+1, err)
		}
		rep.faults++
		back, err := s.claims(ctx)
		if err != nil {
			return rep, fmt.Errorf("round %d: %w", n+1, err)
		}
		rep.worst = max(rep.worst, back)
		select {
		case <-d.done:
			return rep, fmt.Errorf("round %d: axd has ended: %v", n+1, d.err)
		default:
		}
		if err := sleep(ctx, s.between(200*time.Millisecond, time.Second)); err != nil {
			return rep, err
		}
	}
	return rep, s.end(ctx, d, &rep)
}

// locked keeps the store's write lock from axd: often for a moment, for longer
// than axd waits in silence, and by an axctl that is stopped inside its
// transaction and goes on, or is killed.
func locked(ctx context.Context, s *stage) (report, error) {
	if err := s.failing(); err != nil {
		return report{}, err
	}
	return s.outages(ctx, s.stoppedApply(syscall.SIGCONT), s.heldLong, s.stoppedApply(syscall.SIGKILL), s.heldOften)
}

// hold takes the write lock as another program would.
func (s *stage) hold(ctx context.Context, d time.Duration) error {
	db, err := s.writable()
	if err != nil {
		return err
	}
	defer db.Close()
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return fmt.Errorf("take the write lock: %w", err)
	}
	err = sleep(ctx, d)
	_, _ = c.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
	return err
}

func (s *stage) heldLong(ctx context.Context, from int64) error {
	if err := s.hold(ctx, s.between(5500*time.Millisecond, 8*time.Second)); err != nil {
		return err
	}
	return s.namesHolder(from, os.Getpid(), filepath.Base(os.Args[0]))
}

func (s *stage) heldOften(ctx context.Context, _ int64) error {
	for range 10 {
		if err := s.hold(ctx, s.between(50*time.Millisecond, 600*time.Millisecond)); err != nil {
			return err
		}
		if err := sleep(ctx, s.between(5*time.Millisecond, 100*time.Millisecond)); err != nil {
			return err
		}
	}
	return nil
}

// namesHolder fails unless axd said, once, which process held the lock.
func (s *stage) namesHolder(from int64, pid int, program string) error {
	text, _, err := s.said(from)
	if err != nil {
		return err
	}
	program = program[:min(len(program), 15)] // of the kernel's name for it
	if n := strings.Count(text, saysLocked); n != 1 {
		return fmt.Errorf("axd said %d times that the store is locked, want once", n)
	}
	if want := fmt.Sprintf("process %d (%s)", pid, program); !strings.Contains(text, want) {
		return fmt.Errorf("axd did not say that %s held the lock; it said:\n%s", want, text)
	}
	return nil
}

// stoppedApply stops an apply that has written everything and not committed,
// for longer than axd waits in silence.
func (s *stage) stoppedApply(then syscall.Signal) func(context.Context, int64) error {
	return func(ctx context.Context, from int64) error {
		if err := s.describe(); err != nil {
			return err
		}
		cmd := s.command(ctx, "apply", "-auto-approve", "drill.hcl")
		cmd.Path, cmd.Env = s.failingAxctl, append(cmd.Env, failpoint.Env+"="+string(failpoint.ApplyCommit)+",stop")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			return err
		}
		var w syscall.WaitStatus
		if _, err := syscall.Wait4(cmd.Process.Pid, &w, syscall.WUNTRACED, nil); err != nil || !w.Stopped() {
			return fmt.Errorf("axctl does not stop inside its transaction: %v %v: %s", w, err, out.String())
		}
		err := sleep(ctx, s.between(5500*time.Millisecond, 7*time.Second))
		_ = cmd.Process.Signal(then)
		ended := cmd.Wait()
		if err != nil {
			return err
		}
		if then == syscall.SIGCONT && ended != nil {
			return fmt.Errorf("axctl apply, after it was stopped: %w: %s", ended, out.String())
		}
		if err := s.namesHolder(from, cmd.Process.Pid, filepath.Base(s.failingAxctl)); err != nil {
			return err
		}
		_, err = s.run(ctx, "apply", "-auto-approve", "drill.hcl")
		return err
	}
}

// describe gives the drilled tasks another description.
func (s *stage) describe() error {
	text, err := os.ReadFile(s.path("drill.hcl"))
	if err != nil {
		return err
	}
	s.changes++
	var kept []string
	for l := range strings.SplitSeq(string(text), "\n") {
		if strings.HasPrefix(l, "  description") {
			continue
		}
		kept = append(kept, l)
		if strings.HasPrefix(l, "task ") {
			kept = append(kept, fmt.Sprintf("  description = \"change %d\"", s.changes))
		}
	}
	return s.write("drill.hcl", strings.Join(kept, "\n"))
}

// gone takes the store's file away under a living axd, or puts another in its
// place, and brings it back.
func gone(ctx context.Context, s *stage) (report, error) {
	return s.outages(ctx, s.movedAway, s.replaced)
}

func (s *stage) movedAway(ctx context.Context, from int64) error {
	return s.away(ctx, from, func() error { return nil })
}

func (s *stage) replaced(ctx context.Context, from int64) error {
	other := s.path("other.db")
	if _, err := s.run(ctx, "apply", "-auto-approve", "-store", other, "drill.hcl"); err != nil {
		return err
	}
	return s.away(ctx, from, func() error { return os.Rename(other, s.storePath()) })
}

// away moves the store away, does something where it was, and moves it back.
func (s *stage) away(ctx context.Context, from int64, meanwhile func() error) error {
	elsewhere := s.storePath() + ".away"
	if err := os.Rename(s.storePath(), elsewhere); err != nil {
		return err
	}
	if err := s.hears(ctx, from, saysAway, 20*time.Second); err != nil {
		return err
	}
	if err := meanwhile(); err != nil {
		return err
	}
	if err := sleep(ctx, s.between(500*time.Millisecond, 3*time.Second)); err != nil {
		return err
	}
	if err := os.Rename(elsewhere, s.storePath()); err != nil {
		return err
	}
	return s.resumes(ctx, from)
}

// resumes waits until axd says that the store is back, and fails when it said
// one of the two more than once.
func (s *stage) resumes(ctx context.Context, from int64) error {
	if err := s.hears(ctx, from, saysBack, 20*time.Second); err != nil {
		return err
	}
	text, _, err := s.said(from)
	if err != nil {
		return err
	}
	if a, b := strings.Count(text, saysAway), strings.Count(text, saysBack); a != 1 || b != 1 {
		return fmt.Errorf("axd said %d times that the store is away and %d times that it is back, want once each:\n%s", a, b, text)
	}
	return nil
}
