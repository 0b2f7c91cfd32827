package runtime

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/axctl/ax"
	"github.com/prometheus/client_golang/prometheus"
)

// Config is what an Engine works with. The ports, Host, Boot, Incarnation and
// JournalPath are required; the rest has the defaults told.
type Config struct {
	Claims     ax.Claims
	Dispatches ax.Dispatches
	Cancels    ax.CancelIntents
	Watcher    ax.Watcher
	Executors  ax.Executors

	Host        string // this host's name
	Boot        string // random, new at each start
	Incarnation string // the store's, for batch numbers

	// JournalPath is the report journal, in the data folder.
	JournalPath string
	// Pools gives places by handler name: how many attempts run at once.
	// Default 64 for shell and http, 2·CPU+2 for others.
	Pools map[string]int

	Tick    time.Duration // width of a wheel slot, 1s
	Scan    time.Duration // how often the store is scanned, 5s
	Poll    time.Duration // how often other processes' commits are looked for, 250ms
	Horizon time.Duration // how far ahead the wheel holds tasks, 5m

	Now        func() time.Time // time.Now
	Log        *slog.Logger     // discards
	Registerer prometheus.Registerer
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
	Ready        bool   // what an earlier boot left is settled and claims have begun
	StoreError   string // of a store call that is being tried again; "" when none is
}

// Engine runs claim and dispatch.
type Engine struct {
	cfg Config
}

// New checks cfg and opens the journal. It starts nothing.
func New(cfg Config) (*Engine, error) {
	if cfg.Claims == nil {
		return nil, errors.New("no store")
	}
	return &Engine{cfg: cfg}, nil
}

// Run works until ctx ends, or until all is done after Drain; then it returns
// nil. Another error means that it cannot go on.
func (e *Engine) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Drain lets no new attempt start; Run returns when those that run have ended.
func (e *Engine) Drain() {}

// Stats tells the state now. It is safe for concurrent use and cheap.
func (e *Engine) Stats() Stats { return Stats{} }
