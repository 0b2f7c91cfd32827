package runtime_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax"
)

// Reports of one attempt in every order (B009): the first end is final, a
// repetition is nothing, a later other one is a note, and the executor may
// forget the attempt each time.
func TestReportOrders(t *testing.T) {
	const (
		started = ax.ReportStarted
		ended   = ax.ReportEnded
	)
	rep := func(k ax.ReportKind, s ax.Status) ax.Report { return ax.Report{Kind: k, Status: s} }
	for _, c := range []struct {
		name    string
		reports []ax.Report
		want    ax.Status
		late    int
	}{
		{"running success", []ax.Report{rep(started, ""), rep(ended, ax.StatusSuccess)}, ax.StatusSuccess, 0},
		{"success running", []ax.Report{rep(ended, ax.StatusSuccess), rep(started, "")}, ax.StatusSuccess, 0},
		{"success success", []ax.Report{rep(ended, ax.StatusSuccess), rep(ended, ax.StatusSuccess)}, ax.StatusSuccess, 0},
		{"timeout success", []ax.Report{rep(ended, ax.StatusTimeout), rep(ended, ax.StatusSuccess)}, ax.StatusTimeout, 1},
		{"failed success", []ax.Report{rep(ended, ax.StatusFailed), rep(ended, ax.StatusSuccess)}, ax.StatusFailed, 1},
		{"success failed running", []ax.Report{rep(ended, ax.StatusSuccess), rep(ended, ax.StatusFailed), rep(started, "")}, ax.StatusSuccess, 1},
		{"unknown status", []ax.Report{rep(ended, "hurrah")}, ax.StatusFailed, 0},
		{"pending", []ax.Report{rep(ended, ax.StatusPending)}, ax.StatusFailed, 0},
	} {
		for _, together := range []bool{true, false} {
			t.Run(c.name, func(t *testing.T) {
				simulate(t, func(w *world) {
					w.exec.play = func(ax.Job) play { return play{quiet: true} }
					w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Schedules = nil }))
					w.boot()
					id := w.trigger("a")
					w.pass(time.Second)
					batch := w.exec.jobs[0].BatchNo
					reports := slices.Clone(c.reports)
					for i := range reports {
						reports[i].BatchNo = batch
						reports[i].StoppedMs = time.Now().UnixMilli()
					}
					if together {
						w.exec.reports <- reports
						w.pass(time.Second)
					} else {
						for _, r := range reports {
							w.exec.reports <- []ax.Report{r}
							w.pass(time.Second)
						}
					}
					l := w.life(id)
					late := 0
					for _, tr := range l.Transitions {
						if tr.Cause == ax.CauseLateResult {
							late++
						}
					}
					if l.Status != c.want || late != c.late || l.StoppedMs == 0 {
						t.Errorf("%+v, %d late notes", l, late)
					}
					if w.exec.acked[batch] == 0 || w.object("a").Row.Active != 0 {
						t.Errorf("acknowledged %d times, row %+v", w.exec.acked[batch], w.object("a").Row)
					}
				})
			})
		}
	}
}

// A report for an older attempt never touches the newer one.
func TestReportOfOlderAttempt(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{quiet: true} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) {
			s.Schedules, s.Retry.Max = nil, 2
		}))
		w.boot()
		id := w.trigger("a")
		w.pass(time.Second)
		first := w.exec.jobs[0].BatchNo
		w.exec.die()
		w.pass(15 * time.Second)
		if l := w.life(id); l.Status != ax.StatusDispatched || l.Attempt != 2 {
			t.Fatalf("%+v", l)
		}
		w.exec.reports <- []ax.Report{{BatchNo: first, Kind: ax.ReportEnded, Status: ax.StatusSuccess, StoppedMs: 1}}
		w.exec.reports <- []ax.Report{{BatchNo: "not-a-number", Kind: ax.ReportEnded, Status: ax.StatusSuccess}}
		w.pass(time.Second)
		l := w.life(id)
		if l.Status != ax.StatusDispatched || l.Attempt != 2 || !slices.Contains(w.causes(id), ax.CauseLateResult) {
			t.Errorf("%+v", l)
		}
		if w.exec.acked[first] == 0 {
			t.Error("the late report was not acknowledged")
		}
	})
}

// Exact attempts and delays (B074): five retries are six attempts, whatever
// way each fails.
func TestRetryLimit(t *testing.T) {
	for _, c := range []struct {
		name  string
		class ax.ErrorClass
		edit  func(*ax.TaskSpec)
		play  play
		want  ax.Status
		n     int
		waits []int // seconds between an end and the next start
	}{
		{"transient", ax.ClassTransient, nil, play{work: time.Second}, ax.StatusFailed, 6, []int{10, 20, 40, 80, 160}},
		{"failed", ax.ClassFailed, nil, play{work: time.Second}, ax.StatusFailed, 6, []int{10, 20, 40, 80, 160}},
		{"resource", ax.ClassResource, nil, play{work: time.Second}, ax.StatusFailed, 6, []int{300, 300, 300, 300, 300}},
		{"fixed", ax.ClassFailed, func(s *ax.TaskSpec) { s.Retry.Factor = 1 }, play{work: time.Second}, ax.StatusFailed, 6, []int{10, 10, 10, 10, 10}},
		{"timeout", ax.ClassTimeout, func(s *ax.TaskSpec) { s.Timeout = 3000 }, play{work: time.Hour}, ax.StatusTimeout, 6, []int{10, 20, 40, 80, 160}},
		{"slow to stop", ax.ClassFailed, nil, play{work: time.Second, stops: 7 * time.Second}, ax.StatusFailed, 6, []int{17, 27, 47, 87, 167}},
		{"panic", ax.ClassPermanent, nil, play{work: time.Second}, ax.StatusFailed, 1, nil},
		{"refused", ax.ClassPermanent, nil, play{refuse: true}, ax.StatusFailed, 1, nil},
		{"not named", ax.ClassFailed, func(s *ax.TaskSpec) { s.Retry.On = ax.DefaultRetryOn }, play{}, ax.StatusFailed, 1, nil},
		{"within", ax.ClassFailed, func(s *ax.TaskSpec) { s.Retry.Within = 40_000 }, play{work: time.Second}, ax.StatusFailed, 3, []int{10, 20}},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(w *world) {
				w.exec.play = func(ax.Job) play {
					p := c.play
					if c.class != ax.ClassTimeout {
						p.class = c.class
					}
					return p
				}
				w.apply("a", taskSpec(func(s *ax.TaskSpec) {
					s.Schedules, s.Retry.Max = nil, 5
					if c.edit != nil {
						c.edit(s)
					}
				}))
				w.boot()
				id := w.trigger("a")
				w.pass(time.Hour)
				l := w.life(id)
				if l.Status != c.want || l.Attempt != c.n || len(l.Attempts) != c.n-1 || l.ErrorClass != c.class {
					t.Fatalf("%+v", l)
				}
				for i, wait := range c.waits {
					next := l.StartedMs
					if i+1 < len(l.Attempts) {
						next = l.Attempts[i+1].StartedMs
					}
					got := next - l.Attempts[i].EndedMs
					if got != int64(wait)*1000 {
						t.Errorf("wait %d was %d ms, want %d s", i+1, got, wait)
					}
				}
			})
		})
	}
}

// The executors die during each attempt (B074): six attempts, then lost.
func TestRetryAfterLoss(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{work: time.Hour} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Schedules, s.Retry.Max = nil, 5 }))
		w.boot()
		id := w.trigger("a")
		for range 8 {
			w.pass(6 * time.Minute)
			w.exec.die()
		}
		w.pass(time.Second)
		l := w.life(id)
		if l.Status != ax.StatusFailed || l.ErrorClass != ax.ClassLost || l.Attempt != 6 || len(l.Attempts) != 5 {
			t.Errorf("%+v", l)
		}
		if s := w.engine.Stats(); s.Lost != 6 {
			t.Errorf("stats %+v", s)
		}
	})
}

// Jitter spreads instances that failed together, and is the same after a
// restart.
func TestRetryJitterSurvivesRestart(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(j ax.Job) play { return play{class: ax.ClassTransient} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Schedules, s.Retry.Max, s.Retry.Jitter = nil, 1, 0.5 }))
		w.boot()
		id := w.trigger("a")
		w.pass(time.Second)
		due := w.life(id).NotBeforeMs
		w.kill()
		w.boot()
		w.pass(30 * time.Second)
		if l := w.life(id); l.Attempt != 2 || l.StartedMs != due {
			t.Errorf("%+v, want a start at %d", l, due)
		}
	})
}

// What cannot be stopped is ended in the store, and holds its place until it is
// gone.
func TestDeafAttempt(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{work: 10 * time.Minute, deaf: true} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) {
			s.Timeout, s.Retry.Max = minute, 3
		}))
		w.boot()
		w.until("00:02:15")
		if r := w.rows("a")[0]; r.Status != ax.StatusDispatched {
			t.Errorf("too early: %+v", r)
		}
		w.until("00:02:25") // deadline 00:02:00, kill_after 10 s, grace 10 s
		r := w.rows("a")[0]
		if r.Status != ax.StatusTimeout || r.ErrorClass != ax.ClassTimeout || r.StoppedMs != 0 || w.object("a").Row.Active != 1 {
			t.Errorf("%+v", r)
		}
		if len(w.exec.cancels) != 1 || w.exec.cancels[0].Class != ax.ClassTimeout {
			t.Errorf("cancels %+v", w.exec.cancels)
		}
		w.until("00:11:30") // it ended by itself at 00:11:00: a late result
		r = w.rows("a")[0]
		if r.Status != ax.StatusTimeout || r.StoppedMs == 0 || !slices.Contains(w.causes(r.ID), ax.CauseLateResult) {
			t.Errorf("%+v %v", r, w.causes(r.ID))
		}
		if w.exec.most["task.a"] != 1 {
			t.Errorf("%d at once", w.exec.most["task.a"])
		}
	})
}

func TestCancelRunning(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{work: time.Hour, stops: 2 * time.Second} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Retry.Max = 3 }))
		w.boot()
		w.until("00:01:10")
		id := w.rows("a")[0].ID
		if _, err := w.store.Cancel(t.Context(), id, "ann", time.Now().UnixMilli()); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Second)
		l := w.life(id)
		if l.Status != ax.StatusCancelled || l.StoppedMs != 0 || l.CancelBy != "ann" {
			t.Errorf("%+v", l)
		}
		w.pass(2 * time.Second)
		if l := w.life(id); l.StoppedMs == 0 || w.object("a").Row.Active != 0 {
			t.Errorf("%+v", l)
		}
		last := l.Transitions[len(l.Transitions)-1]
		if last.Cause != ax.CauseCancel || !strings.Contains(last.Detail, "ann") {
			t.Errorf("life line %+v", l.Transitions)
		}
	})
}

// A cancel beats the retry that would follow; a success before it wins.
func TestCancelAgainstOtherEnds(t *testing.T) {
	for _, c := range []struct {
		class ax.ErrorClass
		want  ax.Status
		cause ax.Cause
	}{
		{ax.ClassFailed, ax.StatusCancelled, ax.CauseCancel},
		{"", ax.StatusSuccess, ax.CauseCancelLate},
	} {
		t.Run(string(c.want), func(t *testing.T) {
			simulate(t, func(w *world) {
				w.exec.play = func(ax.Job) play { return play{work: 20 * time.Second, class: c.class, deaf: true} }
				w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Schedules, s.Retry.Max = nil, 3 }))
				w.boot()
				id := w.trigger("a")
				w.pass(10 * time.Second)
				if _, err := w.store.Cancel(t.Context(), id, "ann", time.Now().UnixMilli()); err != nil {
					t.Fatal(err)
				}
				w.pass(time.Minute)
				l := w.life(id)
				if l.Status != c.want || l.Attempt != 1 || !slices.Contains(w.causes(id), c.cause) {
					t.Errorf("%+v", l)
				}
			})
		})
	}
}

// A waiting instance that is cancelled does not keep the turn of the next one.
func TestCancelWaiting(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{class: ax.ClassFailed} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) {
			s.Schedules, s.Retry.Max, s.Retry.Initial = nil, 1, 60*minute
			s.Retry.MaxInterval = 60 * minute
		}))
		w.boot()
		first := w.trigger("a")
		w.pass(time.Second)
		second := w.trigger("a")
		w.pass(time.Minute)
		if l := w.life(second); l.StartedMs != 0 {
			t.Fatalf("it took the turn of one in back-off: %+v", l)
		}
		if _, err := w.store.Cancel(t.Context(), first, "ann", time.Now().UnixMilli()); err != nil {
			t.Fatal(err)
		}
		w.pass(6 * time.Second)
		if l := w.life(second); l.Attempt != 2 {
			t.Errorf("%+v", l)
		}
	})
}
