package retention

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/axctl/ax"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shelf is a store and a folder of logs that tell what they were asked.
type shelf struct {
	asked  []ax.PruneQuery
	times  []time.Time
	steps  []ax.Pruned // what each Prune deletes
	before []int64     // of the logs
	err    error
}

func (s *shelf) Prune(_ context.Context, q ax.PruneQuery, step func(ax.Pruned) error) error {
	s.asked, s.times = append(s.asked, q), append(s.times, time.Now())
	for _, n := range s.steps {
		if err := step(n); err != nil {
			return err
		}
	}
	return s.err
}

type logFolder struct{ *shelf }

func (l logFolder) Prune(beforeMs int64) (int64, error) {
	l.before = append(l.before, beforeMs)
	return 7, nil
}

// A sweep comes a minute after the start and then in a rhythm that fits the
// age; each tells its sum in one line.
func TestSweeps(t *testing.T) {
	t.Parallel()
	for age, every := range map[time.Duration]time.Duration{
		0: time.Hour, 12 * time.Hour: 30 * time.Minute, time.Minute: time.Minute,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &shelf{steps: []ax.Pruned{{Instances: 500}, {Instances: 3, Transitions: 2}}}
			var out bytes.Buffer
			p := New(Config{
				Store: s, Logs: logFolder{s}, Age: age, Log: slog.New(slog.NewTextHandler(&out, nil)),
				Registerer: prometheus.NewRegistry(),
			})
			began := time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- p.Run(ctx) }()
			<-time.After(time.Minute + 2*every + time.Second)
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if len(s.asked) != 3 || s.times[0].Sub(began) != time.Minute || s.times[1].Sub(s.times[0]) != every+2*DefaultPause {
				t.Fatalf("age %s: asked at %v", age, s.times)
			}
			want := s.times[0].Add(-p.cfg.Age).UnixMilli()
			if q := s.asked[0]; q.EndedByMs != want || q.KeepLast != DefaultLast || q.KeysByMs != s.times[0].UnixMilli()-ax.TriggerKeyMs || s.before[0] != want {
				t.Errorf("age %s: asked %+v and logs before %d, want %d", age, q, s.before[0], want)
			}
			if lines := strings.Count(out.String(), "\n"); lines != 3 || !strings.Contains(out.String(), "instances=503") {
				t.Errorf("log is\n%s", out.String())
			}
		})
	}
}

// A store that is away is told once, and logs wait for it too.
func TestPutOff(t *testing.T) {
	t.Parallel()
	s := &shelf{err: ax.ErrUnavailable}
	var out bytes.Buffer
	p := New(Config{Store: s, Logs: logFolder{s}, Log: slog.New(slog.NewTextHandler(&out, nil))})
	p.runOnce(t.Context())
	p.runOnce(t.Context())
	if strings.Count(out.String(), "\n") != 1 || len(s.before) != 0 {
		t.Errorf("logs pruned %d times, log is\n%s", len(s.before), out.String())
	}
	s.err = nil
	p.runOnce(t.Context())
	s.err = errors.New("other")
	p.runOnce(t.Context())
	if len(s.before) != 1 || strings.Count(out.String(), "not deleted for now") != 2 {
		t.Errorf("logs pruned %d times, log is\n%s", len(s.before), out.String())
	}
}

// A stop between two steps ends the sweep at once and is no fault.
func TestStops(t *testing.T) {
	t.Parallel()
	s := &shelf{steps: []ax.Pruned{{Instances: 1}, {Instances: 1}}}
	var out bytes.Buffer
	p := New(Config{Store: s, Logs: logFolder{s}, Pause: time.Hour, Log: slog.New(slog.NewTextHandler(&out, nil))})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.runOnce(ctx)
	if len(s.before) != 0 || !strings.Contains(out.String(), "instances=1 ") || strings.Contains(out.String(), "for now") {
		t.Errorf("logs pruned %d times, log is\n%s", len(s.before), out.String())
	}
}

// Nothing is deleted by a clock that is not believed; a minute later it is looked
// at again.
func TestWaitsForTheClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		var doubted atomic.Bool
		doubted.Store(true)
		p := New(Config{Store: s, Wait: doubted.Load})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		<-time.After(5*time.Minute + time.Second)
		if len(s.asked) != 0 {
			t.Errorf("asked %d times by a clock in doubt", len(s.asked))
		}
		doubted.Store(false)
		<-time.After(time.Minute)
		if len(s.asked) != 1 {
			t.Errorf("asked %d times", len(s.asked))
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
