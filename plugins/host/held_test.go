package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/axctl/ax"
	pb "github.com/axctl/ax/plugins/proto"
)

// An attempt whose processes outlive their executor and cannot be killed ends,
// and is not stopped before they are gone; others of that executor are.
func TestGoneButForItsProcesses(t *testing.T) {
	t.Parallel()
	h := New(Config{Executors: []Command{{Name: "x"}}})
	l := newLink(h.executors[0], &process{})
	for _, b := range []string{"held", "held and ended", "free"} {
		h.entries[b] = &entry{job: &pb.Job{BatchNo: b}, known: true}
		h.entries[b].give(l)
	}
	h.entries["held and ended"].enter(ax.Report{Kind: ax.ReportEnded, Status: ax.StatusTimeout})
	told := func() map[string]string {
		m := map[string]string{}
		for _, r := range h.outbox.take(100) {
			m[r.BatchNo] += fmt.Sprint(r.Kind, " ", r.StoppedMs != 0, " ", r.ErrorClass, "; ")
		}
		return m
	}
	h.gone(l, "signal: killed", map[string]string{"held": "7 (cp)", "held and ended": "7 (cp)"})
	got := told()
	want := map[string]string{
		"held": "ended false lost; unkillable false ; ", "held and ended": "unkillable false ; ", "free": "lost true lost; ",
	}
	for b, w := range want {
		if got[b] != w {
			t.Errorf("%s: %q, want %q", b, got[b], w)
		}
	}
	h.gone(l, "signal: killed", nil)
	if got := told(); len(got) != 2 || got["held"] != "stopped true ; " || got["held and ended"] != "stopped true ; " {
		t.Errorf("when they are gone: %v", got)
	}
}

// The same over a restart: what an earlier axd left is not lost while something
// of it cannot be killed.
func TestLeftButForItsProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	leader := exec.Command("/bin/sh", "-c", "sleep 1000 & exec sleep 1000")
	leader.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := leader.Start(); err != nil {
		t.Fatal(err)
	}
	reaped := make(chan struct{})
	go func() {
		defer close(reaped)
		_ = leader.Wait()
	}()
	s, ok := readStat(leader.Process.Pid)
	if !ok {
		t.Fatal("it is gone")
	}
	home := filepath.Join(dir, homePrefix+"x-1")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(record{Name: "x", PID: s.pid, Start: s.start, Kernel: kernelBoot(), Socket: "/nowhere"})
	if err == nil {
		err = os.WriteFile(filepath.Join(home, recordName), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var log lockedBuffer
	h := New(Config{Dir: dir, Boot: "two", Log: slog.New(slog.NewTextHandler(&log, nil))})
	var dies atomic.Bool
	h.kill = func(s stat) {
		if dies.Load() {
			sigkill(s)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	h.Recover([]ax.Job{{BatchNo: "i-1-1", Boot: "one"}})
	next := func() ax.Report {
		select {
		case rs := <-h.Reports():
			return rs[0]
		case <-time.After(30 * time.Second):
			t.Fatalf("no report; log:\n%s", log.String())
			return ax.Report{}
		}
	}
	if r := next(); r.Kind != ax.ReportUnkillable || !strings.Contains(r.Error, "(sleep)") {
		t.Errorf("%+v", r)
	}
	dies.Store(true)
	if r := next(); r.Kind != ax.ReportLost || r.StoppedMs == 0 {
		t.Errorf("%+v", r)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	<-reaped
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
