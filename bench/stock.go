package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/cmd/axd/daemon"
	"github.com/axctl/ax/plugins/host"
	"github.com/axctl/ax/schedule"
	"github.com/axctl/ax/store"
)

// stockOf makes a store with tasks whose schedules spec gives, in an order that
// is unrelated to their due times.
func stockOf(ctx context.Context, path string, tasks int, handler string, spec func(i int) ax.ScheduleSpec) (store.Store, error) {
	st, err := store.Open(ctx, "sqlite:"+path, store.Options{Create: true, Now: time.Now, Log: quiet()})
	if err != nil {
		return nil, err
	}
	info, err := st.Info(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now().UnixMilli()
	cs := ax.ChangeSet{
		ApplyID: "bench", StoreID: info.ID, Stack: "bench", NowMs: now,
		Revision: ax.Revision{ApplyID: "bench", Stack: "bench", AtMs: now, Who: "bench", Added: tasks},
	}
	body := json.RawMessage(`{}`)
	if handler == "shell" {
		body = json.RawMessage(`{"command":"true"}`)
	}
	order := rand.New(rand.NewPCG(1, 2)).Perm(tasks)
	for i := range tasks {
		s := spec(order[i])
		if s.Timezone == "" {
			s.Timezone = "UTC"
		}
		def := ax.Definition{Kind: ax.KindTask, Name: fmt.Sprintf("t%06d", i), Task: &ax.TaskSpec{
			Handler: ax.HandlerSpec{Name: handler, Body: body}, Schedules: []ax.ScheduleSpec{s},
			Enabled: true, Timeout: 3_600_000, KillAfter: 10_000, Concurrency: 1, Overlap: ax.OverlapQueue, Idempotent: true,
			Retry:   ax.RetrySpec{Max: 0, Initial: 10_000, Factor: 2, MaxInterval: 300_000, On: ax.DefaultRetryOn},
			Misfire: ax.MisfireSpec{Policy: ax.MisfireOnce, Grace: 60_000, Max: 100, OnResume: ax.MisfireSkip},
		}}
		compiled, err := schedule.Compile(def.Task.Schedules)
		if err != nil {
			return nil, err
		}
		next, _ := compiled.Next(now)
		text, hash := def.Canonical()
		cs.Changes = append(cs.Changes, ax.Change{
			Action: ax.ActionCreate, Kind: ax.KindTask, Name: def.Name, Definition: text, Hash: hash,
			Task: &ax.TaskChange{
				Enabled: true, MaxActive: 1, Overlap: ax.OverlapQueue,
				Timetable: &ax.Timetable{NextMs: next, Fingerprint: compiled.Fingerprint()},
			},
		})
	}
	if _, err := st.Apply(ctx, cs); err != nil {
		return nil, err
	}
	return st, nil
}

func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// working is a daemon in this process with the no-op handler.
type working struct {
	d     *daemon.Daemon
	drain context.CancelFunc
	done  chan error
}

// work starts a daemon on the store at path. Its executor is this program.
func work(ctx context.Context, path string, places int) (*working, error) {
	return workAs(ctx, path, "noop", places, func(*daemon.Config) {})
}

// workAs is work for one handler of this program, with a daemon that edit makes
// another.
func workAs(ctx context.Context, path, handler string, places int, edit func(*daemon.Config)) (*working, error) {
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cfg := daemon.Config{
		StoreURL: "sqlite:" + path, DataDir: path + ".data", Name: "bench", Log: quiet(),
		Pools:     map[string]int{handler: places, "shell": places},
		Executors: []host.Command{{Name: handler, Path: own, Args: []string{"executor", handler}}},
	}
	edit(&cfg)
	d, err := daemon.New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	w := &working{d: d, done: make(chan error, 1)}
	var drain context.Context
	drain, w.drain = context.WithCancel(ctx)
	go func() { w.done <- d.Run(ctx, drain) }()
	return w, nil
}

// stop drains the daemon and closes it.
func (w *working) stop() error {
	w.drain()
	err := <-w.done
	w.d.Close()
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }
