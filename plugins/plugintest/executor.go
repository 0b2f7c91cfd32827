package plugintest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/axctl/ax/plugins"
	pb "github.com/axctl/ax/plugins/proto"
	"github.com/axctl/ax/plugins/sdk"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// limit is how long anything that is bound to happen may take.
const limit = 20 * time.Second

const secret = "secret of the test"

// Executor is an executor in this process, with one session to it.
type Executor struct {
	t      testing.TB
	name   string // makes batch numbers differ from all others in the process
	server *sdk.Executor
	client pb.ExecutorClient

	mu      sync.Mutex // guards the fields below
	stream  grpc.BidiStreamingClient[pb.Down, pb.Up]
	end     context.CancelFunc
	jobs    int
	told    map[string][]*pb.Report
	live    map[string]*Live
	printed map[string]*printed
	changed chan struct{} // closed, and made anew, when something came
	broken  error
}

type printed struct {
	stdout, stderr []byte
	notes          []string
}

// Result is how an attempt ended and what it printed.
type Result struct {
	Status  string // success, failed, timeout, cancelled; empty when refused
	Class   string
	Error   string
	Outputs map[string]any
	Stdout  string
	Stderr  string
	Notes   []string
	Report  *pb.Report
}

// Start runs an executor of the handlers until the test ends.
func Start(t testing.TB, opts sdk.Options) *Executor {
	t.Helper()
	opts.Secret = secret
	if opts.Plugin == "" {
		opts.Plugin = "test"
	}
	server, err := sdk.NewExecutor(opts)
	if err != nil {
		t.Fatal(err)
	}
	listener := bufconn.Listen(1 << 20)
	g := grpc.NewServer(sdk.ServerOptions()...)
	server.Register(g)
	served := make(chan error, 1)
	go func() { served <- g.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:executor",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	e := &Executor{
		t: t, name: rand.Text()[:8], server: server, client: pb.NewExecutorClient(conn), changed: make(chan struct{}),
		told: map[string][]*pb.Report{}, live: map[string]*Live{}, printed: map[string]*printed{},
	}
	t.Cleanup(func() {
		e.Stop()
		_ = conn.Close()
		g.Stop()
		<-served
	})
	e.Reconnect()
	return e
}

// Stop ends all attempts as when axd is gone, and fails the test when a
// handler does not return.
func (e *Executor) Stop() {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := e.server.Stop(ctx, plugins.ErrHostGone); err != nil {
		e.t.Errorf("after axd was gone: %v", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.end != nil {
		e.end()
	}
}

// Reconnect opens a new session, which takes the place of the one before, and
// returns what the executor says that it still knows.
func (e *Executor) Reconnect() *pb.Inventory {
	e.t.Helper()
	e.mu.Lock()
	e.stream = nil // what becomes of the session before is of no interest
	e.mu.Unlock()
	ctx, end := context.WithCancel(context.Background())
	s, err := e.client.Session(ctx)
	if err != nil {
		e.t.Fatalf("session: %v", err)
	}
	if err := s.Send(&pb.Down{Hello: &pb.Hello{Secret: secret, Host: "host", Boot: "boot", Window: 1 << 20}}); err != nil {
		e.t.Fatalf("hello: %v", err)
	}
	up, err := s.Recv()
	if err != nil {
		e.t.Fatalf("inventory: %v", err)
	}
	if up.Inventory == nil {
		e.t.Fatalf("the first message is no inventory: %v", up)
	}
	e.mu.Lock()
	before := e.end
	e.stream, e.end = s, end
	e.mu.Unlock()
	go e.receive(s)
	if before != nil {
		before()
	}
	return up.Inventory
}

func (e *Executor) receive(s grpc.BidiStreamingClient[pb.Down, pb.Up]) {
	for {
		up, err := s.Recv()
		e.mu.Lock()
		if e.stream != s {
			e.mu.Unlock()
			return
		}
		credit := 0
		for _, c := range up.GetChunks() {
			credit += c.Cost()
			e.take(c)
		}
		for _, p := range up.GetProgress() {
			l := e.liveOf(p.BatchNo)
			l.Progress = append(l.Progress, p)
		}
		for _, a := range up.GetAnswers() {
			l := e.liveOf(a.BatchNo)
			l.Answers = append(l.Answers, a)
		}
		for _, r := range up.GetReports() {
			e.told[r.BatchNo] = append(e.told[r.BatchNo], r)
		}
		e.broken = err
		close(e.changed)
		e.changed = make(chan struct{})
		if err == nil && credit > 0 {
			_ = s.Send(&pb.Down{Credit: uint64(credit)})
		}
		e.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// take is called with mu held.
func (e *Executor) take(c *pb.Chunk) {
	p := e.printed[c.BatchNo]
	if p == nil {
		p = &printed{}
		e.printed[c.BatchNo] = p
	}
	switch c.Stream {
	case pb.Stream_STREAM_STDOUT:
		p.stdout = append(p.stdout, c.Data...)
	case pb.Stream_STREAM_STDERR:
		p.stderr = append(p.stderr, c.Data...)
	default:
		p.notes = append(p.notes, string(c.Data))
	}
}

// Live is what an attempt said beside its reports.
type Live struct {
	Progress []*pb.Progress
	Answers  []*pb.SignalAnswer // to signals
}

// liveOf is called with mu held.
func (e *Executor) liveOf(batchNo string) *Live {
	if e.live[batchNo] == nil {
		e.live[batchNo] = &Live{}
	}
	return e.live[batchNo]
}

// UntilLive waits for a condition on what an attempt said beside its reports.
func (e *Executor) UntilLive(what, batchNo string, cond func(Live) bool) {
	e.t.Helper()
	e.Until(what, func([]*pb.Report, Result) bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return cond(*e.liveOf(batchNo))
	}, batchNo)
}

// Signal sends a signal to an attempt, and returns its answer.
func (e *Executor) Signal(batchNo, signal string) *pb.SignalAnswer {
	e.t.Helper()
	e.mu.Lock()
	before := len(e.liveOf(batchNo).Answers)
	e.mu.Unlock()
	e.Send(&pb.Down{Signals: []*pb.Signal{{BatchNo: batchNo, Signal: signal}}})
	var answer *pb.SignalAnswer
	e.UntilLive("the answer to "+signal, batchNo, func(l Live) bool {
		if len(l.Answers) > before {
			answer = l.Answers[before]
		}
		return answer != nil
	})
	return answer
}

// Job returns a job for the handler that differs from all before.
func (e *Executor) Job(handler, body string) *pb.Job {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.jobs++
	return &pb.Job{
		BatchNo: fmt.Sprintf("%s-%d-1", e.name, e.jobs), Hash: body, Instance: int64(e.jobs), Attempt: 1,
		Stack: "demo", Task: "task.test", Handler: handler, Body: []byte(body),
		DueMs: 1767225600000, Timezone: "UTC", TimeoutMs: limit.Milliseconds(), KillAfterMs: 1000,
		IdempotencyKey: fmt.Sprintf("%s-%d", e.name, e.jobs),
	}
}

// Send sends a message to the executor.
func (e *Executor) Send(m *pb.Down) {
	e.t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.stream.Send(m); err != nil {
		e.t.Fatalf("send: %v", err)
	}
}

// Do runs the job to its end.
func (e *Executor) Do(j *pb.Job) Result {
	e.t.Helper()
	e.Send(&pb.Down{Jobs: []*pb.Job{j}})
	return e.End(j.BatchNo)
}

// End waits until the attempt is over, or refused.
func (e *Executor) End(batchNo string) Result {
	e.t.Helper()
	var end *pb.Report
	e.Until("the end of "+batchNo, func(told []*pb.Report, _ Result) bool {
		for _, r := range told {
			switch r.Kind {
			case pb.Kind_KIND_ENDED, pb.Kind_KIND_REFUSED:
				if end == nil {
					end = r
				}
				if r.StoppedMs != 0 || r.Kind == pb.Kind_KIND_REFUSED {
					return true
				}
			case pb.Kind_KIND_STOPPED:
				return true
			}
		}
		return false
	}, batchNo)
	e.mu.Lock()
	res := e.result(batchNo)
	e.mu.Unlock()
	res.Report, res.Status, res.Class, res.Error = end, end.Status, end.Class, end.Error
	if len(end.Outputs) > 0 {
		if err := json.Unmarshal(end.Outputs, &res.Outputs); err != nil {
			e.t.Errorf("outputs are no JSON object: %v", err)
		}
	}
	return res
}

// Until waits for a condition on what was told of an attempt and what it
// printed so far.
func (e *Executor) Until(what string, cond func([]*pb.Report, Result) bool, batchNo string) {
	e.t.Helper()
	late := time.After(limit)
	for {
		e.mu.Lock()
		res := e.result(batchNo)
		told, changed, broken := e.told[batchNo], e.changed, e.broken
		e.mu.Unlock()
		if cond(told, res) {
			return
		}
		if broken != nil {
			e.t.Fatalf("waiting for %s: session: %v", what, broken)
		}
		select {
		case <-changed:
		case <-late:
			e.t.Fatalf("waited %s in vain for %s; told: %v; printed %d and %d bytes, noted %q",
				limit, what, told, len(res.Stdout), len(res.Stderr), res.Notes)
		}
	}
}

// result is called with mu held.
func (e *Executor) result(batchNo string) Result {
	p := e.printed[batchNo]
	if p == nil {
		return Result{}
	}
	return Result{Stdout: string(p.stdout), Stderr: string(p.stderr), Notes: append([]string(nil), p.notes...)}
}
