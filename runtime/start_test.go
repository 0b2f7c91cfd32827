package runtime_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax"
)

// An instance that waits behind another one is skipped at the instant that
// start_within says, to the millisecond, while its task goes on.
func TestStartWithin(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{work: 150 * time.Second} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.StartWithin = ax.Duration(30_000) }))
		w.boot()
		w.until("00:04:40")
		// 00:01 runs until 00:03:30; 00:02 waits until 00:02:30, then 00:03 takes
		// its turn and starts by 00:03:30.
		rows := w.rows("a")
		if len(rows) < 3 {
			t.Fatalf("rows %+v", rows)
		}
		second := rows[1]
		if second.Status != ax.StatusSkipped || second.Reason != ax.ReasonStartWithin || second.EndedMs != second.DueMs+30_000 {
			t.Errorf("the second is %+v", second)
		}
		if got := w.causes(second.ID); !slices.Equal(got, []ax.Cause{ax.CauseStartWithin}) {
			t.Errorf("its life line is %v", got)
		}
		if l := w.life(second.ID); !strings.Contains(l.Transitions[0].Detail, `start_within = "30s"`) {
			t.Errorf("its life line says %q", l.Transitions[0].Detail)
		}
		if row := w.object("a").Row; row.Waiting > 1 {
			t.Errorf("the row is %+v", row)
		}
	})
}

// Neither a hold, nor an executor that is not there, nor an axd that is down
// stops the time (B081).
func TestStartWithinGoesOnCounting(t *testing.T) {
	limit := func(s *ax.TaskSpec) {
		s.StartWithin = 2 * minute
		s.Schedules = []ax.ScheduleSpec{{Every: 60 * minute, Timezone: "UTC"}}
		s.Misfire.Grace = 10 * minute
	}
	t.Run("held", func(t *testing.T) {
		simulate(t, func(w *world) {
			w.exec.play = func(ax.Job) play { return play{work: 90 * time.Second} }
			w.apply("a", taskSpec(limit))
			w.boot()
			w.until("00:59:30")
			w.trigger("a")
			w.until("01:00:10") // the slot waits behind it
			w.hold("a")
			w.until("01:01:59")
			w.wantStatuses("a", ax.StatusSuccess, ax.StatusPending)
			w.until("01:02:00")
			w.pass(time.Second)
			w.wantStatuses("a", ax.StatusSuccess, ax.StatusSkipped)
		})
	})
	t.Run("no executor", func(t *testing.T) {
		simulate(t, func(w *world) {
			w.exec.offers = func(string) bool { return false }
			w.apply("a", taskSpec(limit))
			w.boot()
			w.until("01:05:00")
			w.wantStatuses("a", ax.StatusSkipped)
		})
	})
	t.Run("axd down", func(t *testing.T) {
		simulate(t, func(w *world) {
			w.exec.offers = func(string) bool { return false }
			w.apply("a", taskSpec(limit))
			w.boot()
			w.until("01:00:10")
			w.wantStatuses("a", ax.StatusPending)
			w.kill()
			w.exec.offers = func(string) bool { return true }
			w.until("01:10:00")
			w.boot()
			w.pass(time.Second)
			w.wantStatuses("a", ax.StatusSkipped)
			if n := len(w.exec.sent); n != 0 {
				t.Errorf("%d attempts were started", n)
			}
		})
	})
}

// A slot that is claimed too late is born skipped, and holds no place; what the
// misfire policy picks is no exception.
func TestStartWithinAtTheClaim(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{work: time.Second} }
		w.apply("late", taskSpec(func(s *ax.TaskSpec) {
			s.StartWithin = 5 * minute
			s.Schedules = []ax.ScheduleSpec{{Every: 60 * minute, Timezone: "UTC"}}
		}))
		w.apply("early", taskSpec(func(s *ax.TaskSpec) {
			s.StartWithin = 20 * minute
			s.Schedules = []ax.ScheduleSpec{{Every: 60 * minute, Timezone: "UTC"}}
		}))
		w.boot()
		w.kill()
		w.until("02:10:00")
		w.boot()
		w.pass(5 * time.Second)
		w.wantStatuses("late", ax.StatusSkipped)
		w.wantStatuses("early", ax.StatusSuccess)
		in := w.rows("late")[0]
		if in.Reason != ax.ReasonStartWithin || in.HandedMs != 0 || !slices.Equal(w.causes(in.ID), []ax.Cause{ax.CauseStartWithin}) {
			t.Errorf("born as %+v, %v", in, w.causes(in.ID))
		}
	})
}

// start_within is about the first attempt; attempts after it have retry.within.
func TestStartWithinLeavesRetries(t *testing.T) {
	simulate(t, func(w *world) {
		failures := 1
		w.exec.play = func(ax.Job) play {
			if failures--; failures < 0 {
				return play{work: time.Second}
			}
			return play{work: time.Second, class: ax.ClassFailed}
		}
		w.apply("a", taskSpec(func(s *ax.TaskSpec) {
			s.Schedules = nil
			s.StartWithin, s.Retry.Max = ax.Duration(5_000), 3
			s.Retry.Initial, s.Retry.Jitter = minute, 0
		}))
		w.boot()
		id := w.trigger("a")
		w.until("00:05:00")
		if l := w.life(id); l.Status != ax.StatusSuccess || l.Attempt != 2 {
			t.Errorf("it is %+v", l.Instance)
		}
	})
}

// What a person asks for again has its time from then on, though its due instant
// is old.
func TestStartWithinOfAPersonsRetry(t *testing.T) {
	simulate(t, func(w *world) {
		fail := true
		w.exec.play = func(ax.Job) play {
			if fail {
				return play{work: time.Second, class: ax.ClassPermanent}
			}
			return play{work: 10 * time.Minute}
		}
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Schedules, s.StartWithin = nil, minute }))
		w.boot()
		id := w.trigger("a")
		w.until("03:00:00")
		fail = false
		var ids []int64
		for range 2 {
			ref, err := w.store.Retry(context.Background(), ax.Retry{InstanceID: id, NowMs: time.Now().UnixMilli(), Who: "ann"})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, ref.ID)
		}
		w.until("03:05:00")
		if l := w.life(ids[0]); l.Status != ax.StatusDispatched {
			t.Errorf("the first is %+v", l.Instance)
		}
		if l := w.life(ids[1]); l.Status != ax.StatusSkipped || l.EndedMs-l.ClaimedMs < int64(minute) || l.EndedMs-l.ClaimedMs > int64(minute)+1000 {
			t.Errorf("the one that waited too long is %+v", l.Instance)
		}
	})
}

// The answer of the store to a lapse may be lost, and the store may be away when
// it is due: it is skipped once, and nothing that was skipped starts.
func TestStartWithinWhenTheStoreFails(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.offers = func(string) bool { return false }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Schedules, s.StartWithin = nil, minute }))
		w.boot()
		id := w.trigger("a")
		w.until("00:00:30")
		w.faults.set(once(1, failing("Lapse", ax.ErrUnavailable)), once(2, failing("Lapse", ax.ErrUnavailable)))
		w.until("00:02:00")
		w.exec.mu.Lock()
		w.exec.offers = func(string) bool { return true }
		w.exec.mu.Unlock()
		w.until("00:05:00")
		l := w.life(id)
		if l.Status != ax.StatusSkipped || len(l.Transitions) != 2 {
			t.Errorf("it is %+v, %+v", l.Instance, l.Transitions)
		}
		if w.object("a").Row.Waiting != 0 || len(w.exec.sent) != 0 {
			t.Errorf("waiting %d, sent %v", w.object("a").Row.Waiting, w.exec.sent)
		}
	})
}
