// Package host starts executors, the processes in which handlers run, and
// keeps them running. It owns their processes and the one stream to each; it
// is the ax.Executors that dispatch hands jobs to.
package host

import (
	"context"
	"log/slog"
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
	// Dir is the folder for sockets, 0700. When its path is too long for a
	// socket (108 bytes) a folder under os.TempDir is used.
	Dir  string
	Host string // name of this host
	Boot string // id of this start of axd
	// Output takes what attempts print, in order for each attempt. It may
	// block: then executors wait with more output, and reports go on.
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
	cfg     Config
	reports chan []ax.Report
	ready   chan struct{}
}

// New returns a host that has started nothing yet.
func New(cfg Config) *Host {
	return &Host{cfg: cfg, reports: make(chan []ax.Report), ready: make(chan struct{})}
}

// Run starts the executors and keeps them running until ctx ends; then it
// ends them with all their processes and returns.
func (h *Host) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Ready is closed when every executor has either come up or failed to once.
func (h *Host) Ready() <-chan struct{} { return h.ready }

// Handlers returns the handlers of running executors, by name.
func (h *Host) Handlers() []Offer { return nil }

// Offers implements ax.Executors.
func (h *Host) Offers(handler string) bool { return false }

// Dispatch implements ax.Executors.
func (h *Host) Dispatch(jobs []ax.Job) {}

// Cancel implements ax.Executors.
func (h *Host) Cancel(orders []ax.CancelOrder) {}

// Acknowledge implements ax.Executors.
func (h *Host) Acknowledge(batchNos []string) {}

// Reports implements ax.Executors.
func (h *Host) Reports() <-chan []ax.Report { return h.reports }

var _ ax.Executors = (*Host)(nil)
