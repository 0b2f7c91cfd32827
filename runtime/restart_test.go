package runtime_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax"
)

// An attempt whose host died is lost: it runs again under a new attempt number
// when its task is idempotent, and never again when it is not.
func TestRestartSettlesWhatRan(t *testing.T) {
	for _, c := range []struct {
		name       string
		idempotent bool
		retries    int
		renamed    bool
		want       ax.Status
		attempt    int
	}{
		{"idempotent", true, 3, false, ax.StatusSuccess, 2},
		{"not idempotent", false, 3, false, ax.StatusFailed, 1},
		{"no retry left", true, 0, false, ax.StatusFailed, 1},
		{"on a host with another name", true, 3, true, ax.StatusSuccess, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(w *world) {
				w.exec.play = func(ax.Job) play { return play{work: 10 * time.Second} }
				w.apply("a", taskSpec(func(s *ax.TaskSpec) {
					s.Idempotent = c.idempotent
					s.Retry.Max = c.retries
				}))
				w.boot()
				w.until("00:01:05")
				w.kill()
				w.wantStatuses("a", ax.StatusDispatched)
				if c.renamed {
					w.cfg.Host, w.cfg.Former = "h2", []string{"h0", "h1"}
				}
				w.boot()
				w.until("00:01:40")
				r := w.rows("a")[0]
				if want := ax.BatchNo(w.cfg.Incarnation, r.ID, 1); !slices.Equal(w.exec.left, []string{want}) {
					t.Errorf("asked about %v, want %s", w.exec.left, want)
				}
				if r.Status != c.want || r.Attempt != c.attempt || r.StoppedMs == 0 {
					t.Errorf("got %+v", r)
				}
				if !slices.Contains(w.causes(r.ID), ax.CauseLost) {
					t.Errorf("life line %v does not tell the loss", w.causes(r.ID))
				}
				if row := w.object("a").Row; row.Active != 0 || row.Waiting != 0 {
					t.Errorf("counters %+v", row)
				}
			})
		})
	}
}

// An attempt that was stored as handed over and that no executor has begun is
// handed over by the next axd: it is the same one, so it may be one of a task that
// must not run twice. It is not begun where it is not wanted any more.
func TestRestartHandsOverWhatWasNotBegun(t *testing.T) {
	for _, c := range []struct {
		name    string
		edit    func(*ax.TaskSpec)
		away    time.Duration
		cancel  bool
		again   bool // axd is killed again before it is begun
		want    ax.Status
		runs    int
		message string
	}{
		{"not idempotent", nil, 10 * time.Second, false, false, ax.StatusSuccess, 1, ""},
		{"killed twice", nil, 10 * time.Second, false, true, ax.StatusSuccess, 1, ""},
		{"cancelled meanwhile", nil, 10 * time.Second, true, false, ax.StatusCancelled, 0, "it was not begun"},
		{"in time", func(s *ax.TaskSpec) { s.StartWithin = minute }, 40 * time.Second, false, false, ax.StatusSuccess, 1, ""},
		{"too late", func(s *ax.TaskSpec) { s.StartWithin = minute }, 2 * time.Minute, false, false, ax.StatusFailed, 0, "too late to start it now (start_within)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(w *world) {
				w.apply("a", taskSpec(func(s *ax.TaskSpec) {
					s.Idempotent, s.Retry.Max = false, 3
					s.Schedules[0].Every = 60 * minute
					if c.edit != nil {
						c.edit(s)
					}
				}))
				w.boot()
				w.until("00:59:59")
				w.exec.cutOff()
				w.until("01:00:05")
				w.wantStatuses("a", ax.StatusDispatched)
				w.crash()
				id := w.rows("a")[0].ID
				if c.cancel {
					if _, err := w.store.Cancel(t.Context(), id, "ann", time.Now().UnixMilli()); err != nil {
						t.Fatal(err)
					}
				}
				w.pass(c.away)
				if c.again {
					w.faults.set(failing("Open", ax.ErrUnavailable), nil)
					w.boot()
					w.pass(time.Second)
					w.crash()
					w.faults.set(nil, nil)
				}
				w.boot()
				w.pass(10 * time.Second)
				l := w.life(id)
				if l.Status != c.want || l.Attempt != 1 || l.StoppedMs == 0 || !strings.Contains(l.Error, c.message) {
					t.Errorf("%+v", l.Instance)
				}
				if n := w.exec.sent[ax.BatchNo(w.cfg.Incarnation, id, 1)]; n != c.runs {
					t.Errorf("given %d times", n)
				}
				if row := w.object("a").Row; row.Active != 0 {
					t.Errorf("active %d", row.Active)
				}
			})
		})
	}
}

// A slot that became due while no axd ran is found by the first scan, and
// waiting instances go on.
func TestRestartFindsWaiting(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{work: 90 * time.Second} }
		w.apply("a", taskSpec())
		w.boot()
		w.until("00:02:10") // one runs, one waits
		w.kill()
		w.until("00:02:40")
		w.boot()
		w.until("00:06:00")
		for _, r := range w.rows("a")[:2] {
			if r.Status != ax.StatusSuccess && r.Status != ax.StatusFailed {
				t.Errorf("instance %+v", r)
			}
		}
	})
}

// A report that was durable when axd died is not lost with it, although the
// store did not have it.
func TestJournalIsReplayed(t *testing.T) {
	simulate(t, func(w *world) {
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Idempotent = false }))
		w.boot()
		w.until("00:00:59")
		w.faults.set(failing("Finish", ax.ErrUnavailable), nil)
		w.until("00:01:05")
		w.wantStatuses("a", ax.StatusDispatched)
		w.kill()
		w.faults.set(nil, nil)
		w.boot()
		w.wantStatuses("a", ax.StatusSuccess)
		if r := w.rows("a")[0]; r.EndedMs-r.DueMs != 100 || r.StartedMs != r.DueMs {
			t.Errorf("instance %+v", r)
		}
		w.until("00:02:05")
		w.wantStatuses("a", ax.StatusSuccess, ax.StatusSuccess)
	})
}

// What was reported in the moment axd ends is kept.
func TestLastReportsAreKept(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{quiet: true} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Schedules, s.Idempotent = nil, false }))
		w.boot()
		id := w.trigger("a")
		w.pass(time.Second)
		w.exec.reports <- []ax.Report{{BatchNo: w.exec.jobs[0].BatchNo, Kind: ax.ReportEnded, Status: ax.StatusSuccess}}
		w.kill()
		w.boot()
		if l := w.life(id); l.Status != ax.StatusSuccess {
			t.Errorf("%+v", l)
		}
	})
}

// An end that was told while its processes lived on keeps its place until they
// are gone; a restart settles that too.
func TestRestartFreesWhatWasNotStopped(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{class: ax.ClassFailed, stops: time.Hour} }
		w.apply("a", taskSpec())
		w.boot()
		w.until("00:01:05")
		r := w.rows("a")[0]
		if r.Status != ax.StatusFailed || r.StoppedMs != 0 || w.object("a").Row.Active != 1 {
			t.Fatalf("instance %+v", r)
		}
		w.kill()
		w.boot()
		if r := w.rows("a")[0]; r.StoppedMs == 0 || w.object("a").Row.Active != 0 {
			t.Errorf("instance %+v", r)
		}
	})
}

func TestDrainFinishesWhatRuns(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{work: 90 * time.Second} }
		w.apply("a", taskSpec())
		w.boot()
		w.until("00:02:05") // one runs, one waits
		w.engine.Drain()
		w.engine.Drain()
		w.pass(10 * time.Second)
		select {
		case <-w.done:
			t.Fatal("the drain did not wait for what ran")
		default:
		}
		if err := <-w.done; err != nil {
			t.Fatal(err)
		}
		w.engine = nil
		w.wantStatuses("a", ax.StatusSuccess, ax.StatusPending)
		if now := time.Now().UTC().Format("15:04:05"); now != "00:02:30" {
			t.Errorf("drained at %s", now)
		}
	})
}

// A drain that does not wait: the executors are stopped and report the loss,
// which is written, so that the next boot has nothing to settle.
func TestDrainWithExecutorsStopped(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{work: time.Hour} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Retry.Max = 1 }))
		w.boot()
		w.until("00:01:05")
		w.engine.Drain()
		w.exec.die()
		if err := <-w.done; err != nil {
			t.Fatal(err)
		}
		w.engine = nil
		r := w.rows("a")[0]
		if r.Status != ax.StatusPending || r.Attempt != 2 {
			t.Errorf("instance %+v", r)
		}
	})
}

// What an earlier boot left and the store does not take at the start is settled
// when it does, not at the next start.
func TestRestartWithARefusedEnd(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{work: 50 * time.Second} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) {
			s.Retry.Max = 3
			s.Schedules[0].Every = 60 * minute
		}))
		w.boot()
		w.until("01:00:05")
		w.kill()
		w.faults.set(failing("Finish", errors.New("constraint")), nil)
		w.boot()
		w.pass(time.Minute)
		w.wantStatuses("a", ax.StatusDispatched)
		w.faults.set(nil, nil)
		w.pass(2 * time.Minute)
		w.wantStatuses("a", ax.StatusSuccess)
	})
}
