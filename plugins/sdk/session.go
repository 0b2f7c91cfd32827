package sdk

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"io"
	"time"

	pb "github.com/axctl/ax/plugins/proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Bounds of one message to the host.
const (
	maxReports     = 512
	maxReportBytes = 1 << 20
	maxChunkBytes  = 256 << 10
)

// Describe implements the protocol.
func (e *Executor) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	return e.describe, nil
}

// Session implements the protocol. It returns when the host ends it, when the
// connection breaks and when a newer session takes its place.
func (e *Executor) Session(s grpc.BidiStreamingServer[pb.Down, pb.Up]) error {
	first, err := s.Recv()
	if err != nil {
		return err
	}
	given := []byte(first.GetHello().GetSecret())
	if first.Hello == nil || subtle.ConstantTimeCompare(given, []byte(e.opts.Secret)) != 1 {
		return status.Error(codes.PermissionDenied, "wrong secret")
	}
	replaced, inventory, err := e.open(first.Hello)
	if err != nil {
		return err
	}
	received := make(chan error, 1)
	go func() { received <- e.receive(s, replaced) }()
	err = s.Send(&pb.Up{Inventory: inventory})
	for err == nil {
		select {
		case <-e.news:
			err = e.send(s, replaced)
		case <-replaced:
			e.wake() // the token this session may have taken
			return status.Error(codes.Aborted, "another session has begun")
		case err = <-received:
			if err == nil {
				err = e.send(s, replaced) // what has ended until now is not lost
				e.ended(replaced)
				return err
			}
		}
	}
	e.ended(replaced)
	return err
}

// open makes this the session that is served. A host that is older than the
// last one is gone, whatever it says: its session must not take the place of
// the new one's. It says anew whether this process drains: the program's file may
// be what it was again.
func (e *Executor) open(h *pb.Hello) (replaced chan struct{}, inventory *pb.Inventory, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.ending:
		return nil, nil, status.Error(codes.Unavailable, "the executor is ending")
	case h.Epoch < e.hello.GetEpoch():
		return nil, nil, status.Error(codes.FailedPrecondition, "a newer host has had a session")
	}
	e.hello = h
	if e.session != nil {
		close(e.session)
	}
	if e.lonely != nil {
		e.lonely.Stop()
	}
	e.session, e.asked, e.draining = make(chan struct{}), false, false
	e.queue.open(h.Window)
	e.progressed, e.answers = nil, nil
	for _, a := range e.attempts {
		a.said, a.warned = pb.Kind_KIND_UNKNOWN, false
		e.mark(a)
		e.tellAgain(a)
	}
	e.wake()
	return e.session, e.inventory(), nil
}

// inventory lists the ledger. Called with mu held.
func (e *Executor) inventory() *pb.Inventory {
	in := &pb.Inventory{Whole: true}
	for batchNo, a := range e.attempts {
		if a.ended == 0 {
			in.Running = append(in.Running, batchNo)
		} else {
			in.Ended = append(in.Ended, batchNo)
		}
	}
	return in
}

// ended begins the grace time, unless a newer session has begun.
func (e *Executor) ended(session chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session != session {
		return
	}
	e.session = nil
	e.queue.leave()
	grace := cmp.Or(e.opts.IdleGrace, time.Duration(e.hello.IdleGraceMs)*time.Millisecond, DefaultIdleGrace)
	if len(e.attempts) > 0 || !e.queue.empty() {
		grace = cmp.Or(e.opts.Grace, time.Duration(e.hello.GraceMs)*time.Millisecond, DefaultGrace)
	}
	e.lonely = time.AfterFunc(grace, e.abandon)
}

// abandon ends the executor's life when no session has begun meanwhile.
func (e *Executor) abandon() {
	e.mu.Lock()
	over := e.session == nil && !e.ending
	e.ending = e.ending || over
	e.mu.Unlock()
	if over && e.opts.Abandoned != nil {
		e.opts.Abandoned()
	}
}

// receive returns nil when the host has closed its side.
func (e *Executor) receive(s grpc.BidiStreamingServer[pb.Down, pb.Up], session chan struct{}) error {
	for {
		m, err := s.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		e.take(session, m)
	}
}

// send sends all news there are.
func (e *Executor) send(s grpc.BidiStreamingServer[pb.Down, pb.Up], session chan struct{}) error {
	for {
		up := e.next(session)
		if up == nil {
			return nil
		}
		if err := s.Send(up); err != nil {
			return err
		}
	}
}

// next takes the next message to send: nil when there is none, or when the
// session was replaced. Output goes before the report that ends it, as far as
// credit allows.
func (e *Executor) next(session chan struct{}) *pb.Up {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session != session {
		return nil
	}
	up := &pb.Up{Chunks: e.queue.take(maxChunkBytes)}
	up.Reports = e.reports()
	if e.asked && len(e.refusals) == 0 { // so what it does not list was told of
		up.Inventory, e.asked = e.inventory(), false
	}
	n, m := min(len(e.progressed), maxReports), min(len(e.answers), maxReports)
	up.Progress, e.progressed = e.progressed[:n:n], e.progressed[n:]
	up.Answers, e.answers = e.answers[:m:m], e.answers[m:]
	if len(up.Reports)+len(up.Chunks)+n+m == 0 && up.Inventory == nil {
		return nil
	}
	return up
}

// reports is called with mu held.
func (e *Executor) reports() []*pb.Report {
	size := 0
	var rs []*pb.Report
	for len(e.refusals) > 0 && len(rs) < maxReports {
		rs = append(rs, e.refusals[0])
		e.refusals = e.refusals[1:]
	}
	n := 0
	for n < len(e.changed) && len(rs) < maxReports && size < maxReportBytes {
		a := e.changed[n]
		n++
		a.marked = false
		if e.attempts[a.job.BatchNo] != a {
			continue // forgotten meanwhile
		}
		r := e.report(a)
		size += len(r.Outputs) + len(r.Error)
		rs = append(rs, r)
	}
	clear(e.changed[:n])
	e.changed = e.changed[n:]
	if len(e.changed) == 0 {
		e.changed = nil
	}
	return rs
}
