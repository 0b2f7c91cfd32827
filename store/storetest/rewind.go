package storetest

import (
	"slices"

	"github.com/axctl/ax"
)

// The clock was ten minutes ahead: what was skipped then is taken back, what ran
// stays used, and a claim that meets it is told.
func testRewind(f *fixture) {
	a := f.task("a", nil)
	f.task("b", nil)
	f.nowMs += 10 * minute
	g := f.firing(a)
	g.NextMs, g.LastSlotMs, g.Starts = start+11*minute, start+10*minute, []ax.FiringStart{{DueMs: start + 10*minute, CatchUp: true}}
	g.Skipped = []ax.SkippedStretch{{TaskID: a.ID, FromMs: start + minute, ToMs: start + 9*minute, Slots: 9, Reason: ax.ReasonMisfire, Version: 1}}
	ahead := f.claim(g)[0].Born[0]
	f.nowMs = start + 2*minute
	tasks, err := f.ScheduledTasks(f.ctx, 0, 1)
	f.ok(err)
	row := f.object("a").Row
	want := ax.ScheduledTask{Enabled: true, DueTask: ax.DueTask{TaskID: a.ID, Version: 1, NextMs: row.NextMs, LastSlotMs: row.LastSlotMs, LockVersion: row.LockVersion}}
	if len(tasks) != 1 || tasks[0] != want {
		f.Fatalf("tasks are %+v, want %+v", tasks, want)
	}
	r := ax.Rewind{
		TaskID: a.ID, ExpectNextMs: row.NextMs, ExpectLockVersion: row.LockVersion,
		NextMs: start + 3*minute, LastSlotMs: start + 2*minute, NowMs: f.nowMs,
	}
	stale := r
	stale.ExpectNextMs++
	unknown := r
	unknown.TaskID = 999
	done, err := f.Rewind(f.ctx, []ax.Rewind{stale, r, r, unknown})
	f.ok(err)
	if !slices.Equal(done, []bool{false, true, false, false}) {
		f.Errorf("set back: %v", done)
	}
	now := f.object("a").Row
	if now.NextMs != r.NextMs || now.LastSlotMs != r.LastSlotMs || now.LockVersion != row.LockVersion+1 || now.Waiting != 1 {
		f.Errorf("row is %+v", now)
	}
	stretches, err := f.Stretches(f.ctx, a.ID, 10)
	f.ok(err)
	if len(stretches) != 1 || stretches[0].FromMs != start+minute || stretches[0].ToMs != start+2*minute {
		f.Errorf("stretches are %+v", stretches)
	}
	in := f.life(ahead.ID)
	equal(f, "not before", in.NotBeforeMs, f.nowMs)
	equal(f, "due", in.DueMs, start+10*minute)
	f.check()
	testUsedSlots(f, a)
}

// testUsedSlots claims over the slot start+10 minutes, which is used.
func testUsedSlots(f *fixture, a ax.Object) {
	f.nowMs = start + 12*minute
	g := f.firing(a)
	g.NextMs, g.LastSlotMs = start+13*minute, start+12*minute
	g.Starts = []ax.FiringStart{{DueMs: start + 12*minute, CatchUp: true}}
	g.Skipped = []ax.SkippedStretch{{TaskID: a.ID, FromMs: start + 3*minute, ToMs: start + 11*minute, Slots: 9, Reason: ax.ReasonMisfire, Version: 1}}
	c := f.claim(g)[0]
	if !c.Lost || !slices.Equal(c.Used, []int64{start + 10*minute}) {
		f.Errorf("a stretch over a used slot: %+v", c)
	}
	first, second := g.Skipped[0], g.Skipped[0]
	first.ToMs, first.Slots = start+9*minute, 7
	second.FromMs, second.Slots = start+11*minute, 1
	g.Skipped = []ax.SkippedStretch{first, second}
	g.Starts = append(g.Starts, ax.FiringStart{DueMs: start + 10*minute, CatchUp: true})
	c = f.claim(g)[0]
	if !c.Lost || !slices.Equal(c.Used, []int64{start + 10*minute}) {
		f.Errorf("a start of a used slot: %+v", c)
	}
	g.Starts = g.Starts[:1]
	if c = f.claim(g)[0]; c.Lost || len(c.Born) != 1 {
		f.Errorf("without the used slot: %+v", c)
	}
}
