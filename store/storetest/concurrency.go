package storetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/axctl/ax"
)

// testConcurrentClaims lets many claim the same slots at once: each slot is
// won once, and every winner's attempt is finished once.
func testConcurrentClaims(f *fixture) {
	const tasks, rivals = 8, 6
	var firings []ax.Firing
	for i := range tasks {
		firings = append(firings, f.firing(f.task(fmt.Sprintf("t%d", i), nil)))
	}
	var won, freed atomic.Int64
	var group sync.WaitGroup
	for range rivals {
		group.Go(func() {
			claimed, err := f.Claim(f.ctx, firings)
			if err != nil {
				f.Error(err)
				return
			}
			for _, c := range claimed {
				if c.Lost {
					continue
				}
				won.Add(1)
				for range 2 {
					ended, err := f.Finish(f.ctx, []ax.Ending{f.ending(c.Born[0].Ref, 1, ax.StatusSuccess)})
					if err != nil {
						f.Error(err)
						return
					}
					if ended[0].Freed {
						freed.Add(1)
					}
				}
			}
		})
	}
	group.Wait()
	equal(f, "slots won", won.Load(), tasks)
	equal(f, "places freed", freed.Load(), tasks)
	rows, err := f.Instances(f.ctx, ax.InstanceFilter{})
	f.ok(err)
	equal(f, "instances", len(rows), tasks)
}

// testConcurrentFailures mixes writes that fail with ones that do not.
func testConcurrentFailures(f *fixture) {
	a := f.task("a", nil)
	stale := f.changeSet("main", f.create("b", spec()), f.update(a, spec()))
	stale.Changes[1].BaseVersion = 9
	refs := make([]ax.Ref, 40)
	var group sync.WaitGroup
	for i := range refs {
		group.Go(func() {
			var err error
			refs[i], err = f.Trigger(f.ctx, ax.Trigger{ObjectID: a.ID, UID: fmt.Sprint(i), DueMs: f.nowMs, NowMs: f.nowMs, Who: "ann"})
			if err != nil {
				f.Error(err)
			}
		})
		group.Go(func() {
			cs := stale
			cs.ApplyID = fmt.Sprintf("stale-%d", i)
			if _, err := f.Apply(f.ctx, cs); err == nil {
				f.Error("a stale apply was taken")
			}
			if _, err := f.Cancel(f.ctx, 1_000_000, "ann", f.nowMs); err == nil {
				f.Error("an unknown instance was cancelled")
			}
		})
	}
	group.Wait()
	f.wantRow(a, 0, len(refs))
	ids := map[int64]bool{}
	for _, r := range refs {
		ids[r.ID] = true
		f.wantStatus(r.ID, ax.StatusPending)
	}
	equal(f, "ids", len(ids), len(refs))
	st, err := f.ReadStack(f.ctx, "main")
	f.ok(err)
	equal(f, "serial", st.Serial, 1)
	equal(f, "objects", len(st.Objects), 1)
}

// testCancelledCalls: a call that returns its context's error wrote nothing,
// one that returns none wrote all.
func testCancelledCalls(f *fixture) {
	a := f.task("a", nil)
	written := 0
	var mu sync.Mutex
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			ctx, cancel := context.WithCancel(f.ctx)
			go cancel()
			_, err := f.Trigger(ctx, ax.Trigger{ObjectID: a.ID, UID: fmt.Sprint(i), DueMs: f.nowMs, NowMs: f.nowMs, Who: "ann"})
			cancel()
			if err == nil {
				mu.Lock()
				written++
				mu.Unlock()
			} else if ctx.Err() == nil {
				f.Error(err)
			}
		})
	}
	group.Wait()
	f.wantRow(a, 0, written)
}
