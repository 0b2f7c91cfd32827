package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/cmd/axd/daemon"
	"github.com/axctl/ax/store"
)

const (
	pastRows  = 1_000_000
	pastTasks = 10_000
	// A third of the past is of the busiest task, and the rarest has three.
	busiest, rarest = 1, 2
)

// benchPast measures what a million past instances change: the start, pages of
// instances before and after their history is indexed, and how long anything
// holds the writer while retention deletes half of them beside 1,000 firings a
// second.
func benchPast(ctx context.Context, b *bench) error {
	path := b.path("past.db")
	st, err := stockOf(ctx, path, pastTasks, "noop", spaced(10*time.Second, pastTasks))
	if err != nil {
		return err
	}
	if err := errors.Join(st.Close(), past(ctx, path)); err != nil {
		return err
	}
	took, err := b.starts(ctx, path, 3)
	if err != nil {
		return err
	}
	fmt.Printf("  exec to first claim: median %s, worst %s, of %d starts (target 2s)\n", round(percentile(took, 0.5)), round(percentile(took, 1)), len(took))
	if err := b.pages(ctx, path, "of a store that no axd has indexed yet"); err != nil {
		return err
	}
	if err := b.upkeep(ctx, path); err != nil {
		return err
	}
	if err := b.pages(ctx, path, "as they are while axd runs"); err != nil {
		return err
	}
	return sizes(ctx, path)
}

// past adds a million ended instances of the last 60 days, one in a thousand
// failed.
func past(ctx context.Context, path string) error {
	db, err := openSQL(path, "rw")
	if err != nil {
		return err
	}
	defer db.Close()
	first := time.Now().Add(-60 * 24 * time.Hour).UnixMilli()
	apart := (59 * 24 * time.Hour).Milliseconds() / pastRows
	for _, statement := range []string{
		`PRAGMA synchronous = OFF`,
		fmt.Sprintf(`WITH RECURSIVE past(i, due) AS (SELECT 1, %[2]d UNION ALL SELECT i + 1, due + %[3]d FROM past WHERE i < %[1]d)
INSERT INTO instance (due_ms, task_id, slot_key, id, version, kind, status, attempt, not_before_ms, claimed_ms, assigned_ms, handed_ms,
                      started_ms, ended_ms, stopped_ms, deadline_ms, host, boot, executor, output_bytes, output_dropped, error_class, error)
SELECT due, CASE WHEN i %% 3 = 0 THEN %[4]d WHEN i %% 400000 = 1 THEN %[5]d ELSE 3 + abs(random()) %% %[6]d END, 's:' || due, i, 1, 'schedule',
       CASE i %% 1000 WHEN 0 THEN 'failed' ELSE 'success' END, 1, due, due, due, due, due + 2, due + 3, due + 3, due + 30000, 'bench', 'b', 'noop', 0, 0,
       CASE i %% 1000 WHEN 0 THEN 'failed' END, CASE i %% 1000 WHEN 0 THEN 'exit status 1' END
FROM past`, pastRows, first, apart, busiest, rarest, pastTasks-2),
		fmt.Sprintf(`UPDATE meta SET next_instance_id = %d`, pastRows+1),
		`PRAGMA wal_checkpoint(TRUNCATE)`,
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("past: %w", err)
		}
	}
	return nil
}

// pages times each kind of page on a store that is opened for it, as axctl does.
func (b *bench) pages(ctx context.Context, path, when string) error {
	since := time.Now().Add(-30 * 24 * time.Hour).UnixMilli()
	failed := []ax.Status{ax.StatusFailed, ax.StatusTimeout}
	pages := []struct {
		name   string
		filter ax.InstanceFilter
	}{
		{"all", ax.InstanceFilter{}},
		{"of the busiest task", ax.InstanceFilter{TaskID: busiest}},
		{"of the rarest task", ax.InstanceFilter{TaskID: rarest}},
		{"failed", ax.InstanceFilter{Status: failed}},
		{"failed of the busiest", ax.InstanceFilter{TaskID: busiest, Status: failed}},
		{"failed of the rarest", ax.InstanceFilter{TaskID: rarest, Status: failed}},
		{"running", ax.InstanceFilter{Status: []ax.Status{ax.StatusDispatched}}},
		{"since 30 days", ax.InstanceFilter{SinceMs: since}},
		{"of the busiest since", ax.InstanceFilter{TaskID: busiest, SinceMs: since}},
	}
	fmt.Printf("  instances in pages of 100, %s (target 100ms, median of 5):\n", when)
	for _, p := range pages {
		var took []time.Duration
		n := 0
		for range 5 {
			begin := time.Now()
			st, err := store.Open(ctx, "sqlite:"+path, store.Options{ReadOnly: true, Now: time.Now, Log: quiet()})
			if err != nil {
				return err
			}
			found, err := st.Instances(ctx, p.filter)
			took = append(took, time.Since(begin))
			if err := errors.Join(err, st.Close()); err != nil {
				return err
			}
			n = len(found)
		}
		fmt.Printf("    %-22s %4d rows  %8s  worst %s\n", p.name, n, round(percentile(took, 0.5)), round(percentile(took, 1)))
	}
	var took []time.Duration
	for range 3 {
		begin := time.Now()
		if err := exec.CommandContext(ctx, b.ctl, "instances", "-store", "sqlite:"+path, "task.t000000").Run(); err != nil {
			return fmt.Errorf("axctl instances: %w", err)
		}
		took = append(took, time.Since(begin))
	}
	fmt.Printf("    axctl instances task.t000000, as a process: median %s\n", round(percentile(took, 0.5)))
	return nil
}

// upkeep lets axd work until retention and the index have nothing to do, and
// tells how long each kind of work held the writer.
func (b *bench) upkeep(ctx context.Context, path string) error {
	w, err := work(ctx, path, 4096)
	if err != nil {
		return err
	}
	begin := time.Now()
	pruned := int64(-1)
	for idle := 0; idle < 5 && time.Since(begin) < 5*time.Minute; {
		if err := sleep(ctx, 2*time.Second); err != nil {
			return errors.Join(err, w.stop())
		}
		n := hold(w.d, "prune").Count
		if idle++; n == 0 || n != pruned {
			pruned, idle = n, 0
		}
	}
	holds := w.d.Store().Holds()
	fmt.Printf("  work for %s beside an index made from nothing and a sweep of retention (target for background work 50ms):\n", round(time.Since(begin)))
	rows(func(tw *tabwriter.Writer) {
		for _, h := range holds {
			if h.Count > 0 {
				fmt.Fprintf(tw, "    %s\theld the writer %d times\tmean %s\tlongest %s\n", h.Kind, h.Count, round(h.Sum/time.Duration(h.Count)), round(h.Longest))
			}
		}
	})
	return w.stop()
}

// hold returns how long one kind of work has held the writer.
func hold(d *daemon.Daemon, kind string) ax.WriterHold {
	for _, h := range d.Store().Holds() {
		if h.Kind == kind {
			return h
		}
	}
	return ax.WriterHold{}
}

// sizes prints rows and bytes a firing, by table and index.
func sizes(ctx context.Context, path string) error {
	db, err := openSQL(path, "ro")
	if err != nil {
		return err
	}
	defer db.Close()
	var instances float64
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM instance`).Scan(&instances); err != nil {
		return err
	}
	text, total, err := sizesOf(ctx, db, instances)
	if err != nil {
		return err
	}
	fmt.Printf("  %.0f bytes a firing, of %.0f kept: %s\n", total, instances, text)
	return nil
}

func sizesOf(ctx context.Context, db *sql.DB, instances float64) (text string, total float64, err error) {
	var parts []string
	for _, table := range []string{"instance", "attempt", "transition", "history"} {
		var n, size float64
		if err := db.QueryRowContext(ctx, `SELECT count(*) FROM `+table).Scan(&n); err != nil {
			return "", 0, err
		}
		err := db.QueryRowContext(ctx, `SELECT COALESCE(sum(pgsize - unused), 0) FROM dbstat
			WHERE name IN (SELECT name FROM sqlite_schema WHERE tbl_name = ?)`, table).Scan(&size)
		if err != nil {
			return "", 0, err
		}
		total += size / instances
		parts = append(parts, fmt.Sprintf("%s %.2f rows %.0f bytes", table, n/instances, size/instances))
	}
	return strings.Join(parts, ", "), total, nil
}
