package dispatch

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

// clean makes a report fit to be kept, whatever a plugin sent: it has an end
// with a known status, a class where it is no success, and bounded, valid
// texts.
func clean(r ax.Report, nowMs int64) ax.Report {
	r.Error = ax.CleanText(r.Error, ax.MaxErrorBytes)
	if len(r.Outputs) > ax.MaxOutputsBytes || !json.Valid(r.Outputs) {
		r.Outputs = nil
	}
	switch r.Kind {
	case ax.ReportStarted:
		if r.StartedMs == 0 {
			r.StartedMs = nowMs
		}
		return r
	case ax.ReportUnkillable:
		return r
	case ax.ReportStopped:
		if r.StoppedMs == 0 {
			r.StoppedMs = nowMs
		}
		return r
	case ax.ReportRefused:
		r.Status, r.ErrorClass = ax.StatusFailed, cmp.Or(r.ErrorClass, ax.ClassPermanent)
	case ax.ReportLost:
		r.Status, r.ErrorClass = ax.StatusFailed, ax.ClassLost
	}
	if r.EndedMs == 0 {
		r.EndedMs = nowMs
	}
	if r.StoppedMs == 0 && r.Kind != ax.ReportEnded {
		r.StoppedMs = r.EndedMs
	}
	switch r.Status {
	case ax.StatusSuccess:
		r.ErrorClass = ""
	case ax.StatusTimeout:
		r.ErrorClass = ax.ClassTimeout
	case ax.StatusCancelled:
		r.ErrorClass = ax.ClassCancelled
	case ax.StatusFailed:
		if r.ErrorClass == "" {
			r.ErrorClass = ax.ClassFailed
		}
	default:
		r.Error = ax.CleanText(fmt.Sprintf("the executor reported the unknown status %q: %s", r.Status, r.Error), ax.MaxErrorBytes)
		r.Status, r.ErrorClass = ax.StatusFailed, ax.ClassFailed
	}
	return r
}

// subject is what is known of an attempt when its end is decided on.
type subject struct {
	ref       ax.Ref
	attempt   int
	spec      *ax.TaskSpec // nil: its version is not to be found
	startedMs int64
	cancelBy  string // who asked to cancel it, "" nobody
}

// conclude says what is to be written for a cleaned end report. A retry can be
// written only when the attempt's processes are gone: until then it returns
// false, and is asked again with the report of the stop.
func conclude(s subject, r ax.Report, nowMs int64) (ax.Ending, bool) {
	if s.spec != nil && r.Status == ax.StatusFailed && r.Kind == ax.ReportEnded {
		r.ErrorClass = rules.Classify(s.spec.ErrorClasses, rules.Outcome{
			Class: r.ErrorClass, ExitCode: r.ExitCode, HTTPStatus: r.HTTPStatus, Error: r.Error,
		})
	}
	e := ax.Ending{
		Ref: s.ref, Attempt: s.attempt, Status: r.Status,
		StartedMs: r.StartedMs, EndedMs: r.EndedMs, StoppedMs: r.StoppedMs,
		ErrorClass: r.ErrorClass, Error: r.Error,
		Outputs: r.Outputs, OutputBytes: r.OutputBytes, OutputDropped: r.OutputDropped,
		NowMs: nowMs,
	}
	if e.StartedMs == 0 {
		e.StartedMs = s.startedMs
	}
	e.Cause, e.Detail = cause(s, r)
	if r.Status == ax.StatusSuccess || r.Status == ax.StatusCancelled || s.spec == nil {
		return e, true
	}
	f := rules.Failure{InstanceID: s.ref.ID, Attempt: s.attempt, DueMs: s.ref.DueMs, Class: r.ErrorClass}
	notBefore, again := rules.Retry(s.spec.Retry, s.spec.Idempotent, f, nowMs)
	if !again {
		return e, true
	}
	e.Status, e.RetryStatus, e.NotBeforeMs = ax.StatusPending, r.Status, notBefore
	if e.Cause == "" {
		e.Cause = ax.CauseRetry
	}
	_, zone := zoneOf(s.spec)
	e.Next = fmt.Sprintf("attempt %d not before %s", s.attempt+1, ax.FormatInstant(notBefore, zone))
	return e, r.StoppedMs != 0
}

// cause returns what the life line says of an end that is no plain report.
func cause(s subject, r ax.Report) (ax.Cause, string) {
	switch {
	case r.Kind == ax.ReportRefused:
		return ax.CauseNotAccepted, r.Error
	case r.Kind == ax.ReportLost || r.ErrorClass == ax.ClassLost:
		return ax.CauseLost, r.Error
	case r.Status == ax.StatusTimeout:
		return ax.CauseTimeout, r.Error
	case r.Status == ax.StatusCancelled && s.cancelBy != "":
		return ax.CauseCancel, ax.CancelDetail(s.cancelBy)
	case r.Status == ax.StatusCancelled:
		return ax.CauseCancel, r.Error
	default:
		return "", ""
	}
}

// stopped returns the ending that only frees the place of an attempt whose end
// is written already.
func stopped(ref ax.Ref, attempt int, stoppedMs, nowMs int64) ax.Ending {
	return ax.Ending{Ref: ref, Attempt: attempt, StoppedMs: stoppedMs, Cause: ax.CauseStopped, NowMs: nowMs}
}
