package runtime_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax"
)

// failing returns a fault that fails one call, "" all of them.
func failing(call string, err error) func(string) error {
	return func(c string) error {
		if call == "" || c == call {
			return err
		}
		return nil
	}
}

// once lets a fault happen only the first n times.
func once(n int, f func(string) error) func(string) error {
	return func(call string) error {
		err := f(call)
		if err != nil {
			if n == 0 {
				return nil
			}
			n--
		}
		return err
	}
}

// While the store is away axd stays up, running work goes on, nothing is lost,
// and all resumes by itself.
func TestStoreAwayForTenMinutes(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{work: 10 * time.Second} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) {
			s.Misfire.Policy, s.Overlap = ax.MisfireAll, ax.OverlapAllow
		}))
		w.boot()
		w.until("00:01:05")
		w.faults.set(failing("", fmt.Errorf("claim: %w", ax.WithHint(fmt.Errorf("disk: %w", ax.ErrUnavailable), "plug it in"))), nil)
		w.until("00:10:59")
		if s := w.engine.Stats(); s.StoreError == "" || s.LagMs < 8*60_000 {
			t.Errorf("stats %+v", s)
		}
		w.wantStatuses("a", ax.StatusDispatched)
		w.faults.set(nil, nil)
		w.until("00:14:30")
		if got := w.count("a"); got[ax.StatusSuccess] != 14 {
			t.Errorf("statuses %v", got)
		}
		if s := w.engine.Stats(); s.StoreError != "" || s.LagMs != 0 {
			t.Errorf("stats %+v", s)
		}
		if n := strings.Count(w.log.String(), "the store cannot be used"); n != 1 {
			t.Errorf("told %d times", n)
		}
		if !strings.Contains(w.log.String(), `hint="plug it in"`) {
			t.Errorf("nobody is told what to do: %s", w.log.String())
		}
		// The lateness does not stay (a wheel that counted ticks would lag on).
		if r := w.rows("a")[13]; r.StartedMs-r.DueMs > 20_000 {
			t.Errorf("the last instance started %d ms late", r.StartedMs-r.DueMs)
		}
	})
}

// Reads work and writes do not, as when the disk is full: no spinning.
func TestDiskFull(t *testing.T) {
	simulate(t, func(w *world) {
		w.apply("a", taskSpec())
		w.boot()
		calls := 0
		w.faults.set(func(call string) error {
			if call == "Claim" {
				calls++
				return ax.ErrUnavailable
			}
			return nil
		}, nil)
		w.until("00:01:30")
		w.faults.set(nil, nil)
		w.until("00:01:35")
		w.wantStatuses("a", ax.StatusSuccess)
		if calls > 60 {
			t.Errorf("%d tries in half a minute", calls)
		}
	})
}

// Whichever call loses its answer after it was written, each slot has one
// instance and each attempt was given to an executor once.
func TestLostAnswers(t *testing.T) {
	for _, call := range []string{"Claim", "Dispatch", "Started", "Finish", "Open", "Pending", "DueTasks", "TaskVersions", "Cancels", "Changed"} {
		t.Run(call, func(t *testing.T) {
			simulate(t, func(w *world) {
				w.exec.play = func(ax.Job) play { return play{work: 61 * time.Second} }
				w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Overlap = ax.OverlapAllow }))
				w.boot()
				w.faults.set(nil, once(3, failing(call, ax.ErrUnavailable)))
				w.until("00:30:00")
				for i, r := range w.rows("a")[:25] {
					if r.Status != ax.StatusSuccess || r.DueMs != time.Date(2000, 1, 1, 0, i+1, 0, 0, time.UTC).UnixMilli() {
						t.Errorf("instance %d: %+v", i, r)
					}
				}
			})
		})
	}
}

// The end of an attempt that is tried again was written and its answer lost, and
// the store is slow to say so: the next attempt, which a sweep finds meanwhile,
// is not taken for the one that ended, and is given to an executor once.
func TestRetryWhoseAnswerWasLost(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(j ax.Job) play {
			if j.Attempt == 1 {
				return play{work: time.Second, class: ax.ClassTransient}
			}
			return play{work: 2 * time.Minute}
		}
		w.apply("a", taskSpec(func(s *ax.TaskSpec) {
			s.Schedules, s.Retry.Max, s.Retry.Initial, s.Concurrency = nil, 1, 1000, 2
		}))
		w.boot()
		id := w.trigger("a")
		wrote := false
		w.faults.set(func(call string) error {
			if call == "Finish" && wrote {
				return ax.ErrUnavailable
			}
			return nil
		}, func(call string) error {
			if call == "Finish" {
				wrote = true
				return ax.ErrUnavailable
			}
			return nil
		})
		w.pass(30 * time.Second)
		w.faults.set(nil, nil)
		w.pass(5 * time.Minute)
		if l := w.life(id); l.Status != ax.StatusSuccess || l.Attempt != 2 {
			t.Errorf("%+v", l)
		}
		if s := w.engine.Stats(); s.Running != 0 || s.Waiting != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

// Every call of the store takes 100 ms (B083): slots are late, and each has its
// row.
func TestSlowStore(t *testing.T) {
	simulate(t, func(w *world) {
		const tasks = 30
		w.cfg.Pools = map[string]int{"work": 2 * tasks}
		for i := range tasks {
			w.apply(fmt.Sprintf("t%d", i), taskSpec(func(s *ax.TaskSpec) {
				s.Schedules[0].Every = 1000
				s.Concurrency = 5
			}))
		}
		w.faults.delay = 100 * time.Millisecond
		w.boot()
		w.until("00:01:02")
		for i := range tasks {
			rows := w.rows(fmt.Sprintf("t%d", i))
			if len(rows) < 60 {
				t.Fatalf("t%d: %d instances", i, len(rows))
			}
			for _, r := range rows[:55] {
				if r.Status != ax.StatusSuccess || r.StartedMs-r.DueMs > 1000 {
					t.Fatalf("began %d ms late: %+v", r.StartedMs-r.DueMs, r)
				}
			}
		}
	})
}

// A claim that the store refuses for one task's sake does not stop the others.
func TestOneBadTaskStopsNobody(t *testing.T) {
	simulate(t, func(w *world) {
		bad := w.apply("bad", taskSpec())
		w.apply("good", taskSpec())
		w.boot()
		w.faults.refuseClaims(func(fs []ax.Firing) error {
			for _, f := range fs {
				if f.TaskID == bad {
					return errors.New("constraint")
				}
			}
			return nil
		})
		w.until("00:05:30")
		if got := w.count("good"); got[ax.StatusSuccess] != 5 {
			t.Errorf("good: %v", got)
		}
		if got := w.rows("bad"); len(got) != 0 {
			t.Errorf("bad: %v", got)
		}
		w.faults.refuseClaims(nil)
		w.until("00:07:30")
		if got := w.count("bad"); got[ax.StatusSuccess] == 0 {
			t.Errorf("bad does not resume: %v", got)
		}
	})
}

// Random faults and kills, then peace: nothing lost, nothing doubled, nothing
// hangs.
func TestRandomFaults(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			simulate(t, func(w *world) {
				r := rand.New(rand.NewPCG(seed, 1))
				w.exec.play = func(j ax.Job) play {
					p := play{work: time.Duration(1+j.InstanceID%7) * 5 * time.Second}
					if j.InstanceID%3 == 0 && j.Attempt < 3 {
						p.class = ax.ClassTransient
					}
					if j.InstanceID%5 == 0 {
						p.stops = 3 * time.Second
					}
					return p
				}
				for i, o := range ax.Overlaps {
					w.apply(fmt.Sprintf("t%d", i), taskSpec(func(s *ax.TaskSpec) {
						s.Overlap = o
						s.Schedules[0].Every = 10_000
						s.Retry.Max = 3
						s.Misfire.Policy = ax.MisfirePolicies[i%3]
						s.Concurrency = 1 + i%2
					}))
				}
				w.boot()
				dice := rand.New(rand.NewPCG(seed, 2)) // used under the lock of faults
				fault := func(chance float64) func(string) error {
					return func(string) error {
						if dice.Float64() < chance {
							return ax.ErrUnavailable
						}
						return nil
					}
				}
				for range 10 {
					w.faults.set(fault(0.1), fault(0.1))
					w.pass(time.Duration(r.IntN(60_000)) * time.Millisecond)
					switch r.IntN(3) {
					case 0:
						w.kill()
						w.pass(time.Duration(r.IntN(100_000)) * time.Millisecond)
						w.faults.set(nil, nil)
						w.boot()
					case 1:
						w.exec.die()
					}
				}
				w.faults.set(nil, nil)
				for i := range ax.Overlaps {
					w.hold(fmt.Sprintf("t%d", i))
				}
				w.pass(20 * time.Minute)
				for i := range ax.Overlaps {
					name := fmt.Sprintf("t%d", i)
					for _, in := range w.rows(name) {
						if in.Status == ax.StatusDispatched || in.Status.Final() && in.HandedMs != 0 && in.StoppedMs == 0 {
							t.Errorf("%s hangs: %+v", name, in)
						}
					}
					if n := w.exec.most["task."+name]; n > 1+i%2 {
						t.Errorf("%s: %d attempts at once", name, n)
					}
				}
			})
		})
	}
}

// A definition that this axd cannot use puts its own task aside, once and
// aloud, until it is changed.
func TestQuarantine(t *testing.T) {
	simulate(t, func(w *world) {
		bad := w.apply("bad", taskSpec())
		w.apply("good", taskSpec())
		w.faults.alterVersions(func(v *ax.TaskVersion) {
			if v.ObjectID == bad && v.Version == 1 {
				v.Spec.Schedules = []ax.ScheduleSpec{{Cron: "* * * * *", Timezone: "Mars/Olympus"}}
			}
		})
		w.boot()
		w.until("01:00:30")
		if got := w.count("good"); got[ax.StatusSuccess] != 60 {
			t.Errorf("good: %v", got)
		}
		if got := w.rows("bad"); len(got) != 0 {
			t.Errorf("bad: %v", got)
		}
		if n := strings.Count(w.log.String(), "cannot be claimed"); n != 1 {
			t.Errorf("told %d times:\n%s", n, w.log.String())
		}
		w.apply("bad", taskSpec(func(s *ax.TaskSpec) { s.Timeout = minute }))
		w.until("01:02:30")
		if got := w.count("bad"); got[ax.StatusSuccess] != 2 {
			t.Errorf("bad, changed: %v", got)
		}
	})
}
