package builtin_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins"
	"github.com/axctl/ax/plugins/builtin"
	"github.com/axctl/ax/plugins/builtin/schemas"
	"github.com/axctl/ax/plugins/host"
)

// serveKey makes the test binary an executor, as axd's own binary is.
const serveKey = "AX_TEST_EXECUTOR"

func TestMain(m *testing.M) {
	if name := os.Getenv(serveKey); name != "" {
		_, _ = os.Stderr.WriteString(builtin.Serve(name).Error())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// running returns a host with all built-in executors, ready, until the test
// ends.
func running(t testing.TB, output func([]host.OutputChunk)) *host.Host {
	t.Helper()
	cfg := host.Config{
		Dir: t.TempDir(), Host: "test", Boot: "1", Output: output,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	for _, h := range builtin.All() {
		name := h.Schema().Handler
		cfg.Executors = append(cfg.Executors, host.Command{Name: name, Path: os.Args[0], Env: []string{serveKey + "=" + name}})
	}
	h := host.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-h.Ready()
	return h
}

// ends runs the jobs and returns their ends by batch number, and what they
// printed.
func ends(t *testing.T, jobs ...ax.Job) (map[string]ax.Report, map[string]string) {
	t.Helper()
	var mu sync.Mutex
	text := map[string]string{}
	h := running(t, func(chunks []host.OutputChunk) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range chunks {
			text[c.BatchNo] += string(c.Data)
		}
	})
	h.Dispatch(jobs)
	got := map[string]ax.Report{}
	var kept int64
	timeout := time.After(20 * time.Second)
	for len(got) < len(jobs) {
		select {
		case rs := <-h.Reports():
			for _, r := range rs {
				if r.Kind != ax.ReportStarted {
					got[r.BatchNo] = r
					kept += r.OutputBytes - r.OutputDropped
					h.Acknowledge([]string{r.BatchNo})
				}
			}
		case <-timeout:
			t.Fatalf("ended: %v", got)
		}
	}
	for tick := time.NewTicker(time.Millisecond); ; { // output may come after the end
		mu.Lock()
		n := 0
		for _, s := range text {
			n += len(s)
		}
		mu.Unlock()
		if int64(n) >= kept {
			return got, text
		}
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("%d of %d bytes of output came", n, kept)
		}
	}
}

// What axctl checks bodies with is what the executors offer.
func TestSchemas(t *testing.T) {
	t.Parallel()
	var served []plugins.Schema
	for _, h := range builtin.All() {
		served = append(served, h.Schema())
	}
	if !reflect.DeepEqual(served, schemas.All()) {
		t.Errorf("served %+v, linked by axctl %+v", served, schemas.All())
	}
}

func TestServeUnknown(t *testing.T) {
	t.Parallel()
	if err := builtin.Serve("no_such"); err == nil || !strings.Contains(err.Error(), "http, shell") {
		t.Errorf("%v", err)
	}
}

func job(batchNo, handler string, body map[string]any) ax.Job {
	b, _ := json.Marshal(body)
	return ax.Job{
		BatchNo: batchNo, InstanceID: 1, Attempt: 1, Stack: "demo", Task: "task.t", Handler: handler, Body: b,
		DueMs: 1767225600000, Timezone: "Asia/Tokyo", UTCOffset: 9 * 3600, Timeout: ax.DurationOf(10 * time.Second), KillAfter: ax.DurationOf(time.Second),
	}
}

func TestShellThroughHost(t *testing.T) {
	t.Setenv("AX_SECRET_OF_DAEMON", "hunter2")
	got, printed := ends(t,
		job("i-1-1", "shell", map[string]any{"command": "echo hello; env; echo k=v >>$AX_OUTPUT"}),
		job("i-2-1", "shell", map[string]any{"command": []string{"sh", "-c", "exit 3"}}),
		job("i-3-1", "no_such", map[string]any{}),
	)
	if r := got["i-1-1"]; r.Status != ax.StatusSuccess || string(r.Outputs) != `{"k":"v"}` || r.StartedMs == 0 || r.StoppedMs == 0 {
		t.Errorf("success: %+v", r)
	}
	if r := got["i-2-1"]; r.Status != ax.StatusFailed || r.ErrorClass != ax.ClassFailed || r.Error != "exit code 3" {
		t.Errorf("failure: %+v", r)
	}
	if r := got["i-3-1"]; r.Kind != ax.ReportRefused || r.ErrorClass != ax.ClassPermanent {
		t.Errorf("unknown handler: %+v", r)
	}
	out := printed["i-1-1"]
	if !strings.HasPrefix(out, "hello\n") || !strings.Contains(out, "\nAX_DATE=2026-01-01\n") || !strings.Contains(out, "\nAX_DUE=2026-01-01T09:00:00+09:00\n") {
		t.Errorf("output: %q", out)
	}
	if strings.Contains(out, "hunter2") || strings.Contains(out, "SECRET") {
		t.Errorf("the daemon's environment has reached the task: %q", out)
	}
}
