package runtime_test

import (
	"slices"
	"testing"
	"time"

	"github.com/axctl/ax"
)

// Work of 145 s each minute, one at a time, under each policy.
func TestOverlapPolicies(t *testing.T) {
	const (
		ok      = ax.StatusSuccess
		skipped = ax.StatusSkipped
		running = ax.StatusDispatched
		waiting = ax.StatusPending
	)
	for _, c := range []struct {
		policy ax.Overlap
		want   []ax.Status // at 00:08:10, due 00:01 to 00:08
		starts []string    // when attempts began
	}{
		// One waits; the newcomer is skipped while it does.
		{
			ax.OverlapQueue,
			[]ax.Status{ok, ok, skipped, running, skipped, waiting, skipped, skipped},
			[]string{"00:01:00", "00:03:25", "00:05:50"},
		},
		// The newest waits.
		{
			ax.OverlapLatest,
			[]ax.Status{ok, skipped, ok, skipped, running, skipped, skipped, waiting},
			[]string{"00:01:00", "00:03:25", "00:05:50"},
		},
		{
			ax.OverlapSkip,
			[]ax.Status{ok, skipped, skipped, ok, skipped, skipped, running, skipped},
			[]string{"00:01:00", "00:04:00", "00:07:00"},
		},
		// Each newcomer cancels the one at work and begins when it is gone.
		{
			ax.OverlapReplace,
			[]ax.Status{
				ax.StatusCancelled, ax.StatusCancelled, ax.StatusCancelled, ax.StatusCancelled,
				ax.StatusCancelled, ax.StatusCancelled, ax.StatusCancelled, running,
			},
			[]string{"00:01:00", "00:02:00", "00:03:00", "00:04:00", "00:05:00", "00:06:00", "00:07:00", "00:08:00"},
		},
		{
			ax.OverlapAllow,
			[]ax.Status{ok, ok, running, waiting, waiting, waiting, waiting, waiting},
			[]string{"00:01:00", "00:03:25", "00:05:50"},
		},
	} {
		t.Run(string(c.policy), func(t *testing.T) {
			simulate(t, func(w *world) {
				w.exec.play = func(ax.Job) play { return play{work: 145 * time.Second} }
				w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Overlap = c.policy }))
				w.boot()
				w.until("00:08:10")
				w.wantStatuses("a", c.want...)
				if got := w.startTimes(); !slices.Equal(got, c.starts) {
					t.Errorf("begun at %v, want %v", got, c.starts)
				}
				if w.exec.most["task.a"] != 1 {
					t.Errorf("%d at once", w.exec.most["task.a"])
				}
			})
		})
	}
}

// Whatever starts it, one instance of a task is at work at a time: a manual
// start waits behind the one at work, and slots count the manual one (B015).
func TestManualStartCountsAsOverlap(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{work: 90 * time.Second} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Overlap = ax.OverlapSkip }))
		w.boot()
		w.until("00:01:10")
		id := w.trigger("a")
		w.until("00:06:00")
		if w.exec.most["task.a"] != 1 {
			t.Errorf("%d at once", w.exec.most["task.a"])
		}
		manual := w.life(id)
		if manual.Status != ax.StatusSuccess || clock(manual.StartedMs) != "00:02:30" {
			t.Errorf("manual instance %+v", manual.Instance)
		}
		// 00:02, 00:03: one at work and one waiting; then the manual one.
		want := []ax.Status{ax.StatusSuccess, ax.StatusSkipped, ax.StatusSkipped, ax.StatusSkipped}
		var got []ax.Status
		for _, r := range w.rows("a") {
			if r.Kind == ax.InstanceSchedule {
				got = append(got, r.Status)
			}
		}
		if !slices.Equal(got[:3], want[:3]) {
			t.Errorf("slots %v, want %v", got, want)
		}
	})
}

// A manual start begins within the poll, however far the next slot is.
func TestTriggerBeginsSoon(t *testing.T) {
	simulate(t, func(w *world) {
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Schedules = nil }))
		w.boot()
		w.until("00:00:10.1")
		id := w.trigger("a")
		w.pass(300 * time.Millisecond)
		if l := w.life(id); l.StartedMs == 0 || l.StartedMs-l.DueMs > 250 {
			t.Errorf("instance %+v", l.Instance)
		}
	})
}

func TestConcurrencyAboveOne(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{work: 150 * time.Second} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Concurrency = 3 }))
		w.boot()
		w.until("01:00:30")
		if got := w.count("a"); got[ax.StatusSkipped] != 0 || w.exec.most["task.a"] != 3 {
			t.Errorf("statuses %v, %d at once", got, w.exec.most["task.a"])
		}
	})
}

func clock(ms int64) string { return time.UnixMilli(ms).UTC().Format("15:04:05") }

func (w *world) startTimes() []string {
	var at []string
	for _, j := range w.exec.jobs {
		at = append(at, clock(w.exec.at[j.BatchNo]))
	}
	return at
}
