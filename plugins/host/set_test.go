package host_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins/host"
)

// An executor that is added works; one that is taken away finishes what it has,
// takes nothing more and ends; and it comes back.
func TestConfigure(t *testing.T) {
	t.Parallel()
	nap, program := newNap(), filepath.Join(t.TempDir(), "plugin")
	copyProgram(t, program, "1")
	added := host.Command{Name: "added", Path: program, Env: []string{roleKey + "=executor"}}
	b := start(t, nil)
	b.Dispatch([]ax.Job{job("i-1-1", "noop", `{}`)})
	if r := b.end("i-1-1"); r.Kind != ax.ReportRefused {
		t.Errorf("a handler that nobody has: %+v", r)
	}
	b.Configure([]host.Command{added})
	b.until("the new executor", func() bool { return b.offers("noop") })
	b.Dispatch([]ax.Job{job("i-2-1", "sleep", text(nap+"; true"))})
	pid := b.executorPid("i-2-1")

	b.Configure(nil)
	if b.offers("noop") || len(b.States()) != 0 {
		t.Errorf("it is there still: %+v", b.States())
	}
	b.Dispatch([]ax.Job{job("i-3-1", "noop", `{}`)})
	if r := b.end("i-3-1"); r.Kind != ax.ReportRefused || r.ErrorClass != ax.ClassTransient {
		t.Errorf("a job of what was taken away: %+v", r)
	}
	if gone(pid) {
		t.Fatal("it was not left to finish")
	}

	b.Configure([]host.Command{added}) // while the one before still drains
	b.until("the executor again", func() bool { return b.offers("noop") })
	b.Dispatch([]ax.Job{job("i-4-1", "sleep", text("true"))})
	if r := b.end("i-4-1"); r.Status != ax.StatusSuccess || b.executorPid("i-4-1") == pid {
		t.Errorf("%+v", r)
	}
	b.Cancel([]ax.CancelOrder{{BatchNo: "i-2-1", Class: ax.ClassCancelled, Detail: "by ann"}})
	if r := b.end("i-2-1"); r.Status != ax.StatusCancelled {
		t.Errorf("what ran while it was taken away: %+v", r)
	}
	b.Acknowledge([]string{"i-2-1"})
	eventually(t, "the end of what was taken away", func() bool { return gone(pid) })
	if !b.offers("noop") {
		t.Error("its end took the handlers of the next one along")
	}
}

// Another environment is another process; so it is over a restart. The one
// before finishes what it has.
func TestEnvironmentChanged(t *testing.T) {
	t.Parallel()
	nap, dir := newNap(), t.TempDir()
	program := filepath.Join(t.TempDir(), "plugin")
	copyProgram(t, program, "1")
	with := func(env ...string) []host.Command {
		return []host.Command{{Name: "executor", Path: program, Env: append([]string{roleKey + "=executor"}, env...)}}
	}
	b := start(t, func(c *host.Config) { c.Dir, c.Executors = dir, with() })
	b.Dispatch([]ax.Job{job("i-1-1", "sleep", text(nap+"; true"))})
	first := b.executorPid("i-1-1")
	b.Configure(with()) // the same again
	b.Configure(with("TOKEN=1"))
	b.until("the change", func() bool { return strings.Contains(b.log.String(), "program was replaced") })
	b.Dispatch([]ax.Job{job("i-2-1", "sleep", text("true"))})
	b.end("i-2-1")
	second := b.executorPid("i-2-1")
	if second == first || gone(first) {
		t.Errorf("first %d, then %d", first, second)
	}
	b.Acknowledge([]string{"i-2-1"})
	b.Leave()
	b.stop()

	b = start(t, func(c *host.Config) { c.Dir, c.Executors = dir, with("TOKEN=2") })
	b.Recover([]ax.Job{job("i-1-1", "sleep", text(nap+"; true"))})
	eventually(t, "the end of the second, which has nothing left", func() bool { return gone(second) })
	b.Dispatch([]ax.Job{job("i-3-1", "sleep", text("true"))})
	if r := b.end("i-3-1"); r.Status != ax.StatusSuccess || b.executorPid("i-3-1") == second {
		t.Errorf("%+v", r)
	}
	if gone(first) {
		t.Error("what ran in the first was not left to finish")
	}
}

// A pinned file that is replaced, or removed, under a running process is told at
// once, and the process goes on; the pin of the new file changes to it.
func TestPinnedReplacedWhileItRuns(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "plugin")
	pinned := func(sum string) []host.Command {
		return []host.Command{{Name: "executor", Path: program, SHA256: sum, Env: []string{roleKey + "=executor"}}}
	}
	one := copyProgram(t, program, "1")
	b := start(t, func(c *host.Config) { c.Executors = pinned(one) })
	b.Dispatch([]ax.Job{job("i-1-1", "sleep", text("true"))})
	b.end("i-1-1")
	first := b.executorPid("i-1-1")
	two := copyProgram(t, program, "2")
	b.until("the remark", func() bool {
		return strings.Contains(b.state("executor").Note, "has sha256 "+two+", its plugin block says "+one) &&
			strings.Contains(b.log.String(), "the process that runs goes on")
	})
	if s := b.state("executor"); s.Problem != "" || s.SHA256 != one || gone(first) || !b.offers("noop") {
		t.Errorf("it does not go on: %+v", s)
	}
	b.Configure(pinned(two))
	b.until("the new one", func() bool { s := b.state("executor"); return s.SHA256 == two && s.Note == "" })
	eventually(t, "the end of the one before", func() bool { b.Acknowledge([]string{"i-1-1"}); return gone(first) })
}
