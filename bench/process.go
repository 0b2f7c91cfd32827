package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/axctl/ax"
)

// start runs the axd under measurement on a store.
func (b *bench) start(path string) (*exec.Cmd, error) {
	cmd := exec.Command(b.axd, "-store", "sqlite:"+path, "-data", path+".data", "-listen", "", "-name", "bench")
	cmd.Stderr = quietStderr{}
	return cmd, cmd.Start()
}

// quietStderr drops axd's log but for errors.
type quietStderr struct{}

func (quietStderr) Write(p []byte) (int, error) {
	for _, l := range strings.Split(string(p), "\n") {
		if strings.Contains(l, "level=ERROR") || strings.HasPrefix(l, "axd:") {
			fmt.Fprintln(os.Stderr, l)
		}
	}
	return len(p), nil
}

func finish(cmd *exec.Cmd) error {
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return cmd.Wait()
}

// family returns the CPU time and resident memory of a process and its children.
func family(pid int) (cpu time.Duration, rss int64, err error) {
	pids := []int{pid}
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, path := range threads {
		kids, _ := os.ReadFile(path)
		for _, f := range strings.Fields(string(kids)) {
			if n, err := strconv.Atoi(f); err == nil {
				pids = append(pids, n)
			}
		}
	}
	for _, p := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p))
		if err != nil {
			if p == pid {
				return 0, 0, err
			}
			continue
		}
		f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))
		user, _ := strconv.ParseInt(f[11], 10, 64)
		sys, _ := strconv.ParseInt(f[12], 10, 64)
		pages, _ := strconv.ParseInt(f[21], 10, 64)
		cpu += time.Duration(user+sys) * 10 * time.Millisecond
		rss += pages * int64(os.Getpagesize())
	}
	return cpu, rss, nil
}

func benchIdle(ctx context.Context, b *bench) error {
	path := b.path("idle.db")
	far := time.Now().Add(12 * time.Hour).UTC()
	st, err := stockOf(ctx, path, 10_000, "shell", func(i int) ax.ScheduleSpec {
		return ax.ScheduleSpec{Cron: fmt.Sprintf("%d %d * * *", i%60, far.Hour())}
	})
	if err != nil {
		return err
	}
	if err := st.Close(); err != nil {
		return err
	}
	cmd, err := b.start(path)
	if err != nil {
		return err
	}
	if err := sleep(ctx, 5*time.Second); err != nil {
		return err
	}
	before, _, err := family(cmd.Process.Pid)
	if err != nil {
		return err
	}
	length := 2 * b.secs
	if err := sleep(ctx, length); err != nil {
		return err
	}
	after, rss, err := family(cmd.Process.Pid)
	if err != nil {
		return err
	}
	own, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", cmd.Process.Pid))
	pages, _ := strconv.ParseInt(strings.Fields(string(own))[1], 10, 64)
	fmt.Printf("  %.2f %% of a core over %s (axd and its executors); %d MB in axd, %d MB with its executors\n",
		100*float64(after-before)/float64(length), length, pages*int64(os.Getpagesize())>>20, rss>>20)
	return finish(cmd)
}

func benchStart(ctx context.Context, b *bench) error {
	path := b.path("start.db")
	// Everything is due within the day, some hundred of it in each minute.
	st, err := stockOf(ctx, path, benchTasks, "shell", spaced(24*time.Hour, benchTasks))
	if err != nil {
		return err
	}
	if err := st.Close(); err != nil {
		return err
	}
	took, err := b.starts(ctx, path, 5)
	if err != nil {
		return err
	}
	fmt.Printf("  exec to first claim: median %s, worst %s, of %d starts (a slot is due each %s)\n",
		round(percentile(took, 0.5)), round(percentile(took, 1)), len(took), 24*time.Hour/benchTasks)
	return nil
}

// starts starts axd n times on a store, and tells how long each took from exec to
// its first claim.
func (b *bench) starts(ctx context.Context, path string, n int) ([]time.Duration, error) {
	var took []time.Duration
	for range n {
		begin := time.Now()
		cmd, err := b.start(path)
		if err != nil {
			return nil, err
		}
		first, err := firstClaim(ctx, path, begin)
		if err != nil {
			return nil, err
		}
		took = append(took, first)
		if err := finish(cmd); err != nil {
			return nil, err
		}
	}
	return took, nil
}

// firstClaim waits for the first instance claimed after begin.
func firstClaim(ctx context.Context, path string, begin time.Time) (time.Duration, error) {
	db, err := openSQL(path, "ro")
	if err != nil {
		return 0, err
	}
	defer db.Close()
	for time.Since(begin) < 30*time.Second {
		var ms *int64
		if err := db.QueryRowContext(ctx, `SELECT min(claimed_ms) FROM instance WHERE claimed_ms >= ?`, begin.UnixMilli()).Scan(&ms); err != nil {
			return 0, err
		}
		if ms != nil {
			return time.UnixMilli(*ms).Sub(begin), nil
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("no claim within 30 s")
}

func benchShell(ctx context.Context, b *bench) error {
	bare, err := forkBurst(100)
	if err != nil {
		return err
	}
	path := b.path("shell.db")
	due := time.Now().Add(5 * time.Second).Truncate(time.Second)
	st, err := stockOf(ctx, path, 100, "shell", func(int) ax.ScheduleSpec { return ax.ScheduleSpec{At: []string{due.UTC().Format(time.RFC3339)}} })
	if err != nil {
		return err
	}
	if err := st.Close(); err != nil {
		return err
	}
	cmd := exec.Command(b.axd, "-store", "sqlite:"+path, "-data", path+".data", "-listen", "", "-name", "bench", "-pools", "shell=100")
	cmd.Stderr = quietStderr{}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := sleep(ctx, time.Until(due)+3*time.Second); err != nil {
		return err
	}
	if err := finish(cmd); err != nil {
		return err
	}
	db, err := openSQL(path, "ro")
	if err != nil {
		return err
	}
	defer db.Close()
	var n, last int64
	if err := db.QueryRowContext(ctx, `SELECT count(*), max(ended_ms) FROM instance WHERE status = 'success'`).Scan(&n, &last); err != nil {
		return err
	}
	took := time.UnixMilli(last).Sub(due)
	fmt.Printf("  all %d ended %s after due; bare fork, exec and wait of 100: %s; ratio %.2f\n", n, round(took), round(bare), float64(took)/float64(bare))
	return nil
}

// forkBurst runs n processes at once and returns when the last has ended.
func forkBurst(n int) (time.Duration, error) {
	var took []time.Duration
	for range 5 {
		begin := time.Now()
		var wg sync.WaitGroup
		errs := make([]error, n)
		for i := range n {
			wg.Go(func() { errs[i] = exec.Command("/bin/sh", "-c", "true").Run() })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return 0, err
		}
		took = append(took, time.Since(begin))
	}
	return percentile(took, 0.5), nil
}
