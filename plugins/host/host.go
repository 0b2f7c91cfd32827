package host

import (
	"cmp"
	"context"
	"log/slog"
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
	// SHA256 of the program in hexadecimal, checked before each start; "" is any.
	SHA256 string
	// Own says that the program is the running one. It is started as it is in
	// memory, even when its file is another one by now.
	Own bool
	// Declared says that a plugin block names it, so that it comes before those
	// that only lie in the folder (folder.Owners).
	Declared bool
	// Handlers are those it offered when it ran last, until it tells itself.
	Handlers []string
}

// Config is what a Host needs.
type Config struct {
	Executors []Command
	// Dir is the folder for what is known of executors, their sockets and their
	// temporary files, 0700 and this host's alone: the next one with it takes the
	// executors over. When its path is too long for a socket (108 bytes) those
	// are in os.TempDir; each executor's own folder is 0700 in any case.
	Dir  string
	Host string // name of this host
	Boot string // id of this start of axd
	// Incarnation is the store's: what an earlier host has given of another one's
	// work says nothing.
	Incarnation string
	// Output takes what attempts print, in order for each attempt; nil throws
	// it away. It may block: then executors wait with more output, and reports
	// go on. A report may overtake the output that came before it.
	Output func([]OutputChunk)
	// Logged returns the last number (OutputChunk.Seq) of each attempt's output that
	// is in the log of an earlier host, where any is; nil says that none is. It is
	// asked for many attempts at once, and before the output of others moves on.
	Logged     func([]OutputOf) map[OutputOf]uint64
	Log        *slog.Logger
	Now        func() time.Time
	Registerer prometheus.Registerer // nil: no metrics
	// StartTimeout bounds the time from start to ready, and that in which a
	// process of an earlier host must answer, if it is not seen to hang; default 10 s.
	StartTimeout time.Duration
	// Grace and IdleGrace are how long executors go on without a host, with work
	// and without; default what they are made for, 5 min and 10 s.
	Grace, IdleGrace time.Duration
}

// OutputChunk is a piece of what an attempt printed, at most 32 KiB.
type OutputChunk struct {
	BatchNo  string
	Instance int64
	Attempt  int
	Stream   string // stdout, stderr, or note: a remark by ax
	AtMs     int64
	Data     []byte
	Seq      uint64 // counts the attempt's chunks from 1; 0: not known
}

// OutputOf names the attempt that output is of.
type OutputOf struct {
	Instance int64
	Attempt  int
}

// Offer is a handler that a running executor has.
type Offer struct {
	Executor   string
	Schema     plugins.Schema
	SchemaHash string

	accepted *verdicts
}

// Host runs executors. Its methods may be called by many goroutines at once,
// before, during and after Run.
type Host struct {
	cfg      Config
	programs programs
	metrics  *metrics
	epoch    uint64 // counts the hosts with this folder; set by Run
	leaving  atomic.Bool
	recover  chan struct{} // closed by Recover
	reports  chan []ax.Report
	outbox   *mailbox[ax.Report]
	output   *mailbox[printed]
	ready    chan struct{}
	offered  atomic.Pointer[map[string]Offer] // by handler; replaced, never changed

	// boots are earlier ones of whose jobs all is known, unless there are doubts;
	// set by Run.
	boots map[string]bool
	kill  func(stat) // by SIGKILL; tests have processes that it does not reach

	mu        sync.Mutex // guards the fields below, and those of executors and entries
	executors []*executor
	entries   map[string]*entry    // jobs whose end was not acknowledged, by batch number
	handlers  map[string]*executor // whose a handler is, running or not (resolve)
	former    map[string]bool      // handlers of executors that were taken away
	unclear   []clearing           // of executors that ended before, and have processes that cannot be killed
	doubts    []string             // why executors have not named all that they began
	spawn     func(*executor)      // starts to supervise one; nil before Run and when it ends
	begun     bool                 // Run has
	alive     map[*process]struct{}
	asked     bool // Recover was called
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
		recover:  make(chan struct{}),
		alive:    map[*process]struct{}{},
		metrics:  newMetrics(cfg.Registerer),
		reports:  make(chan []ax.Report),
		outbox:   newMailbox[ax.Report](),
		output:   newMailbox[printed](),
		ready:    make(chan struct{}),
		entries:  map[string]*entry{},
		kill:     sigkill,
		handlers: map[string]*executor{},
		former:   map[string]bool{},
	}
	h.offered.Store(&map[string]Offer{})
	for _, c := range cfg.Executors {
		h.executors = append(h.executors, newExecutor(h, c))
	}
	h.tell(h.resolve())
	h.checkReady()
	return h
}

// Run takes over the executors of the host before, starts those that are
// missing, and keeps them running until ctx ends; then it kills what they run,
// waits until every process is gone and returns. Attempts that were running are
// reported lost, if somebody still takes reports. After Leave it lets them live
// instead, for the next host.
//
// It makes axd the parent of all orphans among its descendants (the process
// attribute "child subreaper"), so that what a killed executor leaves behind
// can be found.
func (h *Host) Run(ctx context.Context) error {
	if err := adoptOrphans(); err != nil {
		return err
	}
	epoch, err := nextEpoch(h.cfg.Dir)
	if err != nil {
		h.cfg.Log.Warn("the folder of executors cannot be written; those that live are taken over all the same", "error", err)
	}
	h.epoch = epoch
	if h.boots, err = joinBoots(h.cfg.Dir, h.cfg.Incarnation, h.cfg.Boot); err != nil {
		h.cfg.Log.Warn("the folder of executors cannot be written; jobs that this axd hands over and does not send are lost when it is killed", "error", err)
	}
	after, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var own, supervisors sync.WaitGroup
	own.Go(func() { h.deliver(after) })
	own.Go(func() { h.print(after) })
	own.Go(func() { h.reconcile(ctx) })

	records := readRecords(h.cfg.Dir)
	stale := staleFolders(h.cfg.Dir, records)
	var found sync.WaitGroup
	h.mu.Lock()
	h.begun, h.spawn = true, func(x *executor) { supervisors.Go(func() { x.supervise(ctx) }) }
	all := h.withRetired(records)
	h.mu.Unlock()
	for _, x := range all {
		found.Add(1)
		supervisors.Go(func() {
			var mine sync.WaitGroup
			for _, r := range records {
				if r.Name == x.cmd.Name {
					mine.Go(func() { x.find(ctx, r) })
				}
			}
			mine.Wait()
			found.Done()
			x.supervise(ctx)
		})
	}
	own.Go(func() {
		found.Wait()
		h.judgeLeft(ctx, stale)
	})
	<-ctx.Done()
	h.mu.Lock()
	h.spawn = nil
	h.mu.Unlock()
	supervisors.Wait()
	end()
	own.Wait()
	return nil
}

// Leave makes Run, when its ctx ends, let the executors live with what they run.
func (h *Host) Leave() { h.leaving.Store(true) }

// withRetired returns the executors, and one for each that only records tell of.
// Called with mu held.
func (h *Host) withRetired(records []record) []*executor {
	all := slices.Clone(h.executors)
	for _, r := range records {
		if !slices.ContainsFunc(all, func(x *executor) bool { return x.cmd.Name == r.Name }) {
			x := newExecutor(h, Command{Name: r.Name, Path: r.Path})
			x.retired = true
			all = append(all, x)
		}
	}
	return all
}

// staleFolders returns the folders in a host's own one that no record tells of:
// of executors that were killed before they got work.
func staleFolders(dir string, records []record) []string {
	sockets, _ := filepath.Glob(filepath.Join(dir, "plugin-dir*"))
	homes, _ := filepath.Glob(filepath.Join(dir, homePrefix+"*"))
	return slices.DeleteFunc(append(sockets, homes...), func(path string) bool {
		return slices.ContainsFunc(records, func(r record) bool { return r.home == path || r.SocketDir == path })
	})
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

// Fit implements ax.Executors.
func (h *Host) Fit(spec ax.HandlerSpec) ax.Fit {
	o, ok := (*h.offered.Load())[spec.Name]
	switch {
	case !ok:
		return ax.FitNone
	case o.accepted.accepts(o.Schema, spec.Body):
		return ax.FitWell
	default:
		return ax.FitOther
	}
}

// live notes that a process is this host's, or no more.
func (h *Host) live(p *process, yes bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if yes {
		h.alive[p] = struct{}{}
	} else {
		delete(h.alive, p)
	}
}

// living returns the executors that live, with their starts.
func (h *Host) living() map[int]uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	pids := map[int]uint64{}
	for p := range h.alive {
		if hd := p.handle.Load(); hd != nil && !hd.exited() {
			pids[hd.pid] = hd.start
		}
	}
	return pids
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
