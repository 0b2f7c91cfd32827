package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/cmd/axd/daemon"
	"github.com/axctl/ax/runtime"
)

// demo applies one file to a store in a temporary folder, runs axd on it, and
// prints each firing. It ends after f.demoFor, or when drain ends, and then
// tells what became of all that was due. Losing a slot is its only failure.
func demo(ctx, drain context.Context, f flags, stdout, stderr io.Writer) error {
	dir, err := os.MkdirTemp("", "ax-demo-")
	if err != nil {
		return fmt.Errorf("demo folder: %w", err)
	}
	defer os.RemoveAll(dir)
	// A port of its own: an axd that is there already keeps its one.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer listener.Close()
	f.store, f.data = "sqlite:"+filepath.Join(dir, "ax.db"), filepath.Join(dir, "ax.data")
	view := &demoView{w: stdout}
	cfg := f.config(slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	cfg.Listener, cfg.OnEvent, cfg.Now, cfg.Last = listener, view.event, time.Now, true
	health := "http://" + listener.Addr().String() + "/healthz"

	desired, err := daemon.Prepare(ctx, cfg, f.demo, append(os.Environ(), "AX_VAR_healthz_url="+health))
	if err != nil {
		return err
	}
	d, err := daemon.New(ctx, cfg)
	if err != nil {
		return err
	}
	defer d.Close()
	tasks := "tasks"
	if len(desired.Definitions) == 1 {
		tasks = "task"
	}
	fmt.Fprintf(stdout, "%d %s of %s on a temporary store; %s\n\n", len(desired.Definitions), tasks, f.demo, health)
	view.header()
	if f.demoFor > 0 {
		var cancel context.CancelFunc
		drain, cancel = context.WithTimeout(drain, f.demoFor)
		defer cancel()
	}
	if err := d.Run(ctx, drain); err != nil {
		return err
	}
	sum, err := daemon.Summarise(context.WithoutCancel(ctx), d.Store(), time.Now())
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout)
	for what, n := range map[string]int{"slots were skipped, each with its reason": sum.Skipped, "still to be tried again": sum.Open} {
		if n > 0 {
			fmt.Fprintf(stdout, "%d %s\n", n, what)
		}
	}
	for _, l := range sum.Lost {
		fmt.Fprintln(stdout, l)
	}
	fmt.Fprintf(stdout, "%d fired, %d succeeded, %d failed, %d lost\n", sum.Fired, sum.Succeeded, sum.Failed, len(sum.Lost))
	if len(sum.Lost) > 0 {
		return fmt.Errorf("%d slots were lost", len(sum.Lost))
	}
	return nil
}

// demoView prints firings as they happen, a line each.
type demoView struct {
	mu sync.Mutex // one line at a time
	w  io.Writer
}

const demoRow = "%-12s  %-12s  %9s  %-9s %8s  %s\n"

func (v *demoView) header() {
	fmt.Fprintf(v.w, demoRow, "now", "due", "late", "result", "took", "task")
}

func (v *demoView) event(e runtime.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	const clock = "15:04:05.000"
	due := time.UnixMilli(e.DueMs).Format(clock)
	switch e.Kind {
	case runtime.EventStarted:
	case runtime.EventSkipped:
		fmt.Fprintf(v.w, demoRow, time.Now().Format(clock), due, "", "skipped", "", e.Task+": "+string(e.Reason))
	case runtime.EventEnded:
		result, rest := string(e.Status), e.Task
		if e.Attempt > 1 || e.WillRetry {
			rest += fmt.Sprintf(", attempt %d", e.Attempt)
		}
		if e.Error != "" {
			rest += ": " + strings.SplitN(e.Error, "\n", 2)[0]
		}
		if e.WillRetry {
			result = "retry"
			rest += fmt.Sprintf("; again at %s", time.UnixMilli(e.RetryMs).Format(clock))
		}
		late := ""
		if e.Attempt == 1 && e.StartedMs > 0 {
			late = fmt.Sprintf("%+d ms", e.StartedMs-e.DueMs)
		}
		took := ax.Duration(max(0, e.EndedMs-e.StartedMs)).String()
		fmt.Fprintf(v.w, demoRow, time.UnixMilli(e.EndedMs).Format(clock), due, late, result, took, rest)
	}
}
