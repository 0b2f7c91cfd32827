package builtin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins/builtin"
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

// ends starts a host with all built-in executors, runs the jobs and returns
// their ends by batch number, and what they printed.
func ends(t *testing.T, jobs ...ax.Job) (map[string]ax.Report, map[string]string) {
	t.Helper()
	var mu sync.Mutex
	printed := map[string]*bytes.Buffer{}
	cfg := host.Config{
		Dir: t.TempDir(), Host: "test", Boot: "1",
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Output: func(chunks []host.OutputChunk) {
			mu.Lock()
			defer mu.Unlock()
			for _, c := range chunks {
				if printed[c.BatchNo] == nil {
					printed[c.BatchNo] = &bytes.Buffer{}
				}
				printed[c.BatchNo].Write(c.Data)
			}
		},
	}
	for _, h := range builtin.All() {
		name := h.Schema().Handler
		cfg.Executors = append(cfg.Executors, host.Command{Name: name, Path: os.Args[0], Env: []string{serveKey + "=" + name}})
	}
	h := host.New(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	<-h.Ready()
	h.Dispatch(jobs)
	got := map[string]ax.Report{}
	timeout := time.After(20 * time.Second)
	for len(got) < len(jobs) {
		select {
		case rs := <-h.Reports():
			for _, r := range rs {
				if r.Kind != ax.ReportStarted {
					got[r.BatchNo] = r
					h.Acknowledge([]string{r.BatchNo})
				}
			}
		case <-timeout:
			t.Fatalf("ended: %v", got)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	text := map[string]string{}
	for batchNo, b := range printed {
		text[batchNo] = b.String()
	}
	return got, text
}

func job(batchNo, handler string, body map[string]any) ax.Job {
	b, _ := json.Marshal(body)
	return ax.Job{
		BatchNo: batchNo, InstanceID: 1, Attempt: 1, Stack: "demo", Task: "task.t", Handler: handler, Body: b,
		DueMs: 1767225600000, Timezone: "Asia/Tokyo", Timeout: ax.DurationOf(10 * time.Second), KillAfter: ax.DurationOf(time.Second),
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
