package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/axctl/ax"
)

// The exit codes. They are a contract with scripts; exitCode is the only place
// that gives them to errors.
const (
	ExitDone        = 0
	ExitError       = 1
	ExitChanges     = 2   // -detailed-exitcode: good, and there are changes
	ExitUnparsed    = 2   // fmt: a file cannot be parsed
	ExitFindings    = 3   // fmt -check, doctor, handlers lock -check
	ExitDenied      = 4   // a guard said no
	ExitStale       = 5   // the plan is stale or from another store
	ExitBusy        = 6   // the writer was not to be had in time
	ExitDeclined    = 7   // the person said no, or there was no terminal to ask on
	ExitNotSuccess  = 8   // -wait: it did not end in success
	ExitInterrupted = 130 // SIGINT
	ExitTerminated  = 143 // SIGTERM
)

// exit is an error that only sets the exit code: the command has already
// printed all there is to say.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// coded gives an error an exit code of its own.
type coded struct {
	err  error
	code int
}

func (e *coded) Error() string { return e.err.Error() }
func (e *coded) Unwrap() error { return e.err }

// withCode returns err with the code it is to end with.
func withCode(code int, err error) error { return &coded{err, code} }

// exitCode maps the end of a command to the program's exit code.
func exitCode(err error) int {
	var bare exit
	var own *coded
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &bare):
		return int(bare)
	case errors.As(err, &own):
		return own.code
	case errors.Is(err, ax.ErrStale):
		return ExitStale
	case errors.Is(err, ax.ErrBusy):
		return ExitBusy
	default:
		return ExitError
	}
}

// afterwards is the end of a command that had written what it was asked for and
// then could not see what came of it: neither a signal nor a busy store makes it
// one that changed nothing, and calling it again would do it twice.
func afterwards(ctx context.Context, err error, done, hint string) error {
	code := ExitError
	if i := (*Interrupt)(nil); errors.As(context.Cause(ctx), &i) {
		err, code = fmt.Errorf("interrupted (%s)", i.Signal), i.Code
	}
	return withCode(code, ax.WithHint(fmt.Errorf("%w; %s", err, done), "%s", hint))
}

// interrupted is the end of a command that a signal cut short. Commands that
// have something else to say of it, such as that they had committed, end with a
// code of their own.
func interrupted(err error, i *Interrupt) error {
	var bare exit
	var own *coded
	if errors.As(err, &bare) || errors.As(err, &own) {
		return err
	}
	return withCode(i.Code, ax.Diagnostic{
		Severity: ax.SeverityError,
		Summary:  "Interrupted (" + i.Signal + "); nothing was changed",
	})
}
