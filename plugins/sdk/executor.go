package sdk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/axctl/ax/plugins"
	pb "github.com/axctl/ax/plugins/proto"
	"google.golang.org/grpc"
)

// Options are what an Executor is made of.
type Options struct {
	Plugin   string // name of the plugin
	Handlers []plugins.Handler
	Secret   string // that a host must give
	Now      func() time.Time
	// OutputHead and OutputTail are the first and last bytes that are kept of
	// an attempt's output; 0 is the default.
	OutputHead, OutputTail int
	// Grace is how long to go on without a host while attempts run or are not
	// acknowledged, IdleGrace without any; 0 is what the host says, or else
	// DefaultGrace and DefaultIdleGrace.
	Grace, IdleGrace time.Duration
	// Abandoned is called once, when the grace time is over: no session begins
	// any more.
	Abandoned func()
}

// How long an executor goes on without a host.
const (
	DefaultGrace     = 5 * time.Minute
	DefaultIdleGrace = 10 * time.Second
)

// Executor runs attempts for one host at a time: the server side of the
// protocol. Serve makes one; only tests need it otherwise.
type Executor struct {
	pb.UnimplementedExecutorServer
	opts     Options
	handlers map[string]plugins.Handler
	describe *pb.DescribeResponse
	queue    *chunkQueue
	news     chan struct{} // holds a token while there is something to send
	ctx      context.Context
	stop     context.CancelCauseFunc
	running  sync.WaitGroup

	mu       sync.Mutex // guards the fields below, and those of attempts
	attempts map[string]*attempt
	changed  []*attempt // have news for the host
	refusals []*pb.Report
	// progressed and answers wait to be told.
	progressed []*pb.Progress
	answers    []*pb.SignalAnswer
	draining   bool
	asked      bool          // for an inventory
	session    chan struct{} // closed when a newer session replaces this one; nil: none
	hello      *pb.Hello     // of the last session
	lonely     *time.Timer   // runs while there is none
	ending     bool          // no session begins any more
}

// NewExecutor returns an executor that runs nothing yet. It fails when a
// handler has no name or that of another one.
func NewExecutor(opts Options) (*Executor, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	opts.OutputHead = cmp.Or(opts.OutputHead, DefaultOutputHead)
	opts.OutputTail = cmp.Or(opts.OutputTail, DefaultOutputTail)
	e := &Executor{
		opts:     opts,
		handlers: map[string]plugins.Handler{},
		describe: &pb.DescribeResponse{Protocol: pb.Version, Plugin: opts.Plugin, Build: build()},
		news:     make(chan struct{}, 1),
		attempts: map[string]*attempt{},
	}
	e.queue = newChunkQueue(e.wake)
	e.ctx, e.stop = context.WithCancelCause(context.Background())
	for _, h := range opts.Handlers {
		schema := h.Schema()
		if _, ok := e.handlers[schema.Handler]; ok || schema.Handler == "" {
			return nil, fmt.Errorf("plugin %s: handler name %q is taken or empty", opts.Plugin, schema.Handler)
		}
		b, err := json.Marshal(schema)
		if err != nil {
			return nil, fmt.Errorf("schema of handler %s: %w", schema.Handler, err)
		}
		e.handlers[schema.Handler] = h
		e.describe.Handlers = append(e.describe.Handlers, &pb.Handler{Name: schema.Handler, Schema: b})
	}
	return e, nil
}

func build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return info.Main.Path + " " + info.Main.Version + " " + info.GoVersion
}

// Register adds the executor's service to a server.
func (e *Executor) Register(s grpc.ServiceRegistrar) { pb.RegisterExecutorServer(s, e) }

// Stop takes no more jobs and no new session, ends the context of every attempt
// with cause and waits until their handlers have returned, or ctx ends; it
// reports which. Then it closes the handlers that have a Close method.
func (e *Executor) Stop(ctx context.Context, cause error) error {
	e.mu.Lock()
	e.draining, e.ending = true, true
	if e.lonely != nil {
		e.lonely.Stop()
	}
	e.mu.Unlock()
	e.stop(cause)
	done := make(chan struct{})
	go func() {
		e.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return errors.New("handlers have not returned")
	}
	var errs []error
	for _, h := range e.opts.Handlers {
		if c, ok := h.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// take does what a message of a session's host asks. What a host had said that
// was replaced before it was read is void: the next one was told by the inventory
// what was not begun, and gives it again, or has judged it.
func (e *Executor) take(session chan struct{}, m *pb.Down) {
	e.mu.Lock()
	if e.session != session {
		e.mu.Unlock()
		return
	}
	if m.Credit > 0 {
		e.queue.grant(m.Credit)
	}
	for _, a := range e.begin(m.Jobs) {
		go e.run(a)
	}
	for _, s := range m.Signals {
		e.signal(s)
	}
	e.draining = e.draining || m.Drain
	e.asked = e.asked || m.Inventory
	for _, batchNo := range m.Acks {
		e.forget(batchNo)
	}
	e.mu.Unlock()
	for _, c := range m.Cancels {
		e.cancel(c)
	}
	e.wake()
}

// begin enters the jobs that are new, tells again of those that are known and
// refuses the rest. It returns the attempts that are to run. Called with mu held.
func (e *Executor) begin(jobs []*pb.Job) (fresh []*attempt) {
	now := e.nowMs()
	for _, j := range jobs {
		if a, ok := e.attempts[j.BatchNo]; ok {
			if a.job.Hash == j.Hash {
				a.said, a.warned = pb.Kind_KIND_UNKNOWN, false
				e.mark(a)
			} else {
				e.refuse(j, plugins.Permanent, "batch number "+j.BatchNo+" was given before with another job")
			}
			continue
		}
		h, ok := e.handlers[j.Handler]
		switch {
		case !ok:
			e.refuse(j, plugins.Permanent, fmt.Sprintf("executor %s has no handler %q", e.opts.Plugin, j.Handler))
		case e.draining:
			e.refuse(j, plugins.Transient, "executor "+e.opts.Plugin+" takes no more jobs")
		default:
			a := e.newAttempt(j, h, now)
			e.attempts[j.BatchNo] = a
			e.mark(a)
			fresh = append(fresh, a)
		}
	}
	e.running.Add(len(fresh))
	return fresh
}

// refuse is called with mu held.
func (e *Executor) refuse(j *pb.Job, class plugins.Class, why string) {
	e.refusals = append(e.refusals, &pb.Report{
		BatchNo: j.BatchNo, Kind: pb.Kind_KIND_REFUSED, Class: string(class),
		Error: clean(why, plugins.MaxErrorBytes), EndedMs: e.nowMs(),
	})
}

func (e *Executor) cancel(c *pb.Cancel) {
	e.mu.Lock()
	a := e.attempts[c.BatchNo]
	e.mu.Unlock()
	if a == nil {
		return
	}
	cause := ErrCancelled
	if c.Class == classTimeout {
		cause = ErrTimeout
	}
	e.interrupt(a, cause, c.Detail)
}

// forget drops an attempt that is over, or lets it be dropped as soon as it
// is. Called with mu held.
func (e *Executor) forget(batchNo string) {
	a, ok := e.attempts[batchNo]
	switch {
	case !ok || a.ended == 0:
	case a.stopped == 0:
		a.acked = true
	default:
		delete(e.attempts, batchNo)
	}
}

// mark says that a has news. Called with mu held.
func (e *Executor) mark(a *attempt) {
	if !a.marked {
		a.marked = true
		e.changed = append(e.changed, a)
	}
}

func (e *Executor) wake() {
	select {
	case e.news <- struct{}{}:
	default:
	}
}

func (e *Executor) nowMs() int64 { return e.opts.Now().UnixMilli() }
