package runtime_test

import (
	"testing"
	"time"

	"github.com/axctl/ax"
)

// While the clock is in doubt what waits is judged by the clock that was believed:
// nothing is too late, and no back-off is over or prolonged, because of a step
// that may be undone. One that stays is believed, and judged by.
func TestWaitingWhileTheClockIsInDoubt(t *testing.T) {
	for _, c := range []struct {
		name  string
		step  time.Duration
		doubt time.Duration // then it is set back; from a minute on it is believed
		boot  bool          // axd is killed, and starts with the step
		late  ax.Status     // of what waits, with start_within 10 min, behind one that works for 5 min
		retry time.Duration // when what failed is tried again, by the bubble's clock, after 2 min 1 s
	}{
		{"forward and back", 2 * time.Hour, 40 * time.Second, false, ax.StatusSuccess, 2 * time.Minute},
		{"back and forward", -2 * time.Hour, 40 * time.Second, false, ax.StatusSuccess, 2 * time.Minute},
		{"forward at a start", 2 * time.Hour, 40 * time.Second, true, ax.StatusSuccess, 2 * time.Minute},
		{"forward, and it stays", 2 * time.Hour, 0, false, ax.StatusSkipped, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(w *world) {
				clk := w.shift()
				w.exec.play = func(j ax.Job) play {
					switch {
					case j.Task == "task.long":
						return play{work: 5 * time.Minute}
					case j.Attempt == 1:
						return play{work: time.Second, class: ax.ClassFailed}
					default:
						return play{work: time.Second}
					}
				}
				w.apply("long", taskSpec(func(s *ax.TaskSpec) { s.StartWithin, s.Schedules, s.Timeout = 10*minute, nil, 0 }))
				w.apply("again", taskSpec(func(s *ax.TaskSpec) {
					s.Schedules, s.Retry.Max, s.Retry.Initial, s.Retry.MaxInterval = nil, 1, 2*minute, 5*minute
					s.Timeout = 0 // the fake's clock is the bubble's
				}))
				w.boot()
				w.until("00:00:30")
				first, again := w.trigger("long"), w.trigger("again")
				w.pass(time.Second)
				waits := w.trigger("long")
				w.pass(10 * time.Second)
				if c.boot {
					w.crash()
				}
				clk.set(c.step)
				if c.boot {
					w.boot()
				}
				if c.doubt == 0 {
					w.pass(2 * time.Minute)
				} else {
					w.pass(c.doubt)
					if !w.engine.Stats().ClockDoubted {
						t.Error("the clock is believed")
					}
					if a, b := w.life(waits), w.life(again); a.Status != ax.StatusPending || b.Status != ax.StatusPending {
						t.Errorf("meanwhile: %s, %s", a.Status, b.Status)
					}
					clk.set(0)
				}
				w.pass(10 * time.Minute)
				if l := w.life(first); l.Status != ax.StatusSuccess {
					t.Errorf("the first: %+v", l.Instance)
				}
				if l := w.life(waits); l.Status != c.late {
					t.Errorf("what waited: %+v", l.Instance)
				}
				l := w.life(again)
				if l.Status != ax.StatusSuccess || l.Attempt != 2 {
					t.Errorf("what failed: %+v", l.Instance)
				}
				if pause := w.exec.at[ax.BatchNo(w.cfg.Incarnation, again, 2)] - w.exec.at[ax.BatchNo(w.cfg.Incarnation, again, 1)] - 1000; c.retry != 0 && pause != c.retry.Milliseconds() {
					t.Errorf("it was tried again after %d ms", pause)
				}
			})
		})
	}
}

// An attempt's time is counted by a clock that nobody sets: a step while axd is
// down, whether it stays or not, is no reason to call it a timeout, and one that
// its executor does not end is still called one.
func TestTimeoutOverAStep(t *testing.T) {
	for _, c := range []struct {
		name  string
		step  time.Duration
		stays bool
		hangs bool
		want  ax.Status
	}{
		{"forward and back", 2 * time.Hour, false, false, ax.StatusSuccess},
		{"forward, and it stays", 2 * time.Hour, true, false, ax.StatusSuccess},
		{"back, and it stays", -2 * time.Hour, true, false, ax.StatusSuccess},
		{"it never ends", 2 * time.Hour, true, true, ax.StatusTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(w *world) {
				clk := w.shift()
				w.exec.play = func(ax.Job) play {
					if c.hangs {
						return play{work: 100 * time.Hour, deaf: true}
					}
					return play{work: 20 * time.Minute}
				}
				w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Schedules, s.Timeout = nil, 30*minute }))
				w.boot()
				w.until("00:00:30")
				id := w.trigger("a")
				w.pass(10 * time.Minute)
				w.crash()
				clk.set(c.step)
				w.boot()
				w.pass(40 * time.Second)
				if !c.stays {
					clk.set(0)
				}
				w.pass(8 * time.Minute)
				if l := w.life(id); l.Status != ax.StatusDispatched {
					t.Errorf("meanwhile: %+v", l.Instance)
				}
				w.pass(20 * time.Minute)
				if l := w.life(id); l.Status != c.want {
					t.Errorf("at the end: %+v", l.Instance)
				}
			})
		})
	}
}
