package runtime_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/axctl/ax"
)

// Applies while the wheel holds the old instant (B063): 59, 5 and 1 s before
// it.
func TestChangeBeforeFiring(t *testing.T) {
	for _, before := range []time.Duration{59 * time.Second, 5 * time.Second, time.Second} {
		t.Run(before.String(), func(t *testing.T) {
			simulate(t, func(w *world) {
				w.apply("off", taskSpec())
				w.apply("moved", taskSpec())
				w.apply("edited", taskSpec())
				w.boot()
				w.pass(2*time.Minute - before)
				w.apply("off", taskSpec(func(s *ax.TaskSpec) { s.Enabled = false }))
				w.apply("moved", taskSpec(func(s *ax.TaskSpec) {
					s.Schedules = []ax.ScheduleSpec{{Cron: "30 * * * *", Timezone: "UTC"}}
				}))
				w.apply("edited", taskSpec(func(s *ax.TaskSpec) { s.Timeout = minute }))
				w.until("00:35:00")
				ran := 0
				if before < 59*time.Second {
					ran = 1 // the slot of 00:01
				} else {
					ran = len(w.rows("off"))
				}
				if got := len(w.rows("off")); got != ran {
					t.Errorf("off: %d instances", got)
				}
				moved := w.rows("moved")
				if clock(moved[len(moved)-1].DueMs) != "00:30:00" || len(moved) != ran+1 {
					t.Errorf("moved: %+v", moved)
				}
				edited := w.rows("edited")
				if len(edited) != 35 || edited[34].Version != 2 || w.exec.jobs[len(w.exec.jobs)-1].Timeout != minute {
					t.Errorf("edited: %d instances, last %+v", len(edited), edited[len(edited)-1])
				}
			})
		})
	}
}

// A new task fires as soon as it is due, applied a moment before.
func TestNewTaskIsSeenWithinThePoll(t *testing.T) {
	simulate(t, func(w *world) {
		w.boot()
		w.until("00:00:59.5")
		w.apply("a", taskSpec())
		w.until("00:01:01")
		if rows := w.rows("a"); len(rows) != 1 || rows[0].StartedMs != rows[0].DueMs {
			t.Errorf("%+v", rows)
		}
	})
}

// A hold with an end: nothing fires while it lasts, its slots are one stretch,
// and the task goes on by itself.
func TestHoldEndsByItself(t *testing.T) {
	simulate(t, func(w *world) {
		w.apply("a", taskSpec())
		w.boot()
		w.until("00:02:30")
		h := ax.Hold{Kind: ax.HoldPaused, Who: "ann", SinceMs: time.Now().UnixMilli(), UntilMs: time.Now().Add(10 * time.Minute).UnixMilli()}
		if err := w.store.Hold(t.Context(), w.object("a").ID, h); err != nil {
			t.Fatal(err)
		}
		w.until("00:12:29")
		if n := len(w.rows("a")); n != 2 {
			t.Errorf("%d instances while held", n)
		}
		w.until("00:14:30")
		rows := w.rows("a")
		if len(rows) != 4 || clock(rows[2].DueMs) != "00:13:00" || rows[2].StartedMs != rows[2].DueMs {
			t.Errorf("%+v", rows)
		}
		st, err := w.store.Stretches(t.Context(), w.object("a").ID, 10)
		if err != nil || len(st) != 1 || st[0].Reason != ax.ReasonHeld || st[0].Slots != 10 {
			t.Errorf("stretches %+v, %v", st, err)
		}
	})
}

// A hold keeps waiting instances, a manual start passes it.
func TestHoldKeepsWaiting(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(j ax.Job) play { return play{work: 30 * time.Second} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Schedules[0].Every = 20_000 }))
		w.boot()
		w.until("00:00:45") // one at work until 00:00:50, one waits
		w.hold("a")
		w.until("00:01:10")
		w.wantStatuses("a", ax.StatusSuccess, ax.StatusPending)
		id := w.trigger("a")
		w.pass(40 * time.Second)
		if l := w.life(id); l.Status != ax.StatusSuccess {
			t.Errorf("manual start: %+v", l.Instance)
		}
		if r := w.rows("a")[1]; r.Status != ax.StatusPending {
			t.Errorf("held instance: %+v", r)
		}
	})
}

// A clock that is set forward ends nobody's time: what runs goes on.
func TestClockForwardIsNoTimeout(t *testing.T) {
	simulate(t, func(w *world) {
		var offset atomic.Int64
		w.cfg.Now = func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
		w.exec.play = func(ax.Job) play { return play{work: 10 * time.Minute} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Schedules, s.Timeout = nil, 20*minute }))
		w.boot()
		id := w.trigger("a")
		w.pass(time.Minute)
		offset.Store(int64(2 * time.Hour))
		w.pass(time.Minute)
		if l := w.life(id); l.Status != ax.StatusDispatched {
			t.Errorf("%+v", l)
		}
		w.pass(10 * time.Minute)
		if l := w.life(id); l.Status != ax.StatusSuccess {
			t.Errorf("%+v", l)
		}
	})
}
