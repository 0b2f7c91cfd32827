package upkeep

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/axctl/ax"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shop is a store that tells when it was looked after.
type shop struct {
	times []time.Time
	steps int
	err   error

	checkpoints int // each checkpointEvery, whatever the index is at
}

func (s *shop) IndexHistory(_ context.Context, step func() error) error {
	s.times = append(s.times, time.Now())
	for range s.steps {
		if err := step(); err != nil {
			return err
		}
	}
	return s.err
}

func (s *shop) Checkpoint(context.Context) error {
	s.checkpoints++
	return s.err
}

func (s *shop) Holds() []ax.WriterHold {
	return []ax.WriterHold{{Kind: "index", Count: 3, Sum: 30 * time.Millisecond, Longest: 20 * time.Millisecond}}
}

// It looks every few seconds, with a pause after each transaction, and a stop
// between two of them ends it at once.
func TestRhythm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shop{steps: 4}
		k := New(Config{Store: s, Pause: time.Second})
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- k.Run(ctx) }()
		<-time.After(2*DefaultEvery + 5*time.Second + checkpointEvery/2)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if len(s.times) != 2 || s.times[0].Sub(began) != DefaultEvery || s.times[1].Sub(s.times[0]) != DefaultEvery+4*time.Second {
			t.Errorf("looked at %v", s.times)
		}
		if s.checkpoints != int((2*DefaultEvery+5*time.Second)/checkpointEvery) {
			t.Errorf("%d checkpoints", s.checkpoints)
		}
	})
}

// A store that is away is told once, and once more when it has been back.
func TestPutOff(t *testing.T) {
	t.Parallel()
	s := &shop{err: ax.ErrUnavailable}
	var out bytes.Buffer
	k := New(Config{Store: s, Log: slog.New(slog.NewTextHandler(&out, nil))})
	for _, err := range []error{ax.ErrUnavailable, ax.ErrUnavailable, nil, ax.ErrUnavailable} {
		s.err = err
		k.indexOnce(t.Context())
		k.checkpointOnce(t.Context())
	}
	if n := strings.Count(out.String(), "\n"); n != 4 {
		t.Errorf("log is\n%s", out.String())
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	New(Config{Store: &shop{}, Registerer: r})
	got, err := r.Gather()
	if err != nil || len(got) != 3 {
		t.Fatalf("%d metrics, %v", len(got), err)
	}
	for i, want := range []float64{0.03, 3, 0.02} { // in order of their names
		m := got[i].GetMetric()[0]
		if v := m.GetCounter().GetValue() + m.GetGauge().GetValue(); v != want || m.GetLabel()[0].GetValue() != "index" {
			t.Errorf("%s is %v, want %v", got[i].GetName(), v, want)
		}
	}
}
