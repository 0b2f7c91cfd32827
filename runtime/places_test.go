package runtime_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/axctl/ax"
)

// A handler that no executor offers makes its instances wait, and nobody else
// (B081).
func TestHandlerNotOffered(t *testing.T) {
	simulate(t, func(w *world) {
		offered := false
		w.exec.offers = func(h string) bool { return h != "gpu" || offered }
		gpu := func(s *ax.TaskSpec) { s.Handler.Name = "gpu" }
		w.apply("x", taskSpec(gpu))
		for i := range 100 {
			w.apply(fmt.Sprintf("t%d", i), taskSpec())
		}
		w.cfg.Pools = map[string]int{"work": 100}
		w.boot()
		w.until("00:01:01")
		for i := range 100 {
			if r := w.rows(fmt.Sprintf("t%d", i))[0]; r.Status != ax.StatusSuccess || r.StartedMs-r.DueMs > 2000 {
				t.Fatalf("%+v", r)
			}
		}
		w.until("00:01:50")
		w.wantStatuses("x", ax.StatusPending)
		w.exec.mu.Lock()
		offered = true
		w.exec.mu.Unlock()
		w.pass(300 * time.Millisecond) // as long as axd's own handlers need, not a scan later
		w.wantStatuses("x", ax.StatusSuccess)
		w.until("00:02:01")
		w.wantStatuses("x", ax.StatusSuccess, ax.StatusSuccess)
	})
}

// A handler's places are filled, never more, and a burst gets through.
func TestBurstGoesThroughThePlaces(t *testing.T) {
	simulate(t, func(w *world) {
		w.cfg.Pools = map[string]int{"work": 3}
		running, most := 0, 0
		w.exec.play = func(j ax.Job) play {
			running = len(w.exec.live) + 1
			most = max(most, running)
			return play{work: time.Second}
		}
		for i := range 50 {
			w.apply(fmt.Sprintf("t%d", i), taskSpec(func(s *ax.TaskSpec) { s.Schedules[0].Every = 10 * minute }))
		}
		w.boot()
		w.until("00:10:05")
		if s := w.engine.Stats(); s.Running != 3 || s.Waiting == 0 {
			t.Errorf("stats %+v", s)
		}
		w.until("00:10:30")
		if most != 3 {
			t.Errorf("%d at once", most)
		}
		for i := range 50 {
			w.wantStatuses(fmt.Sprintf("t%d", i), ax.StatusSuccess)
		}
	})
}

// A thousand slots in one instant.
func TestBurstOfAThousand(t *testing.T) {
	simulate(t, func(w *world) {
		w.cfg.Pools = map[string]int{"work": 2000}
		w.exec.play = func(ax.Job) play { return play{work: time.Second} }
		for i := range 1000 {
			w.apply(fmt.Sprintf("t%d", i), taskSpec(func(s *ax.TaskSpec) { s.Schedules[0].Every = 60 * minute }))
		}
		w.until("00:59:30")
		w.boot()
		w.until("01:00:05")
		if s := w.engine.Stats(); s.Ended != 1000 || s.Lost != 0 || len(w.exec.jobs) != 1000 {
			t.Errorf("stats %+v, %d jobs", s, len(w.exec.jobs))
		}
		for _, j := range w.exec.jobs {
			if late := w.exec.at[j.BatchNo] - j.DueMs; late != 0 {
				t.Fatalf("handed over %d ms late", late)
			}
		}
	})
}

func TestJobSaysWhatTheTaskSays(t *testing.T) {
	simulate(t, func(w *world) {
		w.apply("a", taskSpec(func(s *ax.TaskSpec) {
			s.Schedules = []ax.ScheduleSpec{{Cron: "* * * * *", Timezone: "Asia/Shanghai"}}
			s.Handler.Body = []byte(`{"command":"x"}`)
			s.Timeout, s.KillAfter = 5000, 2000
		}))
		w.boot()
		w.until("00:01:01")
		j := w.exec.jobs[0]
		id := w.rows("a")[0].ID
		want := ax.Job{
			BatchNo: ax.BatchNo(w.cfg.Incarnation, id, 1), InstanceID: id, Attempt: 1, Stack: "s", Task: "task.a",
			Handler: "work", DueMs: j.DueMs, Timezone: "Asia/Shanghai", UTCOffset: 8 * 3600, Timeout: 5000, KillAfter: 2000,
			IdempotencyKey: fmt.Sprintf("%s-%d", w.cfg.Incarnation, id),
		}
		if string(j.Body) != `{"command":"x"}` {
			t.Errorf("body %s", j.Body)
		}
		j.Body = nil
		if fmt.Sprint(j) != fmt.Sprint(want) {
			t.Errorf("job %+v, want %+v", j, want)
		}
	})
}
