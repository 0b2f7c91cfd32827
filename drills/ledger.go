package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/logs"
	"github.com/axctl/ax/store"
	"github.com/axctl/ax/store/check"
	_ "modernc.org/sqlite" // the drill asks with plain SQL, as an operator would
)

// doubledSQL and lostSQL are asked of a store whose tasks all fire each second.
// What a clock that was ahead has fired lies after the next slot of its task: the
// holes before it have not come yet.
const (
	doubledSQL = `SELECT task_id, slot_key, count(*) FROM instance WHERE slot_key LIKE 's:%' GROUP BY 1, 2 HAVING count(*) > 1`
	lostSQL    = `WITH slot(task_id, due_ms) AS (
    SELECT task_id, due_ms FROM instance WHERE slot_key LIKE 's:%'),
  follows AS (
    SELECT task_id, due_ms, lead(due_ms) OVER (PARTITION BY task_id ORDER BY due_ms) AS next_ms FROM slot)
SELECT task_id, due_ms + 1000, next_ms - 1000 FROM follows f JOIN task t ON t.object_id = f.task_id
WHERE next_ms < coalesce(t.next_fire_time, next_ms + 1) AND next_ms - due_ms > 1000 AND (next_ms - due_ms) / 1000 - 1 > (
    SELECT coalesce(sum((s.to_ms - s.from_ms) / 1000 + 1), 0) FROM skipped s
    WHERE s.task_id = f.task_id AND s.from_ms > f.due_ms AND s.to_ms < f.next_ms)`
	openSQL = `SELECT id, status FROM instance WHERE status = 'dispatched' OR handed_ms IS NOT NULL AND stopped_ms IS NULL AND status NOT IN ('pending', 'waiting', 'skipped')`
)

// database opens the store as an operator who looks would, writable as one who
// writes.
func (s *stage) database() (*sql.DB, error) { return s.sqlite("mode=ro&_pragma=busy_timeout(10000)") }

func (s *stage) writable() (*sql.DB, error) { return s.sqlite("mode=rw&_pragma=busy_timeout(10000)") }

func (s *stage) sqlite(options string) (*sql.DB, error) {
	return sql.Open("sqlite", (&url.URL{Scheme: "file", Path: s.storePath(), RawQuery: options}).String())
}

// ask prints a question and returns how many rows answered it.
func (s *stage) ask(ctx context.Context, about, query string) (int, error) {
	db, err := s.database()
	if err != nil {
		return 0, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", about, err)
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		n++
	}
	fmt.Printf("-- %s: %d rows\n%s;\n", about, n, query)
	return n, rows.Err()
}

// audit asks the store and the ledger after all faults. All attempts must have
// ended: axd has drained.
func (s *stage) audit(ctx context.Context, rep *report) error {
	var err error
	if rep.doubled, err = s.ask(ctx, "slots with two rows", doubledSQL); err != nil {
		return err
	}
	if rep.lost, err = s.ask(ctx, "holes between two slots of a task", lostSQL); err != nil {
		return err
	}
	open, err := s.ask(ctx, "attempts without an end", openSQL)
	if err != nil {
		return err
	}
	if open > 0 {
		return fmt.Errorf("%d attempts have no end although axd has drained", open)
	}
	st, err := store.Open(ctx, "sqlite:"+s.storePath(), store.Options{ReadOnly: true, Now: time.Now})
	if err != nil {
		return err
	}
	defer st.Close()
	findings, err := check.Check(ctx, st, time.Now())
	if err != nil {
		return err
	}
	for _, f := range findings {
		fmt.Println("  invariant:", f)
	}
	if len(findings) > 0 {
		return fmt.Errorf("%d invariants do not hold", len(findings))
	}
	return s.auditLedger(ctx, st, rep)
}

// auditLedger compares the store with what really ran: no batch number was
// started twice, and every success ran once to its end.
func (s *stage) auditLedger(ctx context.Context, st store.Store, rep *report) error {
	ran, err := ledgerOf(s.ledgerPath())
	if err != nil {
		return err
	}
	for batch, at := range ran.starts {
		if len(at) > 1 {
			rep.doubled++
			fmt.Printf("  batch %s was started %d times\n", batch, len(at))
		}
	}
	info, err := st.Info(ctx)
	if err != nil {
		return err
	}
	counts := map[ax.Status]int{}
	retried := 0
	succeeded := map[string]bool{}
	var ids []int64 // of successes
	f := ax.InstanceFilter{Limit: 1000}
	for {
		rows, err := st.Instances(ctx, f)
		if err != nil {
			return err
		}
		for _, r := range rows {
			counts[r.Status]++
			if r.Attempt > 1 {
				retried++
			}
			batch := ax.BatchNo(info.Incarnation, r.ID, r.Attempt)
			if r.Status == ax.StatusSuccess {
				succeeded[batch] = true
				ids = append(ids, r.ID)
			}
			if r.Status == ax.StatusSuccess && (len(ran.starts[batch]) != 1 || len(ran.ends[batch]) != 1) {
				return fmt.Errorf("instance %d is a success, and batch %s was started %d times and ended %d times",
					r.ID, batch, len(ran.starts[batch]), len(ran.ends[batch]))
			}
		}
		if len(rows) < f.Limit {
			break
		}
		f.Before = &rows[len(rows)-1].Ref
	}
	for batch := range ran.ends {
		if s.finished && !succeeded[batch] {
			return fmt.Errorf("batch %s was finished, and is not recorded as a success", batch)
		}
	}
	whole := ""
	if s.finished {
		n, err := s.auditOutput(ids)
		if err != nil {
			return err
		}
		whole = fmt.Sprintf(", all %d logs looked at are whole", n)
	}
	rep.note = fmt.Sprintf("; %d attempts in the ledger, none twice, %d of them over an end of axd; %d success, %d failed, %d skipped (overlap), %d pending, %d went to another attempt%s",
		len(ran.starts), ran.over(s.faults), counts[ax.StatusSuccess], counts[ax.StatusFailed], counts[ax.StatusSkipped], counts[ax.StatusPending], retried, whole)
	return nil
}

// someLogs is how many logs are looked at.
const someLogs = 500

// auditOutput looks whether the log has what successes printed, once: their lines
// in the ledger. It looks at some of them, from all of the time.
func (s *stage) auditOutput(ids []int64) (n int, err error) {
	reader := logs.NewReader(s.inHome("ax.data"))
	every := max(1, len(ids)/someLogs)
	for i := 0; i < len(ids); i += every {
		n++
		var text strings.Builder
		err := reader.Read(logs.Query{Instance: ids[i]}, func(c logs.Chunk) error {
			text.Write(c.Data)
			return nil
		})
		if err != nil {
			return n, err
		}
		if starts, ends := strings.Count(text.String(), " start "), strings.Count(text.String(), " end "); starts != 1 || ends != 1 {
			return n, fmt.Errorf("instance %d is a success, and its log has its first line %d times and its last %d times:\n%s", ids[i], starts, ends, text.String())
		}
	}
	return n, nil
}

// recovery returns the longest time from the start of an axd to its first
// claim. Starts that were killed before any claim count from their start to
// the first claim of a later one.
func (s *stage) recovery(ctx context.Context, starts []time.Time) (time.Duration, error) {
	db, err := s.database()
	if err != nil {
		return 0, err
	}
	defer db.Close()
	var worst time.Duration
	for _, t := range starts {
		var first sql.NullInt64
		err := db.QueryRowContext(ctx, `SELECT min(claimed_ms) FROM instance WHERE claimed_ms >= ? AND claimed_ms < ?`,
			t.UnixMilli(), t.Add(time.Minute).UnixMilli()).Scan(&first)
		if err != nil {
			return 0, err
		}
		if first.Valid {
			worst = max(worst, time.UnixMilli(first.Int64).Sub(t))
		}
	}
	return worst, nil
}
