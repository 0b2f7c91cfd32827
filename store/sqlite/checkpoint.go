package sqlite

import (
	"context"
	"fmt"
)

const (
	// checkpointPages is how many pages of the write-ahead log are worth a
	// checkpoint: a page that many commits change is copied once for all of them.
	checkpointPages = 2000
	// restPages is how many may be left for the part that holds the writer: some
	// milliseconds.
	restPages = 400
	// checkpointTurns bounds how often commits that are faster than the copying
	// are run after; what they leave is the next call's.
	checkpointTurns = 4
)

// Checkpoint implements ax.Upkeep. It copies the write-ahead log into the
// database beside the writer, again and again until little is left, and that
// little while the writer waits: only when all is copied does the next commit
// begin the log anew. A snapshot that is being read puts this off, since its
// pages are still needed.
//
// How the log works is told at https://www.sqlite.org/wal.html.
func (s *Store) Checkpoint(ctx context.Context) error {
	var log, copied int64
	turn := func(mode string) func(*conn) error {
		return func(c *conn) error {
			return c.query(context.Background(), func(r *row) error { r.next(); log, copied = r.int64(), r.int64(); return nil },
				`PRAGMA wal_checkpoint(`+mode+`)`)
		}
	}
	if err := s.beside(ctx, turn("NOOP")); err != nil || log < checkpointPages || copied == log {
		return wrapCheckpoint(err)
	}
	for n := 0; log-copied > restPages; n++ {
		before := copied
		if err := s.beside(ctx, turn("PASSIVE")); err != nil || n == checkpointTurns || copied == before {
			return wrapCheckpoint(err)
		}
	}
	return wrapCheckpoint(s.explain(s.writer.alone(ctx, turn("PASSIVE"))))
}

func wrapCheckpoint(err error) error {
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}
