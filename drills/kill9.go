package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"
)

// endWithin is how soon after the end of an axd that has drained its executors,
// and all they ran, must be gone.
const endWithin = 5 * time.Second

// tasks applies n tasks that fire each second and write the ledger.
func (s *stage) tasks(ctx context.Context, n int, extra string) error {
	if err := s.write("drill.hcl", s.tasksText(n, extra)); err != nil {
		return err
	}
	_, err := s.run(ctx, "apply", "-auto-approve", "drill.hcl")
	return err
}

func (s *stage) tasksText(n int, extra string) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%q = \"%dms\"", fmt.Sprintf("t%02d", i), 50+s.rnd.IntN(600)))
	}
	return fmt.Sprintf(`
task "drill" {
  for_each = { %s }
  schedule { every = "1s" }
  handler "shell" { command = [%q, %q, each.value] }
  retry {
    initial = "200ms"
    on      = ["lost", "transient"]
  }
  %s
}
`, strings.Join(names, ", "), s.ledger, s.ledgerPath(), extra)
}

// settle runs a last axd to its end.
func (s *stage) settle(ctx context.Context, rep *report) error {
	d, err := s.start()
	if err != nil {
		return err
	}
	return s.end(ctx, d, rep)
}

// end gives axd a moment to catch up, drains it, and audits.
func (s *stage) end(ctx context.Context, d *daemon, rep *report) error {
	if err := sleep(ctx, 4*time.Second); err != nil {
		return err
	}
	if err := d.signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := d.wait(40 * time.Second); err != nil {
		return fmt.Errorf("the last axd: %w", err)
	}
	if err := s.gone(ctx, endWithin); err != nil {
		return err
	}
	return s.audit(ctx, rep)
}

// kill9 kills axd at random moments of its life: in each round once in its first
// second, and once some time after it has recovered from that, which is measured.
// What runs goes on, and is recorded once by the next axd.
func kill9(ctx context.Context, s *stage) (report, error) {
	rep := report{}
	if err := s.tasks(ctx, 50, ""); err != nil {
		return rep, err
	}
	s.finished = true
	var worst figures
	for n := range s.rounds {
		d, err := s.start()
		if err != nil {
			return rep, err
		}
		if err := s.killAfter(ctx, d, s.between(20*time.Millisecond, time.Second), &rep); err != nil {
			return rep, err
		}
		d, f, err := s.restart(ctx)
		if err != nil {
			return rep, fmt.Errorf("round %d: %w", n+1, err)
		}
		worst = worst.max(f)
		if err := s.killAfter(ctx, d, s.between(0, 1200*time.Millisecond), &rep); err != nil {
			return rep, err
		}
	}
	if err := s.settle(ctx, &rep); err != nil {
		return rep, err
	}
	rep.worst = worst.claim
	rep.note = worst.String() + rep.note
	return rep, nil
}

// killAfter kills axd after some time.
func (s *stage) killAfter(ctx context.Context, d *daemon, life time.Duration, rep *report) error {
	if err := sleep(ctx, life); err != nil {
		return err
	}
	if err := d.kill(); err != nil {
		return err
	}
	s.faults = append(s.faults, time.Now())
	rep.faults++
	return nil
}
