package plugintest_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/axctl/ax/plugins"
	"github.com/axctl/ax/plugins/plugintest"
	pb "github.com/axctl/ax/plugins/proto"
	"github.com/axctl/ax/plugins/sdk"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type input struct {
	Do string `ax:"do" doc:"What to do." enum:"succeed,fail,wait,panic,exit,print"`
	N  int    `ax:"n" doc:"How much." default:"1"`
}

func handler() plugins.Handler {
	return sdk.Handler("versatile", "Does as it is told.", func(ctx context.Context, job sdk.Job, in input) (sdk.Outputs, error) {
		switch in.Do {
		case "fail":
			return nil, errors.New("as told")
		case "wait":
			<-ctx.Done()
			return nil, context.Cause(ctx)
		case "panic":
			panic("as told")
		case "exit":
			runtime.Goexit()
		case "print":
			for i := range in.N {
				w := job.Output.Stdout
				if i%2 == 1 {
					w = job.Output.Stderr
				}
				if _, err := w.Write([]byte{byte(i), 0, 0xff}); err != nil {
					return nil, err
				}
			}
		}
		job.Output.Logger().Info("done", "due", job.Due)
		return sdk.Outputs{"n": in.N}, nil
	})
}

func TestConformance(t *testing.T) {
	t.Parallel()
	plugintest.Run(t, plugintest.Subject{
		Handler: handler(),
		Success: `{"do": "succeed"}`,
		Failure: `{"do": "fail"}`,
		Endless: `{"do": "wait"}`,
	})
}

func TestAttemptsThatBreak(t *testing.T) {
	t.Parallel()
	e := plugintest.Start(t, sdk.Options{Handlers: []plugins.Handler{handler()}})
	waiting := e.Job("versatile", `{"do": "wait"}`)
	e.Send(&pb.Down{Jobs: []*pb.Job{waiting}})
	res := e.Do(e.Job("versatile", `{"do": "panic"}`))
	if res.Class != "permanent" || !strings.HasPrefix(res.Error, "panic: as told\n") || !strings.Contains(res.Stderr, "plugintest_test.go") {
		t.Errorf("panic: %+v", res)
	}
	if res := e.Do(e.Job("versatile", `{"do": "exit"}`)); res.Class != "permanent" || res.Error != "handler ended its goroutine" {
		t.Errorf("Goexit: %+v", res)
	}
	if res := e.Do(e.Job("versatile", `{"do": "dance"}`)); res.Class != "permanent" || !strings.Contains(res.Error, `do is "dance", not one of succeed, fail`) {
		t.Errorf("enum: %+v", res)
	}
	if res := e.Do(e.Job("versatile", `{}`)); res.Class != "permanent" || res.Error != "handler body: do is not set" {
		t.Errorf("missing: %+v", res)
	}
	if res := e.Do(e.Job("other", `{}`)); res.Report.Kind != pb.Kind_KIND_REFUSED || res.Class != "permanent" {
		t.Errorf("unknown handler: %+v", res)
	}
	e.Send(&pb.Down{Cancels: []*pb.Cancel{{BatchNo: waiting.BatchNo}}})
	if res := e.End(waiting.BatchNo); res.Status != "cancelled" {
		t.Errorf("the one beside them: %+v", res)
	}
}

// The first and the last bytes are kept, whatever the sizes of the pieces.
func TestOutputCaps(t *testing.T) {
	t.Parallel()
	e := plugintest.Start(t, sdk.Options{Handlers: []plugins.Handler{handler()}, OutputHead: 3000, OutputTail: 600})
	res := e.Do(e.Job("versatile", `{"do": "print", "n": 100000}`))
	r := res.Report
	if res.Status != "success" || r.OutputBytes < 300_000 || r.OutputDropped != r.OutputBytes-3600 {
		t.Errorf("%+v", r)
	}
	if got := len(res.Stdout) + len(res.Stderr); got != 3600 {
		t.Errorf("%d bytes kept", got)
	}
	if res.Stdout[:6] != "\x00\x00\xff\x02\x00\xff" || !strings.Contains(res.Stderr, "msg=done due=2026-01-01T00:00:00.000Z\n") {
		t.Errorf("head %q, tail %q", res.Stdout[:6], res.Stderr[len(res.Stderr)-100:])
	}
	if len(res.Notes) != 1 || !strings.HasPrefix(res.Notes[0], "… ") {
		t.Errorf("notes: %q", res.Notes)
	}
}
