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
  handler "shell" { command = [%q, "ledger", %q, each.value] }
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

// kill9 kills axd at random moments of its life, early ones more often: half of
// the kills fall into the first second. What runs goes on, and is recorded once
// by the next axd.
func kill9(ctx context.Context, s *stage) (report, error) {
	rep := report{}
	if err := s.tasks(ctx, 20, ""); err != nil {
		return rep, err
	}
	var starts []time.Time
	s.finished = true
	for range s.rounds {
		d, err := s.start()
		if err != nil {
			return rep, err
		}
		starts = append(starts, d.started)
		life := s.between(20*time.Millisecond, time.Second)
		if s.rnd.IntN(2) == 0 {
			life = s.between(time.Second, 3*time.Second)
		}
		if err := sleep(ctx, life); err != nil {
			return rep, err
		}
		if err := d.kill(); err != nil {
			return rep, err
		}
		s.faults = append(s.faults, time.Now())
		rep.faults++
	}
	if err := s.settle(ctx, &rep); err != nil {
		return rep, err
	}
	var err error
	rep.worst, err = s.recovery(ctx, starts)
	return rep, err
}
