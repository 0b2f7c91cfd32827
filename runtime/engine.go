package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/backfill"
	"github.com/axctl/ax/runtime/claim"
	"github.com/axctl/ax/runtime/dispatch"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
)

// Config is what an Engine works with. The ports, Host, Boot, Incarnation and
// JournalPath are required; the rest has the defaults told. It is long because
// it is the one list of what the runtime is given.
type Config struct {
	Claims     ax.Claims
	Fills      ax.Fills
	Dispatches ax.Dispatches
	Cancels    ax.CancelIntents
	Watcher    ax.Watcher
	Executors  ax.Executors

	Host string // this host's name
	// Former are all other names that hosts of this store had, where the store is
	// one host's alone: what they left is settled too.
	Former      []string
	Boot        string // random, new at each start
	Incarnation string // the store's, for batch numbers

	// JournalPath is the report journal, in the data folder.
	JournalPath string
	// Pools gives places by pool: how many attempts run at once. Every handler
	// has a pool of its name, by default of 64 places for shell and http, and of
	// 2·CPU+2 for others.
	Pools map[string]int

	Tick    time.Duration // width of a wheel slot, 1s
	Scan    time.Duration // how often the store is scanned, 5s
	Poll    time.Duration // how often other processes' commits are looked for, 250ms
	Horizon time.Duration // how far ahead the wheel holds tasks, 5m

	Now func() time.Time // time.Now
	// Elapsed is a clock that nobody sets and that goes on while the machine
	// sleeps, and Kernel names its start. Default: a monotonic clock from New on.
	Elapsed func() time.Duration
	Kernel  string
	// Synced says whether a time server keeps the wall clock right; nil: nobody
	// knows.
	Synced     func() bool
	Log        *slog.Logger // discards
	Registerer prometheus.Registerer
	// OnChange is called when another process has committed; it must be quick.
	OnChange func()
	// OnEvent is told of every firing's start, end and skip, from several
	// goroutines; it must be quick.
	OnEvent func(Event)
}

// EventKind says what an Event tells.
type EventKind string

// The kinds of event.
const (
	EventStarted EventKind = "started" // an attempt was begun by its executor
	EventEnded   EventKind = "ended"   // an attempt's end is in the store
	EventSkipped EventKind = "skipped" // a slot, or a stretch of slots, does not run
)

// Event tells one thing that happened to a firing. Instants are ms since
// epoch UTC, 0 where they do not apply.
type Event struct {
	Kind       EventKind
	Ref        ax.Ref // ID 0 for a skipped stretch
	Stack      string
	Task       string // address
	Attempt    int
	Status     ax.Status // with ended: the attempt's own, failed or timeout also when it is tried again
	Reason     ax.Reason // with skipped
	Slots      int       // with skipped: how many, -1 over ax.MaxCountedSlots
	DueMs      int64
	StartedMs  int64
	EndedMs    int64
	ErrorClass ax.ErrorClass
	Error      string
	WillRetry  bool
	RetryMs    int64 // with WillRetry: the earliest start of the next attempt
}

// Stats is the state of an Engine at one instant.
type Stats struct {
	Claimed      int64 // instances born since the start
	Skipped      int64 // of these, born skipped
	Started      int64 // attempts begun
	Ended        int64 // attempts whose end is written
	Lost         int64 // of these, with class lost
	Running      int   // attempts handed over and not gone
	Waiting      int   // pending instances in memory
	LagMs        int64 // how far past its instant the oldest unclaimed slot in memory is
	JournalBytes int64
	Ready        bool // what an earlier boot left is taken over and claims have begun
	// ClockDoubted: nothing is claimed, since the clock was set and is not
	// confirmed yet.
	ClockDoubted bool
	StoreError   string // of a store call that is being tried again; "" when none is
}

// Engine runs claim, backfill and dispatch.
type Engine struct {
	cfg        Config
	outage     *outage
	journal    *dispatch.Journal
	claimer    *claim.Claimer
	filler     *backfill.Filler
	dispatcher *dispatch.Dispatcher
	ready      atomic.Bool
	run        atomic.Bool
}

// Pools returns the pools of an engine that is given these, and handlers.
func Pools(given map[string]int, handlers []string) map[string]int {
	return dispatch.Pools(given, handlers, runtime.NumCPU())
}

// New checks cfg and opens the journal, which Close closes. It starts nothing.
func New(cfg Config) (*Engine, error) {
	switch {
	case cfg.Claims == nil || cfg.Fills == nil || cfg.Dispatches == nil || cfg.Cancels == nil || cfg.Watcher == nil || cfg.Executors == nil:
		return nil, errors.New("engine: a port is missing")
	case cfg.Host == "" || cfg.Boot == "" || cfg.Incarnation == "" || cfg.JournalPath == "":
		return nil, errors.New("engine: host, boot, incarnation and journal path are required")
	}
	cfg.Tick = cmp.Or(cfg.Tick, time.Second)
	cfg.Scan = cmp.Or(cfg.Scan, 5*time.Second)
	cfg.Poll = cmp.Or(cfg.Poll, 250*time.Millisecond)
	cfg.Horizon = cmp.Or(cfg.Horizon, 5*time.Minute)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Elapsed == nil {
		made := time.Now()
		cfg.Elapsed, cfg.Kernel = func() time.Duration { return time.Since(made) }, ""
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.OnEvent == nil {
		cfg.OnEvent = func(Event) {}
	}
	parts := cfg.Log // each is its own component
	cfg.Log = cfg.Log.With("component", "engine")
	journal, left, err := dispatch.OpenJournal(cfg.JournalPath, cfg.Log)
	if err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, journal: journal, outage: newOutage(cfg.Log, cfg.Registerer)}
	e.dispatcher = dispatch.New(dispatch.Config{
		Store:     patientDispatches{cfg.Dispatches, e.outage},
		Cancels:   patientCancels{cfg.Cancels, e.outage},
		Executors: cfg.Executors,
		Journal:   journal, Left: left,
		Host: cfg.Host, Former: cfg.Former, Boot: cfg.Boot, Incarnation: cfg.Incarnation,
		Places: dispatch.Places(cfg.Pools, runtime.NumCPU()),
		Tick:   cfg.Tick, Scan: cfg.Scan, Horizon: cfg.Horizon,
		Now: e.now, Log: parts.With("component", "dispatch"), Registerer: cfg.Registerer,
		OnStarted: e.onStarted, OnEnded: e.onEnded, OnSkipped: e.onSkipped,
	})
	e.claimer = claim.New(claim.Config{
		Store:  patientClaims{cfg.Claims, e.outage},
		Places: e.dispatcher,
		Host:   cfg.Host, Boot: cfg.Boot,
		Tick: cfg.Tick, Scan: cfg.Scan, Horizon: cfg.Horizon,
		Now: cfg.Now, Elapsed: cfg.Elapsed, Kernel: cfg.Kernel, Synced: cfg.Synced,
		Log: parts.With("component", "claim"), Registerer: cfg.Registerer,
		OnSkipped: e.onSkipped,
	})
	e.filler = backfill.New(backfill.Config{
		Store: notedFills{cfg.Fills, e.outage}, Places: e.dispatcher,
		Scan: cfg.Scan, Now: e.now, Log: parts.With("component", "backfill"), Registerer: cfg.Registerer,
	})
	return e, nil
}

// Run first takes over what an earlier boot left, then claims and dispatches until
// ctx ends, or until all is done after Drain; then it returns nil. Attempts that
// run when ctx ends are taken over by the next boot. It is called once.
func (e *Engine) Run(ctx context.Context) error {
	if e.run.Swap(true) {
		return errors.New("engine: run twice")
	}
	e.claimer.Begin(ctx)
	if err := e.dispatcher.Recover(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("recover: %w", err)
	}
	e.ready.Store(true)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var g errgroup.Group
	g.Go(func() error {
		defer cancel() // all is done
		return e.dispatcher.Run(ctx)
	})
	filling, stopFilling := context.WithCancel(ctx)
	g.Go(func() error { return e.filler.Run(filling) })
	g.Go(func() error {
		err := e.claimer.Run(ctx)
		stopFilling()
		e.dispatcher.Drain() // nothing is claimed any more
		return err
	})
	g.Go(func() error { return e.watch(ctx) })
	return g.Wait()
}

// now is the clock of what is decided on instances that are there: the one that
// is believed.
func (e *Engine) now() time.Time {
	if e.claimer == nil { // New is at work
		return e.cfg.Now()
	}
	return e.claimer.Now()
}

// watch looks for commits of other processes.
func (e *Engine) watch(ctx context.Context) error {
	ticker := time.NewTicker(e.cfg.Poll)
	defer ticker.Stop()
	told := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		changed, err := e.cfg.Watcher.Changed(ctx)
		e.outage.note("look for changes", err)
		if err != nil && !passing(err) && ctx.Err() == nil && !told {
			e.cfg.Log.Error("changes of other processes are seen late, by the scans only", "error", err)
			told = true
		}
		told = told && err != nil
		if changed {
			e.claimer.Wake()
			e.filler.Wake()
			e.dispatcher.Wake()
			if e.cfg.OnChange != nil {
				e.cfg.OnChange()
			}
		}
	}
}

// Close closes the journal, after Run or in place of it.
func (e *Engine) Close() error { return e.journal.Close() }

// Drain lets no new attempt start; Run returns when those that run have ended.
// It is safe for concurrent use.
func (e *Engine) Drain() { e.claimer.Drain() }

// Stats tells the state now. It is safe for concurrent use and cheap.
func (e *Engine) Stats() Stats {
	c, d := e.claimer.Stats(), e.dispatcher.Stats()
	s := Stats{
		Claimed: c.Claimed, Skipped: c.Skipped,
		Started: d.Started, Ended: d.Ended, Lost: d.Lost,
		Running: d.Running, Waiting: d.Waiting, JournalBytes: d.JournalBytes,
		Ready: e.ready.Load(), ClockDoubted: c.ClockDoubted, StoreError: e.outage.String(),
	}
	if c.OldestMs > 0 {
		s.LagMs = max(0, e.cfg.Now().UnixMilli()-c.OldestMs)
	}
	return s
}

func (e *Engine) onStarted(j ax.Job, s ax.Started) {
	e.cfg.OnEvent(Event{
		Kind: EventStarted, Ref: s.Ref, Stack: j.Stack, Task: j.Task, Attempt: s.Attempt,
		DueMs: s.DueMs, StartedMs: s.StartedMs,
	})
}

func (e *Engine) onEnded(j ax.Job, end ax.Ending) {
	ev := Event{
		Kind: EventEnded, Ref: end.Ref, Stack: j.Stack, Task: j.Task, Attempt: end.Attempt,
		Status: end.Status, DueMs: end.DueMs, StartedMs: end.StartedMs, EndedMs: end.EndedMs,
		ErrorClass: end.ErrorClass, Error: end.Error,
	}
	if end.Ref.BackfillID() != 0 {
		e.filler.Wake() // the next one may be made
	}
	if end.Status == ax.StatusPending {
		ev.Status, ev.WillRetry, ev.RetryMs = end.RetryStatus, true, end.NotBeforeMs
	}
	if end.Status == ax.StatusFailed || end.Status == ax.StatusTimeout {
		// Whoever reads the daemon's log learns of what cron would have mailed.
		first, _, _ := strings.Cut(end.Error, "\n")
		e.cfg.Log.Info("instance failed", "stack", j.Stack, "task", j.Task, "instance", end.Ref.ID,
			"attempt", end.Attempt, "status", end.Status, "class", end.ErrorClass, "error", first)
	}
	e.cfg.OnEvent(ev)
}

func (e *Engine) onSkipped(v *ax.TaskVersion, ref ax.Ref, reason ax.Reason, slots int) {
	e.cfg.OnEvent(Event{
		Kind: EventSkipped, Ref: ref, Stack: v.Stack, Task: ax.Address(ax.KindTask, v.Name),
		Status: ax.StatusSkipped, Reason: reason, Slots: slots, DueMs: ref.DueMs,
	})
}
