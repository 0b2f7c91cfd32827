package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins/host"
)

// A job that was never sent is told as unbegun, and can be dispatched, only where
// that is certain: it is of a boot that used this folder for this store since the
// kernel's start, and each executor of then has named all that it began.
func TestUnbegun(t *testing.T) {
	t.Parallel()
	orderly := func(_ *testing.T, b *bench, pid int) { // by itself, when it was idle for so long
		b.Acknowledge([]string{"i-1-1"})
		b.Leave()
		b.stop()
		eventually(b.t.(*testing.T), "the executor's end", func() bool { return gone(pid) })
	}
	lives := func(_ *testing.T, b *bench, _ int) {
		b.Leave()
		b.stop()
	}
	for _, c := range []struct {
		name   string
		grace  time.Duration // of an idle executor
		end    func(t *testing.T, b *bench, pid int)
		change func(t *testing.T, c *host.Config, j *ax.Job)
		want   ax.ReportKind
	}{
		{"executor lives", time.Minute, lives, nil, ax.ReportUnbegun},
		{"executor has ended by itself", 100 * time.Millisecond, orderly, nil, ax.ReportUnbegun},
		{"executor was stopped with axd", time.Minute, func(_ *testing.T, b *bench, _ int) { b.stop() }, nil, ax.ReportUnbegun},
		{"executor was killed", time.Minute, func(t *testing.T, b *bench, pid int) {
			b.Leave()
			b.stop()
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			eventually(t, "the executor's end", func() bool { return gone(pid) })
		}, nil, ax.ReportLost},
		{"boot of another folder", time.Minute, lives, func(_ *testing.T, _ *host.Config, j *ax.Job) { j.Boot = "elsewhere" }, ax.ReportLost},
		{"store was restored", time.Minute, lives, func(_ *testing.T, c *host.Config, _ *ax.Job) { c.Incarnation = "renewed" }, ax.ReportLost},
		{"machine was started anew", time.Minute, lives, func(t *testing.T, c *host.Config, _ *ax.Job) {
			path := filepath.Join(c.Dir, "boots")
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			kernel := strings.Fields(string(b))[1]
			if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(b), kernel, "other")), 0o600); err != nil {
				t.Fatal(err)
			}
		}, ax.ReportLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			first := func(cfg *host.Config) {
				cfg.Dir, cfg.Incarnation, cfg.Boot, cfg.Grace, cfg.IdleGrace = dir, "store", "one", c.grace, c.grace
			}
			b := start(t, first, "executor")
			b.Recover(nil)
			b.Dispatch([]ax.Job{job("i-1-1", "sleep", text("true"))})
			pid := b.executorPid("i-1-1")
			b.end("i-1-1")
			c.end(t, b, pid)

			unsent := job("i-2-1", "sleep", text("true"))
			unsent.Boot = "one"
			b = start(t, func(cfg *host.Config) {
				first(cfg)
				cfg.Boot = "two"
				if c.change != nil {
					c.change(t, cfg, &unsent)
				}
			}, "executor")
			b.Recover([]ax.Job{unsent})
			b.until("a word of it", func() bool { return len(b.reports["i-2-1"]) > 0 })
			if r := b.reports["i-2-1"][0]; r.Kind != c.want {
				t.Fatalf("%+v", r)
			}
			if c.want == ax.ReportLost {
				return
			}
			b.Dispatch([]ax.Job{unsent, unsent})
			if r := b.end("i-2-1"); r.Status != ax.StatusSuccess || len(b.ofKind("i-2-1", ax.ReportEnded)) != 1 {
				t.Errorf("%+v", b.reports["i-2-1"])
			}
		})
	}
}
