package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/axctl/ax"
)

// backfill starts one as axctl does, over the slots from now-from to now-to.
func (w *world) backfill(name string, from, to time.Duration, edit ...func(*ax.BackfillRequest)) int64 {
	w.t.Helper()
	o, now := w.object(name), time.Now()
	r := ax.BackfillRequest{
		TaskID: o.ID, Version: o.Version, FromMs: now.Add(-from).UnixMilli(), ToMs: now.Add(-to).UnixMilli(),
		Mode: ax.BackfillMissing, Parallel: 1, Slots: -1, Who: "ann", AtMs: now.UnixMilli(),
	}
	for _, e := range edit {
		e(&r)
	}
	b, err := w.store.StartBackfill(context.Background(), r)
	if err != nil {
		w.t.Fatal(err)
	}
	return b.ID
}

func (w *world) backfillNow(id int64) ax.Backfill {
	w.t.Helper()
	all, err := w.store.Backfills(context.Background(), ax.BackfillFilter{ID: id})
	if err != nil || len(all) != 1 {
		w.t.Fatal(all, err)
	}
	return all[0]
}

func (w *world) moveBackfill(id int64, to ax.BackfillState) {
	w.t.Helper()
	_, err := w.store.MoveBackfill(context.Background(), ax.BackfillMove{ID: id, To: to, Who: "ann", NowMs: time.Now().UnixMilli()})
	if err != nil {
		w.t.Fatal(err)
	}
}

// ofKind returns a task's instances of a kind, oldest due first.
func (w *world) ofKind(name string, kind ax.InstanceKind) []ax.Instance {
	return slices.DeleteFunc(w.rows(name), func(in ax.Instance) bool { return in.Kind != kind })
}

// What an outage left out is run in due order, one after the other, and what ran
// is not run again; in spite of a hold.
func TestBackfillOfAnOutage(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{work: 5 * time.Second} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Misfire.Policy = ax.MisfireSkip }))
		w.boot()
		w.until("00:05:30")
		w.kill()
		w.until("00:15:30") // 10 slots missed
		w.boot()
		w.until("00:20:30")
		w.hold("a")
		id := w.backfill("a", 20*time.Minute+29*time.Second, 0)
		w.pass(time.Second)
		if b := w.backfillNow(id); b.Made != 1 || b.Passed != 5 {
			t.Errorf("after a second it is %+v", b)
		}
		w.pass(2 * time.Minute)
		if b := w.backfillNow(id); b.State != ax.BackfillDone || b.Made != 10 || b.Passed != 10 {
			t.Errorf("after two minutes it is %+v", b)
		}
		rows := w.ofKind("a", ax.InstanceBackfill)
		for i, r := range rows {
			if want := fmt.Sprintf("00:%02d:00", 6+i); r.Status != ax.StatusSuccess || clock(r.DueMs) != want {
				t.Errorf("%s of %s, want %s", r.Status, clock(r.DueMs), want)
			}
			if i == 0 {
				continue
			}
			if gap := r.StartedMs - rows[i-1].StoppedMs; gap < 0 || gap > 250 {
				t.Errorf("%s began %d ms after the one before it", clock(r.DueMs), gap)
			}
		}
		if w.exec.most["task.a"] != 1 {
			t.Errorf("%d at once", w.exec.most["task.a"])
		}
	})
}

// A backfill that goes on for hours costs the schedule no slot, whatever the
// overlap policy is: a firing waits for at most what the backfill has at work,
// and begins before its next one.
func TestBackfillDoesNotStarveTheSchedule(t *testing.T) {
	for _, policy := range ax.Overlaps {
		t.Run(string(policy), func(t *testing.T) {
			simulate(t, func(w *world) {
				w.exec.play = func(j ax.Job) play {
					if time.Now().UnixMilli()-j.DueMs > 600_000 {
						return play{work: 25 * time.Second} // the backfill's
					}
					return play{work: 10 * time.Second}
				}
				w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Overlap, s.Concurrency = policy, 2 }))
				w.boot()
				id := w.backfill("a", 24*time.Hour, 12*time.Hour, func(r *ax.BackfillRequest) { r.Parallel = 50 })
				w.pass(2*time.Hour + 30*time.Second)
				rows := w.ofKind("a", ax.InstanceSchedule)
				if len(rows) != 120 {
					t.Errorf("%d scheduled instances", len(rows))
				}
				for _, r := range rows {
					if r.Status != ax.StatusSuccess && r.DueMs < time.Now().UnixMilli()-60_000 || r.StartedMs-r.DueMs > 25_000 {
						t.Errorf("the slot of %s: %s, begun %d ms late", clock(r.DueMs), r.Status, r.StartedMs-r.DueMs)
					}
				}
				b := w.backfillNow(id)
				if b.Made < 400 {
					t.Errorf("the backfill has made %d", b.Made)
				}
				for _, r := range w.ofKind("a", ax.InstanceBackfill) {
					if r.Status.Final() && r.Status != ax.StatusSuccess {
						t.Errorf("the backfill's of %s is %s", clock(r.DueMs), r.Status)
					}
				}
				if n := w.exec.most["task.a"]; n > 2 {
					t.Errorf("%d at once", n)
				}
				w.moveBackfill(id, ax.BackfillCancelled)
			})
		})
	}
}

// Also where the schedule has no gap, and the backfill then waits for ever.
func TestScheduleGoesBeforeBackfill(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{work: 61 * time.Second} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Overlap = ax.OverlapAllow }))
		w.boot()
		w.until("00:10:30")
		id := w.backfill("a", 24*time.Hour, 12*time.Hour)
		w.until("02:00:00")
		if b := w.backfillNow(id); b.Made != 1 {
			t.Errorf("it has made %d", b.Made)
		}
		if got := w.ofKind("a", ax.InstanceBackfill); got[0].Status != ax.StatusPending {
			t.Errorf("its first is %s", got[0].Status)
		}
		w.moveBackfill(id, ax.BackfillCancelled)
	})
}

// Killed at any time, with calls of the store that fail and answers that are
// lost, each slot is made exactly once.
func TestBackfillThroughKillsAndFaults(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{work: 700 * time.Millisecond} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Enabled, s.Concurrency = false, 3; s.Retry.Max = 1000 }))
		w.boot()
		id := w.backfill("a", 5*time.Hour, time.Hour, func(r *ax.BackfillRequest) { r.Mode, r.Parallel = ax.BackfillAll, 3 })
		fills := 0
		odd := func(call string) error {
			if call != "Fill" {
				return nil
			}
			if fills++; fills%3 == 0 {
				return ax.ErrUnavailable
			}
			return nil
		}
		for i := range 60 {
			switch i % 3 {
			case 0:
				w.faults.set(odd, nil)
			case 1:
				w.faults.set(nil, odd)
			default:
				w.faults.set(nil, nil)
			}
			w.pass(time.Duration(137*(i%11)) * time.Millisecond)
			if i%2 == 0 {
				w.kill()
				w.boot()
			}
		}
		w.faults.set(nil, nil)
		w.pass(5 * time.Minute)
		b := w.backfillNow(id)
		if b.State != ax.BackfillDone || b.Made != 240 || b.Passed != 0 {
			t.Errorf("it is %+v", b)
		}
		rows := w.ofKind("a", ax.InstanceBackfill)
		for i, r := range rows {
			if r.Status != ax.StatusSuccess {
				t.Errorf("%s is %s", clock(r.DueMs), r.Status)
			}
			if i > 0 && r.DueMs != rows[i-1].DueMs+60_000 {
				t.Errorf("%s follows %s", clock(r.DueMs), clock(rows[i-1].DueMs))
			}
		}
	})
}

// A range of a million slots is one row, and never more instances than it may
// have open.
func TestBackfillOfAMillionSlots(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{work: 20 * time.Second} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) {
			s.Schedules[0].Every, s.Enabled, s.Concurrency = 1000, false, 100
		}))
		w.boot()
		id := w.backfill("a", 1_000_000*time.Second, 0, func(r *ax.BackfillRequest) { r.Parallel = 5 })
		for range 60 {
			w.pass(time.Second)
			if row := w.object("a").Row; row.Active+row.Waiting > 5 {
				t.Fatalf("%d active, %d waiting", row.Active, row.Waiting)
			}
		}
		if n := len(w.rows("a")); n != 15 {
			t.Errorf("%d instances", n)
		}
		w.moveBackfill(id, ax.BackfillPaused)
		w.pass(time.Minute)
		if got := w.count("a"); got[ax.StatusSuccess] != 15 || len(got) != 1 {
			t.Errorf("while it is paused: %v", got)
		}
		// What has nothing to run is passed over in steps, quickly.
		w.moveBackfill(id, ax.BackfillCancelled)
		id = w.backfill("a", 1_000_000*time.Second, 0, func(r *ax.BackfillRequest) { r.Mode = ax.BackfillFailed })
		w.pass(3 * time.Minute)
		if b := w.backfillNow(id); b.State != ax.BackfillDone || b.Passed != 1_000_000 {
			t.Errorf("it is %+v", b)
		}
	})
}

// An apply changes nothing of a backfill under way: neither another schedule,
// nor another command, nor enabled = false. A deletion ends it.
func TestBackfillMidwayChanges(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{work: 10 * time.Second} }
		w.apply("a", taskSpec())
		w.boot()
		id := w.backfill("a", time.Hour, 0)
		w.pass(30 * time.Second)
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Schedules[0].Every = 60 * minute }))
		w.pass(30 * time.Second)
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Enabled = false }))
		w.pass(30 * time.Second)
		rows := w.ofKind("a", ax.InstanceBackfill)
		for i, r := range rows {
			if r.Version != 1 || i > 0 && r.DueMs != rows[i-1].DueMs+60_000 {
				t.Errorf("%s is of version %d", clock(r.DueMs), r.Version)
			}
		}
		if len(rows) < 8 {
			t.Errorf("%d instances", len(rows))
		}
		o := w.object("a")
		_, err := w.store.Apply(context.Background(), ax.ChangeSet{
			ApplyID: "gone", Stack: "s", BaseSerial: w.serial, NowMs: time.Now().UnixMilli(), Revision: ax.Revision{Who: "eve"},
			Changes: []ax.Change{{
				Action: ax.ActionDelete, Kind: ax.KindTask, Name: "a", ObjectID: o.ID, BaseVersion: o.Version,
				Task: &ax.TaskChange{SkipPending: ax.ReasonDeleted},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		if b := w.backfillNow(id); b.State != ax.BackfillCancelled || b.Reason != ax.ReasonDeleted || b.By != "eve" {
			t.Errorf("it is %+v", b)
		}
		if n := len(w.ofKind("a", ax.InstanceBackfill)); n > len(rows)+1 {
			t.Errorf("%d instances after the deletion, %d before it", n, len(rows))
		}
	})
}

// A definition that this program cannot read stops that backfill and no other.
func TestBackfillOfAnUnreadableVersion(t *testing.T) {
	simulate(t, func(w *world) {
		off := func(s *ax.TaskSpec) { s.Enabled = false }
		w.apply("a", taskSpec(off))
		w.apply("b", taskSpec(off))
		w.faults.alterVersions(func(v *ax.TaskVersion) {
			if v.Name == "b" {
				v.Spec.Schedules = []ax.ScheduleSpec{{Cron: "of the future"}}
			}
		})
		w.boot()
		a, b := w.backfill("a", 10*time.Minute, 0), w.backfill("b", 10*time.Minute, 0)
		w.pass(time.Minute)
		if got := w.backfillNow(a); got.State != ax.BackfillDone {
			t.Errorf("a is %+v", got)
		}
		if got := w.backfillNow(b); got.State != ax.BackfillRunning || got.Made != 0 {
			t.Errorf("b is %+v", got)
		}
	})
}
