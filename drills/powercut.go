package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store"
	"github.com/axctl/ax/store/check"
)

// powercut ends all processes at one moment, as a machine does that loses its
// power, and cuts the store's write-ahead log anywhere near its end: the disk is
// as it was a moment earlier, perhaps in the middle of a write. The store opens,
// and for what it has committed all promises hold.
//
// What the handlers did after that moment did not happen either, so what the
// ledger says of it is taken out: attempts that the store does not know yet.
func powercut(ctx context.Context, s *stage) (report, error) {
	rep := report{}
	if err := s.tasks(ctx, 50, ""); err != nil {
		return rep, err
	}
	var starts []time.Time
	var cut int64
	torn := 0
	for n := range s.rounds {
		d, err := s.start()
		if err != nil {
			return rep, err
		}
		starts = append(starts, d.started)
		if _, err := s.claims(ctx); err != nil {
			return rep, fmt.Errorf("round %d: %w", n+1, err)
		}
		if err := sleep(ctx, s.between(100*time.Millisecond, 2*time.Second)); err != nil {
			return rep, err
		}
		for _, p := range s.processes() {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		<-d.done
		if err := s.gone(ctx, endWithin); err != nil {
			return rep, err
		}
		rep.faults++
		bytes, err := s.cutLog()
		if err != nil {
			return rep, err
		}
		if cut += bytes; bytes > 0 {
			torn++
		}
		if err := s.sound(ctx); err != nil {
			return rep, fmt.Errorf("round %d, %d bytes cut: %w", n+1, bytes, err)
		}
		if err := s.forget(ctx); err != nil {
			return rep, err
		}
	}
	if err := s.settle(ctx, &rep); err != nil {
		return rep, err
	}
	var err error
	rep.worst, err = s.recovery(ctx, starts)
	rep.note = fmt.Sprintf("; %d logs cut, %d bytes", torn, cut) + rep.note
	return rep, err
}

// cutLog cuts the tail of the write-ahead log: some bytes, or some pages.
func (s *stage) cutLog() (int64, error) {
	name := s.storePath() + "-wal"
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	most := []int64{100, 4096, 20 * 4096}[s.rnd.IntN(3)]
	cut := min(1+s.rnd.Int64N(most), info.Size())
	return cut, os.Truncate(name, info.Size()-cut)
}

// sound fails unless the store opens, SQLite finds it whole, and the invariants
// hold.
func (s *stage) sound(ctx context.Context) error {
	st, err := store.Open(ctx, "sqlite:"+s.storePath(), store.Options{ReadOnly: true, Now: time.Now})
	if err != nil {
		return fmt.Errorf("after the power cut: %w", err)
	}
	defer st.Close()
	findings, err := check.Check(ctx, st, time.Now())
	if err == nil && len(findings) > 0 {
		err = fmt.Errorf("%d invariants do not hold: %s", len(findings), findings[0])
	}
	return err
}

// forget takes out of the ledger what happened after the moment that the store
// is at.
func (s *stage) forget(ctx context.Context) error {
	db, err := s.database()
	if err != nil {
		return err
	}
	defer db.Close()
	text, err := os.ReadFile(s.ledgerPath())
	if err != nil {
		return err
	}
	var kept bytes.Buffer
	known := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		batch, _, _ := strings.Cut(line, " ")
		if _, ok := known[batch]; !ok {
			if known[batch], err = started(ctx, db, batch); err != nil {
				return err
			}
		}
		if known[batch] {
			kept.WriteString(line)
		}
	}
	return os.WriteFile(s.ledgerPath(), kept.Bytes(), 0o600)
}

// started reports whether the store has handed over an attempt.
func started(ctx context.Context, db *sql.DB, batch string) (bool, error) {
	_, id, attempt, ok := ax.ParseBatchNo(batch)
	if !ok {
		return false, fmt.Errorf("the ledger has batch number %q", batch)
	}
	var last int
	var handed sql.NullInt64
	err := db.QueryRowContext(ctx, `SELECT attempt, handed_ms FROM instance WHERE id = ?`, id).Scan(&last, &handed)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return attempt < last || attempt == last && handed.Valid, err
}
