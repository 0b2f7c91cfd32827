package sqlite

import (
	"context"
	"testing"
)

// logOf returns how many pages the write-ahead log has, and how many of them
// are in the database.
func logOf(t *testing.T, s *Store) (log, copied int64) {
	t.Helper()
	err := s.beside(t.Context(), func(c *conn) error {
		return c.query(context.Background(), func(r *row) error { r.next(); log, copied = r.int64(), r.int64(); return nil }, `PRAGMA wal_checkpoint(NOOP)`)
	})
	if err != nil {
		t.Fatal(err)
	}
	return log, copied
}

// put commits pages of data.
func put(t *testing.T, s *Store, pages int) {
	t.Helper()
	err := s.write(t.Context(), 1, func(tx *tx) error {
		if _, err := tx.exec(`CREATE TABLE IF NOT EXISTS filler (bytes)`); err != nil {
			return err
		}
		_, err := tx.exec(`INSERT INTO filler VALUES (randomblob(?))`, pages*4096)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A short log is left alone. A long one is copied whole, and then the next
// commit begins it anew.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	for _, step := range []struct {
		pages       int
		least, most int64 // pages of the log then
		copied      bool
	}{
		{pages: checkpointPages / 2, least: checkpointPages / 2, most: checkpointPages - 1},
		{pages: checkpointPages, least: checkpointPages, most: walPages, copied: true},
		{pages: 1, least: 1, most: checkpointPages - 1},
		{pages: checkpointPages, least: checkpointPages, most: walPages, copied: true},
	} {
		put(t, s, step.pages)
		if err := s.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		log, copied := logOf(t, s)
		if log < step.least || log > step.most || (copied == log) != step.copied {
			t.Errorf("after %d pages: %d of %d are copied", step.pages, copied, log)
		}
	}
}

// What a snapshot still reads is not copied, which neither fails nor holds
// anyone up; when it is over it is.
func TestCheckpointBesideASnapshot(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	put(t, s, 1)
	err := s.read(t.Context(), func(c *conn) error {
		if err := c.query(t.Context(), func(*row) error { return nil }, `SELECT 1 FROM filler`); err != nil {
			return err
		}
		put(t, s, 2*checkpointPages)
		if err := s.Checkpoint(t.Context()); err != nil {
			return err
		}
		if log, copied := logOf(t, s); copied > log/2 {
			t.Errorf("%d of %d pages are copied", copied, log)
		}
		return join(t.Context(), s, "h1")
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	if log, copied := logOf(t, s); copied != log {
		t.Errorf("%d of %d pages are copied", copied, log)
	}
}
