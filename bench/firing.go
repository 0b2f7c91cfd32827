package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store"
	_ "modernc.org/sqlite" // results are read with plain SQL
)

const (
	benchTasks = 100_000
	loopBatch  = 500
)

// looper fires tasks of a store without wheel or executors: what the store
// alone can do, with two batches under way as in the daemon.
type looper struct {
	st    store.Store
	tasks []ax.DueTask
	at    int
	dueMs int64
}

func newLooper(ctx context.Context, st store.Store) (*looper, error) {
	l := &looper{st: st, dueMs: time.Now().Add(-24 * time.Hour).UnixMilli()}
	var cur ax.DueCursor
	for {
		page, err := st.DueTasks(ctx, 1<<60, cur, 10_000)
		if err != nil {
			return nil, err
		}
		l.tasks = append(l.tasks, page...)
		if len(page) < 10_000 {
			return l, nil
		}
		last := page[len(page)-1]
		cur = ax.DueCursor{NextMs: last.NextMs, TaskID: last.TaskID}
	}
}

// fire runs n firings, or until the time is over, and returns how many it did.
func (l *looper) fire(ctx context.Context, n int, limit time.Duration) (int, error) {
	begin := time.Now()
	claimed := make(chan []ax.Ending, 1)
	failed := make(chan error, 1)
	go func() {
		for es := range claimed {
			if _, err := l.st.Finish(ctx, es); err != nil {
				failed <- err
				return
			}
		}
		failed <- nil
	}()
	done := 0
	for done < n && time.Since(begin) < limit {
		es, err := l.claim(ctx, min(loopBatch, n-done))
		if err != nil {
			close(claimed)
			return done, errors.Join(err, <-failed)
		}
		select {
		case claimed <- es:
		case err := <-failed:
			return done, err
		}
		done += len(es)
	}
	close(claimed)
	return done, <-failed
}

func (l *looper) claim(ctx context.Context, n int) ([]ax.Ending, error) {
	now := time.Now().UnixMilli()
	fs := make([]ax.Firing, n)
	idx := make([]int, n)
	for i := range fs {
		l.dueMs++
		t := &l.tasks[l.at]
		idx[i] = l.at
		l.at = (l.at + 1) % len(l.tasks)
		fs[i] = ax.Firing{
			TaskID: t.TaskID, Version: t.Version, ExpectNextMs: t.NextMs, ExpectLockVersion: t.LockVersion,
			NextMs: t.NextMs + 1, LastSlotMs: l.dueMs, NowMs: now, Overlap: ax.OverlapQueue,
			Starts: []ax.FiringStart{{DueMs: l.dueMs, Place: &ax.Handover{Attempt: 1, Host: "bench", Boot: "b", Executor: "noop", AtMs: now, DeadlineMs: now + 30_000}}},
		}
	}
	got, err := l.st.Claim(ctx, fs)
	if err != nil {
		return nil, err
	}
	es := make([]ax.Ending, 0, n)
	for i, c := range got {
		if c.Lost || c.Born[0].Status != ax.StatusDispatched {
			return nil, fmt.Errorf("firing of task %d: lost %v, %+v", fs[i].TaskID, c.Lost, c.Born)
		}
		t := &l.tasks[idx[i]]
		t.NextMs, t.LockVersion = fs[i].NextMs, c.LockVersion
		es = append(es, ax.Ending{
			Ref: c.Born[0].Ref, Attempt: 1, Status: ax.StatusSuccess,
			StartedMs: now, EndedMs: now, StoppedMs: now, NowMs: now,
		})
	}
	return es, nil
}

func benchLoop(ctx context.Context, b *bench) error {
	path := b.path("loop.db")
	if err := b.aged(ctx, path, spaced(24*time.Hour, benchTasks)); err != nil {
		return err
	}
	st, err := store.Open(ctx, "sqlite:"+path, store.Options{Now: time.Now, Log: quiet()})
	if err != nil {
		return err
	}
	defer st.Close()
	l, err := newLooper(ctx, st)
	if err != nil {
		return err
	}
	size := storeSize(path)
	begin := time.Now()
	n, err := l.fire(ctx, 1<<30, b.secs)
	if err != nil {
		return err
	}
	took := time.Since(begin)
	b.loopRate = float64(n) / took.Seconds()
	fmt.Printf("  %.0f firings/s (%s for %d, %d tasks in random order, %d past instances); %.0f bytes a firing\n",
		b.loopRate, round(took), n, benchTasks, b.old, float64(storeSize(path)-size)/float64(n))
	begin = time.Now()
	if _, err := l.fire(ctx, 10_000, time.Hour); err != nil {
		return err
	}
	b.loopBurst = time.Since(begin)
	fmt.Printf("  10,000 firings in %s\n", round(b.loopBurst))
	return nil
}

// loop makes sure that the store-only loop was measured in this run.
func (b *bench) loop(ctx context.Context) error {
	if b.loopRate > 0 {
		return nil
	}
	fmt.Println("  (first the store-only loop, for the ratio)")
	return benchLoop(ctx, b)
}

// aged makes a store of tasks with b.old past instances.
func (b *bench) aged(ctx context.Context, path string, spec func(i int) ax.ScheduleSpec) error {
	st, err := stockOf(ctx, path, benchTasks, "noop", spec)
	if err != nil {
		return err
	}
	if err := st.Close(); err != nil {
		return err
	}
	if b.old == 0 {
		return nil
	}
	return ageStore(ctx, path, b.old)
}

// spaced spreads tasks evenly over a period, a few a millisecond.
func spaced(period time.Duration, tasks int) func(i int) ax.ScheduleSpec {
	return func(i int) ax.ScheduleSpec {
		off := time.Duration(i) * period / time.Duration(tasks)
		return ax.ScheduleSpec{
			Every: ax.DurationOf(period),
			From:  ax.FormatInstant(off.Milliseconds(), time.UTC),
		}
	}
}

func benchThroughput(ctx context.Context, b *bench) error {
	if err := b.loop(ctx); err != nil {
		return err
	}
	path := b.path("throughput.db")
	if err := b.aged(ctx, path, spaced(2*time.Second, benchTasks)); err != nil { // offers 50,000/s
		return err
	}
	w, err := work(ctx, path, 4096)
	if err != nil {
		return err
	}
	// Until each task has fired once, definitions are being read for the first
	// time: that is the start line's matter.
	if err := sleep(ctx, 10*time.Second); err != nil {
		return err
	}
	from := time.Now()
	if err := sleep(ctx, b.secs); err != nil {
		return err
	}
	to := time.Now()
	if err := w.stop(); err != nil {
		return err
	}
	n, _, err := measured(ctx, path, from, to)
	if err != nil {
		return err
	}
	b.throughputRate = float64(n) / to.Sub(from).Seconds()
	fmt.Printf("  %.0f firings/s, due to recorded; ratio to the store-only loop %.2f\n", b.throughputRate, b.throughputRate/b.loopRate)
	return nil
}

func benchHalf(ctx context.Context, b *bench) error {
	if b.throughputRate == 0 {
		if err := benchThroughput(ctx, b); err != nil {
			return err
		}
	}
	period := time.Duration(float64(benchTasks) / (b.throughputRate / 2) * float64(time.Second)).Truncate(time.Second)
	period = max(period, time.Second)
	path := b.path("half.db")
	if err := b.aged(ctx, path, spaced(period, benchTasks)); err != nil {
		return err
	}
	late, err := b.lateness(ctx, path, 4096, period+2*time.Second)
	if err != nil {
		return err
	}
	fmt.Printf("  at %.0f firings/s: due to started mean %s, p50 %s, p99 %s\n", float64(benchTasks)/period.Seconds(),
		round(mean(late)), round(percentile(late, 0.5)), round(percentile(late, 0.99)))
	return nil
}

func benchSpread(ctx context.Context, b *bench) error {
	path := b.path("spread.db")
	st, err := stockOf(ctx, path, 1000, "noop", spaced(10*time.Second, 1000))
	if err != nil {
		return err
	}
	if err := st.Close(); err != nil {
		return err
	}
	late, err := b.lateness(ctx, path, 64, 3*time.Second)
	if err != nil {
		return err
	}
	p50, p99 := percentile(late, 0.5), percentile(late, 0.99)
	fmt.Printf("  due to started p50 %s (fdatasync median %s, so %s above it), p99 %s, of %d firings\n",
		round(p50), round(b.fdatasync), round(p50-b.fdatasync), round(p99), len(late))
	return nil
}

// lateness works a store for a warm-up and b.secs and returns due → started.
func (b *bench) lateness(ctx context.Context, path string, places int, warm time.Duration) ([]time.Duration, error) {
	w, err := work(ctx, path, places)
	if err != nil {
		return nil, err
	}
	if err := sleep(ctx, warm); err != nil {
		return nil, err
	}
	from := time.Now()
	if err := sleep(ctx, b.secs); err != nil {
		return nil, err
	}
	to := time.Now()
	if err := w.stop(); err != nil {
		return nil, err
	}
	_, late, err := measured(ctx, path, from, to)
	return late, err
}

func benchBurst(ctx context.Context, b *bench) error {
	if err := b.loop(ctx); err != nil {
		return err
	}
	return b.burst(ctx, "noop", 10_000, 10_000, func(all time.Duration) {
		fmt.Printf("  all 10,000 started %s after due; ratio to the store-only loop %.2f\n", round(all), float64(all)/float64(b.loopBurst))
	})
}

// burst makes n tasks due in one instant and tells when the last has started.
func (b *bench) burst(ctx context.Context, handler string, n, places int, tell func(last time.Duration)) error {
	path := b.path(handler + "burst.db")
	due := time.Now().Add(8 * time.Second).Truncate(time.Second)
	st, err := stockOf(ctx, path, n, handler, func(int) ax.ScheduleSpec { return ax.ScheduleSpec{At: []string{due.UTC().Format(time.RFC3339)}} })
	if err != nil {
		return err
	}
	if err := st.Close(); err != nil {
		return err
	}
	w, err := work(ctx, path, places)
	if err != nil {
		return err
	}
	if err := sleep(ctx, time.Until(due)+4*time.Second); err != nil {
		return err
	}
	if err := w.stop(); err != nil {
		return err
	}
	got, late, err := measured(ctx, path, due, due.Add(time.Minute))
	if err != nil {
		return err
	}
	if got != n {
		return fmt.Errorf("%d of %d ended", got, n)
	}
	tell(percentile(late, 1))
	return nil
}

// measured returns how many scheduled instances ended in [from, to) and, of
// those due in it, due → started.
func measured(ctx context.Context, path string, from, to time.Time) (int, []time.Duration, error) {
	db, err := openSQL(path, "ro")
	if err != nil {
		return 0, nil, err
	}
	defer db.Close()
	var n int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM instance WHERE ended_ms >= ? AND ended_ms < ? AND status = 'success' AND due_ms >= ?`,
		from.UnixMilli(), to.UnixMilli(), from.Add(-time.Minute).UnixMilli()).Scan(&n); err != nil {
		return 0, nil, err
	}
	rows, err := db.QueryContext(ctx, `SELECT started_ms - due_ms FROM instance WHERE due_ms >= ? AND due_ms < ? AND started_ms IS NOT NULL`, from.UnixMilli(), to.UnixMilli())
	if err != nil {
		return 0, nil, err
	}
	defer rows.Close()
	var late []time.Duration
	for rows.Next() {
		var ms int64
		if err := rows.Scan(&ms); err != nil {
			return 0, nil, err
		}
		late = append(late, time.Duration(ms)*time.Millisecond)
	}
	return n, late, rows.Err()
}

func openSQL(path, mode string) (*sql.DB, error) {
	return sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: "mode=" + mode}).String())
}

// ageStore adds n ended instances from the days before, as a year of work
// leaves them, by one SQL statement.
func ageStore(ctx context.Context, path string, n int) error {
	db, err := openSQL(path, "rw")
	if err != nil {
		return err
	}
	defer db.Close()
	first := time.Now().Add(-10 * 24 * time.Hour).UnixMilli()
	for _, statement := range []string{
		`PRAGMA synchronous = OFF`,
		fmt.Sprintf(`WITH RECURSIVE past(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM past WHERE i < %d)
INSERT INTO instance (due_ms, task_id, slot_key, id, version, kind, status, attempt, not_before_ms, claimed_ms, assigned_ms, handed_ms,
                      started_ms, ended_ms, stopped_ms, deadline_ms, host, boot, executor, output_bytes, output_dropped)
SELECT %d + i, 1 + abs(random()) %% %d, 's:' || (%d + i), i, 1, 'schedule', 'success', 1, %[2]d + i, %[2]d + i, %[2]d + i, %[2]d + i,
       %[2]d + i + 2, %[2]d + i + 3, %[2]d + i + 3, %[2]d + i + 30000, 'bench', 'b', 'noop', 0, 0
FROM past`, n, first, benchTasks, first),
		fmt.Sprintf(`UPDATE meta SET next_instance_id = %d`, n+1),
		`PRAGMA wal_checkpoint(TRUNCATE)`,
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("age store: %w", err)
		}
	}
	return nil
}

// storeSize returns the bytes of a store's files.
func storeSize(path string) int64 {
	var n int64
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(path + suffix); err == nil {
			n += info.Size()
		}
	}
	return n
}
