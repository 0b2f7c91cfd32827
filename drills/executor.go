package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"
)

// killExecutor kills the shell executor under a living axd: what it ran is lost
// and tried again, and nothing of it is left.
func killExecutor(ctx context.Context, s *stage) (report, error) {
	rep := report{}
	if err := s.tasks(ctx, 20, ""); err != nil {
		return rep, err
	}
	d, err := s.start()
	if err != nil {
		return rep, err
	}
	for range s.rounds {
		if err := sleep(ctx, s.between(200*time.Millisecond, 2*time.Second)); err != nil {
			return rep, err
		}
		pid, err := s.awaitExecutor(ctx, "shell")
		if err != nil {
			return rep, err
		}
		before := time.Now()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return rep, fmt.Errorf("kill executor: %w", err)
		}
		rep.faults++
		for {
			again, err := s.awaitExecutor(ctx, "shell")
			if err != nil {
				return rep, err
			}
			if again != pid {
				break
			}
			if err := sleep(ctx, 10*time.Millisecond); err != nil {
				return rep, err
			}
		}
		rep.worst = max(rep.worst, time.Since(before))
	}
	return rep, s.end(ctx, d, &rep)
}

// executorWithin is how long an executor may be away: one that was killed often
// is started again after 30 s.
const executorWithin = time.Minute

// awaitExecutor returns the pid of the running executor of that name.
func (s *stage) awaitExecutor(ctx context.Context, name string) (int, error) {
	deadline := time.Now().Add(executorWithin)
	for time.Now().Before(deadline) {
		for _, p := range s.processes() {
			if strings.HasSuffix(strings.TrimSpace(p.args), "executor "+name) {
				return p.pid, nil
			}
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("no %s executor for %s", name, executorWithin)
}
