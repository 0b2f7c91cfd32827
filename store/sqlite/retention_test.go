package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store/sqlite"
	"github.com/axctl/ax/store/storetest"
)

// TestBoundedSize fires and prunes round after round: once the first rounds
// have filled the file, it does not grow.
func TestBoundedSize(t *testing.T) {
	t.Parallel()
	const tasks, rounds, perRound = 4, 12, 500
	base := time.Now().UnixMilli()
	clock := base
	path := filepath.Join(t.TempDir(), "ax.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Create: true, Now: func() time.Time { return time.UnixMilli(clock) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cs := creations(tasks, base)
	if _, err := s.Apply(t.Context(), cs); err != nil {
		t.Fatal(err)
	}
	const minute = 60_000
	next := base - base%minute + 61*minute
	first := cs.Changes[0].Task.Timetable.NextMs
	lock := int64(1)
	var filled int64
	for round := range rounds {
		for range perRound {
			var firings []ax.Firing
			clock = next
			for id := int64(1); id <= tasks; id++ {
				firings = append(firings, ax.Firing{
					TaskID: id, Version: 1, ExpectNextMs: first, ExpectLockVersion: lock, NextMs: next + minute, LastSlotMs: next, NowMs: next,
					Overlap: ax.OverlapQueue, Starts: []ax.FiringStart{{DueMs: next, Place: &ax.Handover{Host: "h1", Boot: "b1", AtMs: next}}},
				})
			}
			claimed, err := s.Claim(t.Context(), firings)
			if err != nil {
				t.Fatal(err)
			}
			var endings []ax.Ending
			for _, c := range claimed {
				if len(c.Born) != 1 {
					t.Fatalf("claimed %+v", c)
				}
				endings = append(endings, ax.Ending{
					Ref: c.Born[0].Ref, Attempt: 1, Status: ax.StatusFailed, Error: "exit status 1", ErrorClass: ax.ClassFailed,
					Cause: ax.CauseNotAccepted, StartedMs: next, EndedMs: next, StoppedMs: next, NowMs: next,
				})
			}
			if _, err := s.Finish(t.Context(), endings); err != nil {
				t.Fatal(err)
			}
			lock, first, next = lock+1, next+minute, next+minute
		}
		err := s.Prune(t.Context(), ax.PruneQuery{EndedByMs: clock - 100*minute, KeepLast: 10}, func(ax.Pruned) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if err := s.IndexHistory(t.Context(), func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		// What retention and history wait for goes up and down a little.
		if size := bytesOf(t, path); round < 6 {
			filled = max(filled, size)
		} else if size > filled+filled/10 {
			t.Fatalf("round %d: %d bytes, and %d at most in the first six", round, size, filled)
		}
	}
	rows, err := s.Instances(t.Context(), ax.InstanceFilter{Limit: 10_000})
	if err != nil || len(rows) < tasks*100 || len(rows) > tasks*101 {
		t.Errorf("%d instances are left, %v", len(rows), err)
	}
}

// bytesOf is the size of a store with its write-ahead log copied into it.
func bytesOf(t *testing.T, path string) int64 {
	t.Helper()
	if _, err := open(t, path).ExecContext(t.Context(), `PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// A store as the program before this schema left it is brought up to date, and
// loses nothing.
func TestFromSchemaOne(t *testing.T) {
	t.Parallel()
	path := populate(t)
	_, err := open(t, path).ExecContext(t.Context(), `ALTER TABLE object DROP COLUMN checked_from; ALTER TABLE meta DROP COLUMN copied_ms;
		ALTER TABLE instance DROP COLUMN verdict; DROP TABLE trigger_key;
		ALTER TABLE task DROP COLUMN failure_streak; ALTER TABLE task DROP COLUMN freeze_after;
		DROP TABLE backfill;
		DELETE FROM transition WHERE cause = 'backfill'; DELETE FROM instance WHERE kind = 'backfill';
		DROP TABLE history; DROP TABLE history_gone; DROP TRIGGER instance_gone; DROP INDEX instance_status; ALTER TABLE meta DROP COLUMN history_to;
		DROP TABLE handler_schema; DROP TABLE host_plugin; ALTER TABLE host DROP COLUMN offered_ms; ALTER TABLE host DROP COLUMN containment; ALTER TABLE host DROP COLUMN data_problem;
		ALTER TABLE object DROP COLUMN rewound_from; ALTER TABLE host DROP COLUMN pools; DROP TABLE signal; DROP TABLE progress;
		ALTER TABLE meta DROP COLUMN clock_ms; ALTER TABLE meta DROP COLUMN clock_elapsed_ms; ALTER TABLE meta DROP COLUMN clock_kernel; ALTER TABLE meta DROP COLUMN clock_former_ms;
		DELETE FROM transition WHERE cause = 'mark'; DELETE FROM migration WHERE number > 1; PRAGMA user_version = 1; UPDATE meta SET schema_version = 1`)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, path, sqlite.Options{ReadOnly: true}, ax.ErrUnavailable, "its schema is version 1")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Now: storetest.PopulatedNow})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	info, err := s.Info(t.Context())
	files, globErr := filepath.Glob("schema/*.sql")
	if err != nil || globErr != nil || info.SchemaVersion != len(files) || info.MinReader != 1 {
		t.Errorf("info is %+v, %v", info, err)
	}
	if found := findings(t, path); len(found) > 0 {
		t.Errorf("findings: %v", found)
	}
}

// A backup is a whole store of its own: it has the rows of the moment, only its
// owner reads it, and once opened for writing it has another incarnation.
func TestBackup(t *testing.T) {
	t.Parallel()
	path := populate(t)
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Now: storetest.PopulatedNow})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	copied := filepath.Join(t.TempDir(), "copy.db")
	if to, err := s.Backup(t.Context(), copied); err != nil || to != copied {
		t.Fatalf("backup to %s: %v", to, err)
	}
	if _, err := s.Backup(t.Context(), copied); err == nil {
		t.Error("a backup was overwritten")
	}
	if err := s.Join(t.Context(), ax.Host{Name: "after"}); err != nil { // the original goes on alone
		t.Error(err)
	}
	if st, err := os.Stat(copied); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(copied), "*")); err != nil || len(left) != 1 {
		t.Errorf("beside the copy: %v, %v", left, err)
	}
	if found := findings(t, copied); len(found) > 0 {
		t.Errorf("findings: %v", found)
	}
	info := func(s *sqlite.Store) ax.StoreInfo {
		t.Helper()
		i, err := s.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	original := info(s).Incarnation
	var last string
	for i := range 3 {
		c, err := sqlite.Open(t.Context(), copied, sqlite.Options{ReadOnly: i == 0, Now: storetest.PopulatedNow})
		if err != nil {
			t.Fatal(err)
		}
		got := info(c)
		switch {
		case got.ID != info(s).ID:
			t.Error("the copy is another store")
		case (got.Incarnation == original) != (i == 0):
			t.Errorf("opening %d: incarnation %s, and the original's is %s", i, got.Incarnation, original)
		case i == 2 && got.Incarnation != last:
			t.Error("a copy was renewed twice")
		}
		last = got.Incarnation
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	var mode string
	if err := open(t, copied).QueryRowContext(t.Context(), `PRAGMA journal_mode`).Scan(&mode); err != nil || mode != "wal" {
		t.Errorf("the copy's journal mode is %q, %v", mode, err)
	}
}

// A backup that cannot be finished leaves nothing behind.
func TestBackupCutShort(t *testing.T) {
	t.Parallel()
	s, err := sqlite.Open(t.Context(), populate(t), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	dir := t.TempDir()
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := s.Backup(ended, filepath.Join(dir, "copy.db")); err == nil {
		t.Error("a cancelled backup was made")
	}
	if _, err := s.Backup(t.Context(), filepath.Join(dir, "no", "copy.db")); err == nil {
		t.Error("a backup was made in no folder")
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Firings go on while a ledger of old rows is deleted: each commits between two
// steps, long before the deleting ends.
func TestPruneBesideFirings(t *testing.T) {
	t.Parallel()
	const old = 60_000
	s, base := benchStore(t, 10, old)
	started := make(chan struct{})
	done := make(chan error, 1)
	var steps atomic.Int64
	go func() {
		q := ax.PruneQuery{EndedByMs: base, KeepLast: 1}
		done <- s.Prune(t.Context(), q, func(n ax.Pruned) error {
			if n.Rows() > ax.PruneStep {
				return fmt.Errorf("a step of %d rows", n.Rows())
			}
			if steps.Add(1) == 1 {
				close(started)
			}
			return nil
		})
	}()
	<-started
	const firings = 5
	for i := range firings {
		before := steps.Load()
		if err := s.Join(t.Context(), ax.Host{Name: "h1", Boot: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
		if after := steps.Load(); after-before > 20 {
			t.Errorf("a write waited for %d steps", after-before)
		}
	}
	if n := steps.Load(); n > old/ax.PruneStep-1 {
		t.Errorf("%d writes waited until all was deleted (%d steps)", firings, n)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := steps.Load(); n < old/ax.PruneStep {
		t.Errorf("%d steps", n)
	}
}

// BenchmarkPrune deletes the older half of a ledger of a million rows, tells how
// long the longest of its transactions held the writer, and how long it takes
// to find that nothing is left to delete.
func BenchmarkPrune(b *testing.B) {
	for range b.N {
		b.StopTimer()
		const old = 1_000_000
		s, base := benchStore(b, 1000, old)
		q := ax.PruneQuery{EndedByMs: base - 10_000_000 + old/2, KeepLast: 100}
		var longest time.Duration
		deleted := int64(0)
		b.StartTimer()
		began := time.Now()
		last := began
		err := s.Prune(context.Background(), q, func(n ax.Pruned) error {
			if deleted += n.Rows(); deleted > ax.PruneStep { // the first has counted too
				longest = max(longest, time.Since(last))
			}
			last = time.Now()
			return nil
		})
		if err != nil || deleted != old/2 {
			b.Fatalf("%d deleted, %v", deleted, err)
		}
		b.ReportMetric(float64(deleted)/time.Since(began).Seconds(), "rows/s")
		b.ReportMetric(float64(longest.Microseconds())/1000, "longest-ms")
		began = time.Now()
		if err := s.Prune(context.Background(), q, func(ax.Pruned) error { return nil }); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "idle-sweep-ms")
	}
}
