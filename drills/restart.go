package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/axctl/ax"
)

// figures are what a start of axd is measured by: how long after its exec it
// claimed first, and how long after it every attempt that was under way had
// been judged. Both count in full: slots and attempts waited for it.
type figures struct{ claim, judge time.Duration }

func (f figures) max(g figures) figures { return figures{max(f.claim, g.claim), max(f.judge, g.judge)} }

func (f figures) String() string {
	return fmt.Sprintf("; from exec to first claim at most %d ms, to the last attempt judged %d ms",
		f.claim.Milliseconds(), f.judge.Milliseconds())
}

// giveUpAfter is when a start that does not recover is given up.
const giveUpAfter = time.Minute

// restart starts axd where one has died, when slots are due that it has not
// claimed, and measures it.
func (s *stage) restart(ctx context.Context) (*daemon, figures, error) {
	var f figures
	db, err := s.database()
	if err != nil {
		return nil, f, err
	}
	defer db.Close()
	if err := untilDue(ctx, db); err != nil {
		return nil, f, err
	}
	var boots sql.NullString // that left attempts behind
	err = db.QueryRowContext(ctx, `SELECT group_concat(DISTINCT boot) FROM instance WHERE status = 'dispatched'`).Scan(&boots)
	if err != nil {
		return nil, f, fmt.Errorf("look for what was left: %w", err)
	}
	d, err := s.start()
	if err != nil {
		return nil, f, err
	}
	for f.claim == 0 || f.judge == 0 {
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return d, f, err
		}
		if f.claim == 0 {
			if f.claim, err = firstClaim(ctx, db, d.started); err != nil {
				return d, f, err
			}
		}
		if f.judge == 0 {
			left, err := s.unjudged(ctx, db, boots.String)
			if err != nil {
				return d, f, fmt.Errorf("look for what is left: %w", err)
			}
			if !left {
				f.judge = time.Since(d.started)
			}
		}
		if time.Since(d.started) > giveUpAfter {
			return d, f, fmt.Errorf("%s after its exec axd has not recovered: %+v", giveUpAfter, f)
		}
	}
	return d, f, s.limits.check(f)
}

// untilDue waits until slots are due that nobody has claimed.
func untilDue(ctx context.Context, db *sql.DB) error {
	var next sql.NullInt64
	err := db.QueryRowContext(ctx, `SELECT min(next_fire_time) FROM task WHERE enabled = 1 AND hold IS NULL`).Scan(&next)
	if err != nil {
		return fmt.Errorf("look for what is due next: %w", err)
	}
	return sleep(ctx, time.Until(time.UnixMilli(next.Int64))+20*time.Millisecond)
}

// unjudged reports whether an attempt of an earlier axd has neither its end nor
// a process that is at work on it, which axd has taken over then.
func (s *stage) unjudged(ctx context.Context, db *sql.DB, boots string) (bool, error) {
	rows, err := db.QueryContext(ctx, `SELECT incarnation, id, attempt FROM instance, meta WHERE status = 'dispatched' AND instr(?, boot) > 0`, boots)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	var left []string
	for rows.Next() {
		var incarnation string
		var id int64
		var attempt int
		if err := rows.Scan(&incarnation, &id, &attempt); err != nil {
			return false, err
		}
		left = append(left, "AX_BATCH_NO="+ax.BatchNo(incarnation, id, attempt))
	}
	if len(left) == 0 || rows.Err() != nil {
		return false, rows.Err()
	}
	living := map[string]bool{}
	for _, p := range s.processes() {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid)) // it may be gone
		for variable := range strings.SplitSeq(string(text), "\x00") {
			living[variable] = true
		}
	}
	return slices.ContainsFunc(left, func(batch string) bool { return !living[batch] }), nil
}

// firstClaim returns how long after an instant the first claim after it was, 0
// when there is none yet.
func firstClaim(ctx context.Context, db *sql.DB, from time.Time) (time.Duration, error) {
	var first sql.NullInt64
	err := db.QueryRowContext(ctx, `SELECT min(claimed_ms) FROM instance WHERE due_ms >= ? AND claimed_ms >= ?`,
		from.Add(-time.Hour).UnixMilli(), from.UnixMilli()).Scan(&first)
	if err != nil || !first.Valid {
		return 0, err
	}
	return max(time.UnixMilli(first.Int64).Sub(from), time.Millisecond), nil
}

// check fails when a start took longer than it may.
func (l figures) check(f figures) error {
	if f.claim > l.claim || f.judge > l.judge {
		return fmt.Errorf("axd took %s from exec to its first claim (%s allowed) and %s until the last attempt was judged (%s allowed)",
			f.claim, l.claim, f.judge, l.judge)
	}
	return nil
}
