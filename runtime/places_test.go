package runtime_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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

// An instance whose body the handler here does not accept waits, is in nobody's
// way, and starts as soon as the handler's schema accepts it, also when that
// changes while it stands in line.
func TestBodyNotAccepted(t *testing.T) {
	simulate(t, func(w *world) {
		newer := false
		w.exec.accepts = func(body json.RawMessage) bool { return newer || string(body) != `{"new":1}` }
		body := func(s *ax.TaskSpec) { s.Handler.Body = json.RawMessage(`{"new":1}`) }
		w.apply("x", taskSpec(body))
		for i := range 100 {
			w.apply(fmt.Sprintf("t%d", i), taskSpec())
		}
		w.cfg.Pools = map[string]int{"work": 2}
		w.exec.play = func(ax.Job) play { return play{work: 100 * time.Millisecond} }
		w.boot()
		w.until("00:01:30")
		for i := range 100 {
			w.wantStatuses(fmt.Sprintf("t%d", i), ax.StatusSuccess)
		}
		w.wantStatuses("x", ax.StatusPending)
		set := func(to bool) {
			w.exec.mu.Lock()
			newer = to
			w.exec.mu.Unlock()
		}
		set(true)
		w.pass(300 * time.Millisecond)
		w.wantStatuses("x", ax.StatusSuccess)
		// Now it stands in line behind others when the schema changes.
		w.exec.mu.Lock()
		w.exec.play = func(ax.Job) play { return play{work: time.Second} }
		w.exec.mu.Unlock()
		w.until("00:02:01")
		set(false)
		w.until("00:02:55")
		if rows := w.rows("x"); len(rows) != 2 || rows[1].Attempt != 1 {
			t.Fatalf("%+v", rows)
		} else if st := rows[1].Status; st != ax.StatusPending && st != ax.StatusSuccess {
			t.Fatalf("it is %s", st)
		}
		for i := range 100 {
			w.wantStatuses(fmt.Sprintf("t%d", i), ax.StatusSuccess, ax.StatusSuccess)
		}
		set(true)
		w.pass(2 * time.Second)
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

// Tasks fill the pool they chose and no other; in a pool that no host has they
// wait until one has it.
func TestPoolsAreApart(t *testing.T) {
	simulate(t, func(w *world) {
		in := func(pool string) *ax.TaskSpec { return taskSpec(func(s *ax.TaskSpec) { s.Pool = pool }) }
		w.cfg.Pools = map[string]int{"slow": 2}
		w.exec.offers = func(h string) bool { return h == "work" }
		w.exec.play = func(j ax.Job) play {
			if strings.HasPrefix(j.Task, "task.slow") {
				return play{work: time.Hour}
			}
			return play{work: time.Second}
		}
		for i := range 9 {
			w.apply(fmt.Sprintf("slow%d", i), in("slow"))
		}
		w.apply("quick", taskSpec())
		w.apply("nowhere", in("hot"))
		w.boot()
		w.until("00:02:30")
		if s := w.engine.Stats(); s.Running != 2 {
			t.Errorf("%d at work, with 2 places of the slow", s.Running)
		}
		for _, r := range w.rows("quick") {
			if r.Status != ax.StatusSuccess || r.StartedMs != r.DueMs {
				t.Errorf("the quick one waited: %+v", r)
			}
		}
		w.wantStatuses("nowhere", ax.StatusPending, ax.StatusPending)
		w.kill()
		w.cfg.Pools["hot"] = 1
		w.boot()
		w.pass(2 * time.Second)
		if r := w.rows("nowhere")[0]; r.Status != ax.StatusSuccess {
			t.Errorf("with a pool of that name: %+v", r)
		}
	})
}

// An attempt that goes on over a restart of axd holds its place in its own pool.
func TestPoolOverARestart(t *testing.T) {
	simulate(t, func(w *world) {
		w.cfg.Pools = map[string]int{"slow": 1}
		w.exec.play = func(ax.Job) play { return play{work: 90 * time.Second} }
		for _, name := range []string{"a", "b"} {
			w.apply(name, taskSpec(func(s *ax.TaskSpec) { s.Pool, s.Schedules[0].Every = "slow", 600*minute }))
			w.trigger(name)
		}
		w.boot()
		w.pass(10 * time.Second)
		w.crash()
		w.boot()
		w.pass(60 * time.Second)
		if s := w.engine.Stats(); s.Running != 1 {
			t.Errorf("%d at work in one place", s.Running)
		}
		w.pass(120 * time.Second)
		w.wantStatuses("a", ax.StatusSuccess)
		w.wantStatuses("b", ax.StatusSuccess)
	})
}

// In one pool a handler that is not offered keeps no other's instances waiting.
func TestPoolOfSeveralHandlers(t *testing.T) {
	simulate(t, func(w *world) {
		w.cfg.Pools = map[string]int{"hot": 1}
		w.exec.offers = func(h string) bool { return h != "gpu" }
		w.apply("gpu", taskSpec(func(s *ax.TaskSpec) { s.Pool, s.Handler.Name, s.Priority = "hot", "gpu", 9 }))
		w.apply("cpu", taskSpec(func(s *ax.TaskSpec) { s.Pool = "hot" }))
		w.boot()
		w.until("00:03:01")
		w.wantStatuses("cpu", ax.StatusSuccess, ax.StatusSuccess, ax.StatusSuccess)
	})
}

// Of what is due at one instant the higher priority goes first, at birth and in
// the line; with equal priority the one that was due first; and what waits rises
// by one a minute.
func TestPriority(t *testing.T) {
	simulate(t, func(w *world) {
		w.cfg.Pools = map[string]int{"work": 1}
		w.exec.play = func(ax.Job) play { return play{work: 50 * time.Second} }
		task := func(name string, priority int, first, every ax.Duration) {
			w.apply(name, taskSpec(func(s *ax.TaskSpec) {
				s.Priority = priority
				s.Schedules[0].Every, s.Schedules[0].From = every, ax.FormatInstant(int64(first)+time.Now().UnixMilli(), time.UTC)
			}))
		}
		task("low", -2, minute, 600*minute)
		task("plain", 0, minute, 600*minute)
		task("high", 5, minute, 600*minute)
		task("later", 1, 2*minute, 600*minute) // as high as plain by then, and due later
		task("latest", 0, 2*minute, 600*minute)
		w.boot()
		w.until("00:10:00")
		var order []string
		for _, j := range w.exec.jobs {
			order = append(order, strings.TrimPrefix(j.Task, "task."))
		}
		if got := strings.Join(order, " "); got != "high plain later latest low" {
			t.Errorf("in the order %s", got)
		}
	})
}

// A task whose versions differ in priority keeps the order of its firings.
func TestPriorityKeepsTheOrderOfATask(t *testing.T) {
	simulate(t, func(w *world) {
		w.cfg.Pools = map[string]int{"work": 1}
		w.exec.play = func(j ax.Job) play {
			if j.Task == "task.blocks" {
				return play{work: 3*time.Minute + 30*time.Second}
			}
			return play{work: time.Second}
		}
		w.apply("blocks", taskSpec(func(s *ax.TaskSpec) {
			s.Priority, s.Schedules[0].Every = 100, 600*minute
			s.Schedules[0].From = ax.FormatInstant(time.Now().UnixMilli()+59_000, time.UTC)
		}))
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Concurrency, s.Priority = 2, -10 }))
		w.boot()
		w.until("00:01:30")
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Concurrency, s.Priority = 2, 100 }))
		w.until("00:05:30")
		var due []int64
		for _, j := range w.exec.jobs {
			if j.Task == "task.a" {
				due = append(due, j.DueMs)
			}
		}
		if len(due) < 3 || !slices.IsSorted(due) {
			t.Errorf("in the order %v", due)
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

// What cannot be killed is told with its processes, once, and keeps its place
// until it is gone; a retry that it has left comes only then.
func TestUnkillable(t *testing.T) {
	for _, c := range []struct {
		name    string
		retries int
		stops   time.Duration // after the timeout
		runs    int           // of one firing
		at      string        // looked at while it is there
		status  ax.Status     // then
	}{
		{"no retry", 0, 10 * time.Minute, 1, "00:01:52", ax.StatusTimeout},
		{"gone in time for its retry", 1, 18 * time.Second, 2, "00:01:46", ax.StatusDispatched},
		{"not gone in time for its retry", 1, 10 * time.Minute, 1, "00:01:52", ax.StatusTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(w *world) {
				w.exec.play = func(j ax.Job) play {
					if j.Attempt == 1 {
						return play{work: time.Hour, stops: c.stops}
					}
					return play{work: time.Second}
				}
				w.apply("a", taskSpec(func(s *ax.TaskSpec) {
					s.Timeout, s.Retry.Max, s.Retry.Initial, s.Overlap = 30_000, c.retries, 1000, ax.OverlapSkip
					s.Retry.On = append(slices.Clone(s.Retry.On), ax.ClassTimeout)
				}))
				w.boot()
				w.until("00:01:45")
				row := w.rows("a")[0]
				warning := ax.Report{BatchNo: w.exec.jobs[0].BatchNo, Kind: ax.ReportUnkillable, Error: "4711 (cp, state D)"}
				w.exec.reports <- []ax.Report{warning}
				w.exec.reports <- []ax.Report{warning} // as a session after the next says it again
				w.until(c.at)
				l := w.life(row.ID)
				if l.Status != c.status || l.Unkillable != "4711 (cp, state D)" || l.StoppedMs != 0 || w.object("a").Row.Active != 1 {
					t.Errorf("%s, unkillable %q, stopped %d, active %d", l.Status, l.Unkillable, l.StoppedMs, w.object("a").Row.Active)
				}
				w.wantLog("an attempt cannot be killed", `processes="4711 (cp, state D)"`)
				w.until("00:11:35")
				l = w.life(row.ID)
				n := 0
				for _, tr := range l.Transitions {
					if tr.Cause == ax.CauseUnkillable {
						n++
					}
				}
				if n != 1 || l.Attempt != c.runs || l.StoppedMs == 0 || l.Unkillable != "" {
					t.Errorf("noted %d times, attempt %d, stopped %d, unkillable %q", n, l.Attempt, l.StoppedMs, l.Unkillable)
				}
				if w.exec.most["task.a"] != 1 {
					t.Errorf("%d at work at once", w.exec.most["task.a"])
				}
				w.wantLog("what could not be killed is gone")
			})
		})
	}
}
