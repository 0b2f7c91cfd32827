package host

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/axctl/ax/failpoint"
	"github.com/axctl/ax/plugins"
	pb "github.com/axctl/ax/plugins/proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// Supervision.
const (
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 30 * time.Second
	loopStarts   = 4                // failures in a row that make a crash loop
	steady       = 30 * time.Second // a run this long ends one
	stopLimit    = 8 * time.Second  // for an executor to end by itself
	window       = 1 << 20          // bytes of output on their way from one executor
	maxJobs      = 256              // of one message
	maxJobBytes  = 1 << 20
)

// executor supervises one command's process and holds what is to be sent to
// it.
type executor struct {
	host *Host
	cmd  Command
	wake chan struct{} // holds a token while there is something to send

	// Guarded by Host.mu.
	down    message
	session int    // number of the session, counted up
	settled bool   // has come up or failed to
	known   bool   // has told its handlers once
	exit    string // how its last process ended
}

// message is what waits to be sent to an executor.
type message struct {
	jobs    []*pb.Job
	cancels []*pb.Cancel
	acks    []string
	credit  uint64
}

func newExecutor(h *Host, c Command) *executor {
	return &executor{host: h, cmd: c, wake: make(chan struct{}, 1)}
}

// supervise keeps the executor running until ctx ends. A failure is logged
// when it is the first in a row and when it makes a crash loop, not beyond.
func (x *executor) supervise(ctx context.Context) {
	log := x.host.cfg.Log.With("executor", x.cmd.Name)
	failures := 0
	for {
		began := time.Now()
		tail, err := x.runOnce(ctx)
		x.settle()
		x.host.gone(x)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > steady {
			failures = 0
		}
		failures++
		switch failures {
		case 1:
			log.Error("executor ended", "error", err, "stderr", tail)
		case loopStarts:
			log.Error("executor in a crash loop", "error", err, "stderr", tail, "failures", failures)
		default:
			log.Debug("executor ended", "error", err, "failures", failures)
		}
		select {
		case <-time.After(min(maxBackoff, firstBackoff<<min(failures-1, 20))):
		case <-ctx.Done():
			return
		}
	}
}

// runOnce starts the process and serves it until it ends or ctx does. When it
// returns, the process and all in its session are gone.
func (x *executor) runOnce(ctx context.Context) (stderrTail string, err error) {
	secret := rand.Text()
	p := newProcess(x, secret)
	defer p.cleanUp()
	x.host.metrics.starts.WithLabelValues(x.cmd.Name).Inc()
	abort := context.AfterFunc(ctx, p.terminate) // while it starts
	defer abort()

	err = x.serve(ctx, p, secret, abort)
	p.end(stopLimit)
	x.host.mu.Lock()
	x.exit = p.exitText()
	if err != nil && p.started() {
		x.exit += " (" + err.Error() + ")"
	}
	x.host.mu.Unlock()
	if err == nil {
		err = errors.New(p.exitText())
	}
	return p.stderrTail(), err
}

// serve opens the session and returns when it is over.
func (x *executor) serve(ctx context.Context, p *process, secret string, started func() bool) error {
	deadline := time.Now().Add(x.host.cfg.StartTimeout)
	addr, err := p.handshake(x.host.cfg.StartTimeout)
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient("unix:"+addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(pb.MaxMessageBytes), grpc.MaxCallSendMsgSize(pb.MaxMessageBytes)),
		grpc.WithInitialWindowSize(1<<20), grpc.WithInitialConnWindowSize(1<<20),
		// A process that was stopped, or hangs, answers no ping.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pb.PingInterval, Timeout: pb.PingTimeout}))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close() }()
	client := pb.NewExecutorClient(conn)
	start, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	described, err := client.Describe(start, &pb.DescribeRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return fmt.Errorf("describe: %w", err)
	}
	offers, err := x.read(described)
	if err != nil {
		return err
	}
	session, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	defer hangUp()
	stream, err := client.Session(session)
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	late := time.AfterFunc(time.Until(deadline), hangUp)
	if err := x.greet(stream, secret); err != nil {
		return fmt.Errorf("session: %w", err)
	}
	late.Stop()
	received := make(chan error, 1)
	go func() { received <- x.receive(stream) }()
	if err := x.offer(offers); err != nil {
		return err
	}
	defer x.withdraw()
	started()
	x.settle()
	x.host.cfg.Log.Info("executor running", "executor", x.cmd.Name, "pid", p.pid(), "build", described.Build)
	return x.send(ctx, stream, received, p)
}

// greet opens the session: the greeting down, the inventory up. A process
// just started has an empty one.
func (x *executor) greet(s grpc.BidiStreamingClient[pb.Down, pb.Up], secret string) error {
	cfg := x.host.cfg
	err := s.Send(&pb.Down{Hello: &pb.Hello{Secret: secret, Host: cfg.Host, Boot: cfg.Boot, Window: window}})
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	up, err := s.Recv()
	if err != nil {
		return err
	}
	if up.Inventory == nil {
		return errors.New("its first message is no inventory")
	}
	return nil
}

// receive takes in what the executor says until the stream ends.
func (x *executor) receive(s grpc.BidiStreamingClient[pb.Down, pb.Up]) error {
	for {
		up, err := s.Recv()
		if err != nil {
			return err
		}
		x.host.printed(x, up.Chunks)
		x.host.reported(x, up.Reports)
	}
}

// send sends what waits until ctx ends, the stream breaks or the process is
// gone. It returns when everything that the executor said was taken in.
func (x *executor) send(ctx context.Context, s grpc.BidiStreamingClient[pb.Down, pb.Up], received chan error, p *process) error {
	for {
		select {
		case <-x.wake:
			for m := x.take(); m != nil; m = x.take() {
				if len(m.Jobs) > 0 {
					failpoint.Hit(failpoint.Send)
				}
				if err := s.Send(m); err != nil {
					return fmt.Errorf("stream: %w", <-received)
				}
				if len(m.Jobs) > 0 {
					failpoint.Hit(failpoint.Sent)
				}
			}
		case err := <-received:
			return fmt.Errorf("stream: %w", err)
		case <-ctx.Done():
			_ = s.CloseSend()
			select {
			case <-received:
			case <-p.done:
				<-received
			case <-time.After(stopLimit):
			}
			return nil
		}
	}
}

// read checks what the executor said of itself.
func (x *executor) read(d *pb.DescribeResponse) ([]Offer, error) {
	if d.Protocol != pb.Version {
		return nil, fmt.Errorf("executor speaks protocol %d, this axd speaks %d", d.Protocol, pb.Version)
	}
	var offers []Offer
	for _, h := range d.Handlers {
		var schema plugins.Schema
		if err := json.Unmarshal(h.Schema, &schema); err != nil {
			return nil, fmt.Errorf("schema of handler %q: %w", h.Name, err)
		}
		if schema.Handler != h.Name {
			return nil, fmt.Errorf("schema of handler %q is of %q", h.Name, schema.Handler)
		}
		offers = append(offers, Offer{Executor: x.cmd.Name, Schema: schema, SchemaHash: schema.Hash()})
	}
	return offers, nil
}

// offer makes the executor the one that takes jobs for its handlers, which
// fails when another one does.
func (x *executor) offer(offers []Offer) error {
	h := x.host
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range offers {
		if other := h.handlers[o.Schema.Handler]; other != nil && other != x {
			return fmt.Errorf("handler %q is offered by executor %s (%s) and by %s (%s)",
				o.Schema.Handler, other.cmd.Name, other.cmd.Path, x.cmd.Name, x.cmd.Path)
		}
	}
	all := map[string]Offer{}
	for name, o := range *h.offered.Load() {
		all[name] = o
	}
	for _, o := range offers {
		h.handlers[o.Schema.Handler] = x
		all[o.Schema.Handler] = o
	}
	h.offered.Store(&all)
	x.known = true
	x.session++
	x.down = message{jobs: x.down.jobs}
	x.wakeUp()
	h.metrics.up.WithLabelValues(x.cmd.Name).Set(1)
	return nil
}

// withdraw takes back what offer said. Jobs that were not sent go on waiting.
func (x *executor) withdraw() {
	h := x.host
	h.mu.Lock()
	defer h.mu.Unlock()
	left := map[string]Offer{}
	for name, o := range *h.offered.Load() {
		if o.Executor != x.cmd.Name {
			left[name] = o
		}
	}
	h.offered.Store(&left)
	h.metrics.up.WithLabelValues(x.cmd.Name).Set(0)
}

// settle says that the executor has come up or failed to, once.
func (x *executor) settle() {
	h := x.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if x.settled {
		return
	}
	x.settled = true
	if h.settled++; h.settled == len(h.executors) {
		close(h.ready)
	}
}

// queue, queueCancel, queueAck and queueCredit add to what is to be sent.
// Called with Host.mu held.
func (x *executor) queue(j *pb.Job) {
	x.down.jobs = append(x.down.jobs, j)
	x.wakeUp()
}

func (x *executor) queueCancel(c *pb.Cancel) {
	x.down.cancels = append(x.down.cancels, c)
	x.wakeUp()
}

func (x *executor) queueAck(batchNo string) {
	x.down.acks = append(x.down.acks, batchNo)
	x.wakeUp()
}

func (x *executor) queueCredit(session int, n int) {
	if session == x.session {
		x.down.credit += uint64(n)
		x.wakeUp()
	}
}

func (x *executor) wakeUp() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// take returns the next message to send, nil when there is none. The jobs in
// it count as sent from here on.
func (x *executor) take() *pb.Down {
	h := x.host
	h.mu.Lock()
	defer h.mu.Unlock()
	m := &pb.Down{Cancels: x.down.cancels, Acks: x.down.acks, Credit: x.down.credit}
	n, size := 0, 0
	for n < len(x.down.jobs) && len(m.Jobs) < maxJobs && size < maxJobBytes {
		j := x.down.jobs[n]
		n++
		e, ok := h.entries[j.BatchNo]
		if !ok || e.state > sent {
			continue // cancelled while it waited
		}
		e.state = sent
		size += len(j.Body)
		m.Jobs = append(m.Jobs, j)
	}
	rest := x.down.jobs[n:]
	if len(rest) == 0 {
		rest = nil
	}
	x.down = message{jobs: rest}
	if len(m.Jobs)+len(m.Cancels)+len(m.Acks) == 0 && m.Credit == 0 {
		return nil
	}
	h.metrics.jobs.WithLabelValues(x.cmd.Name).Add(float64(len(m.Jobs)))
	return m
}

// printed is output on its way to the log.
type printed struct {
	executor *executor
	session  int
	chunk    *pb.Chunk
}

func (h *Host) printed(x *executor, chunks []*pb.Chunk) {
	if len(chunks) == 0 {
		return
	}
	h.mu.Lock()
	session := x.session
	h.mu.Unlock()
	ps := make([]printed, len(chunks))
	for i, c := range chunks {
		ps[i] = printed{x, session, c}
	}
	h.output.put(ps...)
}

// print hands output to the log and grants credit for what was taken.
func (h *Host) print(ctx context.Context) {
	for {
		ps := h.output.take(256)
		if ps == nil {
			select {
			case <-h.output.wake:
				continue
			case <-ctx.Done():
				if h.output.empty() {
					return
				}
				continue
			}
		}
		chunks := make([]OutputChunk, len(ps))
		for i, p := range ps {
			chunks[i] = OutputChunk{
				BatchNo: p.chunk.BatchNo, Instance: p.chunk.Instance, Attempt: int(p.chunk.Attempt),
				Stream: streamName(p.chunk.Stream), AtMs: p.chunk.AtMs, Data: p.chunk.Data,
			}
		}
		if h.cfg.Output != nil {
			h.cfg.Output(chunks)
		}
		h.mu.Lock()
		for _, p := range ps {
			p.executor.queueCredit(p.session, p.chunk.Cost())
		}
		h.mu.Unlock()
		for _, p := range ps {
			h.metrics.output.WithLabelValues(p.executor.cmd.Name).Add(float64(len(p.chunk.Data)))
		}
	}
}

func streamName(s pb.Stream) string {
	switch s {
	case pb.Stream_STREAM_STDOUT:
		return "stdout"
	case pb.Stream_STREAM_STDERR:
		return "stderr"
	default:
		return "note"
	}
}
