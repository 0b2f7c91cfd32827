package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/axctl/ax/failpoint"
	"github.com/axctl/ax/plugins"
	pb "github.com/axctl/ax/plugins/proto"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// link is one process of an executor with the one stream to it, from the start,
// or from when it was found, until it is gone or left.
type link struct {
	x    *executor
	proc *process
	wake chan struct{} // holds a token while there is something to send
	up   chan struct{} // closed when the session has begun
	over chan struct{} // closed when it is gone or left
	err  error         // why; set before over is closed
	tail string        // the last of its standard error; likewise
	idle chan struct{} // closed when it drains and has nothing left
	// whole: its first inventory, of what it has, tells all; set before up is
	// closed. told: it has left last words, which do; set before over is closed.
	whole, told bool

	// have is the last number of each attempt's output that is in the log. Only
	// the printing goroutine uses it.
	have map[string]uint64

	// Guarded by Host.mu.
	down      message
	draining  bool
	entries   int             // that it was given and that are not forgotten
	asked     time.Time       // when it was asked for an inventory
	must      map[string]bool // what that must list
	missing   map[string]bool // what the last one did not
	dead      bool            // it is gone, and what it said is taken in
	unprinted int             // chunks of output that are not in the log
}

// message is what waits to be sent to a process, besides jobs that wait at its
// executor.
type message struct {
	jobs      []*pb.Job // that it has already
	cancels   []*pb.Cancel
	signals   []*pb.Signal
	acks      []string
	credit    uint64
	drain     bool
	inventory bool
}

func newLink(x *executor, p *process) *link {
	return &link{
		x: x, proc: p, wake: make(chan struct{}, 1), up: make(chan struct{}), over: make(chan struct{}),
		idle: make(chan struct{}), have: map[string]uint64{},
	}
}

// run serves the process until it ends, ctx does, or it has drained. When over
// is closed the process and all in its session are gone, and what it had to say
// is taken in; but for a host that leaves, which lets it live.
func (l *link) run(ctx context.Context) {
	defer close(l.over)
	h := l.x.host
	h.live(l.proc, true)
	defer h.live(l.proc, false)
	abort := func() bool { return true }
	if l.proc.child {
		abort = context.AfterFunc(ctx, l.proc.terminate) // while it starts
	}
	err := l.serve(ctx, abort)
	if ctx.Err() != nil && h.leaving.Load() && !l.proc.ended.Load() {
		l.proc.leave()
		return
	}
	abort()
	l.proc.end(l.endLimit(err))
	l.tail, l.err = l.proc.stderrTail(), err
	if err == nil {
		l.err = errors.New(l.proc.exitText())
	}
	exit := l.proc.exitText()
	if errors.Is(err, errHangs) {
		exit = "killed: " + err.Error()
	} else if err != nil && l.proc.started() {
		exit += " (" + err.Error() + ")"
	}
	l.told = h.takeLastWords(l)
	if held := holders(l.proc.left, h.batches(l.proc)); len(held) > 0 {
		h.gone(l, exit, held)
		l.x.links.Go(func() { l.outwait(ctx, exit) })
		return
	}
	h.gone(l, exit, nil)
	h.forgetRecord(l)
}

// endLimit is how long the process has to end by itself. One that does not
// answer is not asked.
func (l *link) endLimit(err error) time.Duration {
	if errors.Is(err, errHangs) {
		return 0
	}
	return stopLimit
}

// errHangs says that a process of an earlier host does not answer.
var errHangs = errors.New("it does not answer")

// serve opens the session and returns when it is over; nil when that is as this
// host wants it.
func (l *link) serve(ctx context.Context, started func() bool) error {
	cfg := &l.x.host.cfg
	limit := cfg.StartTimeout
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it has said nothing within %s", limit))
	defer cancel()
	start, giveUp := context.WithCancelCause(limited)
	defer giveUp(nil)
	if l.proc.child {
		addr, err := l.proc.handshake(limit)
		if err != nil {
			return err
		}
		l.proc.rec.Socket = addr
		if err := l.proc.rec.write(); err != nil { // before it can get work
			return fmt.Errorf("record: %w", err)
		}
	} else {
		go watchQuiet(start, func() look { return lookAt(l.proc.pid()) }, giveUp)
	}
	conn, err := grpc.NewClient("passthrough:"+l.proc.rec.Socket,
		grpc.WithContextDialer(l.proc.dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(pb.MaxMessageBytes), grpc.MaxCallSendMsgSize(pb.MaxMessageBytes)),
		grpc.WithInitialWindowSize(1<<20), grpc.WithInitialConnWindowSize(1<<20),
		// A process that was stopped, or hangs, answers no ping.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pb.PingInterval, Timeout: pb.PingTimeout}))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close() }()
	session, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	defer hangUp()
	stream, offers, build, err := l.open(start, session, hangUp, pb.NewExecutorClient(conn))
	if err != nil {
		if !l.proc.child && start.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", errHangs, context.Cause(start))
		}
		return err
	}
	giveUp(nil) // it has answered
	received := make(chan error, 1)
	go func() { received <- l.receive(stream) }()
	l.offer(offers)
	defer l.withdraw()
	started()
	close(l.up)
	l.x.host.cfg.Log.Info("executor running", "executor", l.x.cmd.Name, "pid", l.proc.pid(), "build", build, "draining", l.isDraining())
	return l.send(ctx, stream, received)
}

// open greets the process: what it is, and what it still has. When start ends it
// gives up.
func (l *link) open(
	start, session context.Context, hangUp func(), client pb.ExecutorClient,
) (stream grpc.BidiStreamingClient[pb.Down, pb.Up], offers []Offer, build string, err error) {
	described, err := client.Describe(start, &pb.DescribeRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return nil, nil, "", fmt.Errorf("describe: %w", err)
	}
	if offers, err = l.x.read(described); err != nil {
		return nil, nil, "", err
	}
	if stream, err = client.Session(session); err != nil {
		return nil, nil, "", fmt.Errorf("session: %w", err)
	}
	defer context.AfterFunc(start, hangUp)()
	cfg := l.x.host.cfg
	err = stream.Send(&pb.Down{Hello: &pb.Hello{
		Secret: l.proc.rec.Secret, Host: cfg.Host, Boot: cfg.Boot, Window: window, Epoch: l.x.host.epoch,
		GraceMs: cfg.Grace.Milliseconds(), IdleGraceMs: cfg.IdleGrace.Milliseconds(),
	}})
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, "", fmt.Errorf("session: %w", err)
	}
	up, err := stream.Recv()
	switch {
	case err != nil:
		return nil, nil, "", fmt.Errorf("session: %w", err)
	case up.Inventory == nil:
		return nil, nil, "", errors.New("session: its first message is no inventory")
	}
	l.whole = up.Inventory.Whole
	l.x.host.found(l, up.Inventory)
	return stream, offers, described.Build, nil
}

// dial connects to the process's socket and sees that it is the process's.
func (p *process) dial(ctx context.Context, _ string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", p.rec.Socket)
	if err != nil {
		return nil, err
	}
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	var peer *unix.Ucred
	var perr error
	err = raw.Control(func(fd uintptr) { peer, perr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, perr); err != nil {
		return nil, errors.Join(fmt.Errorf("peer credentials: %w", err), c.Close())
	}
	if int(peer.Pid) != p.pid() || int(peer.Uid) != os.Getuid() {
		return nil, errors.Join(fmt.Errorf("socket is of process %d of user %d, not of the executor", peer.Pid, peer.Uid), c.Close())
	}
	return c, nil
}

// read checks what the executor said of itself.
func (x *executor) read(d *pb.DescribeResponse) ([]Offer, error) {
	if d.Protocol != pb.Version {
		return nil, fmt.Errorf("executor speaks protocol %d, this axd speaks %d", d.Protocol, pb.Version)
	}
	var offers []Offer
	for _, h := range d.Handlers {
		schema, err := plugins.ReadSchema(h.Name, h.Schema)
		if err != nil {
			return nil, err
		}
		offers = append(offers, Offer{Executor: x.cmd.Name, Schema: schema, SchemaHash: schema.Hash(), accepted: newVerdicts()})
	}
	return offers, nil
}

// offer makes the process the one that takes jobs for its handlers, unless it
// drains.
func (l *link) offer(offers []Offer) {
	h, x := l.x.host, l.x
	var lost []shadow
	defer func() { h.tell(lost) }()
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.draining || x.retired {
		l.drain()
		return
	}
	if before := x.current; before != nil {
		before.drain()
	}
	x.current, x.known, x.problem, x.words = l, true, "", ""
	x.offers, x.names, x.sum = offers, nil, l.proc.rec.SHA256
	for _, o := range offers {
		x.names = append(x.names, o.Schema.Handler)
	}
	lost = h.resolve()
	h.quarantine(x, "")
	h.metrics.up.WithLabelValues(x.cmd.Name).Set(1)
	l.wakeUp()
}

// withdraw takes back what offer said. Jobs that were not sent go on waiting.
func (l *link) withdraw() {
	h := l.x.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.x.current != l {
		return
	}
	l.x.current = nil
	h.resolve() // whose a handler is does not change
	h.metrics.up.WithLabelValues(l.x.cmd.Name).Set(0)
}

// drain lets the process finish what it has: it takes no more jobs, and ends
// when the end of its last attempt is acknowledged. Called with Host.mu held.
func (l *link) drain() {
	l.draining, l.down.drain = true, true
	l.wakeUp()
	l.checkIdle()
}

// checkIdle notes when a draining process has nothing left. Called with Host.mu
// held.
func (l *link) checkIdle() {
	if l.draining && l.entries == 0 {
		select {
		case <-l.idle:
		default:
			close(l.idle)
		}
	}
}

func (l *link) isDraining() bool {
	l.x.host.mu.Lock()
	defer l.x.host.mu.Unlock()
	return l.draining
}

// receive takes in what the executor says until the stream ends.
func (l *link) receive(s grpc.BidiStreamingClient[pb.Down, pb.Up]) error {
	for {
		up, err := s.Recv()
		if err != nil {
			return err
		}
		l.x.host.printed(l, up.Chunks)
		l.x.host.said(l.x, up)
		l.x.host.reported(l, up.Reports)
		if up.Inventory != nil {
			l.x.host.compare(l, up.Inventory)
		}
	}
}

// send sends what waits until ctx ends, the stream breaks, the process is gone,
// or it has drained. It returns when everything that the executor said was
// taken in.
func (l *link) send(ctx context.Context, s grpc.BidiStreamingClient[pb.Down, pb.Up], received chan error) error {
	for {
		select {
		case <-l.wake:
			for m := l.take(); m != nil; m = l.take() {
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
		case <-l.idle:
			l.close(s, received)
			return nil
		case <-ctx.Done():
			if !l.x.host.leaving.Load() {
				l.proc.terminate() // and what it says of its end is taken in
				select {
				case <-received:
				case <-time.After(stopLimit):
				}
				return nil
			}
			l.close(s, received)
			return nil
		}
	}
}

// close ends the session from this side.
func (l *link) close(s grpc.BidiStreamingClient[pb.Down, pb.Up], received chan error) {
	_ = s.CloseSend()
	select {
	case <-received:
	case <-l.proc.done:
		<-received
	case <-time.After(closeLimit):
	}
}

func (l *link) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns the next message to send, nil when there is none. The jobs in
// it count as sent from here on.
func (l *link) take() *pb.Down {
	h, x := l.x.host, l.x
	h.mu.Lock()
	defer h.mu.Unlock()
	d := l.down
	l.down = message{}
	m := &pb.Down{Jobs: d.jobs, Cancels: d.cancels, Signals: d.signals, Acks: d.acks, Credit: d.credit, Drain: d.drain, Inventory: d.inventory}
	if x.current == l {
		n, size := 0, 0
		for n < len(x.jobs) && len(m.Jobs) < maxJobs && size < maxJobBytes {
			j := x.jobs[n]
			n++
			e, ok := h.entries[j.BatchNo]
			if !ok || e.state != waiting {
				continue // cancelled while it waited
			}
			e.give(l)
			size += len(j.Body)
			m.Jobs = append(m.Jobs, j)
		}
		if x.jobs = x.jobs[n:]; len(x.jobs) == 0 {
			x.jobs = nil
		}
	}
	if d.inventory {
		l.asking()
	}
	if len(m.Jobs)+len(m.Cancels)+len(m.Signals)+len(m.Acks) == 0 && m.Credit == 0 && !m.Drain && !m.Inventory {
		return nil
	}
	h.metrics.jobs.WithLabelValues(x.cmd.Name).Add(float64(len(m.Jobs)))
	return m
}
