package sdk

import (
	"context"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"

	pb "github.com/axctl/ax/plugins/proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// held is the executor's side of a session whose second message has arrived, and
// is not read before it may be.
type held struct {
	grpc.ServerStream
	n                     int
	arrived, read, thrown chan struct{}
}

func (h *held) RecvMsg(m any) error {
	h.n++
	if h.n == 3 {
		close(h.thrown) // the one before is dealt with
	}
	err := h.ServerStream.RecvMsg(m)
	if h.n == 2 {
		close(h.arrived)
		<-h.read
	}
	return err
}

// What a host wrote before it died may lie in the socket while the next one has
// its session, and has judged by its inventory what was not begun: that would
// run twice now. Nothing of it counts any more.
func TestWordsOfADeadHost(t *testing.T) {
	t.Parallel()
	var began atomic.Int32
	e := shelf(t, Options{}, func(ctx context.Context, job Job) error {
		began.Add(1)
		<-ctx.Done()
		return context.Cause(ctx)
	})
	late := &held{arrived: make(chan struct{}), read: make(chan struct{}), thrown: make(chan struct{})}
	var first atomic.Bool
	server := grpc.NewServer(append(ServerOptions(), grpc.ChainStreamInterceptor(
		func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			if first.CompareAndSwap(false, true) {
				late.ServerStream = s
				s = late
			}
			return h(srv, s)
		}))...)
	e.Register(server)
	socket := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	session := func(epoch uint64) grpc.BidiStreamingClient[pb.Down, pb.Up] {
		t.Helper()
		c, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		s, err := pb.NewExecutorClient(c).Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h := hello()
		h.Epoch = epoch
		if err := s.Send(&pb.Down{Hello: h}); err != nil {
			t.Fatal(err)
		}
		if up, err := s.Recv(); err != nil || len(up.GetInventory().GetRunning()) > 0 {
			t.Fatalf("its first message: %v, %v", up, err)
		}
		return s
	}

	dead := session(7)
	if err := dead.Send(&pb.Down{Jobs: []*pb.Job{work(1)}, Drain: true}); err != nil {
		t.Fatal(err)
	}
	<-late.arrived
	next := session(8) // and its inventory has no job
	close(late.read)
	<-late.thrown
	if _, err := dead.Recv(); status.Code(err) != codes.Aborted {
		t.Errorf("the session of the dead host: %v", err)
	}
	if err := next.Send(&pb.Down{Jobs: []*pb.Job{work(2)}, Inventory: true}); err != nil {
		t.Fatal(err)
	}
	for listed := false; !listed; {
		up, err := next.Recv()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range up.Reports {
			if r.BatchNo != "i-2-1" || r.Kind != pb.Kind_KIND_STARTED {
				t.Errorf("told of %s: %s %s", r.BatchNo, r.Kind, r.Error)
			}
		}
		if up.Inventory != nil {
			listed = true
			if r := up.Inventory.Running; len(r) != 1 || r[0] != "i-2-1" {
				t.Errorf("it runs %v, and should run what its host has given it", r)
			}
		}
	}
	if err := next.CloseSend(); err != nil {
		t.Error(err)
	}
	if err := e.Stop(t.Context(), ErrHostGone); err != nil {
		t.Error(err)
	}
	if n := began.Load(); n != 1 {
		t.Errorf("%d attempts began", n)
	}
	server.Stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// A host that lets a process drain, as its program's file has changed, may die;
// when the file is what it was, the next host gives the process jobs again.
func TestNextHostSaysWhetherItDrains(t *testing.T) {
	t.Parallel()
	drained(t, true, pb.Kind_KIND_REFUSED)
	drained(t, false, pb.Kind_KIND_ENDED)
}

// drained gives a process a job whose host let it drain, or the host before.
func drained(t *testing.T, sameHost bool, want pb.Kind) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := shelf(t, Options{}, func(context.Context, Job) error { return nil })
		l := dial(e, hello())
		l.say(&pb.Down{Drain: true})
		if !sameHost {
			l.hangUp()
			l = dial(e, hello())
		}
		l.say(&pb.Down{Jobs: []*pb.Job{work(1)}})
		if _, rs, _ := l.take(); len(rs) == 0 || rs[len(rs)-1].Kind != want {
			t.Errorf("same host %t: %v, want %s", sameHost, rs, want)
		}
		l.hangUp()
		_ = e.Stop(t.Context(), ErrHostGone)
	})
}
