package sdk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/axctl/ax/plugins"
	pb "github.com/axctl/ax/plugins/proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// line is one session of a host with the executor, over no wire.
type line struct {
	grpc.ServerStream
	down  chan *pb.Down
	ended chan error

	mu sync.Mutex // guards up
	up []*pb.Up
}

func (l *line) Recv() (*pb.Down, error) {
	m, ok := <-l.down
	if !ok {
		return nil, errors.New("connection reset")
	}
	return m, nil
}

// Send copies: the wire does.
func (l *line) Send(up *pb.Up) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up = append(l.up, proto.Clone(up).(*pb.Up))
	return nil
}

// dial opens a session and waits until the executor has said all it can.
func dial(e *Executor, hello *pb.Hello) *line {
	l := &line{down: make(chan *pb.Down, 16), ended: make(chan error, 1)}
	go func() { l.ended <- e.Session(l) }()
	l.say(&pb.Down{Hello: hello})
	return l
}

func (l *line) say(m *pb.Down) {
	l.down <- m
	synctest.Wait()
}

// hangUp breaks the session, as the death of the host does.
func (l *line) hangUp() {
	close(l.down)
	synctest.Wait()
}

// take returns what came since the last call.
func (l *line) take() (in *pb.Inventory, rs []*pb.Report, cs []*pb.Chunk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, up := range l.up {
		if up.Inventory != nil {
			in = up.Inventory
		}
		rs, cs = append(rs, up.Reports...), append(cs, up.Chunks...)
	}
	l.up = nil
	return in, rs, cs
}

// shelf is an executor of one handler, "work", which does what the test says.
func shelf(t *testing.T, opts Options, work func(ctx context.Context, job Job) error) *Executor {
	t.Helper()
	opts.Plugin, opts.Secret = "test", "s"
	opts.Handlers = []plugins.Handler{Handler("work", "Works.", func(ctx context.Context, job Job, _ struct{}) (Outputs, error) {
		return nil, work(ctx, job)
	})}
	e, err := NewExecutor(opts)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func hello() *pb.Hello { return &pb.Hello{Secret: "s", Host: "h", Boot: "b", Window: 1 << 20} }

func work(n int) *pb.Job {
	return &pb.Job{
		BatchNo: fmt.Sprintf("i-%d-1", n), Hash: "hash", Instance: int64(n), Attempt: 1, Handler: "work", Body: []byte(`{}`), Timezone: "UTC",
	}
}

// What runs when its host dies goes on, and the next host is told of it.
func TestGoesOnWithoutAHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := shelf(t, Options{Abandoned: func() { t.Error("abandoned") }}, func(ctx context.Context, job Job) error {
			select {
			case <-time.After(time.Duration(job.InstanceID) * time.Minute):
				fmt.Fprintf(job.Output.Stdout, "done")
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		l := dial(e, hello())
		late := work(9)
		late.TimeoutMs = 2 * 60_000
		l.say(&pb.Down{Jobs: []*pb.Job{work(1), work(4), late}})
		pass(time.Second)
		l.hangUp()
		pass(3 * time.Minute)

		l = dial(e, hello())
		in, rs, cs := l.take()
		slices.Sort(in.Ended)
		if !slices.Equal(in.Running, []string{"i-4-1"}) || !slices.Equal(in.Ended, []string{"i-1-1", "i-9-1"}) {
			t.Errorf("inventory %v", in)
		}
		told := map[string]string{}
		for _, r := range rs {
			told[r.BatchNo] += fmt.Sprint(r.Kind, " ", r.Status, " ", r.EndedMs-r.StartedMs)
		}
		// The timeout was kept without a host.
		if told["i-1-1"] != "KIND_ENDED success 60000" || told["i-9-1"] != "KIND_ENDED timeout 120000" || !strings.HasPrefix(told["i-4-1"], "KIND_STARTED") {
			t.Errorf("told %v", told)
		}
		if len(cs) != 1 || string(cs[0].Data) != "done" {
			t.Errorf("output %v", cs)
		}
		// A job given again is not started again.
		l.say(&pb.Down{Jobs: []*pb.Job{work(4)}, Acks: []string{"i-1-1", "i-9-1"}})
		l.hangUp()
		pass(4 * time.Minute)
		l = dial(e, hello())
		if in, _, _ := l.take(); len(in.Running) != 0 || !slices.Equal(in.Ended, []string{"i-4-1"}) {
			t.Errorf("inventory %v", in)
		}
		_ = e.Stop(t.Context(), ErrHostGone)
		l.hangUp()
	})
}

// An executor that no host comes back to ends after the grace time, which
// depends on whether it has anything to do or to tell.
func TestGrace(t *testing.T) {
	t.Parallel()
	short := hello()
	short.GraceMs, short.IdleGraceMs = 30_000, 3000
	for _, c := range []struct {
		name  string
		hello *pb.Hello
		jobs  []*pb.Job
		ack   bool
		want  time.Duration
	}{
		{"idle", hello(), nil, false, 10 * time.Second},
		{"running", hello(), []*pb.Job{work(3600)}, false, 5 * time.Minute},
		{"not acknowledged", hello(), []*pb.Job{work(1)}, false, 5 * time.Minute},
		{"acknowledged", hello(), []*pb.Job{work(1)}, true, 10 * time.Second},
		{"idle, as the host says", short, nil, false, 3 * time.Second},
		{"running, as the host says", short, []*pb.Job{work(3600)}, false, 30 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				abandoned := make(chan time.Time, 1)
				e := shelf(t, Options{Abandoned: func() { abandoned <- time.Now() }}, func(ctx context.Context, job Job) error {
					select {
					case <-time.After(time.Duration(job.InstanceID) * time.Second):
					case <-ctx.Done():
					}
					return nil
				})
				for range 3 { // a session stops the clock
					l := dial(e, c.hello)
					l.say(&pb.Down{Jobs: c.jobs})
					pass(time.Hour / 2)
					l.hangUp()
					pass(c.want / 2)
				}
				l := dial(e, c.hello)
				if c.ack {
					l.say(&pb.Down{Acks: []string{"i-1-1"}})
				}
				l.hangUp()
				from := time.Now()
				if got := (<-abandoned).Sub(from); got != c.want {
					t.Errorf("abandoned after %s, want %s", got, c.want)
				}
				l = dial(e, c.hello)
				if err := <-l.ended; status.Code(err) != codes.Unavailable {
					t.Errorf("a session with an executor that ends: %v", err)
				}
				_ = e.Stop(t.Context(), ErrHostGone)
			})
		})
	}
}

// A job that a host which is gone had sent is begun before the next one's
// inventory, or never: that one gives it again.
func TestJobOfAnEarlierSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		runs := map[int64]int{}
		e := shelf(t, Options{}, func(_ context.Context, job Job) error {
			runs[job.InstanceID]++
			return nil
		})
		dead := dial(e, hello())
		dead.say(&pb.Down{Jobs: []*pb.Job{work(1)}})
		l := dial(e, hello())
		in, _, _ := l.take()
		if !in.Whole || !slices.Equal(in.Ended, []string{"i-1-1"}) {
			t.Errorf("inventory %v", in)
		}
		dead.say(&pb.Down{Jobs: []*pb.Job{work(2), work(3)}}) // it was in the socket yet
		if runs[2] != 0 {
			t.Error("a job of an earlier session was begun after the inventory")
		}
		l.say(&pb.Down{Jobs: []*pb.Job{work(2)}})
		l.say(&pb.Down{Acks: []string{"i-1-1", "i-2-1"}})
		dead.say(&pb.Down{Jobs: []*pb.Job{work(1), work(2)}})
		if runs[1] != 1 || runs[2] != 1 || runs[3] != 0 {
			t.Errorf("runs %v", runs)
		}
		_ = e.Stop(t.Context(), ErrHostGone)
		dead.hangUp()
		l.hangUp()
	})
}

// The session of a host that is dead, and comes late, is refused.
func TestOlderHostIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := shelf(t, Options{}, func(context.Context, Job) error { return nil })
		epoch := func(n uint64) *pb.Hello { h := hello(); h.Epoch = n; return h }
		l := dial(e, epoch(7))
		if err := <-dial(e, epoch(6)).ended; status.Code(err) != codes.FailedPrecondition {
			t.Errorf("an older host: %v", err)
		}
		wrong := epoch(8)
		wrong.Secret = "guessed"
		if err := <-dial(e, wrong).ended; status.Code(err) != codes.PermissionDenied {
			t.Errorf("a stranger: %v", err)
		}
		l.say(&pb.Down{Inventory: true})
		if in, _, _ := l.take(); in == nil {
			t.Error("the session was replaced")
		}
		next := dial(e, epoch(8))
		if err := <-l.ended; status.Code(err) != codes.Aborted {
			t.Errorf("the older session: %v", err)
		}
		l.hangUp()
		next.hangUp()
		_ = e.Stop(t.Context(), ErrHostGone)
	})
}

// Whatever was in the log when a host died, in the end it has all that was
// printed, once and in order, if it knows its last number.
func TestOutputOverSessions(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 0))
			var want [3]bytes.Buffer
			e := shelf(t, Options{}, func(_ context.Context, job Job) error {
				dice := rand.New(rand.NewPCG(seed, uint64(job.InstanceID)))
				for n := range 300 {
					text := fmt.Appendf(nil, "%d:%d %s\n", job.InstanceID, n, strings.Repeat("x", dice.IntN(9000)))
					want[job.InstanceID].Write(text)
					_, _ = job.Output.Stdout.Write(text)
					if n%7 == 0 {
						pass(time.Duration(dice.IntN(3)) * time.Second)
					}
				}
				return nil
			})
			var log [3]bytes.Buffer
			var last [3]uint64
			jobs := []*pb.Job{work(1), work(2)}
			for done := false; !done; {
				h := hello()
				h.Window = uint64(1 + dice.IntN(100_000))
				l := dial(e, h)
				l.say(&pb.Down{Jobs: jobs})
				for range dice.IntN(60) {
					pass(time.Duration(dice.IntN(1000)) * time.Millisecond)
					_, rs, cs := l.take()
					written := 0
					for _, c := range cs {
						if written += c.Cost(); c.Seq > last[c.Instance] {
							if c.Seq != last[c.Instance]+1 {
								t.Fatalf("chunk %d comes after %d", c.Seq, last[c.Instance])
							}
							last[c.Instance] = c.Seq
							log[c.Instance].Write(c.Data)
						} else if !c.Again {
							t.Fatalf("chunk %d comes twice in a session", c.Seq)
						}
					}
					_ = rs
					if dice.IntN(4) > 0 { // else it is killed before it says so
						l.say(&pb.Down{Credit: uint64(written)})
					}
				}
				e.mu.Lock()
				done = e.attempts["i-1-1"].stopped*e.attempts["i-2-1"].stopped != 0
				e.mu.Unlock()
				done = done && e.queue.empty()
				l.hangUp()
			}
			for i := 1; i <= 2; i++ {
				if !bytes.Equal(log[i].Bytes(), want[i].Bytes()) {
					t.Errorf("seed %d: the log has %d bytes, %d were printed", seed, log[i].Len(), want[i].Len())
				}
			}
			_ = e.Stop(t.Context(), ErrHostGone)
		})
	}
}

// An executor that ends writes down what nobody knows.
func TestLastWords(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		e := shelf(t, Options{}, func(ctx context.Context, job Job) error {
			_, _ = io.WriteString(job.Output.Stdout, job.BatchNo)
			switch job.InstanceID {
			case 1:
				return nil
			case 2:
				<-ctx.Done()
				return errors.New("signal: killed")
			default:
				<-ctx.Done()
				return nil // it was over just then
			}
		})
		if err := e.writeLastWords(home, true); err != nil {
			t.Error(err)
		}
		if b, err := os.ReadFile(filepath.Join(home, pb.LastWords)); err != nil || len(b) != 0 {
			t.Errorf("last words of one that has nothing to say: %q, %v", b, err)
		}
		l := dial(e, hello())
		l.say(&pb.Down{Jobs: []*pb.Job{work(1), work(2), work(3)}})
		l.hangUp()
		_ = e.Stop(t.Context(), ErrHostGone)
		if err := e.writeLastWords(home, true); err != nil {
			t.Error(err)
		}
	})
	b, err := os.ReadFile(filepath.Join(home, pb.LastWords))
	if err != nil {
		t.Fatal(err)
	}
	var up pb.Up
	if err := proto.Unmarshal(b, &up); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range up.Reports {
		got[r.BatchNo] = strings.TrimSpace(r.Status + " " + r.Class)
		if r.StoppedMs == 0 || r.EndedMs == 0 {
			t.Errorf("%v", r)
		}
	}
	if got["i-1-1"] != "success" || got["i-2-1"] != "failed lost" || got["i-3-1"] != "success" {
		t.Errorf("reports %v", got)
	}
	text := ""
	for _, c := range up.Chunks {
		text += string(c.Data)
		if !c.Again {
			t.Errorf("%v was sent", c)
		}
	}
	if len(text) != len("i-1-1")*3 {
		t.Errorf("output %q", text)
	}
}

// pass lets time go by.
func pass(d time.Duration) { <-time.After(d) }
