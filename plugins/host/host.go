package host

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins"
	"github.com/prometheus/client_golang/prometheus"
)

// Command tells how to start one executor.
type Command struct {
	Name string // of the executor, as reports and logs have it
	Path string // of the program, absolute
	Args []string
	Env  []string // besides the few variables every executor gets
}

// Config is what a Host needs.
type Config struct {
	Executors []Command
	// Dir is the folder for sockets and executors' temporary files, 0700 and
	// this host's alone. When its path is too long for a socket (108 bytes)
	// os.TempDir is used; each executor's own folder is 0700 in any case.
	Dir  string
	Host string // name of this host
	Boot string // id of this start of axd
	// Output takes what attempts print, in order for each attempt; nil throws
	// it away. It may block: then executors wait with more output, and reports
	// go on. A report may overtake the output that came before it.
	Output     func([]OutputChunk)
	Log        *slog.Logger
	Now        func() time.Time
	Registerer prometheus.Registerer // nil: no metrics
	// StartTimeout bounds the time from start to ready; default 10 s.
	StartTimeout time.Duration
}

// OutputChunk is a piece of what an attempt printed, at most 32 KiB.
type OutputChunk struct {
	BatchNo  string
	Instance int64
	Attempt  int
	Stream   string // stdout, stderr, or note: a remark by ax
	AtMs     int64
	Data     []byte
}

// Offer is a handler that a running executor has.
type Offer struct {
	Executor   string
	Schema     plugins.Schema
	SchemaHash string
}

// Host runs executors. Its methods may be called by many goroutines at once,
// before, during and after Run.
type Host struct {
	cfg       Config
	executors []*executor
	launcher  launcher
	metrics   *metrics
	reports   chan []ax.Report
	outbox    *mailbox[ax.Report]
	output    *mailbox[printed]
	ready     chan struct{}
	offered   atomic.Pointer[map[string]Offer] // by handler; replaced, never changed

	mu       sync.Mutex           // guards the fields below, and those of executors and entries
	entries  map[string]*entry    // jobs whose end was not acknowledged, by batch number
	handlers map[string]*executor // who offered a handler last, running or not
	settled  int                  // executors that have come up or failed to
}

var _ ax.Executors = (*Host)(nil)

// New returns a host that has started nothing yet.
func New(cfg Config) *Host {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.StartTimeout = cmp.Or(cfg.StartTimeout, 10*time.Second)
	h := &Host{
		cfg:      cfg,
		launcher: launcher{start: make(chan func())},
		metrics:  newMetrics(cfg.Registerer),
		reports:  make(chan []ax.Report),
		outbox:   newMailbox[ax.Report](),
		output:   newMailbox[printed](),
		ready:    make(chan struct{}),
		entries:  map[string]*entry{},
		handlers: map[string]*executor{},
	}
	h.offered.Store(&map[string]Offer{})
	for _, c := range cfg.Executors {
		h.executors = append(h.executors, newExecutor(h, c))
	}
	if len(h.executors) == 0 {
		close(h.ready)
	}
	return h
}

// Run starts the executors and keeps them running until ctx ends; then it
// kills what they run, waits until every process is gone and returns. Attempts
// that were running are reported lost, if somebody still takes reports.
//
// It makes axd the parent of all orphans among its descendants (the process
// attribute "child subreaper"), so that what a killed executor leaves behind
// can be found.
func (h *Host) Run(ctx context.Context) error {
	if err := adoptOrphans(); err != nil {
		return err
	}
	removeStale(h.cfg.Dir)
	after, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var own, supervisors sync.WaitGroup
	own.Go(func() { h.launcher.run(after) })
	own.Go(func() { h.deliver(after) })
	own.Go(func() { h.print(after) })
	for _, x := range h.executors {
		supervisors.Go(func() { x.supervise(ctx) })
	}
	<-ctx.Done()
	supervisors.Wait()
	end()
	own.Wait()
	return nil
}

// removeStale removes the folders of executors that were killed together with
// the axd before. Nobody else uses dir.
func removeStale(dir string) {
	stale, err := filepath.Glob(filepath.Join(dir, "plugin-dir*"))
	if err != nil || dir == "" {
		return
	}
	for _, path := range stale {
		_ = os.RemoveAll(path)
	}
}

// Ready is closed when every executor has either come up or failed to once.
func (h *Host) Ready() <-chan struct{} { return h.ready }

// Handlers returns the handlers of running executors, by name.
func (h *Host) Handlers() []Offer {
	var offers []Offer
	for _, o := range *h.offered.Load() {
		offers = append(offers, o)
	}
	slices.SortFunc(offers, func(a, b Offer) int { return cmp.Compare(a.Schema.Handler, b.Schema.Handler) })
	return offers
}

// Offers implements ax.Executors.
func (h *Host) Offers(handler string) bool {
	_, ok := (*h.offered.Load())[handler]
	return ok
}

// ClearLeft implements ax.Executors.
func (h *Host) ClearLeft(batchNos []string) int {
	batches := map[string]bool{}
	for _, b := range batchNos {
		batches[b] = true
	}
	return clearLeft(h.cfg.Dir, batches)
}

// Reports implements ax.Executors.
func (h *Host) Reports() <-chan []ax.Report { return h.reports }

// maxDelivery bounds one batch of reports.
const maxDelivery = 1024

// deliver hands reports to whoever reads Reports. When the host ends it goes
// on for a moment, so that what was lost at the end can be told.
func (h *Host) deliver(ctx context.Context) {
	grace := make(<-chan time.Time)
	ended := ctx.Done()
	for {
		batch := h.outbox.take(maxDelivery)
		if batch == nil {
			select {
			case <-h.outbox.wake:
				continue
			case <-ctx.Done():
				if h.outbox.empty() {
					return
				}
				continue
			}
		}
		for sent := false; !sent; {
			select {
			case h.reports <- batch:
				sent = true
			case <-ended:
				ended, grace = nil, time.After(time.Second)
			case <-grace:
				return
			}
		}
	}
}

func (h *Host) nowMs() int64 { return h.cfg.Now().UnixMilli() }
