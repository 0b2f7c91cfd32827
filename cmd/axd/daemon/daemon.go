// Package daemon puts axd together: it opens the store and the data folder,
// and wires the engine, the executors, the logs and the HTTP server. It owns no
// logic; everything it makes is torn down in reverse order.
package daemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/logs"
	"github.com/axctl/ax/plugins/builtin"
	"github.com/axctl/ax/plugins/host"
	"github.com/axctl/ax/runtime"
	"github.com/axctl/ax/runtime/clock"
	"github.com/axctl/ax/runtime/retention"
	"github.com/axctl/ax/runtime/upkeep"
	"github.com/axctl/ax/schedule"
	"github.com/axctl/ax/server"
	"github.com/axctl/ax/store"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"
)

// Config is all that axd's flags say, and what tests and the demo put in the
// place of the real thing. StoreURL and Log are required; the zero value of any
// other field means its default.
type Config struct {
	StoreURL string // sqlite:PATH
	DataDir  string // default: ax.data beside the store
	Listen   string // loopback only; "" serves nothing
	// Listener, when set, is used instead of Listen. New closes it with the rest.
	Listener net.Listener
	Name     string // default: the machine's host name
	Version  string
	Pools    map[string]int // pool → places
	Tick     time.Duration  // default runtime's
	Scan     time.Duration  // default runtime's
	// Retain is how long after its end history is kept, and RetainLast how many
	// instances of each task are kept whatever their age; defaults retention's.
	Retain     time.Duration
	RetainLast int
	// Grace is how long a drain waits for running attempts before it leaves them
	// to the next axd; default DefaultGrace.
	Grace time.Duration
	// Last says that no other axd comes after this one: what runs when the grace
	// is over is stopped.
	Last bool
	// PluginDir is the folder of plugins, "" none, and Environ the environment of
	// which they are given what their blocks name.
	PluginDir string
	Environ   []string
	// Executors are the processes that run handlers; default: the built-in
	// ones, served by this very program.
	Executors []host.Command
	Log       *slog.Logger
	Now       func() time.Time    // default time.Now
	OnEvent   func(runtime.Event) // told of each start and end; must not block
}

// DefaultGrace is how long a drain waits for running attempts: the short ones
// end, and a restart is not held up by the long ones, which go on anyway.
const DefaultGrace = 5 * time.Second

// leaveWithin bounds the last write: the store may be locked by somebody who
// does not let go.
const leaveWithin = 2 * time.Second

// Daemon is one axd. Make it with New, run it with Run, and Close it.
type Daemon struct {
	cfg      Config
	store    store.Store
	info     ax.StoreInfo
	former   []ax.Host // what hosts of this store were called before
	listener net.Listener
	executor *host.Host
	plugins  *pluginSet
	engine   *runtime.Engine
	pruner   *retention.Pruner
	keeper   *upkeep.Keeper
	server   *server.Server
	self     ax.Host
	kernel   bool // the clock is the machine's
	teardown []func()
}

// New opens everything axd needs and starts nothing. Its errors carry hints for
// the operator; after an error nothing is left open.
func New(ctx context.Context, cfg Config) (_ *Daemon, err error) {
	d := &Daemon{cfg: cfg}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	if d.cfg.Now == nil {
		d.cfg.Now, d.kernel = clock.Now, true
	}
	d.cfg.Grace = cmp.Or(d.cfg.Grace, DefaultGrace)
	if d.cfg.Name == "" {
		if d.cfg.Name, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("host name: %w", err)
		}
	}
	if err := d.openStore(ctx); err != nil {
		return nil, err
	}
	if err := d.openData(); err != nil {
		return nil, err
	}
	switch {
	case d.cfg.Listener != nil:
		d.listener = d.cfg.Listener
	case d.cfg.Listen != "":
		if err := server.CheckAddress(d.cfg.Listen); err != nil {
			return nil, err
		}
		if d.listener, err = net.Listen("tcp", d.cfg.Listen); err != nil {
			return nil, ax.WithHint(fmt.Errorf("listen: %w", err), "is another axd running? Give this one another -listen (127.0.0.1:0 takes a free port)")
		}
	}
	if d.listener != nil {
		d.onClose(func() { d.listener.Close() })
	}
	return d, d.wire(ctx)
}

// openStore opens and locks the store. It never makes one: only apply does.
func (d *Daemon) openStore(ctx context.Context) error {
	st, err := store.Open(ctx, d.cfg.StoreURL, store.Options{Now: d.cfg.Now, Log: d.cfg.Log.With("component", "store")})
	if err != nil {
		return err
	}
	d.store = st
	d.onClose(func() { _ = st.Close() })
	if d.info, err = st.Info(ctx); err != nil {
		return fmt.Errorf("read store: %w", err)
	}
	path := strings.TrimPrefix(d.info.URL, "sqlite:")
	release, err := lockFile(path+".lock", "the store "+path)
	if err != nil {
		return err
	}
	d.onClose(release)
	hosts, err := st.Hosts(ctx)
	if err != nil {
		return fmt.Errorf("read hosts: %w", err)
	}
	// No other axd is at work on a store that is locked: a host of another name
	// is this one before it was renamed, as a container is at each start.
	d.former = slices.DeleteFunc(hosts, func(h ax.Host) bool { return h.Name == d.cfg.Name })
	if d.cfg.DataDir == "" {
		d.cfg.DataDir = filepath.Join(filepath.Dir(path), "ax.data")
	}
	return nil
}

// openData makes and locks the data folder.
func (d *Daemon) openData() error {
	dir, err := filepath.Abs(d.cfg.DataDir)
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	d.cfg.DataDir = dir
	if err := os.MkdirAll(d.socketDir(), 0o700); err != nil {
		return ax.WithHint(fmt.Errorf("data folder: %w", err), "give -data a folder that this user may write")
	}
	release, err := lockFile(filepath.Join(dir, "lock"), "the data folder "+dir)
	if err != nil {
		return err
	}
	d.onClose(release)
	return nil
}

func (d *Daemon) socketDir() string { return filepath.Join(d.cfg.DataDir, "executors") }

// wire makes the parts and connects them. It is one straight function, since
// each part needs those before it.
func (d *Daemon) wire(ctx context.Context) error {
	log, reg := d.cfg.Log, prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	boot := strings.ToLower(rand.Text()[:12])

	writer, err := logs.NewWriter(d.cfg.DataDir)
	if err != nil {
		return ax.WithHint(err, "see that this user may write the data folder %s, and that its disk has space", d.cfg.DataDir)
	}
	d.onClose(func() { _ = writer.Close() })

	var handlers []string
	for _, h := range builtin.All() {
		handlers = append(handlers, h.Schema().Handler)
	}
	executors := d.cfg.Executors
	if executors == nil {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find own program: %w", err)
		}
		for _, name := range handlers {
			executors = append(executors, host.Command{Name: name, Path: self, Own: true, Args: []string{"executor", name}, Handlers: []string{name}})
		}
	}
	if d.plugins, err = d.findPlugins(ctx, boot, executors); err != nil {
		return err
	}
	data, err := newDataFolder(d.cfg.DataDir, log, reg)
	if err != nil {
		return err
	}
	d.plugins.data = data.check
	d.executor = host.New(host.Config{
		Executors: d.plugins.commands(), Dir: d.socketDir(), Host: d.cfg.Name, Boot: boot, Incarnation: d.info.Incarnation,
		Output: newOutput(writer, log.With("component", "output")).write, Logged: d.logged,
		Log: log.With("component", "executors"), Now: d.cfg.Now, Registerer: reg,
	})
	d.plugins.host = d.executor
	var former []string
	for _, h := range d.former {
		former = append(former, h.Name)
	}
	config := runtime.Config{
		Claims: d.store, Fills: d.store, Dispatches: d.store, Cancels: d.store, Watcher: d.store, Executors: d.executor,
		Host: d.cfg.Name, Former: former, Boot: boot, Incarnation: d.info.Incarnation,
		JournalPath: filepath.Join(d.cfg.DataDir, "reports.journal"),
		Pools:       d.cfg.Pools, Tick: d.cfg.Tick, Scan: d.cfg.Scan,
		Now: d.cfg.Now, Log: log, Registerer: reg, OnEvent: d.cfg.OnEvent, OnChange: d.plugins.changed,
	}
	if d.kernel {
		config.Elapsed, config.Kernel, config.Synced = clock.Elapsed, clock.Kernel(), clock.Synced
	}
	if d.engine, err = runtime.New(config); err != nil {
		return err
	}
	d.onClose(func() { _ = d.engine.Close() })
	d.pruner = retention.New(retention.Config{
		Store: d.store, Logs: writer, Age: d.cfg.Retain, Last: d.cfg.RetainLast,
		Now: d.cfg.Now, Log: log.With("component", "retention"), Registerer: reg,
		Wait: func() bool { return d.engine.Stats().ClockDoubted },
	})
	d.keeper = upkeep.New(upkeep.Config{Store: d.store, Log: log.With("component", "upkeep"), Registerer: reg})
	started := d.cfg.Now()
	if d.listener != nil {
		d.server = server.New(server.Config{
			Listener: d.listener, Gatherer: reg, Log: log.With("component", "server"),
			Health: func() server.Health { return d.health(started) },
		})
	}
	d.self = ax.Host{
		Name: d.cfg.Name, Boot: boot, PID: os.Getpid(), DataDir: d.cfg.DataDir, Listen: d.Addr(),
		Version: d.cfg.Version, TZData: schedule.TZDataVersion(), Handlers: handlers, StartedMs: started.UnixMilli(),
		Pools: runtime.Pools(d.cfg.Pools, handlers),
	}
	return nil
}

// Addr returns the address the HTTP server listens on, "" when there is none.
func (d *Daemon) Addr() string {
	if d.listener == nil {
		return ""
	}
	return d.listener.Addr().String()
}

// Store returns the daemon's store, open until Close.
func (d *Daemon) Store() store.Store { return d.store }

// logged returns the last number of each attempt's output that is in the log.
func (d *Daemon) logged(of []host.OutputOf) map[host.OutputOf]uint64 {
	attempts := make([]logs.Attempt, len(of))
	for i, o := range of {
		attempts[i] = logs.Attempt{Instance: o.Instance, Number: o.Attempt}
	}
	last, err := logs.NewReader(d.cfg.DataDir).Last(attempts)
	if err != nil {
		d.cfg.Log.Warn("the log cannot be read: output of running attempts may be in it twice", "error", err)
	}
	out := make(map[host.OutputOf]uint64, len(last))
	for a, seq := range last {
		out[host.OutputOf{Instance: a.Instance, Attempt: a.Number}] = seq
	}
	return out
}

// Run works until drain ends, then claims nothing more, gives running attempts
// the grace time to end, and returns; those that still run go on in their
// executors, and the next axd takes them over. So they do when it returns for
// an error. When ctx ends it stops at once: attempts still running are stopped
// with their processes, and what becomes of them is decided by the next start.
func (d *Daemon) Run(ctx, drain context.Context) error {
	joined := d.join(ctx)
	later := errors.Is(joined, ax.ErrUnavailable)
	if joined != nil && !later {
		return joined
	}
	d.cfg.Log.Info("axd started", "version", d.cfg.Version, "host", d.self.Name, "store", d.info.URL,
		"data", d.cfg.DataDir, "listen", d.Addr(), "tzdata", d.self.TZData)
	work, stop := context.WithCancel(ctx)
	defer stop()
	group, gctx := errgroup.WithContext(work)
	part := func(run func(context.Context) error) {
		group.Go(func() error {
			err := run(gctx)
			if err != nil && gctx.Err() == nil {
				d.executor.Leave()
			}
			return err
		})
	}
	part(d.executor.Run)
	part(func(ctx context.Context) error {
		defer stop() // the engine is what the rest is there for
		return d.engine.Run(ctx)
	})
	part(d.pruner.Run)
	part(d.keeper.Run)
	part(d.plugins.run)
	if later {
		d.cfg.Log.Warn("the store cannot be written; this start is recorded as soon as it can", "error", joined)
		group.Go(func() error { d.joinLater(gctx); return nil })
	}
	if d.server != nil {
		part(d.server.Run)
	}
	group.Go(func() error {
		select {
		case <-drain.Done():
			d.drain(gctx)
			stop()
		case <-gctx.Done():
		}
		return nil
	})
	err := group.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	left, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	if lerr := d.store.Leave(left, d.self.Name, d.self.Boot, d.cfg.Now().UnixMilli()); lerr != nil {
		d.cfg.Log.Warn("stop not recorded", "error", lerr)
	}
	d.cfg.Log.Info("axd stopped", "host", d.self.Name)
	return err
}

// join records this host, and that those it was called before have left.
func (d *Daemon) join(ctx context.Context) error {
	if err := d.store.Join(ctx, d.self); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	for _, h := range d.former {
		if h.LeftMs != 0 {
			continue
		}
		if err := d.store.Leave(ctx, h.Name, h.Boot, d.cfg.Now().UnixMilli()); err != nil {
			return fmt.Errorf("end former host %s: %w", h.Name, err)
		}
	}
	return nil
}

// joinAgain is how often a host tries to be recorded.
const joinAgain = time.Second

// joinLater joins a store that cannot be written now, as on a full disk. What
// axd does besides needs no row of its host: it waits for the store itself.
func (d *Daemon) joinLater(ctx context.Context) {
	again := time.NewTicker(joinAgain)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		err := d.join(ctx)
		switch {
		case err == nil, ctx.Err() != nil:
			return
		case !errors.Is(err, ax.ErrUnavailable) && !errors.Is(err, ax.ErrBusy):
			d.cfg.Log.Error("this start cannot be recorded; axd works without that", "error", err)
			return
		}
	}
}

// drain lets nothing new start and waits until nothing runs (the engine ends
// ctx then), at most the grace time.
func (d *Daemon) drain(ctx context.Context) {
	d.cfg.Log.Info("draining: no new claims", "running", d.engine.Stats().Running, "grace", d.cfg.Grace)
	d.engine.Drain()
	grace := time.NewTimer(d.cfg.Grace)
	defer grace.Stop()
	select {
	case <-ctx.Done():
	case <-grace.C:
		running := d.engine.Stats().Running
		if d.cfg.Last {
			d.cfg.Log.Warn("stopping attempts that are still running", "running", running)
			return
		}
		d.cfg.Log.Info("leaving running attempts to the next axd; without one they are stopped after 5 minutes", "running", running)
		d.executor.Leave()
	}
}

func (d *Daemon) health(started time.Time) server.Health {
	s := d.engine.Stats()
	problem := s.StoreError
	if problem == "" && !s.Ready {
		problem = "starting: what the last axd left is being settled"
	}
	if problem == "" && s.ClockDoubted {
		problem = "the clock was set: claims wait until it is confirmed" // a new start would only wait again
	}
	return server.Health{
		OK: s.Ready && s.StoreError == "", Problem: problem, Host: d.cfg.Name, Version: d.cfg.Version,
		Quarantined: d.executor.Quarantined(),
		UptimeMs:    d.cfg.Now().Sub(started).Milliseconds(), LagMs: s.LagMs, Running: s.Running, Waiting: s.Waiting,
	}
}

// Close releases everything, last opened first. It may be called after a failed
// New and after Run.
func (d *Daemon) Close() {
	for i := len(d.teardown) - 1; i >= 0; i-- {
		d.teardown[i]()
	}
	d.teardown = nil
}

func (d *Daemon) onClose(f func()) { d.teardown = append(d.teardown, f) }

// TZDataVersion names the time zone data built into this program.
func TZDataVersion() string { return schedule.TZDataVersion() }
