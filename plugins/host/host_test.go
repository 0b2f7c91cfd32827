package host_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins/host"
	"github.com/prometheus/client_golang/prometheus"
)

func TestJobsRunAndEnd(t *testing.T) {
	t.Parallel()
	b := start(t, nil, "executor")
	var jobs []ax.Job
	for i := range 1000 {
		jobs = append(jobs, job("i-"+strconv.Itoa(i)+"-1", "noop", `{}`))
	}
	b.Dispatch(jobs)
	for _, j := range jobs {
		r := b.end(j.BatchNo)
		if r.Kind != ax.ReportEnded || r.Status != ax.StatusSuccess || r.Executor != "executor" {
			t.Fatalf("%+v", r)
		}
		if r.StartedMs == 0 || r.EndedMs < r.StartedMs || r.StoppedMs < r.EndedMs {
			t.Fatalf("instants out of order: %+v", r)
		}
	}
	if !b.offers("noop") || b.offers("nothing") || len(b.Handlers()) != len(handlers()) {
		t.Errorf("offers: %v", b.Handlers())
	}
}

// offers reports whether a running executor has the handler.
func (b *bench) offers(handler string) bool {
	return b.Fit(ax.HandlerSpec{Name: handler, Body: []byte(`{}`)}) != ax.FitNone
}

// B005: the receiver knows a repeated dispatch by its number.
func TestDispatchAgain(t *testing.T) {
	t.Parallel()
	nap := newNap()
	b := start(t, nil, "executor")
	sleep := job("i-1-1", "sleep", text(nap))
	b.Dispatch([]ax.Job{sleep})
	b.executorPid("i-1-1")
	b.Dispatch([]ax.Job{sleep, sleep})
	b.until("the start told again", func() bool { return len(b.reports["i-1-1"]) >= 2 })
	first := b.ofKind("i-1-1", ax.ReportStarted)
	if first[0].StartedMs != first[len(first)-1].StartedMs {
		t.Errorf("started twice: %+v", first)
	}

	other := sleep
	other.Body = []byte(`{"text": "echo other"}`)
	b.Dispatch([]ax.Job{other})
	b.until("the refusal", func() bool {
		rs := b.reports["i-1-1"]
		return rs[len(rs)-1].Kind == ax.ReportRefused
	})

	b.Cancel([]ax.CancelOrder{{BatchNo: "i-1-1", Class: ax.ClassCancelled, Detail: "by ann"}})
	b.until("the end", func() bool {
		rs := b.reports["i-1-1"]
		return rs[len(rs)-1].StoppedMs != 0 && rs[len(rs)-1].Kind != ax.ReportRefused
	})
	ended := b.ofKind("i-1-1", ax.ReportEnded)
	if len(ended) != 1 || ended[0].Status != ax.StatusCancelled || ended[0].Error != "by ann" {
		t.Errorf("end: %+v", ended)
	}
	b.Dispatch([]ax.Job{sleep})
	b.until("the end told again", func() bool { return len(b.reports["i-1-1"]) > 0 && endings(b.reports["i-1-1"]) == 2 })
	if n := running(nap); n != 0 {
		t.Errorf("%d sleeping processes", n)
	}
}

func endings(rs []ax.Report) (n int) {
	for _, r := range rs {
		if r.Kind == ax.ReportEnded {
			n++
		}
	}
	return n
}

// A killed executor: its attempts are lost once each, what they started is
// gone, and another executor takes the next job.
func TestExecutorKilled(t *testing.T) {
	t.Parallel()
	nap := newNap()
	reg := prometheus.NewRegistry()
	b := start(t, func(c *host.Config) { c.Registerer = reg }, "executor")
	b.Dispatch([]ax.Job{
		job("i-1-1", "sleep", text(nap+"; true")),
		job("i-2-1", "sleep", text("setsid "+nap+" & wait")),
		job("i-3-1", "stubborn", `{"n": 60000}`),
	})
	pid := b.executorPid("i-1-1")
	b.executorPid("i-2-1")
	b.until("the grandchildren", func() bool { return running(nap) >= 3 })
	b.Cancel([]ax.CancelOrder{{BatchNo: "i-3-1", Class: ax.ClassTimeout, Detail: "too long"}})
	b.until("the timeout", func() bool { return endings(b.reports["i-3-1"]) == 1 })
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, batchNo := range []string{"i-1-1", "i-2-1"} {
		r := b.end(batchNo)
		if r.Kind != ax.ReportLost || r.ErrorClass != ax.ClassLost || !strings.Contains(r.Error, "killed") {
			t.Errorf("%+v", r)
		}
	}
	// It had ended; only that it is gone was missing.
	if r := b.end("i-3-1"); r.Status != ax.StatusTimeout || r.Kind != ax.ReportEnded {
		t.Errorf("%+v", r)
	}
	if n := running(nap); n != 0 {
		t.Errorf("%d processes left when the attempts were reported lost", n)
	}
	b.Dispatch([]ax.Job{job("i-4-1", "noop", `{}`), job("i-1-1", "sleep", text(nap+"; true"))})
	if r := b.end("i-4-1"); r.Status != ax.StatusSuccess {
		t.Errorf("after the restart: %+v", r)
	}
	b.until("the loss told again", func() bool { return len(b.reports["i-1-1"]) >= 3 })
	if rs := b.ofKind("i-1-1", ax.ReportStarted); len(rs) > 1 {
		t.Errorf("a lost attempt was started again: %+v", rs)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		m := f.GetMetric()[0]
		values[f.GetName()] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	if values["ax_host_lost_total"] != 2 || values["ax_host_executor_starts_total"] != 2 || values["ax_host_executor_up"] != 1 {
		t.Errorf("metrics: %v", values)
	}
}

// When the host ends, so does everything that it started.
func TestRunLeavesNothing(t *testing.T) {
	t.Parallel()
	nap := newNap()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "plugin-dir-of-before"), 0o700); err != nil {
		t.Fatal(err)
	}
	b := start(t, func(c *host.Config) { c.Dir = dir }, "executor")
	b.Dispatch([]ax.Job{
		job("i-1-1", "sleep", text("trap '' TERM; "+nap+"; true")),
		job("i-2-1", "sleep", text("setsid "+nap+" & wait")),
	})
	pid := b.executorPid("i-1-1")
	b.executorPid("i-2-1")
	b.until("the grandchildren", func() bool { return running(nap) >= 3 })
	b.stop()
	if n := running(nap); n != 0 {
		t.Errorf("%d processes left", n)
	}
	if err := syscall.Kill(pid, 0); err == nil {
		t.Error("the executor is left")
	}
	for _, batchNo := range []string{"i-1-1", "i-2-1"} {
		if r := b.end(batchNo); r.Kind != ax.ReportLost {
			t.Errorf("%+v", r)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) == 0 {
		t.Error("what it said is not durable, and is gone")
	}
	b.Acknowledge([]string{"i-1-1", "i-2-1"})
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 2 {
		t.Errorf("files left: %v", left) // but for epoch and boots
	}
}

// B086: the executor of an axd that is killed, and that no other one comes for,
// ends after the grace time with all that it runs, and what it knows is kept.
func TestAxdKilled(t *testing.T) {
	t.Parallel()
	nap, dir := newNap(), t.TempDir()
	axd, pid := startAxd(t, dir, nap, graceKey+"=1s")
	if err := axd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = axd.Wait()
	eventually(t, "the executor's end", func() bool { return gone(pid) })
	if n := running(nap); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	nextAxdClears(t, dir) // by the last words
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 2 {
		t.Errorf("files left: %v", left)
	}
}

// What an axd leaves that was killed together with its executors, or whose
// executors hang, ends when the next one starts on its folder: not when one
// starts beside it on a copy of its store.
func TestNextAxdClearsWhatIsLeft(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		signal syscall.Signal // for the executor
		beside bool           // what is left has an executor that lives
		why    string
	}{
		{"executor killed", syscall.SIGKILL, false, "no executor that it left has a word of it"},
		{"executor stopped", syscall.SIGSTOP, true, "of it; executor executor was killed: it does not answer: a signal has stopped it, and it was not continued within 2s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			nap, dir := newNap(), t.TempDir()
			axd, pid := startAxd(t, dir, nap)
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			if err := axd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = axd.Wait()
			before := running(nap)
			if err := syscall.Kill(pid, c.signal); err != nil {
				t.Fatal(err)
			}
			if c.beside {
				nextAxdClears(t, t.TempDir()) // on a copy of the store
				if n := running(nap); n < before {
					t.Fatalf("of %d processes of another host %d are left", before, n)
				}
			}
			if running(nap) == 0 {
				t.Fatal("nothing was left")
			}
			said := nextAxdClears(t, dir)
			if n := running(nap); n != 0 || !gone(pid) {
				t.Errorf("%d processes are left", n)
			}
			if !strings.Contains(said, c.why) {
				t.Errorf("the loss is told as %q", said)
			}
		})
	}
}

// nextAxdClears does what the next axd does, in a process that nothing descends
// from, until all attempts are lost, and returns how they are told.
func nextAxdClears(t *testing.T, dir string) string {
	t.Helper()
	next := exec.Command(os.Args[0], dir)
	next.Env = []string{roleKey + "=next axd"}
	out, err := next.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func TestOutput(t *testing.T) {
	t.Parallel()
	b := start(t, nil, "executor")
	b.Dispatch([]ax.Job{job("i-1-1", "print", `{"n": 64000000}`), job("i-2-1", "print", `{"n": 3000000}`)})
	r := b.end("i-1-1")
	kept := int64(5 << 20)
	if r.Status != ax.StatusSuccess || r.OutputBytes != 64_000_000 || r.OutputDropped != 64_000_000-kept {
		t.Errorf("%+v", r)
	}
	b.until("all that is kept", func() bool { return int64(len(b.output["i-1-1"])) == kept && len(b.output["i-2-1"]) == 3_000_000 })
	if r := b.end("i-2-1"); r.OutputDropped != 0 {
		t.Errorf("%+v", r)
	}
	if want := "… " + strconv.FormatInt(64_000_000-kept, 10) + " bytes dropped …"; b.notes["i-1-1"] != want {
		t.Errorf("mark: %q", b.notes["i-1-1"])
	}
}

// A log that takes nothing holds back output, not reports.
func TestReportsPassABlockedLog(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	b := start(t, func(c *host.Config) {
		next := c.Output
		c.Output = func(chunks []host.OutputChunk) { <-release; next(chunks) }
	}, "executor")
	b.Dispatch([]ax.Job{job("i-1-1", "print", `{"n": 4000000}`)})
	b.until("the start", func() bool { return len(b.reports["i-1-1"]) == 1 })
	for i := range 50 {
		batchNo := "i-" + strconv.Itoa(i+2) + "-1"
		b.Dispatch([]ax.Job{job(batchNo, "noop", `{}`)})
		if r := b.end(batchNo); r.Status != ax.StatusSuccess {
			t.Fatalf("%+v", r)
		}
	}
	if n := len(b.ofKind("i-1-1", ax.ReportEnded)); n != 0 {
		t.Error("4 MB of output went into a log that takes none")
	}
	close(release)
	if r := b.end("i-1-1"); r.OutputBytes != 4_000_000 || r.OutputDropped != 0 {
		t.Errorf("%+v", r)
	}
	b.until("the output", func() bool { return len(b.output["i-1-1"]) == 4_000_000 })
}

// B073, B072: whatever the size and the bytes, the end gets through.
func TestResultsAreBounded(t *testing.T) {
	t.Parallel()
	b := start(t, nil, "executor")
	b.Dispatch([]ax.Job{
		job("i-1-1", "result", `{"n": 5000000}`),
		job("i-2-1", "result", `{"n": 1000}`),
		job("i-3-1", "fail", `{"n": 5000000}`),
		job("i-4-1", "panic", `{}`),
		job("i-5-1", "noop", `{"text": "`+strings.Repeat("p", 5_000_000)+`"}`),
	})
	var outputs map[string]string
	r := b.end("i-1-1")
	if err := json.Unmarshal(r.Outputs, &outputs); err != nil || r.Status != ax.StatusSuccess || !strings.Contains(outputs["ax_dropped"], "5000010 bytes") {
		t.Errorf("large outputs: %.200s %v %+v", r.Outputs, err, outputs)
	}
	if r := b.end("i-2-1"); len(r.Outputs) != 1000+len(`{"big":""}`) {
		t.Errorf("outputs: %d bytes", len(r.Outputs))
	}
	r = b.end("i-3-1")
	if r.Status != ax.StatusFailed || len(r.Error) > ax.MaxErrorBytes || !utf8.ValidString(r.Error) || strings.Contains(r.Error, "\x00") || len(r.Error) < 1000 {
		t.Errorf("large error: %d bytes, %q", len(r.Error), r.Error[:min(20, len(r.Error))])
	}
	r = b.end("i-4-1")
	if r.ErrorClass != ax.ClassPermanent || !strings.HasPrefix(r.Error, "panic: as asked\n") || !strings.Contains(r.Error, "goroutine ") {
		t.Errorf("panic: %+v", r)
	}
	if r := b.end("i-5-1"); r.ErrorClass != ax.ClassPermanent || !strings.Contains(r.Error, "text is no attribute of noop") {
		t.Errorf("large body: %.300s", r.Error)
	}
}

// A handler that ignores its context: the timeout is told at once, that the
// attempt is gone only when it has returned.
func TestTimeout(t *testing.T) {
	t.Parallel()
	b := start(t, nil, "executor")
	j := job("i-1-1", "stubborn", `{"n": 700}`)
	j.Timeout = ax.DurationOf(100 * time.Millisecond)
	b.Dispatch([]ax.Job{j})
	r := b.end("i-1-1")
	ended, stopped := b.ofKind("i-1-1", ax.ReportEnded), b.ofKind("i-1-1", ax.ReportStopped)
	if len(ended) != 1 || len(stopped) != 1 || ended[0].StoppedMs != 0 {
		t.Fatalf("ended %+v, stopped %+v", ended, stopped)
	}
	if r.Status != ax.StatusTimeout || r.ErrorClass != ax.ClassTimeout || r.Error != "timed out after 100ms" {
		t.Errorf("%+v", r)
	}
	if took := r.EndedMs - r.StartedMs; took < 100 || took > 500 {
		t.Errorf("timeout after %d ms", took)
	}
	if took := r.StoppedMs - r.StartedMs; took < 700 {
		t.Errorf("gone after %d ms", took)
	}
}

// B117: plugins that cannot start, each with its own text, beside a good one.
func TestPluginsThatDoNotStart(t *testing.T) {
	t.Parallel()
	notExecutable := filepath.Join(t.TempDir(), "plugin")
	if err := os.WriteFile(notExecutable, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := start(t, func(c *host.Config) {
		c.StartTimeout = 5 * time.Second // for the good one, on a busy machine
		c.Executors = append(c.Executors,
			host.Command{Name: "missing", Path: "/no/such/plugin"},
			host.Command{Name: "not_executable", Path: notExecutable},
			host.Command{Name: "other", Path: "/bin/echo", Args: []string{"hello"}},
		)
	}, "executor", "exits", "silent", "foreign", "newer")
	b.Dispatch([]ax.Job{job("i-1-1", "noop", `{}`), job("i-2-1", "elsewhere", `{}`)})
	if r := b.end("i-1-1"); r.Status != ax.StatusSuccess {
		t.Errorf("the good executor: %+v", r)
	}
	if r := b.end("i-2-1"); r.Kind != ax.ReportRefused || r.ErrorClass != ax.ClassTransient {
		t.Errorf("a handler that may still come: %+v", r)
	}
	b.until("the quarantine", func() bool { return b.Quarantined()["exits"] == "exit status 3 before its handshake" })
	if why := b.Quarantined()["executor"]; why != "" {
		t.Errorf("the good executor is quarantined: %s", why)
	}
	b.until("a crash loop", func() bool { return strings.Contains(b.log.String(), "executor in a crash loop") })
	for executor, want := range map[string]string{
		"exits":          `error="exit status 3 before its handshake" stderr="cannot go on: no license\n"`,
		"silent":         `error="no handshake within 5s"`,
		"foreign":        `stderr="This binary is a plugin.`,
		"newer":          `error="handshake: incompatible API version with plugin. Plugin version: 99, Client versions: [1]"`,
		"missing":        "no such file or directory",
		"not_executable": "permission denied",
		"other":          `error="exit status 0 before its handshake"`,
	} {
		b.until(executor+" in the log: "+want, func() bool {
			for line := range strings.Lines(b.log.String()) {
				if strings.Contains(line, "executor="+executor+" ") && strings.Contains(line, want) {
					return true
				}
			}
			return false
		})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, what := range []string{"executor ended", "executor in a crash loop"} {
		if n := strings.Count(b.log.String(), `level=ERROR msg="`+what+`" executor=exits`); n > 1 {
			t.Errorf("%q is logged %d times", what, n)
		}
	}
}

// B117: noise on standard output before and after the handshake.
func TestNoise(t *testing.T) {
	t.Parallel()
	b := start(t, nil, "noisy")
	for i := range 20 {
		batchNo := "i-" + strconv.Itoa(i) + "-1"
		b.Dispatch([]ax.Job{job(batchNo, "noop", `{}`)})
		if r := b.end(batchNo); r.Status != ax.StatusSuccess {
			t.Fatalf("%+v", r)
		}
	}
}

func TestLongSocketFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	b := start(t, func(c *host.Config) { c.Dir = dir }, "executor")
	b.Dispatch([]ax.Job{job("i-1-1", "noop", `{}`)})
	if r := b.end("i-1-1"); r.Status != ax.StatusSuccess {
		t.Errorf("%+v", r)
	}
}

// Of two that offer one handler the first by name has it, whichever is up first,
// and the other has what is left.
func TestTwoExecutorsOfOneHandler(t *testing.T) {
	t.Parallel()
	b := start(t, func(c *host.Config) {
		c.Executors[1].Env = []string{roleKey + "=executor"}
	}, "executor", "second")
	b.until("the loser", func() bool { return strings.Contains(b.log.String(), `plugin=executor`) })
	b.Dispatch([]ax.Job{job("i-1-1", "noop", `{}`)})
	if r := b.end("i-1-1"); r.Status != ax.StatusSuccess || r.Executor != "executor" {
		t.Errorf("%+v", r)
	}
	for _, s := range b.States() {
		if s.Problem != "" || (s.Executor == "second") != (s.Shadowed["noop"] == "executor ("+os.Args[0]+")") {
			t.Errorf("%+v", s)
		}
	}
	// A plugin block comes before a name.
	b.Configure([]host.Command{
		{Name: "executor", Path: os.Args[0], Env: []string{roleKey + "=executor"}},
		{Name: "second", Path: os.Args[0], Env: []string{roleKey + "=executor"}, Declared: true},
	})
	b.Dispatch([]ax.Job{job("i-2-1", "noop", `{}`)})
	if r := b.end("i-2-1"); r.Status != ax.StatusSuccess || r.Executor != "second" {
		t.Errorf("after the block: %+v", r)
	}
}

// What was handed over while the executor is down waits for it, and can be
// cancelled while it waits.
func TestJobsWaitForTheirExecutor(t *testing.T) {
	t.Parallel()
	nap := newNap()
	b := start(t, nil, "executor")
	b.Dispatch([]ax.Job{job("i-1-1", "sleep", text(nap))})
	pid := b.executorPid("i-1-1")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	b.until("the executor to be down", func() bool { return !b.offers("noop") })
	b.Dispatch([]ax.Job{job("i-2-1", "noop", `{}`), job("i-3-1", "noop", `{}`)})
	b.Cancel([]ax.CancelOrder{{BatchNo: "i-3-1", Class: ax.ClassCancelled, Detail: "by ann"}, {BatchNo: "unknown", Class: ax.ClassCancelled}})
	if r := b.end("i-2-1"); r.Status != ax.StatusSuccess {
		t.Errorf("%+v", r)
	}
	if r := b.end("i-3-1"); r.Status != ax.StatusCancelled && r.Status != ax.StatusSuccess {
		t.Errorf("%+v", r)
	}
}

// An executor that lives and answers nothing, for no reason that can be seen, is
// killed as soon as it is known to sleep, and only then its attempts are lost.
func TestFoundExecutorHangs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	silent := exec.Command(os.Args[0])
	silent.Env = []string{roleKey + "=silent"}
	silent.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := silent.Start(); err != nil {
		t.Fatal(err)
	}
	pid := silent.Process.Pid
	go func() { _ = silent.Wait() }()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	started, err := strconv.ParseUint(strings.Fields(string(stat[strings.LastIndex(string(stat), ")")+1:]))[19], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	record(t, dir, pid, started)
	began := time.Now()
	h := start(t, func(c *host.Config) { c.Dir = dir }, "executor")
	h.Recover([]ax.Job{job("i-1-1", "noop", `{}`)})
	if r := h.end("i-1-1"); r.Kind != ax.ReportLost || !gone(pid) {
		t.Errorf("%+v; gone %v", r, gone(pid))
	}
	if took := time.Since(began); took > 8*time.Second { // it is 2 s and a little where nothing else runs
		t.Errorf("judged after %s", took)
	}
	h.until("what was found out", func() bool {
		return strings.Contains(h.log.String(), "it does not answer: it sleeps, and has said nothing within 2s")
	})
}
