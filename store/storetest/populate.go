package storetest

import (
	"testing"
	"time"

	"github.com/axctl/ax"
)

// PopulatedMs is the clock of a populated store.
const PopulatedMs = start + 10*minute

// Populate brings an empty store to a state with one of everything: tasks that
// are due, held, disabled and deleted, versions, a skipped stretch, and
// instances that are waiting, running, retried by themselves and by hand, marked,
// late and ended in every way, and a backfill under way.
// All invariants hold in it. The store's clock should be at PopulatedMs.
func Populate(t testing.TB, s Store) {
	f := &fixture{TB: t, Store: s, ctx: t.Context(), nowMs: start}
	a := f.task("a", func(s *ax.TaskSpec) { s.Concurrency = 2 })
	ended := []ax.Status{ax.StatusSuccess, ax.StatusFailed, ax.StatusTimeout, ax.StatusCancelled}
	for _, status := range ended {
		f.finish(f.ending(f.fire(a, nil).Ref, 1, status))
	}
	retried := f.fire(a, nil)
	f.finish(f.again(retried.Ref, 1, f.nowMs))
	f.handOver(retried.Ref, 2)
	unstopped := f.fire(a, nil)
	e := f.ending(unstopped.Ref, 1, ax.StatusTimeout)
	e.StoppedMs, e.Cause, e.ErrorClass = 0, ax.CauseTimeout, ax.ClassTimeout
	f.finish(e)
	f.finish(f.ending(unstopped.Ref, 1, ax.StatusSuccess))
	f.fire(a, func(g *ax.Firing) { g.Starts[0].Place = nil })
	f.fire(a, func(g *ax.Firing) { g.Overlap = ax.OverlapSkip })
	longer := spec()
	longer.Timeout, longer.Concurrency = 2*longer.Timeout, 2
	f.apply(f.update(f.object("a"), longer))

	f.nowMs = PopulatedMs
	held := f.create("held", spec())
	off := spec()
	off.Enabled = false
	f.apply(held, f.create("off", off), f.create("gone", spec()))
	f.ok(f.Hold(f.ctx, f.object("held").ID, ax.Hold{Kind: ax.HoldPaused, Who: "ann", SinceMs: f.nowMs, Reason: "move"}))
	_, err := f.Trigger(f.ctx, ax.Trigger{ObjectID: f.object("gone").ID, UID: "u1", DueMs: f.nowMs, NowMs: f.nowMs, Who: "bob"})
	f.ok(err)
	f.apply(f.remove(f.object("gone")))
	_, err = f.Retry(f.ctx, ax.Retry{InstanceID: 2, NowMs: f.nowMs, Who: "bob"})
	f.ok(err)
	f.ok(f.Mark(f.ctx, ax.Mark{InstanceID: 3, Verdict: ax.VerdictSkipped, Reason: "done by hand", NowMs: f.nowMs, Who: "bob"}))
	_, err = f.Trigger(f.ctx, ax.Trigger{ObjectID: a.ID, UID: "u2", DueMs: f.nowMs, NowMs: f.nowMs, Who: "bob", Key: "k1"})
	f.ok(err)
	g := f.firing(a)
	f.nowMs = PopulatedMs
	g.NowMs, g.LastSlotMs, g.NextMs, g.Starts = PopulatedMs, PopulatedMs, PopulatedMs+minute, nil
	g.Skipped = []ax.SkippedStretch{{FromMs: g.ExpectNextMs, ToMs: PopulatedMs, Slots: 2, Reason: ax.ReasonMisfire, Version: 2}}
	f.claim(g)
	b := f.backfill(f.object("off"), -5, -2, nil)
	f.succeed(f.fill(b.ID).Made[0])
	_, err = f.MoveBackfill(f.ctx, ax.BackfillMove{ID: b.ID, To: ax.BackfillPaused, Who: "bob", NowMs: f.nowMs})
	f.ok(err)
	f.ok(f.Join(f.ctx, ax.Host{Name: "h1", Boot: "boot1", PID: 1, Handlers: []string{"shell"}, StartedMs: start}))
	f.check()
}

// PopulatedNow is PopulatedMs as a clock.
func PopulatedNow() time.Time { return time.UnixMilli(PopulatedMs) }
