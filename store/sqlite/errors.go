package sqlite

import (
	"context"
	"errors"
	"fmt"

	"modernc.org/sqlite"

	"github.com/axctl/ax"
)

// Result codes of SQLite (its primary codes, the low byte).
const (
	codeBusy       = 5
	codeLocked     = 6
	codeNoMem      = 7
	codeReadOnly   = 8
	codeInterrupt  = 9
	codeIO         = 10
	codeCorrupt    = 11
	codeFull       = 13
	codeCantOpen   = 14
	codeProtocol   = 15
	codeConstraint = 19
	codeNotADB     = 26
)

// errGone is the cause when the store's file is not the one that was opened.
var errGone = errors.New("its file was removed or replaced")

// errLogGone is the cause when its write-ahead log is not.
var errLogGone = errors.New("its write-ahead log was removed or replaced")

// code returns the primary result code of err, 0 when it is none of SQLite's.
func code(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

func isBusy(err error) bool { return code(err) == codeBusy || code(err) == codeLocked }

// explain turns a driver's error into one of ax's, with what an operator can
// do. Errors of ax and of contexts pass as they are.
func (s *Store) explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	unavailable := func(hint string, args ...any) error {
		return ax.WithHint(fmt.Errorf("store %s: %w: %w", s.path, ax.ErrUnavailable, err), hint, args...)
	}
	switch {
	case errors.Is(err, errGone):
		return unavailable("put %s back as it was, or restart axd to go on with the file that is there", s.path)
	case errors.Is(err, errLogGone):
		return unavailable("put %s-wal back, or stop axd with SIGTERM before anything else uses the store: as it ends it writes "+
			"what the log held into the store; then start it again", s.path)
	case errors.Is(err, ax.ErrBusy):
		return ax.WithHint(fmt.Errorf("store %s: %w", s.path, err), "it is held by %s; wait for it, or end it", lockHolder(s.path))
	case errors.Is(err, errCommit) && code(err) == 0:
		return unavailable("see that the disk of %s is there and sound", s.path)
	}
	switch code(err) {
	case 0:
		return err
	case codeBusy, codeLocked, codeProtocol:
		return ax.WithHint(fmt.Errorf("store %s: %w: %w", s.path, ax.ErrBusy, err), "it is held by %s; try again", lockHolder(s.path))
	case codeFull:
		return unavailable("free space on the disk that holds %s; work goes on by itself then", s.path)
	case codeReadOnly:
		return unavailable("make %s and its folder writable, or remount its disk", s.path)
	case codeIO, codeCantOpen, codeNoMem, codeInterrupt:
		return unavailable("see that the disk of %s is there and sound", s.path)
	case codeCorrupt, codeNotADB:
		return unavailable("%s is damaged; restore it from a backup", s.path)
	default:
		return fmt.Errorf("store %s: %w", s.path, err)
	}
}
