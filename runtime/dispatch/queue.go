package dispatch

import (
	"container/heap"
	"slices"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
	"github.com/axctl/ax/runtime/wheel"
)

// maxWaiting is the most waiting instances held in memory; the others are found
// by a later sweep.
const maxWaiting = 100_000

// lateAfterMs separates live instances from a backlog: a scheduled one that is
// older than this when it is first seen lets live ones pass, and so does one of
// a backfill.
const lateAfterMs = 60_000

// stage is where a waiting instance is in memory.
type stage int

const (
	stageWaiting stage = iota // for its turn, in its task's items
	stageQueued               // has its turn and waits for a place, in a line of its pool, which passes over all others
	stageHanding              // has a place; the store is being told
	stageLapsing              // it is too late to start it; the store is being told
	stageDropped              // no longer pending
)

// item is one pending instance.
type item struct {
	ax.Waiting
	late    bool
	stage   stage
	parked  int64           // until then it does not start: the store refused to hand it over
	version *ax.TaskVersion // nil until it is known; set from stageQueued on, as is rank
	rank    rules.Rank
	sweep   int // the newest sweep in which it cannot be missing
	timer   wheel.Handle
	lapse   wheel.Handle // kindLapse
}

func (i *item) key() ax.VersionKey {
	return ax.VersionKey{ObjectID: i.TaskID, Version: i.Version}
}

// startMs is the earliest instant at which it may start.
func (i *item) startMs() int64 { return max(i.NotBeforeMs, i.parked) }

func (i *item) handler() string { return i.version.Spec.Handler.Name }
func (i *item) pool() string    { return i.version.Spec.PoolName() }

// task is what the dispatcher knows of one task with open instances.
type task struct {
	active int        // attempts whose processes are not gone
	turns  int        // items queued or handing
	items  []*item    // stageWaiting, by turn
	last   rules.Rank // of the item that was queued last
	// blocked: the store knew of more active attempts than we do; try again
	// with the next sweep or end.
	blocked bool
	// unread: some wait that are not among the items; none has its turn before the
	// sweep of this number has read them.
	unread int
}

// byTurn orders the items of one task.
func byTurn(a, b *item) int { return rules.CompareTurn(a.Waiting, b.Waiting) }

func (t *task) insert(i *item) {
	at, _ := slices.BinarySearchFunc(t.items, i, byTurn)
	t.items = slices.Insert(t.items, at, i)
}

func (t *task) remove(i *item) {
	if at, ok := slices.BinarySearchFunc(t.items, i, byTurn); ok {
		t.items = slices.Delete(t.items, at, at+1)
	}
}

// turn returns the items whose turn it is now.
func (t *task) turn(nowMs int64) []*item {
	if t.blocked || t.unread > 0 || len(t.items) == 0 {
		return nil
	}
	newest := t.items[len(t.items)-1]
	free := newest.MaxActive - t.active - t.turns
	if free <= 0 {
		return nil
	}
	ws := make([]ax.Waiting, len(t.items))
	for n, i := range t.items {
		ws[n] = i.Waiting
		ws[n].NotBeforeMs = i.startMs()
	}
	var turn []*item
	for _, n := range rules.Turn(newest.Overlap, t.active+t.turns, newest.MaxActive, ws, nowMs) {
		turn = append(turn, t.items[n])
	}
	return turn
}

// lines are the items that wait for a place of one pool, by handler: a handler
// that is not offered keeps no other's waiting.
type lines map[string]*line

// line is a heap of items of one pool and handler, by rank.
type line []*item

func (l line) Len() int      { return len(l) }
func (l line) Swap(a, b int) { l[a], l[b] = l[b], l[a] }
func (l line) Less(a, b int) bool {
	return l[a].rank.Compare(l[b].rank) < 0
}
func (l *line) Push(x any) { *l = append(*l, x.(*item)) }
func (l *line) Pop() any {
	old := *l
	i := old[len(old)-1]
	old[len(old)-1] = nil
	*l = old[:len(old)-1]
	return i
}

// add puts a pending instance into memory, or brings the item there up to date.
func (d *Dispatcher) add(w ax.Waiting, nowMs int64) {
	if d.running[w.ID] != nil {
		// Either w is old news, or the end of the attempt is written and its
		// answer is not here yet: settle adds the next one.
		return
	}
	if i := d.items[w.ID]; i != nil {
		i.sweep = d.sweeps
		if i.stage == stageWaiting && w.Attempt >= i.Attempt {
			moved := i.NotBeforeMs != w.NotBeforeMs
			i.Waiting = w
			if moved {
				d.arm(i, nowMs)
				d.armLapse(i, nowMs)
			}
		}
		return
	}
	if len(d.items) >= maxWaiting || w.NotBeforeMs > nowMs+d.cfg.Horizon.Milliseconds() {
		return
	}
	i := &item{Waiting: w, sweep: d.sweeps}
	i.late = w.Kind == ax.InstanceBackfill ||
		w.Kind == ax.InstanceSchedule && w.Attempt == 1 && nowMs-w.DueMs > lateAfterMs
	d.items[w.ID] = i
	d.task(w.TaskID).insert(i)
	d.arm(i, nowMs)
	d.touch(w.TaskID)
	d.armLapse(i, nowMs)
}

// behind lets a task wait for a sweep that begins from now on, when one that
// waits before those just born is not known here: a resume made it, or a claim
// whose answer was lost. Beyond maxWaiting that is so of many, and no sweep helps.
func (d *Dispatcher) behind(taskID int64, ahead []int64, nowMs int64) {
	for _, id := range ahead {
		if d.items[id] == nil && d.running[id] == nil && len(d.items) < maxWaiting {
			d.task(taskID).unread = d.sweeps + 1
			d.at[callSweep] = nowMs
			return
		}
	}
}

// arm sets the timer of an item that may not start yet.
func (d *Dispatcher) arm(i *item, nowMs int64) {
	d.wheel.Cancel(i.timer)
	if start := i.startMs(); start > nowMs {
		i.timer = d.wheel.Add(wheel.Entry{Kind: kindNotBefore, ID: i.ID, DueMs: start})
	}
}

// park lets an instance wait that cannot be handed over.
func (d *Dispatcher) park(i *item, nowMs int64) {
	i.parked = nowMs + parkFor.Milliseconds()
	d.arm(i, nowMs)
}

// drop takes an instance that is no longer pending out of memory.
func (d *Dispatcher) drop(i *item) {
	d.leave(i, stageDropped)
	d.wheel.Cancel(i.lapse)
	delete(d.items, i.ID)
}

// leave takes an item out of the turns of its task, to where it starts no more.
func (d *Dispatcher) leave(i *item, to stage) {
	t := d.task(i.TaskID)
	switch i.stage {
	case stageWaiting:
		t.remove(i)
	case stageQueued:
		d.unqueue(i, t)
	case stageHanding:
		t.turns--
	}
	i.stage = to
	d.wheel.Cancel(i.timer)
	d.touch(i.TaskID)
}

// enqueue puts an item into a line of its pool. Those of one task go in the order
// of their turns, unless its overlap knows none.
func (d *Dispatcher) enqueue(i *item, v *ax.TaskVersion) {
	t := d.task(i.TaskID)
	i.stage, i.version = stageQueued, v
	i.rank = rules.RankOf(i.Ref, v.Spec.Priority, i.late)
	if t.turns > 0 && i.Overlap != ax.OverlapAllow {
		i.rank = i.rank.After(t.last)
	}
	t.last = i.rank
	t.turns++
	if !i.late {
		d.places.queue(i.pool(), 1)
	}
	ls := d.lines[i.pool()]
	if ls == nil {
		ls = lines{}
		d.lines[i.pool()] = ls
	}
	l := ls[i.handler()]
	if l == nil {
		l = &line{}
		ls[i.handler()] = l
	}
	heap.Push(l, i)
}

// unqueue undoes enqueue; the line passes over the item later.
func (d *Dispatcher) unqueue(i *item, t *task) {
	t.turns--
	if !i.late {
		d.places.queue(i.pool(), -1)
	}
}

// touch notes that a task's turns are to be looked at.
func (d *Dispatcher) touch(taskID int64) { d.touched[taskID] = struct{}{} }

// takeTurns moves the items of touched tasks whose turn it is into the lines of
// their pools, and from the lines to handing while there are places.
func (d *Dispatcher) takeTurns(nowMs int64) {
	for id := range d.touched {
		delete(d.touched, id)
		t := d.task(id)
		for _, i := range t.turn(nowMs) {
			v, _ := d.version(i.key())
			if v == nil {
				continue
			}
			if d.cfg.Executors.Fit(v.Spec.Handler) == ax.FitOther {
				d.misfit(id, nowMs)
				continue
			}
			t.remove(i)
			d.enqueue(i, v)
		}
		if t.active == 0 && t.turns == 0 && t.unread == 0 && len(t.items) == 0 {
			delete(d.tasks, id)
		}
	}
	if d.draining || d.journalFull() {
		return
	}
	for pool, ls := range d.lines {
		d.advance(pool, ls, nowMs)
		if len(ls) == 0 {
			delete(d.lines, pool)
		}
	}
}

// misfit notes a task whose instance has its turn and a body that the handler
// here does not accept. It goes on waiting and is in nobody's way; nothing tells
// when the handler's schema changes, so it is looked at again.
func (d *Dispatcher) misfit(taskID, nowMs int64) {
	if len(d.misfits) == 0 {
		d.misfitsAt = nowMs + offerEvery.Milliseconds()
	}
	d.misfits[taskID] = struct{}{}
}

// tryMisfits lets the misfits have their turn again.
func (d *Dispatcher) tryMisfits(nowMs int64) {
	if len(d.misfits) == 0 || nowMs < d.misfitsAt {
		return
	}
	for id := range d.misfits {
		d.touch(id)
	}
	clear(d.misfits)
}

// advance gives the places of a pool to the first in its lines.
func (d *Dispatcher) advance(pool string, ls lines, nowMs int64) {
	for {
		l := d.first(ls)
		if l == nil {
			return
		}
		fit := d.fit(l)
		if fit == ax.FitWell && !d.places.reserve(pool, false) {
			return
		}
		i := heap.Pop(l).(*item)
		if !i.late {
			d.places.queue(pool, -1)
		}
		if fit == ax.FitOther { // the handler has changed while it stood in line
			d.putBack(i)
			d.misfit(i.TaskID, nowMs)
			continue
		}
		i.stage = stageHanding
		d.handing = append(d.handing, i)
	}
}

// first returns the line whose head is the first that may have a place, nil when
// there is none. It clears lines of what waits no more.
func (d *Dispatcher) first(ls lines) *line {
	var first *line
	for handler, l := range ls {
		for l.Len() > 0 && (*l)[0].stage != stageQueued {
			heap.Pop(l)
		}
		switch {
		case l.Len() == 0:
			delete(ls, handler)
		case d.fit(l) == ax.FitNone:
		case first == nil || (*l)[0].rank.Compare((*first)[0].rank) < 0:
			first = l
		}
	}
	return first
}

// fit is how the head of a line fits this host.
func (d *Dispatcher) fit(l *line) ax.Fit { return d.cfg.Executors.Fit((*l)[0].version.Spec.Handler) }

// unoffered reports whether instances that have their turn wait for an executor.
func (d *Dispatcher) unoffered() bool {
	if d.draining {
		return false
	}
	for _, ls := range d.lines {
		for _, l := range ls {
			if l.Len() > 0 && (*l)[0].stage == stageQueued && d.fit(l) == ax.FitNone {
				return true
			}
		}
	}
	return false
}

// putBack returns an item that was not handed over to its task.
func (d *Dispatcher) putBack(i *item) {
	t := d.task(i.TaskID)
	t.turns--
	i.stage = stageWaiting
	t.insert(i)
	d.armLapse(i, d.nowMs())
}

func (d *Dispatcher) task(id int64) *task {
	t := d.tasks[id]
	if t == nil {
		t = &task{}
		d.tasks[id] = t
	}
	return t
}
