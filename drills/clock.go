package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// offsetEnv names the variable that shifts the clock of programs with failpoints:
// here a file, with a duration and, after it, whether a time server keeps it so.
const offsetEnv = "AX_TEST_CLOCK_OFFSET"

// How a wrong clock is judged.
const (
	believedWithin = 15 * time.Second // a clock that is kept right is believed
	drifts         = 3 * time.Second  // how long a clock is slow or fast
	driftStep      = 100 * time.Millisecond
	// slotsBeside is how many slots a task may have had besides one each second:
	// what each of two steps lets it catch up.
	slotsBeside = 8
)

// clockSteps lets the clock of axd be wrong under load, in turn: set and kept by
// a time server, set and set back before anybody confirms it, slow or fast, and
// set while axd is down. Executors know of no wall clock but for what they print
// and report: they count their time by the one that nobody sets.
func clockSteps(ctx context.Context, s *stage) (report, error) {
	rep := report{}
	if err := s.failing(); err != nil {
		return rep, err
	}
	s.axd = s.failingAxd
	if err := s.setClock(0, true); err != nil {
		return rep, err
	}
	s.env = []string{offsetEnv + "=" + s.path("clock")}
	if err := s.tasks(ctx, 50, ""); err != nil {
		return rep, err
	}
	d, err := s.start()
	if err != nil {
		return rep, err
	}
	faults := []func(context.Context, *daemon) (*daemon, error){s.stepKept, s.stepReturns, s.drift, s.stepWhileDown}
	for n := range s.rounds {
		before, begun := int64(0), time.Now()
		if before, err = s.mostSlots(ctx); err != nil {
			return rep, err
		}
		if d, err = faults[n%len(faults)](ctx, d); err != nil {
			return rep, fmt.Errorf("round %d: %w", n+1, err)
		}
		rep.faults++
		back, err := s.fires(ctx)
		if err != nil {
			return rep, fmt.Errorf("round %d: %w", n+1, err)
		}
		rep.worst = max(rep.worst, back)
		after, err := s.mostSlots(ctx)
		if err != nil {
			return rep, err
		}
		if most := int64(time.Since(begun).Seconds()) + slotsBeside; after-before > most {
			return rep, fmt.Errorf("round %d: a task has had %d slots in %s, %d at most were expected", n+1, after-before, time.Since(begun), most)
		}
	}
	return rep, s.end(ctx, d, &rep)
}

// setClock shifts the clock of axd.
func (s *stage) setClock(by time.Duration, synced bool) error {
	text := by.String()
	if synced {
		text += " synced"
	}
	if err := s.write("clock.new", text); err != nil {
		return err
	}
	return os.Rename(s.path("clock.new"), s.path("clock"))
}

// step returns a step that is told as one, either way.
func (s *stage) step() time.Duration {
	by := s.between(15*time.Second, 2*time.Hour)
	if s.rnd.IntN(2) == 0 {
		return -by
	}
	return by
}

// stepKept sets the clock and has it confirmed, and sets it right after some time.
func (s *stage) stepKept(ctx context.Context, d *daemon) (*daemon, error) {
	for _, by := range []time.Duration{s.step(), 0} {
		if err := s.setClock(by, true); err != nil {
			return d, err
		}
		if _, err := s.fires(ctx); err != nil {
			return d, fmt.Errorf("with a clock that is set to %s: %w", by, err)
		}
		if err := sleep(ctx, s.between(0, 2*time.Second)); err != nil {
			return d, err
		}
	}
	return d, nil
}

// stepReturns sets the clock, and sets it right before anybody believes it.
func (s *stage) stepReturns(ctx context.Context, d *daemon) (*daemon, error) {
	if err := s.setClock(s.step(), false); err != nil {
		return d, err
	}
	if err := sleep(ctx, s.between(2*time.Second, 6*time.Second)); err != nil {
		return d, err
	}
	return d, s.setClock(0, false)
}

// drift lets the clock be slow or fast, and then slowly right again.
func (s *stage) drift(ctx context.Context, d *daemon) (*daemon, error) {
	rate := s.rnd.Float64() - 0.5
	by := time.Duration(0)
	for _, sign := range []float64{1, -1} {
		for range int(drifts / driftStep) {
			by += time.Duration(sign * rate * float64(driftStep))
			if err := s.setClock(by, false); err != nil {
				return d, err
			}
			if err := sleep(ctx, driftStep); err != nil {
				return d, err
			}
		}
	}
	return d, s.setClock(0, false)
}

// stepWhileDown kills axd and starts it with another clock, and again with the
// right one.
func (s *stage) stepWhileDown(ctx context.Context, d *daemon) (*daemon, error) {
	for _, by := range []time.Duration{s.step(), 0} {
		if err := d.kill(); err != nil {
			return d, err
		}
		if err := s.setClock(by, true); err != nil {
			return d, err
		}
		var err error
		if d, err = s.start(); err != nil {
			return d, err
		}
		if _, err := s.fires(ctx); err != nil {
			return d, fmt.Errorf("started with a clock that is set to %s: %w", by, err)
		}
	}
	return d, nil
}

// newest returns the highest id of an instance.
func (s *stage) newest(ctx context.Context) (id int64, err error) {
	db, err := s.database()
	if err != nil {
		return 0, err
	}
	defer db.Close()
	return id, db.QueryRowContext(ctx, `SELECT coalesce(max(id), 0) FROM instance`).Scan(&id)
}

// fires waits until axd has fired twice more, and returns how long that took.
func (s *stage) fires(ctx context.Context) (time.Duration, error) {
	from := time.Now()
	for range 2 {
		before, err := s.newest(ctx)
		if err != nil {
			return 0, err
		}
		for id := before; id == before; {
			if time.Since(from) > believedWithin {
				return 0, fmt.Errorf("nothing has fired for %s", believedWithin)
			}
			if err := sleep(ctx, 20*time.Millisecond); err != nil {
				return 0, err
			}
			if id, err = s.newest(ctx); err != nil {
				return 0, err
			}
		}
	}
	return time.Since(from), nil
}

// mostSlots returns how many instances the task has that has most.
func (s *stage) mostSlots(ctx context.Context) (n int64, err error) {
	db, err := s.database()
	if err != nil {
		return 0, err
	}
	defer db.Close()
	return n, db.QueryRowContext(ctx, `SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM instance GROUP BY task_id)`).Scan(&n)
}
