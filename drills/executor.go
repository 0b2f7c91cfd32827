package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"syscall"
	"time"
)

// loopAfter is how many deaths in a row axd takes without waiting for long; in
// the round after them axd dies too, and the next one counts anew.
const loopAfter = 3

// hangsEvery is how many rounds have one executor that hangs among them, the
// tenth for one: that takes longer than all the others.
const hangsEvery = 100

// hungWithin is how much later than a death axd may end an executor that hangs:
// it pings one of which it has heard nothing for 10 s, waits 20 s for its answer
// and 8 s for it to end by itself.
const hungWithin = 38 * time.Second

// deaths are what the end of an executor is measured by: how long after it every
// attempt that it ran was judged, and how long after it the next one was there.
type deaths struct{ judge, up time.Duration }

func (d deaths) max(e deaths) deaths { return deaths{max(d.judge, e.judge), max(d.up, e.up)} }

// killExecutor kills the shell executor under a living axd, and after the death
// of axd, and stops it: what it ran is lost and tried again, and nothing of it is
// left.
func killExecutor(ctx context.Context, s *stage) (report, error) {
	rep := report{}
	if err := s.tasks(ctx, 50, ""); err != nil {
		return rep, err
	}
	d, err := s.start()
	if err != nil {
		return rep, err
	}
	var worst, hung deaths
	var starts figures
	for n := range s.rounds {
		if err := sleep(ctx, s.between(200*time.Millisecond, 1500*time.Millisecond)); err != nil {
			return rep, err
		}
		switch {
		case n%hangsEvery == 9:
			var f deaths
			if f, err = s.executorEnds(ctx, syscall.SIGSTOP, hungWithin); err == nil {
				hung = hung.max(f)
			}
		case n%(loopAfter+1) < loopAfter:
			var f deaths
			if f, err = s.executorEnds(ctx, syscall.SIGKILL, 0); err == nil {
				worst = worst.max(f)
			}
		default:
			var f figures
			if d, f, err = s.bothDie(ctx, d); err == nil {
				starts = starts.max(f)
			}
		}
		if err != nil {
			return rep, fmt.Errorf("round %d: %w", n+1, err)
		}
		rep.faults++
	}
	if err := s.end(ctx, d, &rep); err != nil {
		return rep, err
	}
	rep.worst = max(worst.up, starts.claim)
	note := fmt.Sprintf("; from the death of an executor to the last of its attempts judged at most %d ms, to the next executor %d ms",
		worst.judge.Milliseconds(), worst.up.Milliseconds())
	if hung != (deaths{}) {
		note += fmt.Sprintf("; from a stop of it %d ms and %d ms", hung.judge.Milliseconds(), hung.up.Milliseconds())
	}
	if starts != (figures{}) {
		note += "; with axd dead too" + strings.TrimPrefix(starts.String(), ";")
	}
	rep.note = note + rep.note
	return rep, nil
}

// executorEnds signals the executor under a living axd and measures until all
// that it ran is judged and another one is there; late is what that may take
// beyond the limit.
func (s *stage) executorEnds(ctx context.Context, sig syscall.Signal, late time.Duration) (deaths, error) {
	var f deaths
	pid, err := s.awaitExecutor(ctx, 0)
	if err != nil {
		return f, err
	}
	db, err := s.database()
	if err != nil {
		return f, err
	}
	defer db.Close()
	ran, err := dispatched(ctx, db)
	if err != nil {
		return f, err
	}
	from := time.Now()
	if err := syscall.Kill(pid, sig); err != nil {
		return f, fmt.Errorf("signal the executor: %w", err)
	}
	if f.judge, err = judged(ctx, db, ran, from); err != nil {
		return f, err
	}
	if _, err := s.awaitExecutor(ctx, pid); err != nil {
		return f, err
	}
	f.up = time.Since(from)
	if most := s.limits.judge + late; f.judge > most || f.up > most {
		return f, fmt.Errorf("%s after %v of the executor all that it ran was judged, and another one was there after %s (%s allowed)", f.judge, sig, f.up, most)
	}
	return f, nil
}

// bothDie kills axd, then the executor that would have outlived it, and measures
// the next axd.
func (s *stage) bothDie(ctx context.Context, d *daemon) (*daemon, figures, error) {
	pid, err := s.awaitExecutor(ctx, 0)
	if err != nil {
		return d, figures{}, err
	}
	if err := d.kill(); err != nil {
		return d, figures{}, err
	}
	if err := sleep(ctx, s.between(0, 200*time.Millisecond)); err != nil {
		return d, figures{}, err
	}
	db, err := s.database()
	if err != nil {
		return d, figures{}, err
	}
	defer db.Close()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return d, figures{}, fmt.Errorf("kill executor: %w", err)
	}
	ran, err := dispatched(ctx, db)
	if err != nil {
		return d, figures{}, err
	}
	d, f, err := s.restart(ctx)
	if err != nil {
		return d, f, err
	}
	// What the executor left runs on until axd clears it, and is no work that was
	// taken over.
	if f.judge, err = judged(ctx, db, ran, d.started); err != nil {
		return d, f, err
	}
	return d, f, s.limits.check(f)
}

// attemptKey names an attempt in the store.
type attemptKey struct {
	id      int64
	attempt int
}

// dispatched returns the attempts that are under way.
func dispatched(ctx context.Context, db *sql.DB) (map[attemptKey]bool, error) {
	rows, err := db.QueryContext(ctx, `SELECT id, attempt FROM instance WHERE status = 'dispatched'`)
	if err != nil {
		return nil, fmt.Errorf("look for what runs: %w", err)
	}
	defer rows.Close()
	all := map[attemptKey]bool{}
	for rows.Next() {
		var k attemptKey
		if err := rows.Scan(&k.id, &k.attempt); err != nil {
			return nil, err
		}
		all[k] = true
	}
	return all, rows.Err()
}

// judged waits until none of the attempts is under way, and returns how long
// after an instant that was.
func judged(ctx context.Context, db *sql.DB, ran map[attemptKey]bool, from time.Time) (time.Duration, error) {
	for {
		now, err := dispatched(ctx, db)
		if err != nil {
			return 0, err
		}
		left := 0
		for k := range ran {
			if now[k] {
				left++
			}
		}
		passed := time.Since(from)
		switch {
		case left == 0:
			return passed, nil
		case passed > giveUpAfter:
			return 0, fmt.Errorf("%d attempts are not judged %s after the end of their executor", left, giveUpAfter)
		}
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// awaitExecutor returns the pid of the running shell executor, when it is
// another one than before.
func (s *stage) awaitExecutor(ctx context.Context, before int) (int, error) {
	deadline := time.Now().Add(giveUpAfter)
	for time.Now().Before(deadline) {
		for _, p := range s.processes() {
			if p.pid != before && strings.HasSuffix(strings.TrimSpace(p.args), "executor shell") {
				return p.pid, nil
			}
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("no shell executor for %s", giveUpAfter)
}
