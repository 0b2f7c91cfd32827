package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/planner"
	"github.com/axctl/ax/runtime/rules"
	"github.com/axctl/ax/schedule"
)

// everyTimetable compiles the schedule of taskSpec with another interval.
func everyTimetable(t testing.TB, every ax.Duration) *schedule.Schedule {
	t.Helper()
	tt, err := schedule.Compile([]ax.ScheduleSpec{{Every: every, Timezone: "UTC"}})
	if err != nil {
		t.Fatal(err)
	}
	return tt
}

// accounted fails for every slot in (afterMs, untilMs] that does not have exactly
// one instance or lie in exactly one skipped stretch, of this reason where
// one is given, and returns how many have an instance.
func (w *world) accounted(name string, tt rules.Timetable, afterMs, untilMs int64, reason ax.Reason) (ran int) {
	w.t.Helper()
	has := map[int64]int{}
	for _, r := range w.ofKind(name, ax.InstanceSchedule) {
		has[r.DueMs]++
	}
	stretches, err := w.store.Stretches(context.Background(), w.object(name).ID, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	for at, ok := tt.Next(afterMs); ok && at <= untilMs; at, ok = tt.Next(at) {
		ran += has[at]
		n := has[at]
		for _, s := range stretches {
			if s.FromMs > at || s.ToMs < at {
				continue
			}
			if n++; reason != "" && s.Reason != reason {
				w.t.Errorf("%s: the slot of %s was skipped as %s", name, clock(at), s.Reason)
			}
		}
		if n != 1 {
			w.t.Errorf("%s: the slot of %s is accounted for %d times", name, clock(at), n)
		}
	}
	return ran
}

// inOrder fails when instances of a task did not begin in due order.
func (w *world) inOrder(name string) {
	w.t.Helper()
	var last ax.Instance
	for _, r := range w.rows(name) {
		if r.StartedMs != 0 && r.StartedMs < last.StartedMs {
			w.t.Errorf("%s: the slot of %s began before that of %s", name, clock(r.DueMs), clock(last.DueMs))
		}
		if r.StartedMs != 0 {
			last = r
		}
	}
}

// Outages from minutes to months, with every misfire policy and every overlap
// policy: each slot has one instance or lies in one skipped stretch, what runs is
// what the policy says, in order, in transactions that are bounded, and a task
// that is due meanwhile is not late.
func TestCatchUpWithoutAStorm(t *testing.T) {
	const most = 30
	for _, outage := range []time.Duration{4 * time.Minute, 3 * time.Hour, 50 * time.Hour, 40 * 24 * time.Hour} {
		for _, policy := range ax.MisfirePolicies {
			for _, overlap := range ax.Overlaps {
				t.Run(fmt.Sprint(outage, " ", policy, " ", overlap), func(t *testing.T) {
					simulate(t, func(w *world) {
						w.cfg.Pools = map[string]int{"work": 3}
						w.exec.play = func(ax.Job) play { return play{work: 200 * time.Millisecond} }
						const tasks = 8
						for i := range tasks {
							w.apply(fmt.Sprintf("t%d", i), taskSpec(func(s *ax.TaskSpec) {
								s.Misfire.Policy, s.Misfire.Max, s.Overlap = policy, most, overlap
							}))
						}
						w.apply("live", taskSpec(func(s *ax.TaskSpec) {
							s.Misfire.Policy, s.Schedules[0].Every = ax.MisfireSkip, 2000
						}))
						made := time.Now().UnixMilli()
						w.boot()
						w.pass(2*time.Minute + 30*time.Second)
						w.kill()
						w.pass(outage)
						back := time.Now().UnixMilli()
						w.faults.refuseClaims(func(fs []ax.Firing) error {
							rows := 0
							for _, f := range fs[:len(fs)-1] {
								rows += len(f.Starts)
							}
							if rows >= 500 || len(fs[len(fs)-1].Starts) > 500 {
								w.t.Errorf("a claim of %d rows and then %d", rows, len(fs[len(fs)-1].Starts))
							}
							return nil
						})
						w.boot()
						w.pass(70 * time.Second)
						tt := everyTimetable(t, minute)
						missed, _ := tt.Count(back-outage.Milliseconds(), back, 1_000_000)
						want := map[ax.MisfirePolicy]int{ax.MisfireOnce: 1, ax.MisfireSkip: 0, ax.MisfireAll: min(most, missed)}[policy]
						for i := range tasks {
							name := fmt.Sprintf("t%d", i)
							if i > 0 && outage > 24*time.Hour {
								continue // the invariants at the end look at all
							}
							if got := w.accounted(name, tt, made, back, ax.ReasonMisfire); got != 2+want {
								t.Errorf("%s: %d slots ran, want 2 and %d", name, got, want)
							}
							w.inOrder(name)
							for _, r := range w.rows(name) {
								if r.DueMs <= back && r.Status != ax.StatusSuccess {
									t.Errorf("%s: the slot of %s is %s", name, clock(r.DueMs), r.Status)
								}
							}
						}
						for _, r := range w.rows("live") {
							if r.DueMs > back && r.DueMs < back+60_000 && (r.Status != ax.StatusSuccess || r.StartedMs-r.DueMs > 1000) {
								t.Errorf("live: the slot of %s is %s, begun %d ms late", clock(r.DueMs), r.Status, r.StartedMs-r.DueMs)
							}
						}
					})
				})
			}
		}
	}
}

// plan brings one task to the store as axctl apply does.
func (w *world) plan(name string, spec *ax.TaskSpec) {
	w.t.Helper()
	ctx := context.Background()
	stored, err := w.store.ReadStack(ctx, "s")
	if err != nil {
		w.t.Fatal(err)
	}
	now := time.Now().UnixMilli()
	c := ax.Configuration{Stack: "s", Definitions: []ax.Definition{{Kind: ax.KindTask, Name: name, Task: spec}}}
	p, err := planner.Diff(c, stored, planner.Options{}, now)
	if err != nil {
		w.t.Fatal(err)
	}
	cs, err := p.ChangeSet(stored, fmt.Sprint(name, now), ax.Revision{Who: "ann"}, now)
	if err == nil {
		_, err = w.store.Apply(ctx, cs)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// The same for stretches in which a task is held until somebody resumes it, held
// until an instant, or disabled, while axd runs and while it is down for some of
// it: on_resume decides on the whole.
func TestResumeWithoutAStorm(t *testing.T) {
	const most = 20
	ways := []struct {
		name   string
		reason ax.Reason
		begin  func(w *world, spec *ax.TaskSpec, length time.Duration)
		end    func(w *world, spec *ax.TaskSpec)
	}{
		{
			"held", ax.ReasonHeld,
			func(w *world, _ *ax.TaskSpec, _ time.Duration) { w.hold("a") },
			func(w *world, spec *ax.TaskSpec) {
				o, now := w.object("a"), time.Now().UnixMilli()
				tt := everyTimetable(w.t, spec.Schedules[0].Every)
				err := w.store.Resume(context.Background(), o.ID, rules.Resume(tt, spec.Misfire, o.Version, o.ID, o.Row, tt.Fingerprint(), ax.ReasonHeld, now), now)
				if err != nil {
					w.t.Error(err)
				}
			},
		},
		{
			"held until", ax.ReasonHeld,
			func(w *world, _ *ax.TaskSpec, length time.Duration) {
				now := time.Now()
				err := w.store.Hold(context.Background(), w.object("a").ID, ax.Hold{
					Kind: ax.HoldPaused, Who: "ann", SinceMs: now.UnixMilli(), UntilMs: now.Add(length).UnixMilli(),
				})
				if err != nil {
					w.t.Error(err)
				}
			},
			func(w *world, _ *ax.TaskSpec) { w.pass(5 * time.Second) },
		},
		{
			"disabled", ax.ReasonDisabled,
			func(w *world, spec *ax.TaskSpec, _ time.Duration) {
				off := *spec
				off.Enabled = false
				w.plan("a", &off)
			},
			func(w *world, spec *ax.TaskSpec) { w.plan("a", spec) },
		},
	}
	for _, way := range ways {
		for _, length := range []time.Duration{3 * time.Minute, time.Hour, 40 * 24 * time.Hour} {
			for _, policy := range ax.MisfirePolicies {
				for _, down := range []bool{false, true} {
					if !down && length > time.Hour {
						continue // months of idle wakes show no more than an hour
					}
					t.Run(fmt.Sprint(way.name, " ", length, " ", policy, " down=", down), func(t *testing.T) {
						simulate(t, func(w *world) {
							w.exec.play = func(ax.Job) play { return play{work: time.Second} }
							spec := taskSpec(func(s *ax.TaskSpec) {
								s.Misfire.OnResume, s.Misfire.Max, s.Misfire.Policy = policy, most, ax.MisfireSkip
							})
							w.plan("a", spec)
							made := time.Now().UnixMilli()
							w.boot()
							w.until("00:03:30")
							way.begin(w, spec, length)
							from := time.Now().UnixMilli()
							if down {
								w.pass(time.Minute)
								w.kill()
								w.pass(length - 2*time.Minute)
								w.boot()
								w.pass(time.Minute)
							} else {
								w.pass(length)
							}
							until := time.Now().UnixMilli()
							way.end(w, spec)
							w.pass(55 * time.Second) // before the slot after next
							tt := everyTimetable(t, minute)
							missed, _ := tt.Count(from, until, 1_000_000)
							want := map[ax.MisfirePolicy]int{ax.MisfireOnce: 1, ax.MisfireSkip: 0, ax.MisfireAll: min(most, missed)}[policy]
							if got := w.accounted("a", tt, made, until, way.reason); got != 3+want {
								t.Errorf("%d slots ran, want 3 and %d", got, want)
							}
							w.inOrder("a")
							w.pass(2 * time.Minute)
							rows := w.rows("a")
							if last := rows[len(rows)-1]; last.DueMs <= until || last.Status == ax.StatusSkipped {
								t.Errorf("it does not go on: the last is of %s, %s", clock(last.DueMs), last.Status)
							}
						})
					})
				}
			}
		}
	}
}

// Down, held and down again, at any length, with the store at fault now and then:
// no slot vanishes and none comes twice.
func TestCatchUpThroughFaults(t *testing.T) {
	for _, policy := range ax.MisfirePolicies {
		t.Run(string(policy), func(t *testing.T) {
			simulate(t, func(w *world) {
				w.exec.play = func(ax.Job) play { return play{work: 100 * time.Millisecond} }
				for i := range 10 {
					w.apply(fmt.Sprintf("t%d", i), taskSpec(func(s *ax.TaskSpec) {
						s.Misfire.Policy, s.Misfire.Max, s.Misfire.OnResume = policy, 7, policy
					}))
				}
				made := time.Now().UnixMilli()
				w.boot()
				n := 0
				odd := func(call string) error {
					if n++; n%3 == 0 {
						return fmt.Errorf("%s: %w", call, ax.ErrUnavailable)
					}
					return nil
				}
				for i := range 12 {
					w.kill()
					w.pass(time.Duration(i*i*i) * time.Minute)
					if i%2 == 0 {
						w.faults.set(odd, nil)
					} else {
						w.faults.set(nil, odd)
					}
					w.boot()
					w.pass(time.Duration(20*i) * time.Second)
					name := fmt.Sprintf("t%d", i%10)
					err := w.store.Hold(context.Background(), w.object(name).ID, ax.Hold{
						Kind: ax.HoldPaused, Who: "ann", SinceMs: time.Now().UnixMilli(), UntilMs: time.Now().Add(time.Duration(i) * 7 * time.Minute).UnixMilli(),
					})
					if err != nil && !errors.Is(err, ax.ErrUnavailable) {
						t.Fatal(err)
					}
				}
				w.faults.set(nil, nil)
				w.pass(90 * time.Minute)
				until := time.Now().UnixMilli() - 60_000
				for i := range 10 {
					name := fmt.Sprintf("t%d", i)
					w.accounted(name, everyTimetable(t, minute), made, until, "")
					w.inOrder(name)
				}
			})
		})
	}
}
