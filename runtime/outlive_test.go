package runtime_test

import (
	"slices"
	"testing"
	"time"

	"github.com/axctl/ax"
)

// What runs when axd ends is the next one's: it is told once, whether it ends
// before that is there, while it starts, or hours later.
func TestExecutorsOutliveAxd(t *testing.T) {
	for _, c := range []struct {
		name       string
		work, away time.Duration
	}{
		{"ended meanwhile", 30 * time.Second, 40 * time.Second},
		{"ends with the start", 40 * time.Second, 35 * time.Second},
		{"goes on", 10 * time.Minute, 40 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(w *world) {
				w.exec.play = func(ax.Job) play { return play{work: c.work} }
				w.apply("a", taskSpec(func(s *ax.TaskSpec) {
					s.Idempotent = false // it must not be run again, whatever was
					s.Schedules[0].Every = 60 * minute
				}))
				w.boot()
				w.until("01:00:05")
				w.crash()
				w.pass(c.away)
				w.boot()
				if row := w.object("a").Row; c.work > c.away+5*time.Second && row.Active != 1 {
					t.Errorf("row %+v", row)
				}
				w.pass(20 * time.Minute)
				w.wantStatuses("a", ax.StatusSuccess)
				r := w.rows("a")[0]
				if r.Attempt != 1 || r.EndedMs-r.StartedMs != c.work.Milliseconds() || len(w.causes(r.ID)) != 0 {
					t.Errorf("%+v; life line %v", r, w.causes(r.ID))
				}
				b := ax.BatchNo(w.cfg.Incarnation, r.ID, 1)
				if w.exec.sent[b] != 1 || w.exec.acked[b] != 1 {
					t.Errorf("given %d times, acknowledged %d times", w.exec.sent[b], w.exec.acked[b])
				}
			})
		})
	}
}

// A handler of ten hours outlives every lease and deadline that it should, over
// restarts of axd; one that has a timeout ends by it to the millisecond.
func TestTenHours(t *testing.T) {
	for _, c := range []struct {
		name    string
		timeout ax.Duration
		want    ax.Status
		after   time.Duration
	}{
		{"no timeout", 0, ax.StatusSuccess, 10 * time.Hour},
		{"timeout 12h", 12 * 60 * minute, ax.StatusSuccess, 10 * time.Hour},
		{"timeout 9h", 9 * 60 * minute, ax.StatusTimeout, 9 * time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(w *world) {
				w.exec.play = func(ax.Job) play { return play{work: 10 * time.Hour} }
				w.apply("a", taskSpec(func(s *ax.TaskSpec) {
					s.Timeout = c.timeout
					s.Schedules[0].Every = 24 * 60 * minute
				}))
				w.boot()
				w.pass(24*time.Hour + time.Hour)
				for range 8 {
					w.crash()
					w.pass(4 * time.Minute)
					w.boot()
					w.pass(time.Hour)
				}
				w.pass(3 * time.Hour)
				w.wantStatuses("a", c.want)
				r := w.rows("a")[0]
				if r.Attempt != 1 || r.EndedMs-r.StartedMs != c.after.Milliseconds() || r.StoppedMs != r.EndedMs {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}

// A cancel that was stored while no axd was there reaches the attempt, and so
// does one that the axd before passed on in vain.
func TestCancelOfWhatWasTakenOver(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{work: time.Hour} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Schedules = nil }))
		w.boot()
		id := w.trigger("a")
		w.pass(10 * time.Second)
		w.crash()
		if _, err := w.store.Cancel(t.Context(), id, "ann", time.Now().UnixMilli()); err != nil {
			t.Fatal(err)
		}
		w.boot()
		w.pass(time.Second)
		l := w.life(id)
		if l.Status != ax.StatusCancelled || l.StoppedMs == 0 || !slices.Contains(w.causes(id), ax.CauseCancel) {
			t.Errorf("%+v, %v", l.Instance, w.causes(id))
		}
	})
}

// An attempt whose end is told and whose processes live on keeps its place over
// a restart, until they are gone.
func TestPlaceIsKeptUntilTheStop(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{class: ax.ClassFailed, stops: 10 * time.Minute} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Schedules[0].Every = 60 * minute }))
		w.boot()
		w.until("01:00:05")
		w.crash()
		w.boot()
		if r := w.rows("a")[0]; r.Status != ax.StatusFailed || r.StoppedMs != 0 || w.object("a").Row.Active != 1 {
			t.Errorf("after the restart %+v", r)
		}
		w.pass(10 * time.Minute)
		if r := w.rows("a")[0]; r.StoppedMs != r.EndedMs+600_000 || w.object("a").Row.Active != 0 {
			t.Errorf("after the stop %+v", r)
		}
	})
}
