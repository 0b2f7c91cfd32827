package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"time"
)

// Handler is named code that does the work of attempts. Run is called by many
// goroutines at once. A handler that is an io.Closer is closed when the last
// attempt is over and the executor ends.
type Handler interface {
	// Schema describes the handler and the body it takes. It never changes
	// while the process lives.
	Schema() Schema
	// Run does one attempt and returns when its work, with every process and
	// goroutine it began, is over. ctx ends at the attempt's timeout
	// (ErrTimeout), when it is cancelled (ErrCancelled), when it gives no sign of
	// life for its task's heartbeat (ErrSilent) and when the host is gone
	// (ErrHostGone); context.Cause tells which. A nil error is success;
	// Classify tells what class any other error has. Outputs may come with
	// an error.
	Run(ctx context.Context, job Job) (Outputs, error)
}

// Job is one attempt as its handler sees it. Its writers may be used by many
// goroutines at once until Run returns; later writes are refused.
type Job struct {
	BatchNo    string // names the attempt, the same if it is handed over again
	InstanceID int64
	Attempt    int // from 1
	Stack      string
	Task       string // address, as in task.report
	Handler    string
	Body       json.RawMessage
	// Due is the slot's nominal instant, with the offset that the task's zone
	// has then; its Location is named after that zone and knows no other offset.
	Due       time.Time
	Timeout   time.Duration // 0: none
	KillAfter time.Duration // between asking a process to end and killing it
	// IdempotencyKey is the same for all attempts of an instance: give it to
	// what must not do the same work twice.
	IdempotencyKey string
	Output         Output
	// Unkillable tells people that what the attempt began does not end although
	// it was killed, and what that is. The attempt keeps its place until Run
	// returns, which must not be before it is gone.
	Unkillable func(what string)
	Live
}

// Live is what a running attempt and people tell one another.
type Live struct {
	// Progress tells people how far the attempt is: a number from 0 to 100, or
	// less than 0 for none, and one line of text, at most MaxProgressBytes. It
	// may be called as often as is easy: they see one a second.
	Progress func(percent float64, text string)
	// Heartbeat is a sign of life, for a task with a heartbeat whose attempts
	// neither print nor tell their progress for longer than that.
	Heartbeat func()
	// OnSignal says what to do when a person pauses the attempt and lets it go
	// on; f is called by another goroutine, once at a time, and returns when that
	// is so. Without it the attempt refuses to be paused. While it is paused its
	// timeout and its heartbeat stand still.
	OnSignal func(f func(Signal) error)
}

// Signal is what a person asks of a running attempt, other than to end.
type Signal string

// The signals.
const (
	Pause  Signal = "pause"
	Resume Signal = "resume"
)

// Output is where what an attempt says is kept. Any bytes may be written;
// the attempt's log keeps the first and the last of them up to a cap, and what
// falls out between is counted and marked.
type Output struct {
	Stdout io.Writer
	Stderr io.Writer
	// Note adds a remark of the handler about the attempt, one line.
	Note func(text string)
}

// Logger returns a logger that writes lines of text on Stderr.
func (o Output) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(o.Stderr, nil)) }

// Outputs are named results of an attempt for those that depend on it. Their
// JSON is at most MaxOutputsBytes; larger outputs are dropped and marked.
type Outputs map[string]any

// OutputsDropped is the one output that stands in the place of outputs that
// were too large or no JSON; its value says why.
const OutputsDropped = "ax_dropped"

// Bounds of what an attempt reports.
const (
	MaxOutputsBytes = 64 << 10
	MaxErrorBytes   = 4 << 10
	// MaxProgressBytes bounds a progress text.
	MaxProgressBytes = 200
)

// Causes of the end of a handler's context.
var (
	ErrTimeout   = errors.New("timed out")
	ErrCancelled = errors.New("cancelled")
	ErrHostGone  = errors.New("axd is gone")
	ErrSilent    = errors.New("no sign of life")
)

// Class is what kind of failure an error is, in the words of the language's
// retry.on.
type Class string

// The classes a handler may choose. The others (timeout, cancelled, lost) are
// found by ax itself.
const (
	Transient Class = "transient" // soon better: network, 502, 504
	Resource  Class = "resource"  // better later: 429, 503, full
	Failed    Class = "failed"    // the work was done and failed: exit code, status
	Permanent Class = "permanent" // never better; never retried
)

// Error is an error of a known class. Its codes are what a user's error_class
// blocks class a Failed one by.
type Error struct {
	Class      Class
	Err        error
	ExitCode   int // of a process; 128 and the number of the signal that killed it; 0 none
	HTTPStatus int // of a response; 0 none
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Classify returns the class of the first Error that err wraps, else Failed.
func Classify(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return Failed
}

// Codes returns the codes of the first Error that err wraps, 0 where there is
// none.
func Codes(err error) (exitCode, httpStatus int) {
	var e *Error
	if errors.As(err, &e) {
		return e.ExitCode, e.HTTPStatus
	}
	return 0, 0
}
