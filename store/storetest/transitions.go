package storetest

import (
	"fmt"
	"slices"

	"github.com/axctl/ax"
)

// call is one call of a port with its arguments, which can be made again.
type call func()

// move is one way in which an instance goes along an edge of the transition
// table.
type move struct {
	name     string
	from, to ax.Status
	first    bool // of the first attempt only
	others   bool // it writes other rows of the task as well
	prepare  func(f *fixture, o ax.Object, r ax.Ref, attempt int) call
}

func finishAs(status ax.Status) func(*fixture, ax.Object, ax.Ref, int) call {
	return func(f *fixture, _ ax.Object, r ax.Ref, attempt int) call {
		e := f.ending(r, attempt, status)
		if status == ax.StatusPending {
			e = f.again(r, attempt, f.nowMs+minute)
		}
		return func() { f.finish(e) }
	}
}

var moves = []move{
	{"hand over", ax.StatusPending, ax.StatusDispatched, false, false, func(f *fixture, _ ax.Object, r ax.Ref, attempt int) call {
		return func() { f.handOver(r, attempt) }
	}},
	{"lapse", ax.StatusPending, ax.StatusSkipped, true, false, func(f *fixture, _ ax.Object, r ax.Ref, _ int) call {
		return func() {
			_, err := f.Lapse(f.ctx, []ax.Lapse{{Ref: r, NowMs: f.nowMs}})
			f.ok(err)
		}
	}},
	{"replace", ax.StatusPending, ax.StatusSkipped, true, true, func(f *fixture, o ax.Object, _ ax.Ref, _ int) call {
		// One runs, and one waits: the newcomer takes its place.
		f.ok(f.Hold(f.ctx, o.ID, ax.Hold{Kind: ax.HoldPaused, Who: "ann", SinceMs: f.nowMs}))
		ref, err := f.Trigger(f.ctx, ax.Trigger{ObjectID: o.ID, UID: "in the way of " + o.Name, DueMs: f.nowMs, NowMs: f.nowMs, Who: "ann"})
		f.ok(err)
		f.handOver(ref, 1)
		f.unfreeze(o)
		firing := f.firing(o)
		firing.Overlap, firing.Starts[0].Place = ax.OverlapLatest, nil
		return func() { f.claim(firing) }
	}},
	{"delete", ax.StatusPending, ax.StatusSkipped, false, true, func(f *fixture, o ax.Object, _ ax.Ref, _ int) call {
		cs := f.changeSet("main", f.remove(f.object(o.Name)))
		return func() {
			_, err := f.Apply(f.ctx, cs)
			f.ok(err)
		}
	}},
	{"cancel", ax.StatusPending, ax.StatusCancelled, false, false, func(f *fixture, _ ax.Object, r ax.Ref, _ int) call {
		return func() { _, _ = f.Cancel(f.ctx, r.ID, "ann", f.nowMs) } // ErrConflict the second time
	}},
	{"retry", ax.StatusDispatched, ax.StatusPending, false, false, finishAs(ax.StatusPending)},
	{"succeed", ax.StatusDispatched, ax.StatusSuccess, false, false, finishAs(ax.StatusSuccess)},
	{"fail", ax.StatusDispatched, ax.StatusFailed, false, false, finishAs(ax.StatusFailed)},
	{"time out", ax.StatusDispatched, ax.StatusTimeout, false, false, finishAs(ax.StatusTimeout)},
	{"end cancelled", ax.StatusDispatched, ax.StatusCancelled, false, false, finishAs(ax.StatusCancelled)},
}

// states are the states of one host that an instance can be found in; again is
// its second attempt.
var states = []struct {
	status ax.Status
	again  bool
}{
	{ax.StatusPending, false},
	{ax.StatusPending, true},
	{ax.StatusDispatched, false},
	{ax.StatusDispatched, true},
	{ax.StatusSuccess, false},
	{ax.StatusFailed, false},
	{ax.StatusTimeout, false},
	{ax.StatusSkipped, false},
	{ax.StatusCancelled, false},
}

// inState makes a task with one instance, in this state.
func (f *fixture) inState(name string, status ax.Status, again bool) (ax.Object, ax.Ref, int) {
	f.Helper()
	o := f.task(name, nil)
	if again {
		born := f.fire(o, nil)
		f.finish(f.again(born.Ref, 1, f.nowMs))
		if status == ax.StatusDispatched {
			f.handOver(born.Ref, 2)
		}
		return o, born.Ref, 2
	}
	born := f.fire(o, func(g *ax.Firing) {
		switch status {
		case ax.StatusPending:
			g.Starts[0].Place = nil
		case ax.StatusSkipped:
			g.Starts[0].Place, g.Starts[0].Skip = nil, ax.ReasonStartWithin
		}
	})
	if status.Final() && status != ax.StatusSkipped {
		f.finish(f.ending(born.Ref, 1, status))
	}
	return o, born.Ref, 1
}

// seen is what a move must leave alone when it is not its turn: the row and its
// ended attempts, and the task's counters unless it moves others too. What a
// life line only notes (a late result) is no part of it.
func (f *fixture) seen(o ax.Object, id int64, others bool) string {
	l := f.life(id)
	text := fmt.Sprintf("%+v, %d attempts", l.Instance, len(l.Attempts))
	if !others {
		row := f.object(o.Name).Row
		text += fmt.Sprintf(", active %d, waiting %d, streak %d", row.Active, row.Waiting, row.FailureStreak)
	}
	return text
}

// testMoves tries every move on an instance in every state. Where the table has
// it, it happens, and made again, as when its answer was lost, does nothing more;
// elsewhere, as when somebody else was first, nothing happens. One instance a
// state is enough for all that must not happen.
func testMoves(f *fixture) {
	for j, s := range states {
		o, r, attempt := f.inState(fmt.Sprintf("not_%d", j), s.status, s.again)
		for i, m := range moves {
			what := fmt.Sprintf("%s of one that is %s, attempt %d", m.name, s.status, attempt)
			if s.status != m.from || attempt > 1 && m.first {
				if m.others || m.name == "cancel" && s.status == ax.StatusDispatched {
					continue // it does what it should to others, or stores an intent
				}
				before := f.seen(o, r.ID, false)
				m.prepare(f, o, r, attempt)()
				equal(f, what, f.seen(o, r.ID, false), before)
				continue
			}
			o, r, attempt := f.inState(fmt.Sprintf("t%d_%d", i, j), s.status, s.again)
			do := m.prepare(f, o, r, attempt)
			do()
			equal(f, what, f.life(r.ID).Status, m.to)
			after := f.seen(o, r.ID, m.others)
			do()
			equal(f, what+", made again", f.seen(o, r.ID, m.others), after)
		}
	}
	for _, e := range ax.Transitions {
		if e.From != "" && !slices.ContainsFunc(moves, func(m move) bool { return m.from == e.From && m.to == e.To }) {
			f.Errorf("no move goes from %s to %s", e.From, e.To)
		}
	}
}

// testOlderAttempt reports on, and hands over, an attempt that is over.
func testOlderAttempt(f *fixture) {
	for j, s := range states[:4] {
		o, r, attempt := f.inState(fmt.Sprintf("t%d", j), s.status, s.again)
		for _, m := range moves {
			if m.others || m.first || m.name == "cancel" {
				continue // these name no attempt
			}
			for _, other := range []int{attempt - 1, attempt + 1} {
				before := f.seen(o, r.ID, false)
				m.prepare(f, o, r, other)()
				equal(f, fmt.Sprintf("%s in attempt %d of one that is %s in attempt %d", m.name, other, s.status, attempt), f.seen(o, r.ID, false), before)
			}
		}
	}
}

// testBirths makes each birth of the table, again with the same arguments, and
// from what is no longer so.
func testBirths(f *fixture) {
	for name, edit := range map[string]func(*ax.FiringStart){
		"pending":    func(s *ax.FiringStart) { s.Place = nil },
		"dispatched": func(*ax.FiringStart) {},
		"skipped":    func(s *ax.FiringStart) { s.Place, s.Skip = nil, ax.ReasonStartWithin },
		"catch-up":   func(s *ax.FiringStart) { s.Place, s.CatchUp = nil, true },
	} {
		o := f.task("claimed_"+name, nil)
		firing := f.firing(o)
		edit(&firing.Starts[0])
		stale := firing
		stale.ExpectLockVersion--
		equal(f, name+" from an older row", f.claim(stale)[0].Lost, true)
		equal(f, name+", instances", f.instancesOf(o), 0)
		c := f.claim(firing)[0]
		equal(f, name+", lost", c.Lost, false)
		row := f.object(o.Name).Row
		equal(f, name+", made again", f.claim(firing)[0].Lost, true)
		equal(f, name+", instances", f.instancesOf(o), 1)
		equal(f, name+", row", f.object(o.Name).Row, row)
	}

	o := f.task("by_hand", nil)
	for range 2 {
		_, err := f.Trigger(f.ctx, ax.Trigger{ObjectID: o.ID, UID: "u", DueMs: f.nowMs, NowMs: f.nowMs, Who: "ann"})
		f.ok(err)
	}
	equal(f, "triggered", f.instancesOf(o), 1)
	f.wantRow(o, 0, 1)
	rows, err := f.Instances(f.ctx, ax.InstanceFilter{TaskID: o.ID})
	f.ok(err)
	_, err = f.Retry(f.ctx, ax.Retry{InstanceID: rows[0].ID, NowMs: f.nowMs, Who: "ann"})
	f.fails(err, ax.ErrConflict) // it has not ended
	equal(f, "retried", f.instancesOf(o), 1)

	// The end of a hold makes the instance of on_resume, once, and none when a
	// claim was first.
	o = f.task("resumed", nil)
	f.ok(f.Hold(f.ctx, o.ID, ax.Hold{Kind: ax.HoldPaused, Who: "ann", SinceMs: f.nowMs}))
	row := f.object("resumed").Row
	f.nowMs = max(f.nowMs, row.NextMs)
	tt := ax.Timetable{
		ExpectNextMs: row.NextMs, ExpectLockVersion: row.LockVersion, Settled: true,
		NextMs: row.NextMs + minute, LastSlotMs: row.NextMs, Starts: []ax.Start{{DueMs: row.NextMs, Version: 1}},
	}
	stale := tt
	stale.ExpectLockVersion--
	f.fails(f.Resume(f.ctx, o.ID, stale, f.nowMs), ax.ErrMoved)
	equal(f, "resumed from an older row", f.instancesOf(o), 0)
	f.ok(f.Resume(f.ctx, o.ID, tt, f.nowMs))
	f.fails(f.Resume(f.ctx, o.ID, tt, f.nowMs), ax.ErrConflict)
	equal(f, "resumed", f.instancesOf(o), 1)
	f.wantRow(o, 0, 1)
}

func (f *fixture) instancesOf(o ax.Object) int {
	f.Helper()
	rows, err := f.Instances(f.ctx, ax.InstanceFilter{TaskID: o.ID})
	f.ok(err)
	return len(rows)
}
