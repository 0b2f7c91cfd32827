package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/axctl/ax/plugins"
	pb "github.com/axctl/ax/plugins/proto"
)

// Words of the protocol for how an attempt ended.
const (
	statusSuccess   = "success"
	statusFailed    = "failed"
	statusTimeout   = "timeout"
	statusCancelled = "cancelled"
	classTimeout    = "timeout"
	classCancelled  = "cancelled"
	classLost       = "lost"
)

// attempt is one job's entry in the ledger.
type attempt struct {
	job     *pb.Job
	handler plugins.Handler
	out     output
	live    live
	ctx     context.Context
	cancel  context.CancelCauseFunc

	// Guarded by Executor.mu.
	result
	started int64
	stopped int64
	said    pb.Kind // the last that this session was told
	marked  bool    // has news for it
	acked   bool    // its end is durable; stopped is still to be told
	stuck   string  // what of it cannot be killed, "" nothing
	warned  bool    // this session was told that
}

// result is how an attempt ended. The first one stands.
type result struct {
	ended   int64 // 0: not yet
	status  string
	class   string
	error   string
	outputs []byte
	exit    int32 // plugins.Error.ExitCode
	http    int32 // plugins.Error.HTTPStatus
}

func (e *Executor) newAttempt(j *pb.Job, h plugins.Handler, now int64) *attempt {
	a := &attempt{job: j, handler: h, started: now}
	a.live.begun = time.Now()
	if j.TimeoutMs > 0 {
		limit := time.Duration(j.TimeoutMs) * time.Millisecond
		a.live.limit = newCountdown(limit, func() {
			e.interrupt(a, ErrTimeout, fmt.Sprintf("timed out after %s", limit))
		})
	}
	a.ctx, a.cancel = context.WithCancelCause(e.ctx)
	a.out.queue, a.out.job, a.out.now, a.out.ctx = e.queue, j, e.nowMs, a.ctx
	a.out.head, a.out.tail.max = e.opts.OutputHead, e.opts.OutputTail
	return a
}

// errGoexit is the end of an attempt whose handler called runtime.Goexit.
var errGoexit = Permanent(errors.New("handler ended its goroutine"))

// run does the attempt and enters its end, also when the handler leaves by
// runtime.Goexit.
func (e *Executor) run(a *attempt) {
	defer e.running.Done()
	defer a.live.limit.stop()
	if h := a.job.HeartbeatMs; h > 0 {
		go e.watch(a, time.Duration(h)*time.Millisecond)
	}
	var outputs plugins.Outputs
	err := errGoexit
	defer func() {
		if p := recover(); p != nil {
			stack := debug.Stack()
			_, _ = fmt.Fprintf(stream{&a.out, pb.Stream_STREAM_STDERR}, "panic: %v\n%s", p, stack)
			err = Permanent(fmt.Errorf("panic: %v\n%s", p, stack))
		}
		e.finish(a, outputs, err)
	}()
	outputs, err = a.handler.Run(a.ctx, e.view(a))
}

// finish enters what the handler returned, unless the attempt has ended
// otherwise before, and that it is over.
func (e *Executor) finish(a *attempt, outputs plugins.Outputs, err error) {
	r := result{status: statusSuccess}
	if err != nil {
		r.status, r.class = statusFailed, string(plugins.Classify(err))
		r.error = clean(err.Error(), plugins.MaxErrorBytes)
		exit, http := plugins.Codes(err)
		r.exit, r.http = int32(exit), int32(http)
		if errors.Is(context.Cause(a.ctx), ErrHostGone) {
			r = lost(r.error) // it was stopped, so this says nothing of the work
		}
	}
	r.outputs = encode(a, outputs)
	a.cancel(nil)
	a.out.close()
	e.mu.Lock()
	a.stopped = e.nowMs()
	e.queueProgress(a)
	a.live.news = false
	if a.ended == 0 {
		r.ended = a.stopped
		a.result = r
	}
	e.mark(a)
	e.mu.Unlock()
	e.wake()
}

// lost is the end of an attempt that was stopped for no reason of its own.
func lost(said string) result {
	return result{
		status: statusFailed, class: classLost,
		error: clean("its executor was ended while it ran; "+said, plugins.MaxErrorBytes),
	}
}

// interrupt ends an attempt that has not ended, at once, and tells its
// handler why.
func (e *Executor) interrupt(a *attempt, cause error, detail string) {
	r := result{status: statusCancelled, class: classCancelled}
	switch {
	case errors.Is(cause, ErrTimeout):
		r = result{status: statusTimeout, class: classTimeout}
	case errors.Is(cause, ErrSilent):
		r = result{status: statusFailed, class: classLost}
	}
	if detail == "" {
		detail = cause.Error()
	}
	r.error = clean(detail, plugins.MaxErrorBytes)
	e.mu.Lock()
	if a.ended != 0 {
		e.mu.Unlock()
		return
	}
	r.ended = e.nowMs()
	a.result = r
	e.mark(a)
	e.mu.Unlock()
	e.wake()
	a.cancel(cause)
}

// report says what the session was not told of a yet. Called with mu held.
func (e *Executor) report(a *attempt) *pb.Report {
	r := &pb.Report{
		BatchNo: a.job.BatchNo, StartedMs: a.started,
		OutputBytes: a.out.bytes.Load(), OutputDropped: a.out.dropped.Load(),
	}
	stuck := a.stuck != "" && a.stopped == 0 && !a.warned
	switch {
	case stuck && (a.said == pb.Kind_KIND_ENDED || a.said == pb.Kind_KIND_STARTED && a.ended == 0):
		r.Kind, r.Error = pb.Kind_KIND_UNKILLABLE, a.stuck
		a.warned = true
		return r
	case a.ended == 0:
		r.Kind = pb.Kind_KIND_STARTED
	case a.said == pb.Kind_KIND_ENDED:
		r.Kind = pb.Kind_KIND_STOPPED
		r.StoppedMs = a.stopped
	default:
		a.fill(r)
	}
	a.said = r.Kind
	if stuck {
		e.mark(a)
	}
	if a.stopped != 0 && a.acked {
		delete(e.attempts, a.job.BatchNo)
	}
	return r
}

// fill makes r the report of the attempt's end.
func (a *attempt) fill(r *pb.Report) {
	r.Kind = pb.Kind_KIND_ENDED
	r.Status, r.Class, r.Error, r.Outputs = a.status, a.class, a.error, a.outputs
	r.EndedMs, r.StoppedMs = a.ended, a.stopped
	r.ExitCode, r.HttpStatus = a.exit, a.http
}

// warn enters that what an attempt began cannot be killed.
func (e *Executor) warn(a *attempt, what string) {
	a.out.note("it cannot be killed, and keeps its place: " + what)
	e.mu.Lock()
	a.stuck, a.warned = clean(what, plugins.MaxErrorBytes), false
	e.mark(a)
	e.mu.Unlock()
	e.wake()
}

// view is the job as the handler sees it.
func (e *Executor) view(a *attempt) plugins.Job {
	j := a.job
	return plugins.Job{
		BatchNo: j.BatchNo, InstanceID: j.Instance, Attempt: int(j.Attempt),
		Stack: j.Stack, Task: j.Task, Handler: j.Handler, Body: j.Body,
		Due:            time.UnixMilli(j.DueMs).In(time.FixedZone(j.Timezone, int(j.UtcOffsetS))),
		Timeout:        time.Duration(j.TimeoutMs) * time.Millisecond,
		KillAfter:      time.Duration(j.KillAfterMs) * time.Millisecond,
		IdempotencyKey: j.IdempotencyKey,
		Output: plugins.Output{
			Stdout: stream{&a.out, pb.Stream_STREAM_STDOUT},
			Stderr: stream{&a.out, pb.Stream_STREAM_STDERR},
			Note:   a.out.note,
		},
		Unkillable: func(what string) { e.warn(a, what) },
		Live: plugins.Live{
			Progress:  func(percent float64, text string) { e.tellProgress(a, percent, text) },
			Heartbeat: func() { a.out.signs.Store(true) },
			OnSignal: func(f func(plugins.Signal) error) {
				e.mu.Lock()
				defer e.mu.Unlock()
				a.live.onSignal = f
			},
		},
	}
}

// encode returns the outputs as JSON, or, when they cannot be kept, a mark in
// their place: the attempt's end does not depend on them.
func encode(a *attempt, outputs plugins.Outputs) []byte {
	if len(outputs) == 0 {
		return nil
	}
	b, err := json.Marshal(outputs)
	switch {
	case err != nil:
		a.out.note("outputs dropped: " + err.Error())
		b, _ = json.Marshal(plugins.Outputs{plugins.OutputsDropped: clean(err.Error(), plugins.MaxErrorBytes)})
	case len(b) > plugins.MaxOutputsBytes:
		why := fmt.Sprintf("%d bytes of JSON, over the limit of %d", len(b), plugins.MaxOutputsBytes)
		a.out.note("outputs dropped: " + why)
		b, _ = json.Marshal(plugins.Outputs{plugins.OutputsDropped: why})
	}
	return b
}
