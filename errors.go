package ax

import (
	"errors"
	"fmt"
)

// Errors of looking something up.
var (
	// ErrNotFound is returned when a named thing is not in the store.
	ErrNotFound = errors.New("not found")
	// ErrNoStore is returned when there is no store at the address given.
	ErrNoStore = errors.New("no store")
)

// Errors of changing something.
var (
	// ErrStale is returned by Apply when something the change was computed
	// from has changed since. StaleError says what.
	ErrStale = errors.New("stale")
	// ErrMoved is returned by Apply when time or a claim overtook the change:
	// nothing was written; compute it again and retry.
	ErrMoved = errors.New("overtaken")
	// ErrConflict is returned when an operation does not fit the state of its
	// object, such as cancelling an instance that has ended.
	ErrConflict = errors.New("conflict")
	// ErrBusy is returned when the writer was not to be had in time.
	ErrBusy = errors.New("store busy")
)

// Errors of the store itself.
var (
	// ErrUnavailable is returned while the store cannot be reached or written;
	// the caller may try again later.
	ErrUnavailable = errors.New("store unavailable")
	// ErrTooNew is returned when a newer ax wrote the store in a form that
	// this version cannot read.
	ErrTooNew = errors.New("store is newer than this program")
	// ErrDenied is returned when the store's files are not ours to use.
	ErrDenied = errors.New("store access denied")
)

// HintError is an error that an operator can mend; Hint says how.
type HintError struct {
	Err  error
	Hint string
}

func (e *HintError) Error() string { return e.Err.Error() }
func (e *HintError) Unwrap() error { return e.Err }

// WithHint attaches what to do next to err.
func WithHint(err error, format string, args ...any) error {
	return &HintError{Err: err, Hint: fmt.Sprintf(format, args...)}
}

// StaleError says what moved under a change. It is an ErrStale.
type StaleError struct {
	Address string // the object, or "" for the stack as a whole
	Read    int    // the version the change was computed from; 0 none
	Found   int    // the version found; 0 it is deleted
	Who     string // who wrote it
	AtMs    int64
}

func (e *StaleError) Error() string {
	switch {
	case e.Address == "":
		return fmt.Sprintf("the stack was read at serial %d and is now at %d", e.Read, e.Found)
	case e.Found == 0:
		return fmt.Sprintf("%s was read at v%d and is now deleted", e.Address, e.Read)
	case e.Read == 0:
		return fmt.Sprintf("%s was not there and is now v%d", e.Address, e.Found)
	default:
		return fmt.Sprintf("%s was read at v%d and is now v%d", e.Address, e.Read, e.Found)
	}
}

// Is makes errors.Is(err, ErrStale) true.
func (e *StaleError) Is(target error) bool { return target == ErrStale }
