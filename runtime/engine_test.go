package runtime_test

import (
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime"
)

func TestFiresOnTimeForADay(t *testing.T) {
	simulate(t, func(w *world) {
		w.apply("a", taskSpec())
		w.boot()
		w.pass(24*time.Hour + time.Second)
		rows := w.rows("a")
		if len(rows) != 24*60 {
			t.Fatalf("%d instances, want %d", len(rows), 24*60)
		}
		for i, r := range rows {
			due := time.Date(2000, 1, 1, 0, i+1, 0, 0, time.UTC).UnixMilli()
			if r.DueMs != due || r.Status != ax.StatusSuccess || r.StartedMs != due || r.EndedMs != due+100 || r.StoppedMs != r.EndedMs {
				t.Fatalf("instance %d: %+v", i, r)
			}
		}
		s := w.engine.Stats()
		if s.Claimed != 1440 || s.Started != 1440 || s.Ended != 1440 || s.Running != 0 || !s.Ready || s.LagMs != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestEventsTellTheFiring(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(j ax.Job) play {
			if j.Attempt == 1 {
				return play{work: time.Second, class: ax.ClassTransient}
			}
			return play{work: time.Second}
		}
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Retry.Max = 1 }))
		w.boot()
		w.until("00:01:30")
		want := []runtime.Event{
			{Kind: runtime.EventStarted, Attempt: 1},
			{Kind: runtime.EventEnded, Attempt: 1, Status: ax.StatusFailed, ErrorClass: ax.ClassTransient, WillRetry: true},
			{Kind: runtime.EventStarted, Attempt: 2},
			{Kind: runtime.EventEnded, Attempt: 2, Status: ax.StatusSuccess},
		}
		if len(w.events) != len(want) {
			t.Fatalf("events %+v", w.events)
		}
		for i, e := range w.events {
			got := runtime.Event{Kind: e.Kind, Attempt: e.Attempt, Status: e.Status, ErrorClass: e.ErrorClass, WillRetry: e.WillRetry}
			if got != want[i] || e.Task != "task.a" || e.Stack != "s" || e.DueMs == 0 {
				t.Errorf("event %d: %+v, want %+v", i, e, want[i])
			}
		}
	})
}

// An instance that has finally failed is in the log once; one that is tried
// again, or succeeds, is not.
func TestFailureIsLogged(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(j ax.Job) play {
			if j.Task == "task.good" || j.Task == "task.second" && j.Attempt == 2 {
				return play{}
			}
			return play{class: ax.ClassFailed}
		}
		for _, name := range []string{"good", "second", "bad"} {
			w.apply(name, taskSpec(func(s *ax.TaskSpec) {
				s.Schedules[0].Every = 60 * minute
				s.Retry.Max = 1
			}))
		}
		w.boot()
		w.until("01:01:00")
		w.wantStatuses("second", ax.StatusSuccess)
		w.wantStatuses("bad", ax.StatusFailed)
		log := w.log.String()
		if n := strings.Count(log, "instance failed"); n != 1 || !strings.Contains(log, "task=task.bad instance=") || !strings.Contains(log, `error="it was failed"`) {
			t.Errorf("told %d times:\n%s", n, log)
		}
	})
}
