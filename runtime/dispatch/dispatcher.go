package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/wheel"
	"github.com/prometheus/client_golang/prometheus"
)

// Config is what a Dispatcher works with; all but Registerer and the hooks is
// required. The store's calls may block while the store is away, but return no
// error then: the engine sees to that. It has more than 15 fields because it is
// the one list of what the parts of the dispatcher are given.
type Config struct {
	Store     ax.Dispatches
	Cancels   ax.CancelIntents
	Executors ax.Executors
	// Journal and Left are what OpenJournal returned; the caller closes it.
	Journal *Journal
	Left    []ax.Report

	Host, Boot, Incarnation string
	// Former are other names under which earlier boots may have left attempts.
	Former []string
	// Places gives the size of a pool; handler says whether there is a handler of
	// its name.
	Places func(pool string, handler bool) int

	Tick, Scan, Horizon time.Duration
	Now                 func() time.Time
	Log                 *slog.Logger
	Registerer          prometheus.Registerer

	// OnStarted and OnEnded (nil: nobody) are told of attempts, from the
	// dispatcher's goroutine. The ending's Status is the instance's after it.
	OnStarted func(ax.Job, ax.Started)
	OnEnded   func(ax.Job, ax.Ending)
	// OnSkipped (nil: nobody) is told of instances that were not started in
	// time.
	OnSkipped func(v *ax.TaskVersion, ref ax.Ref, reason ax.Reason, slots int)
}

// Spans the dispatcher works by.
const (
	flushEvery     = 250 * time.Millisecond // begun attempts are written this often
	reconcileEvery = 10 * time.Second
	suspectAgain   = time.Second            // a dispatched row we do not know is looked at again
	offerEvery     = 100 * time.Millisecond // an awaited executor is looked for this often
	overdueGrace   = 10 * time.Second       // beyond deadline and kill_after
)

// maxBatch is the most rows of one transaction.
const maxBatch = 1000

// Kinds of wheel entries; the id is the instance's.
const (
	kindNotBefore uint8 = iota // a waiting instance may start now
	kindOverdue                // an attempt should have ended by now
	kindLapse                  // a waiting instance is too late to start (start_within)
)

// Dispatcher runs the attempts of one host. Run's goroutine owns all fields
// but those that say otherwise. It has more than 15 of them because it is one
// state machine; each group belongs to the file named.
type Dispatcher struct {
	cfg     Config
	places  *places // safe for concurrent use
	inbox   *inbox  // safe for concurrent use
	stats   stats   // safe for concurrent use
	metrics *metrics
	wheel   *wheel.Wheel
	due     []wheel.Entry // buffer

	// Waiting instances: queue.go.
	items     map[int64]*item // by instance
	tasks     map[int64]*task
	lines     map[string]lines // by pool
	touched   map[int64]struct{}
	misfits   map[int64]struct{} // tasks whose body the handler here does not accept
	misfitsAt int64              // when they are looked at again
	handing   []*item
	lapsing   []*item
	versions  map[ax.VersionKey]*ax.TaskVersion
	missing   map[ax.VersionKey]struct{} // to be read
	absent    map[ax.VersionKey]struct{} // told as not there

	// Attempts: attempt.go.
	running map[int64]*attempt // by instance
	jobs    []ax.Job           // to be given to the executors
	reports []ax.Report        // to be journaled
	kept    int                // reports in the journal that the store does not have
	begun   []*attempt         // begun and not written as such
	endings []ending           // to be written
	stuck   []ending           // refused by the store for no passing reason
	recent  *recent

	// What running attempts say beside their ends: signals.go.
	progress map[int64]ax.Progress // the newest that is not written, by instance
	answers  []ax.SignalAnswer     // to be written

	// Calls beside, and when: calls.go, sweep.go.
	done       chan func()
	busy       [callCount]bool
	wg         sync.WaitGroup
	faulty     [callCount]bool  // its last answer was an error, which is told
	at         [callCount]int64 // when a call is to be made next, where time decides
	lastMs     int64            // of the last step
	lastStep   time.Time        // by the monotonic clock
	awakeSince time.Time        // when this process last went on after a stall
	sweeps     int
	suspects   map[string]struct{} // batch numbers
	draining   bool
	journalBad bool
}

// New makes a Dispatcher. It starts nothing.
func New(cfg Config) *Dispatcher {
	d := &Dispatcher{
		cfg: cfg, inbox: newInbox(),
		metrics: newMetrics(cfg.Registerer),
		wheel:   wheel.New(cfg.Tick, cfg.Now().UnixMilli()),
		items:   map[int64]*item{}, tasks: map[int64]*task{}, lines: map[string]lines{},
		touched: map[int64]struct{}{}, misfits: map[int64]struct{}{}, running: map[int64]*attempt{},
		versions: map[ax.VersionKey]*ax.TaskVersion{}, missing: map[ax.VersionKey]struct{}{}, absent: map[ax.VersionKey]struct{}{},
		recent: newRecent(), suspects: map[string]struct{}{},
		progress: map[int64]ax.Progress{},
		done:     make(chan func(), callCount),
	}
	d.places = newPlaces(func(pool string) int {
		return cfg.Places(pool, cfg.Executors.Fit(ax.HandlerSpec{Name: pool}) != ax.FitNone)
	})
	d.stats.journalBytes.Store(cfg.Journal.Size())
	d.registerGauges(cfg.Registerer)
	return d
}

// Run dispatches until ctx ends, or until nothing is left after Drain. Recover
// must have returned before.
func (d *Dispatcher) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer d.keepLast()
	defer d.wg.Wait()
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	reports := d.cfg.Executors.Reports()
	for {
		wait := d.step(ctx)
		if d.drained() {
			return nil
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return nil
		case rs, ok := <-reports:
			if !ok {
				reports = nil // the executors are gone for good
			}
			d.receive(rs)
		case <-d.inbox.signal:
			d.open(d.inbox.take())
		case apply := <-d.done:
			apply()
		case <-timer.C:
		}
	}
}

// keepLast makes durable what was reported and is not in the journal when Run
// ends, so that finished work is not run again.
func (d *Dispatcher) keepLast() {
	for {
		select {
		case rs, ok := <-d.cfg.Executors.Reports():
			d.receive(rs)
			if ok {
				continue
			}
		default:
		}
		break
	}
	if len(d.reports) > 0 {
		d.journaled(d.cfg.Journal.Append(d.reports))
	}
}

// Drain lets nothing new start; Run returns when what runs has ended.
func (d *Dispatcher) Drain() { d.inbox.put(func(l *letters) { l.drain = true }) }

// Wake says that another process has changed the store.
func (d *Dispatcher) Wake() { d.inbox.put(func(l *letters) { l.sweep, l.cancels = true, true }) }

// Reserve takes a place of a pool for an attempt of a handler, if the host can
// run it with this body and has one. It is cheap and safe for concurrent use, as
// are all methods from here on.
func (d *Dispatcher) Reserve(pool string, h ax.HandlerSpec) bool {
	return !d.journalFull() && d.cfg.Executors.Fit(h) == ax.FitWell && d.places.reserve(pool, true)
}

// Release gives a reserved place back.
func (d *Dispatcher) Release(pool string) {
	d.places.release(pool)
	d.inbox.put(func(*letters) {})
}

// Take hands over rows that were born dispatched, each with a reserved place.
// versions[i] belongs to rows[i].
func (d *Dispatcher) Take(versions []*ax.TaskVersion, rows []ax.Handover) {
	d.inbox.put(func(l *letters) {
		l.takenVersions = append(l.takenVersions, versions...)
		l.taken = append(l.taken, rows...)
	})
}

// Behind says which instances of a task waited before the rows of it that Wait
// hands over next: none of these starts before it is known whether they all do.
func (d *Dispatcher) Behind(taskID int64, ahead []int64) {
	d.inbox.put(func(l *letters) {
		if l.behind == nil {
			l.behind = map[int64][]int64{}
		}
		l.behind[taskID] = append(l.behind[taskID], ahead...)
	})
}

// Wait hands over rows that were born pending. versions[i] belongs to rows[i].
func (d *Dispatcher) Wait(versions []*ax.TaskVersion, rows []ax.Waiting) {
	d.inbox.put(func(l *letters) {
		l.waitVersions = append(l.waitVersions, versions...)
		l.waits = append(l.waits, rows...)
	})
}

// CancelAsked says that a claim wrote cancel intents.
func (d *Dispatcher) CancelAsked() { d.inbox.put(func(l *letters) { l.cancels = true }) }

// OutcomeUnknown says that a claim may have written rows that Take and Wait
// were not told of.
func (d *Dispatcher) OutcomeUnknown() { d.inbox.put(func(l *letters) { l.sweep, l.open = true, true }) }

// letters is what other goroutines have to say.
type letters struct {
	takenVersions, waitVersions []*ax.TaskVersion
	taken                       []ax.Handover
	waits                       []ax.Waiting
	behind                      map[int64][]int64
	sweep, cancels, open, drain bool
}

// inbox takes letters without ever blocking the sender.
type inbox struct {
	signal chan struct{}
	mu     sync.Mutex // guards l
	l      letters
}

func newInbox() *inbox { return &inbox{signal: make(chan struct{}, 1)} }

func (b *inbox) put(write func(*letters)) {
	b.mu.Lock()
	write(&b.l)
	b.mu.Unlock()
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

func (b *inbox) take() letters {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.l
	b.l = letters{}
	return l
}

// open acts on letters.
func (d *Dispatcher) open(l letters) {
	now := d.nowMs()
	for i, h := range l.taken {
		d.learn(l.takenVersions[i])
		d.take(h, ax.InstanceSchedule, l.takenVersions[i])
	}
	for i, w := range l.waits {
		d.learn(l.waitVersions[i])
		d.add(w, now)
	}
	for id, ahead := range l.behind {
		d.behind(id, ahead, now)
	}
	if l.sweep {
		d.at[callSweep] = now
	}
	if l.cancels {
		d.at[callCancels] = now
	}
	if l.open {
		d.at[callOpen] = now
	}
	d.draining = d.draining || l.drain
}

func (d *Dispatcher) nowMs() int64 { return d.cfg.Now().UnixMilli() }

// drained reports whether a drain is complete.
func (d *Dispatcher) drained() bool {
	return d.draining && len(d.running)+len(d.handing)+len(d.reports)+len(d.endings) == 0 &&
		!d.busy[callJournal] && !d.busy[callFinish] && !d.busy[callHandover]
}
