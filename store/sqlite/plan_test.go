package sqlite

import (
	"context"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store/check"
	"github.com/axctl/ax/store/storetest"
)

// unbounded are the plan steps that walk a table that grows, or sort what they
// read of it.
var unbounded = regexp.MustCompile(`SCAN (o|i|k|h|instance|history|history_gone|t|task|transition|attempt|skipped|trigger_key|backfill|b|definition|d)\b|USE TEMP B-TREE FOR ORDER BY`)

// walks are statements that may: they are for people, bounded by LIMIT in the
// order of the key, or by an index that holds open rows alone.
func walks(sql, step string) bool {
	return strings.Contains(step, "USING INDEX instance_open") ||
		strings.Contains(step, "USING INDEX instance_pending") || strings.Contains(step, "USING COVERING INDEX instance_pending") ||
		strings.Contains(step, "USING INDEX task_due") || strings.Contains(step, "USING COVERING INDEX instance_waiting") ||
		strings.Contains(step, "USING COVERING INDEX instance_open") ||
		strings.Contains(sql, "FROM hold") ||
		strings.Contains(sql, "o.id IN (SELECT value") || // sorts what was asked for
		strings.Contains(sql, "INDEXED BY instance_id WHERE k.id >") || // sorts what is not in history yet, up to LIMIT
		strings.Contains(sql, "k.status = 'dispatched'") || // sorts what runs, up to LIMIT
		strings.Contains(sql, "k.status = 'pending'") || // and what waits
		strings.Contains(sql, "FROM history_gone") ||
		strings.Contains(step, "USING COVERING INDEX skipped_task") || // once a sweep of retention
		strings.Contains(step, "USING INDEX backfill_open") || strings.Contains(sql, "ORDER BY b.id DESC") && step == "SCAN b" ||
		strings.Contains(sql, "FROM instance k WHERE 1") && step == "SCAN k" // newest first, up to LIMIT
}

// Every statement that the store runs for one of everything finds its rows by a
// key, whatever is bound: since 3.54 SQLite plans anew for 0 and 1.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{Now: storetest.PopulatedNow})
	storetest.Populate(t, s)
	ctx := t.Context()
	info, err := s.Instances(ctx, ax.InstanceFilter{TaskID: 1, SinceMs: 1, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, err1 := s.Instances(ctx, ax.InstanceFilter{Before: &info[0].Ref})
	for _, f := range []ax.InstanceFilter{
		{Status: ax.Statuses},
		{Status: []ax.Status{ax.StatusFailed, ax.StatusPending, ax.StatusDispatched}},
		{TaskID: 1, Status: []ax.Status{ax.StatusSuccess}},
		{TaskID: 1, Status: []ax.Status{ax.StatusFailed, ax.StatusPending, ax.StatusDispatched}, SinceMs: 1, Before: &info[0].Ref},
		{TaskID: 1, Before: &info[0].Ref},
		{SinceMs: 1},
	} {
		if _, err := s.Instances(ctx, f); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.IndexHistory(ctx, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	_, err2 := s.DueTasks(ctx, 1, ax.DueCursor{}, 1)
	_, err3 := s.Pending(ctx, ax.PendingQuery{UntilMs: 1, Limit: 1})
	_, err4 := s.Pending(ctx, ax.PendingQuery{AfterID: 1, Limit: 1})
	_, err5 := s.Open(ctx, "h1")
	_, err6 := s.Cancels(ctx, "h1")
	_, err7 := s.EndingHolds(ctx, 1)
	_, err8 := s.Counts(ctx)
	err9 := s.Prune(ctx, ax.PruneQuery{EndedByMs: storetest.PopulatedMs, KeysByMs: storetest.PopulatedMs}, func(ax.Pruned) error { return nil })
	_, err10 := s.Instance(ctx, info[0].ID)
	_, err11 := s.Backfills(ctx, ax.BackfillFilter{TaskID: 1})
	all, err12 := s.Backfills(ctx, ax.BackfillFilter{States: []ax.BackfillState{ax.BackfillPaused}})
	if len(all) != 1 {
		t.Fatal(all)
	}
	_, err13 := s.Tries(ctx, 1, []int64{1})
	_, err14 := s.MoveBackfill(ctx, ax.BackfillMove{ID: all[0].ID, To: ax.BackfillRunning, Who: "ann"})
	_, err15 := s.Fill(ctx, ax.Fill{BackfillID: all[0].ID, ExpectPositionMs: all[0].PositionMs, Slots: []int64{all[0].PositionMs}})
	_, err16 := s.MoveBackfill(ctx, ax.BackfillMove{ID: all[0].ID, To: ax.BackfillCancelled, Who: "ann"})
	_, err17 := s.Objects(ctx, ax.ObjectFilter{Kind: ax.KindTask, Name: "a"})
	_, err18 := s.Objects(ctx, ax.ObjectFilter{IDs: []int64{1}})
	for _, err := range []error{err1, err2, err3, err4, err5, err6, err7, err8, err9, err10, err11, err12, err13, err14, err15, err16, err17, err18} {
		if err != nil {
			t.Fatal(err)
		}
	}
	texts := map[string]bool{}
	for sql := range s.writer.conn.stmts {
		texts[sql] = true
	}
	for range readers {
		if c := <-s.free; c != nil {
			for sql := range c.stmts {
				texts[sql] = true
			}
		}
	}
	for range readers {
		s.free <- nil
	}
	audit := regexp.MustCompile(`ORDER BY (o\.id|d\.object_id, d\.version|i\.id|instance_id, (seq|attempt)|1, 2, 3|b\.id)$`)
	people := regexp.MustCompile(`WHERE TRUE( AND s.name = \?)? ORDER BY s\.name|WHERE o\.stack_id|i\.status = 'pending' AND o\.stack_id|AND i\.status = 'dispatched' AND o\.stack_id`)
	planned := 0
	listed := regexp.MustCompile(`FROM (history k|instance k WHERE|instance k INDEXED BY instance_status)`)
	for sql := range maps.Keys(texts) {
		if audit.MatchString(sql) || people.MatchString(sql) || !regexp.MustCompile(`^\s*(SELECT|UPDATE|INSERT|DELETE)`).MatchString(sql) {
			continue
		}
		planned++
		for _, value := range []int64{1, 1000} {
			for _, step := range plan(t, s, sql, value) {
				if listed.MatchString(sql) && !strings.Contains(sql, "k.status = 'pending'") && strings.Contains(step, "TEMP B-TREE") {
					t.Errorf("with %d bound a page of instances is sorted: %s\n%s", value, step, sql)
				}
				if unbounded.MatchString(step) && !walks(sql, step) {
					t.Errorf("with %d bound, %s\n\t%s", value, step, sql)
				}
			}
		}
	}
	if planned < 30 {
		t.Errorf("only %d statements were looked at", planned)
	}
}

// An audit reads each table from end to end, once: no row of one makes it read
// another one whole, as NOT IN of a list does.
func TestAuditPlans(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{Now: storetest.PopulatedNow})
	storetest.Populate(t, s)
	if _, err := check.Check(t.Context(), s, storetest.PopulatedNow()); err != nil {
		t.Fatal(err)
	}
	planned := 0
	for range readers {
		c := <-s.free
		if c == nil {
			continue
		}
		for sql := range c.stmts {
			if !strings.Contains(sql, "ORDER BY") || strings.Contains(sql, "LIMIT") {
				continue
			}
			planned++
			inRow := false
			for _, step := range plan(t, s, sql, 1) {
				switch {
				case strings.Contains(step, "LIST SUBQUERY"):
					t.Errorf("%s\n\t%s", step, sql)
				case strings.Contains(step, "SUBQUERY"):
					inRow = strings.HasPrefix(step, "CORRELATED")
				case inRow && strings.HasPrefix(step, "SCAN"):
					t.Errorf("for each row, %s\n\t%s", step, sql)
				case !strings.HasPrefix(step, "SEARCH"):
					inRow = false
				}
			}
		}
		defer func() { s.free <- c }()
	}
	if planned < 8 {
		t.Errorf("only %d statements were looked at", planned)
	}
}

// plan returns the steps of a statement's plan with value bound to everything.
func plan(t *testing.T, s *Store, sql string, value int64) (steps []string) {
	t.Helper()
	args := make([]any, 20)
	for i := range args {
		args[i] = value
	}
	err := s.writer.alone(t.Context(), func(c *conn) error {
		return c.query(context.Background(), func(r *row) error {
			r.at = 3
			steps = append(steps, r.text())
			return nil
		}, `EXPLAIN QUERY PLAN `+sql, args...)
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	return steps
}
