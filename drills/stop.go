package main

import (
	"context"
	"syscall"
	"time"
)

// stopped freezes axd for seconds, as an overloaded or suspended machine does,
// and lets it go on: what was due meanwhile is accounted for, and nothing twice.
func stopped(ctx context.Context, s *stage) (report, error) {
	rep := report{}
	if err := s.tasks(ctx, 20, ""); err != nil {
		return rep, err
	}
	d, err := s.start()
	if err != nil {
		return rep, err
	}
	for range s.rounds {
		if err := sleep(ctx, s.between(500*time.Millisecond, 2*time.Second)); err != nil {
			return rep, err
		}
		if err := d.signal(syscall.SIGSTOP); err != nil {
			return rep, err
		}
		if err := sleep(ctx, s.between(time.Second, 7500*time.Millisecond)); err != nil {
			return rep, err
		}
		if err := d.signal(syscall.SIGCONT); err != nil {
			return rep, err
		}
		rep.faults++
	}
	return rep, s.end(ctx, d, &rep)
}
