package plugintest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax/plugins"
	"github.com/axctl/ax/plugins/plugintest"
	pb "github.com/axctl/ax/plugins/proto"
	"github.com/axctl/ax/plugins/sdk"
)

type loop struct {
	Steps int  `ax:"steps" doc:"How many." default:"1000000"`
	Quiet bool `ax:"quiet" doc:"Give no sign of life." default:"false"`
}

// worker tells its progress each millisecond, and can be paused between them.
func worker() plugins.Handler {
	return sdk.Handler("worker", "Works.", func(ctx context.Context, job sdk.Job, in loop) (sdk.Outputs, error) {
		gate := sdk.NewGate(job)
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for n := range in.Steps {
			if err := gate.Wait(ctx); err != nil {
				return nil, err
			}
			<-ticker.C
			if !in.Quiet {
				job.Progress(float64(n)/10, strings.Repeat("x", 300)+"\nmore")
			}
		}
		return sdk.Outputs{"done": true}, nil
	})
}

// Progress is told once a second at most, the newest, bounded; short work tells
// none; a new session is told the last.
func TestProgress(t *testing.T) {
	t.Parallel()
	e := plugintest.Start(t, sdk.Options{Handlers: []plugins.Handler{worker()}})
	short := e.Job("worker", `{"steps": 20}`)
	e.Do(short)
	j := e.Job("worker", `{}`)
	e.Send(&pb.Down{Jobs: []*pb.Job{j}})
	var first, second *pb.Progress
	e.UntilLive("two tellings", j.BatchNo, func(l plugintest.Live) bool {
		if len(l.Progress) >= 2 {
			first, second = l.Progress[0], l.Progress[1]
		}
		return second != nil
	})
	if apart := second.AtMs - first.AtMs; apart < 900 {
		t.Errorf("told twice within %d ms", apart)
	}
	if first.Percent == nil || *first.Percent <= 0 || *first.Percent > 100 || len(first.Text) > plugins.MaxProgressBytes || strings.Contains(first.Text, "\n") {
		t.Errorf("told %v", first)
	}
	e.Reconnect()
	e.UntilLive("the last told again", j.BatchNo, func(l plugintest.Live) bool { return len(l.Progress) >= 3 })
	e.UntilLive("nothing of short work", short.BatchNo, func(l plugintest.Live) bool { return len(l.Progress) == 0 })
}

// A paused attempt does nothing, its timeout and its heartbeat stand still, and
// it goes on where it was.
func TestPauseStandsStill(t *testing.T) {
	t.Parallel()
	e := plugintest.Start(t, sdk.Options{Handlers: []plugins.Handler{worker()}})
	j := e.Job("worker", `{"quiet": true, "steps": 600}`)
	j.TimeoutMs, j.HeartbeatMs = 1500, 1400
	e.Send(&pb.Down{Jobs: []*pb.Job{j}})
	e.Until("the start", func(told []*pb.Report, _ plugintest.Result) bool { return len(told) > 0 }, j.BatchNo)
	paused := e.Signal(j.BatchNo, "pause")
	if paused.Refused != "" {
		t.Fatal(paused)
	}
	<-time.After(2 * time.Second) // longer than both
	e.Signal(j.BatchNo, "resume")
	if res := e.End(j.BatchNo); res.Status != "success" {
		t.Errorf("%+v", res)
	}
}

// Progress and the handler's own heartbeat are signs of life, as is waiting for
// a host that takes no output.
func TestSignsOfLife(t *testing.T) {
	t.Parallel()
	e := plugintest.Start(t, sdk.Options{Handlers: []plugins.Handler{worker()}})
	j := e.Job("worker", `{"steps": 900}`)
	j.HeartbeatMs = 200
	if res := e.Do(j); res.Status != "success" {
		t.Errorf("one that tells its progress: %+v", res)
	}
	quiet := e.Job("worker", `{"quiet": true}`)
	quiet.HeartbeatMs = 200
	if res := e.Do(quiet); res.Class != "lost" || res.Status != "failed" {
		t.Errorf("one that does not: %+v", res)
	}
}
