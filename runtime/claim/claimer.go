package claim

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
	"github.com/axctl/ax/runtime/wheel"
	"github.com/prometheus/client_golang/prometheus"
)

// Places is what claim needs of the dispatcher. No method blocks.
type Places interface {
	// Reserve takes a place of the pool for an attempt of the handler; false
	// when there is none, when others wait for one, or when its body does not fit.
	Reserve(pool string, h ax.HandlerSpec) bool
	// Release gives a reserved place back.
	Release(pool string)
	// Take hands over rows that were born dispatched, with their places;
	// versions[i] belongs to rows[i].
	Take(versions []*ax.TaskVersion, rows []ax.Handover)
	// Behind says what waited before the rows of a task that are handed over next.
	Behind(taskID int64, ahead []int64)
	// Wait hands over rows that were born pending.
	Wait(versions []*ax.TaskVersion, rows []ax.Waiting)
	// CancelAsked says that cancel intents were written.
	CancelAsked()
	// OutcomeUnknown says that rows may have been born that nobody was told of.
	OutcomeUnknown()
}

// Config is what a Claimer works with; all but Registerer, Kernel, Synced
// and OnSkipped is required. The store's reads may block while the store is away, but return no
// error then; Claim returns its error, since its outcome is unknown.
type Config struct {
	Store  ax.Claims
	Places Places

	Host, Boot string

	Tick, Scan, Horizon time.Duration
	Now                 func() time.Time
	// Elapsed is a clock that nobody sets and that goes on while the machine
	// sleeps, from any start; Kernel names that start, "" a new one each time.
	Elapsed func() time.Duration
	Kernel  string
	// Synced says whether a time server keeps the wall clock right; nil: nobody
	// knows. With many hosts it will be the database's clock that speaks.
	Synced     func() bool
	Log        *slog.Logger
	Registerer prometheus.Registerer

	// OnSkipped is told of slots that do not run, from the claimer's goroutine:
	// a row (slots is 1), or a stretch of slots that ends with ref.DueMs (ref.ID
	// is 0 then, slots -1 when there are more than ax.MaxCountedSlots).
	OnSkipped func(v *ax.TaskVersion, ref ax.Ref, reason ax.Reason, slots int)
}

// Kinds of wheel entries; the id is the task's.
const (
	kindSlot uint8 = iota // a task's next_fire_time
	kindHold              // the end of a task's hold
)

// Claimer claims due slots. Run's goroutine owns all fields but those that say
// otherwise. It has more than 15 of them because it is one state machine.
type Claimer struct {
	cfg      Config
	wake     chan struct{} // safe for concurrent use
	drain    chan struct{} // closed by Drain
	drained  atomic.Bool
	stats    stats // safe for concurrent use
	metrics  *metrics
	wheel    *wheel.Wheel
	due      []wheel.Entry // buffer
	tasks    map[int64]*task
	backlog  []*task // misfires that wait their turn
	versions *versions
	scan     scan
	holds    map[int64]int64 // task → end of its hold, where the wheel has it
	// quarantined tasks are not claimed while their row stays at this
	// lock_version.
	quarantined map[int64]int64
	lastMs      int64 // of the wall clock, when it was last believed
	elapsed     int64 // of the other clock, in ms, at the last look
	clock       clock
	believed    atomic.Pointer[int64] // of clock, see Now; safe for concurrent use
	rewind      rewind
	failures    int  // claims in a row whose outcome is unknown
	faulty      bool // reads fail, which is told
}

// task is a task whose next slot is in the wheel or in the backlog.
type task struct {
	ax.DueTask
	handle wheel.Handle
	queued bool // in the backlog
	alone  bool // its last batch was refused: it is claimed in one of its own
}

func (t *task) key() ax.VersionKey { return ax.VersionKey{ObjectID: t.TaskID, Version: t.Version} }

// New makes a Claimer. It starts nothing.
func New(cfg Config) *Claimer {
	c := &Claimer{
		cfg: cfg, wake: make(chan struct{}, 1), drain: make(chan struct{}),
		versions:    newVersions(cfg.Store),
		quarantined: map[int64]int64{}, rewind: rewind{under: true},
	}
	c.metrics = newMetrics(cfg.Registerer, &c.stats)
	c.reset(cfg.Now().UnixMilli())
	return c
}

// reset forgets all hints, so that the next scan finds everything anew.
func (c *Claimer) reset(now int64) {
	c.wheel = wheel.New(c.cfg.Tick, now)
	c.tasks, c.holds = map[int64]*task{}, map[int64]int64{}
	c.backlog = nil
	c.scan = scan{}
	c.lastMs = now
}

// Run claims until ctx ends or Drain is called.
func (c *Claimer) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-c.drain:
			return nil
		case <-ctx.Done():
			return nil
		default:
		}
		wait, err := c.runOnce(ctx)
		if err != nil {
			if ctx.Err() == nil && !c.faulty {
				c.cfg.Log.Error("tasks cannot be read; it is tried again", "error", err)
			}
			wait = time.Second
		}
		c.faulty = err != nil
		timer.Reset(wait)
		select {
		case <-c.drain:
		case <-ctx.Done():
		case <-c.wake:
			c.scan.soon = true
		case <-timer.C:
		}
	}
}

// Begin looks at the clock before Run does, for those who ask Now meanwhile. What
// it cannot read now, Run reads.
func (c *Claimer) Begin(ctx context.Context) { _, _, _ = c.look(ctx) }

// Now is the clock that all decide by who do something for good at an instant.
// While the wall clock is in doubt it goes on as it was before. It is safe for
// concurrent use.
func (c *Claimer) Now() time.Time {
	wall, believed := c.cfg.Now(), c.believed.Load()
	if believed == nil {
		return wall
	}
	m := ax.ClockMark{WallMs: wall.UnixMilli(), ElapsedMs: c.cfg.Elapsed().Milliseconds()}
	if ms := rules.Instant(m, *believed); ms != m.WallMs {
		return time.UnixMilli(ms)
	}
	return wall
}

// Wake says that another process has changed the store. It is safe for
// concurrent use, as is Drain.
func (c *Claimer) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Drain lets Run return after the claim under way.
func (c *Claimer) Drain() {
	if !c.drained.Swap(true) {
		close(c.drain)
	}
}

// runOnce claims what is due now, live slots first, and reads a page of the scan
// under way. It returns how long nothing else is to be done.
func (c *Claimer) runOnce(ctx context.Context) (time.Duration, error) {
	now, believed, err := c.look(ctx)
	if err != nil {
		return 0, err
	}
	if !believed {
		return doubtLook, nil
	}
	if err := c.scanPage(ctx, now); err != nil {
		return 0, err
	}
	live, holds := c.advance(now)
	if holds {
		if err := c.endHolds(ctx, now); err != nil {
			c.putBack(live)
			return 0, err
		}
	}
	if err := c.load(ctx, live); err != nil {
		c.putBack(live)
		return 0, err
	}
	live = c.sortOut(live, now)
	c.byRank(live)
	c.claim(ctx, live, now)
	if err := c.catchUp(ctx, now); err != nil {
		return 0, err
	}
	if len(live) == 0 {
		if err := c.versions.preload(ctx); err != nil {
			return 0, err
		}
		if err := c.rewindPage(ctx, now); err != nil {
			return 0, err
		}
	}
	return c.untilNext(), nil
}

func (c *Claimer) nowMs() int64 { return c.cfg.Now().UnixMilli() }

// advance returns the tasks that are due, and whether a hold ends.
func (c *Claimer) advance(now int64) (due []*task, holds bool) {
	c.due = c.wheel.Advance(now, c.due[:0])
	for _, e := range c.due {
		switch e.Kind {
		case kindSlot:
			if t := c.tasks[e.ID]; t != nil && !t.queued {
				due = append(due, t)
			}
		case kindHold:
			delete(c.holds, e.ID)
			holds = true
		}
	}
	return due, holds
}

// load makes the definitions of tasks be there.
func (c *Claimer) load(ctx context.Context, tasks []*task) error {
	keys := make([]ax.VersionKey, len(tasks))
	for i, t := range tasks {
		keys[i] = t.key()
	}
	return c.versions.load(ctx, keys)
}

// sortOut returns the live ones of the due tasks, and moves the others to the
// backlog or into quarantine.
func (c *Claimer) sortOut(due []*task, now int64) []*task {
	live := due[:0]
	for _, t := range due {
		v := c.versions.get(t.key())
		switch {
		case v == nil || v.err != nil:
			c.quarantine(t, v.fault())
		case rules.Misfired(v.Spec.Misfire, t.NextMs, now):
			t.queued = true
			c.backlog = append(c.backlog, t)
		default:
			live = append(live, t)
		}
	}
	return live
}

// catchUp writes at most maxSlots rows of the backlog, so that what has become
// due meanwhile goes first.
func (c *Claimer) catchUp(ctx context.Context, now int64) error {
	head := c.backlog[:min(len(c.backlog), maxSlots)]
	if err := c.load(ctx, head); err != nil {
		return err
	}
	n := 0
	for rows := 0; n < len(head) && rows < maxSlots; n++ {
		rows += c.mostRows(head[n])
	}
	c.backlog = c.backlog[n:]
	tasks := make([]*task, 0, n)
	for _, t := range head[:n] {
		t.queued = false
		if c.tasks[t.TaskID] == t {
			tasks = append(tasks, t)
		}
	}
	c.claim(ctx, tasks, now)
	return nil
}

// mostRows returns how many rows a task's backlog becomes at most.
func (c *Claimer) mostRows(t *task) int {
	if v := c.versions.get(t.key()); v != nil && v.Spec.Misfire.Policy == ax.MisfireAll {
		return v.Spec.Misfire.Max
	}
	return 1
}

// putBack lets tasks be due again at once.
func (c *Claimer) putBack(tasks []*task) {
	for _, t := range tasks {
		if !t.queued && c.tasks[t.TaskID] == t {
			c.schedule(t)
		}
	}
}

// schedule puts a task's next slot into the wheel; a task without one within
// the horizon is left to the scan.
func (c *Claimer) schedule(t *task) {
	c.wheel.Cancel(t.handle)
	if t.NextMs == 0 || t.NextMs > c.lastMs+c.cfg.Horizon.Milliseconds() {
		delete(c.tasks, t.TaskID)
		return
	}
	t.handle = c.wheel.Add(wheel.Entry{Kind: kindSlot, ID: t.TaskID, DueMs: t.NextMs})
}

// update brings a task to the row that was read.
func (c *Claimer) update(row ax.DueTask) {
	if lock, ok := c.quarantined[row.TaskID]; ok {
		if lock == row.LockVersion {
			return
		}
		delete(c.quarantined, row.TaskID)
	}
	t := c.tasks[row.TaskID]
	if t == nil {
		t = &task{}
		c.tasks[row.TaskID] = t
	} else if t.DueTask == row {
		return
	}
	t.DueTask = row
	c.versions.want(t.key())
	if !t.queued {
		c.schedule(t)
	}
}

// parkFor is how long a task waits whose claim the store refuses.
const parkFor = time.Minute

// park tries a task again later.
func (c *Claimer) park(t *task) {
	c.wheel.Cancel(t.handle)
	t.handle = c.wheel.Add(wheel.Entry{Kind: kindSlot, ID: t.TaskID, DueMs: c.nowMs() + parkFor.Milliseconds()})
}

// quarantine takes a task that cannot be claimed out of the way until its row
// changes. It is said once.
func (c *Claimer) quarantine(t *task, err error) {
	c.cfg.Log.Error("a task cannot be claimed; it waits until its definition changes",
		"task", c.versions.address(t.key()), "version", t.Version, "error", err)
	c.metrics.quarantined.Inc()
	c.quarantined[t.TaskID] = t.LockVersion
	c.forget(t.TaskID)
}

func (c *Claimer) forget(taskID int64) {
	if t := c.tasks[taskID]; t != nil {
		c.wheel.Cancel(t.handle)
		delete(c.tasks, taskID)
	}
}

// untilNext returns how long to sleep when nothing comes.
func (c *Claimer) untilNext() time.Duration {
	next := min(c.scan.at, c.scan.wholeAt)
	if ms, ok := c.wheel.Next(); ok {
		next = min(next, ms)
	}
	if len(c.backlog) > 0 {
		next = min(next, c.backlog[0].NextMs)
	}
	c.stats.oldestMs.Store(next)
	if c.scan.soon || c.scan.under() || c.rewind.under || c.versions.wanted() {
		return 0
	}
	// A scan is never further away, unless the clock was set back since it was
	// planned; then there is nothing to be waited for but the next look.
	return min(time.Duration(max(next-c.nowMs(), 0))*time.Millisecond, c.cfg.Scan)
}

// passing reports whether a claim may succeed later.
func passing(err error) bool {
	return errors.Is(err, ax.ErrUnavailable) || errors.Is(err, ax.ErrBusy)
}
