package host_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins/host"
)

// book is a log that outlives hosts.
type book struct {
	mu   sync.Mutex
	text bytes.Buffer
	last uint64
}

func (k *book) write(chunks []host.OutputChunk) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range chunks {
		k.text.Write(c.Data)
		k.last = c.Seq
	}
}

func (k *book) logged(of []host.OutputOf) map[host.OutputOf]uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	last := map[host.OutputOf]uint64{}
	for _, o := range of {
		last[o] = k.last
	}
	return last
}

func (k *book) has(text string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return strings.Contains(k.text.String(), text)
}

func starts(rs []ax.Report) (n int) {
	for _, r := range rs {
		if r.Kind == ax.ReportStarted {
			n++
		}
	}
	return n
}

func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

// An attempt that runs over three hosts is told by the last one, once, and its
// log is whole.
func TestNextHostTakesOver(t *testing.T) {
	t.Parallel()
	const n = 90
	dir, log := t.TempDir(), &book{}
	j := job("i-1-1", "lines", fmt.Sprintf(`{"n": %d}`, n))
	next := func() *bench {
		return start(t, func(c *host.Config) { c.Dir, c.Output, c.Logged = dir, log.write, log.logged }, "executor")
	}
	b := next()
	b.Recover(nil)
	b.Dispatch([]ax.Job{j})
	for _, line := range []string{"line 9\n", "line 40\n"} {
		b.until(line, func() bool { return log.has(line) })
		b.Leave()
		b.stop()
		b = next()
		b.Recover([]ax.Job{j})
		b.until("the start told again", func() bool { return starts(b.reports["i-1-1"]) == 1 })
		b.Dispatch([]ax.Job{j}) // as a dispatch whose answer was lost
	}
	if r := b.end("i-1-1"); r.Status != ax.StatusSuccess || r.OutputDropped != 0 {
		t.Errorf("%+v", r)
	}
	b.until("the output", func() bool { return log.has(fmt.Sprintf("line %d\n", n-1)) })
	if got := log.text.String(); got != lines(n) {
		t.Errorf("log:\n%s", got)
	}
	if n := endings(b.reports["i-1-1"]); n != 1 {
		t.Errorf("ended %d times", n)
	}
	if strings.Count(b.log.String(), `msg="executor running"`) != 1 {
		t.Errorf("more than one executor:\n%s", b.log.String())
	}
}

// B086: an axd that is killed leaves its executors to the next one, which has
// all that they run, and stops what is no attempt of its store.
func TestAxdKilledAndBack(t *testing.T) {
	t.Parallel()
	nap, dir := newNap(), t.TempDir()
	axd, pid := startAxd(t, dir, nap)
	if err := axd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = axd.Wait()
	b := start(t, func(c *host.Config) { c.Dir = dir }, "executor")
	b.Recover(naps(nap)[:2]) // the store has given the third one up
	for _, batchNo := range []string{"i-1-1", "i-2-1"} {
		b.until("the start of "+batchNo, func() bool { return starts(b.reports[batchNo]) == 1 })
	}
	if r := b.end("i-3-1"); r.Status != ax.StatusCancelled {
		t.Errorf("an attempt of nobody: %+v", r)
	}
	b.Cancel([]ax.CancelOrder{{BatchNo: "i-1-1", Class: ax.ClassCancelled, Detail: "by ann"}})
	if r := b.end("i-1-1"); r.Status != ax.StatusCancelled || r.Error != "by ann" {
		t.Errorf("%+v", r)
	}
	if gone(pid) {
		t.Error("the executor was started again")
	}
	b.stop()
	if n := running(nap); n != 0 || !gone(pid) {
		t.Errorf("%d processes are left", n)
	}
}

// A host whose folder takes no file, as on a full disk, takes over what lives all
// the same.
func TestFolderTakesNoFile(t *testing.T) {
	t.Parallel()
	dir, log := t.TempDir(), &book{}
	next := func() *bench {
		return start(t, func(c *host.Config) { c.Dir, c.Output, c.Logged = dir, log.write, log.logged }, "executor")
	}
	j := job("i-1-1", "lines", `{"n": 60}`)
	b := next()
	b.Recover(nil)
	b.Dispatch([]ax.Job{j})
	eventually(t, "line 9", func() bool { return log.has("line 9\n") })
	b.Leave()
	b.stop()
	if err := os.Mkdir(filepath.Join(dir, "epoch.new"), 0o700); err != nil {
		t.Fatal(err)
	}
	b = next()
	b.Recover([]ax.Job{j})
	if r := b.end("i-1-1"); r.Status != ax.StatusSuccess {
		t.Errorf("its end is %+v", r)
	}
	b.stop()
}

// copyProgram makes a program that does what this one does and has another sum.
func copyProgram(t *testing.T, path, suffix string) (sum string) {
	t.Helper()
	b, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, suffix...)
	if err := os.WriteFile(path+".new", b, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// A program that is replaced takes the new jobs at once, and the process before
// it finishes what it has, over a restart too.
func TestProgramReplaced(t *testing.T) {
	t.Parallel()
	nap, dir, program := newNap(), t.TempDir(), filepath.Join(t.TempDir(), "plugin")
	copyProgram(t, program, "1")
	change := func(c *host.Config) { c.Dir, c.Executors[0].Path = dir, program }
	b := start(t, change, "executor")
	old := job("i-1-1", "sleep", text(nap+"; true"))
	b.Dispatch([]ax.Job{old})
	first := b.executorPid("i-1-1")
	copyProgram(t, program, "2")
	b.until("the change", func() bool { return strings.Contains(b.log.String(), "program was replaced") })
	b.Dispatch([]ax.Job{job("i-2-1", "sleep", text("true"))})
	if r := b.end("i-2-1"); r.Status != ax.StatusSuccess {
		t.Errorf("%+v", r)
	}
	if second := b.executorPid("i-2-1"); second == first {
		t.Error("the process before took a new job")
	}
	b.Acknowledge([]string{"i-2-1"})
	b.Leave()
	b.stop()

	b = start(t, change, "executor")
	b.Recover([]ax.Job{old})
	b.until("the start told again", func() bool { return starts(b.reports["i-1-1"]) == 1 })
	if gone(first) {
		t.Fatal("it was not left to finish")
	}
	b.Cancel([]ax.CancelOrder{{BatchNo: "i-1-1", Class: ax.ClassCancelled, Detail: "by ann"}})
	if r := b.end("i-1-1"); r.Status != ax.StatusCancelled {
		t.Errorf("%+v", r)
	}
	b.Acknowledge([]string{"i-1-1"})
	eventually(t, "the end of the process before", func() bool { return gone(first) })
	if !b.offers("noop") {
		t.Error("the new program offers nothing")
	}
}

// A program that is not the one that was pinned is not started.
func TestPinnedProgram(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "plugin")
	sum := copyProgram(t, program, "1")
	b := start(t, func(c *host.Config) {
		c.Executors[0].Path, c.Executors[0].SHA256 = program, strings.Repeat("0", 64)
	}, "executor")
	b.until("the refusal", func() bool {
		return strings.Contains(b.log.String(), "has sha256 "+sum+", its plugin block says 0000")
	})
	b = start(t, func(c *host.Config) { c.Executors[0].Path, c.Executors[0].SHA256 = program, sum }, "executor")
	b.Dispatch([]ax.Job{job("i-1-1", "noop", `{}`)})
	if r := b.end("i-1-1"); r.Status != ax.StatusSuccess {
		t.Errorf("%+v", r)
	}
}

// record makes a process one that an earlier host has started.
func record(t *testing.T, dir string, pid int, start uint64) {
	t.Helper()
	kernel, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "x-executor-1")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(map[string]any{
		"name": "executor", "pid": pid, "start": start, "kernel": strings.TrimSpace(string(kernel)), "socket": "/nowhere",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "executor.json"), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// B087: a process that has the pid of a dead executor is none of it, and gets no
// signal.
func TestPidOfAnotherProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other := exec.Command("/bin/sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	record(t, dir, other.Process.Pid, 1)
	h := start(t, func(c *host.Config) { c.Dir = dir }, "executor")
	h.Recover([]ax.Job{job("i-1-1", "noop", `{}`)})
	if r := h.end("i-1-1"); r.Kind != ax.ReportLost {
		t.Errorf("%+v", r)
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil || gone(other.Process.Pid) {
		t.Errorf("a stranger was killed: %v", err)
	}
	h.Dispatch([]ax.Job{job("i-2-1", "noop", `{}`)})
	if r := h.end("i-2-1"); r.Status != ax.StatusSuccess {
		t.Errorf("%+v", r)
	}
}

// An executor that ended while no host was there has told its folder what it
// did; a host that is ended at once does so too.
func TestLastWordsAreTakenIn(t *testing.T) {
	t.Parallel()
	dir, log := t.TempDir(), &book{}
	change := func(c *host.Config) {
		c.Dir, c.Output, c.Logged = dir, log.write, log.logged
		c.Grace, c.IdleGrace = 300*time.Millisecond, 300*time.Millisecond
	}
	b := start(t, change, "executor")
	jobs := []ax.Job{job("i-1-1", "lines", `{"n": 5}`), job("i-2-1", "lines", `{"n": 100000}`)}
	b.Dispatch(jobs[:1])
	b.Leave()
	b.until("a line", func() bool { return log.has("line 0\n") })
	b.Dispatch(jobs[1:])
	b.until("the second one's start", func() bool { return starts(b.reports["i-2-1"]) == 1 })
	b.stop()
	eventually(t, "the executor's end", func() bool {
		left, _ := filepath.Glob(filepath.Join(dir, "*", "last-words"))
		return len(left) == 1
	})
	b = start(t, change, "executor")
	b.Recover(jobs)
	if r := b.end("i-1-1"); r.Status != ax.StatusSuccess {
		t.Errorf("%+v", r)
	}
	if r := b.end("i-2-1"); r.Kind != ax.ReportLost || !strings.Contains(r.Error, "its executor was ended") {
		t.Errorf("%+v", r)
	}
	b.until("the output", func() bool { return log.has("line 4\n") })
}
