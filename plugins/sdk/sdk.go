package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/axctl/ax/plugins"
)

// The contract's words, so that authors import one package.
type (
	// Job is one attempt as its handler sees it.
	Job = plugins.Job
	// Signal is what a person asks of a running attempt, see Job.OnSignal.
	Signal = plugins.Signal
	// Outputs are named results of an attempt.
	Outputs = plugins.Outputs
)

// The signals.
const (
	Pause  = plugins.Pause
	Resume = plugins.Resume
)

// Causes of the end of a handler's context, found by context.Cause.
var (
	ErrTimeout   = plugins.ErrTimeout
	ErrCancelled = plugins.ErrCancelled
	ErrHostGone  = plugins.ErrHostGone
	ErrSilent    = plugins.ErrSilent
)

// Transient marks err as one that a retry will soon mend. It returns nil for nil.
func Transient(err error) error { return classed(plugins.Transient, err) }

// Resource marks err as one that needs a longer wait: a limit, a full disk.
func Resource(err error) error { return classed(plugins.Resource, err) }

// Permanent marks err as one that no retry can mend.
func Permanent(err error) error { return classed(plugins.Permanent, err) }

func classed(c plugins.Class, err error) error {
	if err == nil {
		return nil
	}
	return &plugins.Error{Class: c, Err: err}
}

// Decode reads a handler's body into a struct with json tags, for handlers that
// are not made by Handler. An attribute that the struct does not have, and any
// other fault, is a permanent error.
func Decode(body []byte, in any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(in); err != nil {
		return Permanent(fmt.Errorf("handler body: %w", err))
	}
	return nil
}
