package runtime_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store/storetest"
	"pgregory.net/rapid"
)

// clocks are the machine's in a test: what its wall clock is wrong by, and what
// the time was by which the bubble's clock, as a sleeping kernel's, stood still.
type clocks struct {
	off, slept atomic.Int64 // ns
	synced     atomic.Bool
}

func (c *clocks) set(off time.Duration) { c.off.Store(int64(off)) }

// sleep puts the machine to sleep for so long: timers stand still meanwhile.
func (c *clocks) sleep(d time.Duration) {
	c.off.Add(int64(d))
	c.slept.Add(int64(d))
}

// shift gives the world a wall clock that can be set, and a kernel that goes on
// when axd is killed.
func (w *world) shift() *clocks {
	var c clocks
	began := time.Now()
	w.cfg.Now = func() time.Time { return time.Now().Add(time.Duration(c.off.Load())) }
	w.cfg.Elapsed = func() time.Duration { return time.Since(began) + time.Duration(c.slept.Load()) }
	w.cfg.Kernel = "kernel1"
	w.cfg.Synced = c.synced.Load
	return &c
}

// reboot starts the kernel anew.
func (w *world) reboot(c *clocks) {
	began := time.Now()
	c.off.Add(-c.slept.Swap(0))
	w.cfg.Elapsed = func() time.Duration { return time.Since(began) + time.Duration(c.slept.Load()) }
	w.cfg.Kernel += "+"
}

func (w *world) wantLog(lines ...string) {
	w.t.Helper()
	for _, line := range lines {
		if !strings.Contains(w.log.String(), line) {
			w.t.Errorf("the log does not say %s", line)
		}
	}
}

func (w *world) wantStretches(name string, want ...string) {
	w.t.Helper()
	st, err := w.store.Stretches(context.Background(), w.object(name).ID, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	var got []string
	for _, s := range slices.Backward(st) {
		got = append(got, fmt.Sprintf("%s-%s %d %s", clock(s.FromMs), clock(s.ToMs), s.Slots, s.Reason))
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("skipped: %q, want %q", got, want)
	}
}

// dues returns the due instants of a task's instances, as clock times, and fails
// when one is there twice.
func (w *world) dues(name string) string {
	w.t.Helper()
	seen := map[int64]bool{}
	var all []string
	for _, r := range w.rows(name) {
		if seen[r.DueMs] {
			w.t.Errorf("slot %s twice", clock(r.DueMs))
		}
		seen[r.DueMs] = true
		all = append(all, clock(r.DueMs))
	}
	return strings.Join(all, " ")
}

func (w *world) wantDues(name, want string) {
	w.t.Helper()
	if got := w.dues(name); got != want {
		w.t.Errorf("slots run: %s\nwant:      %s", got, want)
	}
}

// B038: the clock goes two hours forward for a minute and back. Nothing is
// claimed by it, and what was due meanwhile comes when it is back.
func TestClockForwardAndBack(t *testing.T) {
	simulate(t, func(w *world) {
		c := w.shift()
		w.apply("a", taskSpec())
		w.boot()
		w.until("00:03:30")
		c.set(2 * time.Hour)
		w.pass(time.Minute) // 02:04:30 there
		w.wantDues("a", "00:01:00 00:02:00 00:03:00")
		if !w.engine.Stats().ClockDoubted {
			t.Error("the clock is believed")
		}
		c.set(0)
		w.until("00:07:30")
		w.wantDues("a", "00:01:00 00:02:00 00:03:00 00:04:00 00:05:00 00:06:00 00:07:00")
		w.wantLog("the clock was set forward; claims wait", "ms=7200000", "the clock is back where it was")
		w.wantStretches("a")
		if w.engine.Stats().ClockDoubted {
			t.Error("the clock is not believed")
		}
	})
}

// The same for three minutes, so that the clock is believed: one catch-up, not
// 120; the next run comes within 60 s of the correction; when the clock comes to
// the slots that ran, they are passed over.
func TestClockForwardBelievedAndBack(t *testing.T) {
	simulate(t, func(w *world) {
		c := w.shift()
		w.apply("a", taskSpec())
		w.boot()
		w.until("00:03:30")
		c.set(2 * time.Hour)
		w.pass(3 * time.Minute)
		w.wantDues("a", "00:01:00 00:02:00 00:03:00 02:04:00 02:05:00 02:06:00")
		w.until("00:06:40")
		c.set(0)
		w.until("00:07:30")
		w.wantDues("a", "00:01:00 00:02:00 00:03:00 00:07:00 02:04:00 02:05:00 02:06:00")
		w.until("00:09:30")
		w.wantDues("a", "00:01:00 00:02:00 00:03:00 00:07:00 00:08:00 00:09:00 02:04:00 02:05:00 02:06:00")
		w.wantLog("the clock was set forward", "the clock is confirmed", "way=back", "they are set back\" component=claim tasks=1")
		w.wantStretches("a", "00:04:00-00:06:00 -1 misfire")
		w.until("02:07:30")
		if n := len(w.rows("a")); n != 3+3+117+1 { // 00:07 to 02:03, then 02:07
			t.Errorf("%d instances", n)
		}
		w.dues("a")
	})
}

// The clock is set back while a call of the store is under way, whichever it is,
// so what is reckoned before it and after it does not agree. Nobody waits for the
// clock that was.
func TestClockSetDuringACall(t *testing.T) {
	for _, method := range []string{"DueTasks", "Claim", "KeepClock", "Rewind", "Changed", "Pending", "Finish", "Cancels", "Open"} {
		t.Run(method, func(t *testing.T) {
			simulate(t, func(w *world) {
				c := w.shift()
				c.synced.Store(true)
				var armed, hit atomic.Bool
				st := &storetest.Faulty{Store: w.store, Plan: func(_ int, called string) storetest.Fault {
					if called == method && armed.CompareAndSwap(true, false) {
						c.set(0)
						hit.Store(true)
					}
					return storetest.NoFault
				}}
				w.cfg.Claims, w.cfg.Fills, w.cfg.Dispatches, w.cfg.Cancels, w.cfg.Watcher = st, st, st, st, st
				w.exec.play = func(ax.Job) play { return play{work: time.Second} }
				w.apply("a", taskSpec())
				w.boot()
				w.until("00:03:30")
				c.set(2 * time.Hour)
				if method == "Rewind" { // that comes after a step alone
					w.pass(30 * time.Second)
					c.set(time.Hour)
				} else {
					w.pass(3*time.Minute + 29*time.Second + 500*time.Millisecond)
				}
				armed.Store(true)
				w.pass(2 * time.Minute)
				if !hit.Load() {
					t.Error("the engine has not called it")
				}
				before := len(w.rows("a"))
				w.pass(3 * time.Minute)
				if n := len(w.rows("a")) - before; n < 2 {
					t.Errorf("%d ran in the three minutes after the correction", n)
				}
			})
		})
	}
}

// axd is killed while the clock is ahead, and starts after the correction; it is
// down when the clock comes to what ran ahead of its time.
func TestClockAheadWhileKilled(t *testing.T) {
	simulate(t, func(w *world) {
		c := w.shift()
		w.apply("a", taskSpec())
		w.boot()
		w.until("00:03:30")
		c.set(2 * time.Hour)
		w.pass(2 * time.Minute)
		w.kill()
		c.set(0)
		w.boot()
		w.until("00:06:10")
		w.wantDues("a", "00:01:00 00:02:00 00:03:00 00:06:00 02:04:00 02:05:00")
		w.wantLog("the clock was set back; claims wait", "way=back ms=7200000")
		w.until("00:08:30")
		w.wantDues("a", "00:01:00 00:02:00 00:03:00 00:06:00 00:07:00 00:08:00 02:04:00 02:05:00")
		w.kill()
		w.until("02:10:30")
		w.boot()
		w.pass(10 * time.Second)
		w.wantDues("a", "00:01:00 00:02:00 00:03:00 00:06:00 00:07:00 00:08:00 02:04:00 02:05:00 02:10:00")
		w.wantStretches("a", "00:04:00-00:05:00 -1 misfire", "00:09:00-02:03:00 115 misfire", "02:06:00-02:09:00 4 misfire")
	})
}

// A waiting instance that was born ahead of its time does not block the task for
// hours.
func TestClockBackFreesWhatWaits(t *testing.T) {
	simulate(t, func(w *world) {
		c := w.shift()
		c.synced.Store(true)
		w.exec.play = func(ax.Job) play { return play{work: 90 * time.Second} }
		w.apply("a", taskSpec())
		w.boot()
		w.until("00:01:30")
		c.set(2 * time.Hour)
		w.pass(20 * time.Second) // the catch-up waits for the one at work
		w.wantLog("the clock is confirmed")
		c.set(0)
		w.until("00:06:00")
		ran := 0
		for _, r := range w.rows("a") {
			if r.Status == ax.StatusSuccess {
				ran++
			}
		}
		if ran < 3 {
			t.Errorf("%d ran: %s", ran, w.dues("a"))
		}
	})
}

// A step forward that stays is an outage: believed within seconds where a time
// server has made it, after a minute otherwise.
func TestClockForwardStays(t *testing.T) {
	for _, synced := range []bool{true, false} {
		t.Run(fmt.Sprintf("synchronised %t", synced), func(t *testing.T) {
			simulate(t, func(w *world) {
				c := w.shift()
				c.synced.Store(synced)
				w.apply("a", taskSpec())
				w.boot()
				w.until("00:01:30")
				c.set(time.Hour)
				w.pass(10 * time.Second)
				if w.engine.Stats().ClockDoubted == synced {
					t.Errorf("doubted: %t", !synced)
				}
				w.pass(50 * time.Second)
				if synced {
					w.wantDues("a", "00:01:00 01:01:00 01:02:00")
					w.wantStretches("a", "00:02:00-01:00:00 59 misfire")
					return
				}
				w.wantDues("a", "00:01:00")
				w.pass(10 * time.Second)
				w.wantDues("a", "00:01:00 01:02:00")
				w.wantStretches("a", "00:02:00-01:01:00 60 misfire")
			})
		})
	}
}

// The machine starts in 1970, as one without a battery for its clock, and a time
// server comes by later or never: nothing runs meanwhile, and nothing twice.
func TestClockFarBackAtTheStart(t *testing.T) {
	for _, comes := range []time.Duration{20 * time.Second, 10 * time.Minute} {
		t.Run(fmt.Sprintf("a time server after %s", comes), func(t *testing.T) {
			simulate(t, func(w *world) {
				c := w.shift()
				w.apply("a", taskSpec())
				w.boot()
				w.until("00:03:30")
				w.kill()
				w.reboot(c)
				c.set(-time.Since(time.Unix(0, 0)))
				w.boot()
				w.pass(comes)
				w.wantDues("a", "00:01:00 00:02:00 00:03:00")
				w.wantLog("the clock was set back; claims wait")
				c.set(0)
				c.synced.Store(true)
				w.pass(50 * time.Second)
				ran := strings.Fields(w.dues("a"))
				if len(ran) != 4 && len(ran) != 5 {
					t.Errorf("slots run: %s", ran)
				}
				w.kill()
				w.reboot(c)
				c.synced.Store(false)
				w.boot()
				w.pass(time.Minute)
				if n := len(w.rows("a")); n != len(ran)+1 || w.engine.Stats().ClockDoubted {
					t.Errorf("an ordinary start: %d more, doubted %t", n-len(ran), w.engine.Stats().ClockDoubted)
				}
			})
		})
	}
}

// A store that was written under a clock far ahead does not keep an axd waiting
// at each of its starts: once the clock was believed, that is the mark.
func TestMarkFarAhead(t *testing.T) {
	simulate(t, func(w *world) {
		c := w.shift()
		w.apply("a", taskSpec())
		if err := w.store.KeepClock(t.Context(), ax.ClockMark{WallMs: time.Now().AddDate(70, 0, 0).UnixMilli()}); err != nil {
			t.Fatal(err)
		}
		w.boot()
		w.until("00:00:50")
		if !w.engine.Stats().ClockDoubted {
			t.Error("the clock is believed at once")
		}
		w.until("00:01:30")
		w.wantDues("a", "00:01:00")
		w.kill()
		w.reboot(c)
		w.boot()
		w.until("00:02:10")
		w.wantDues("a", "00:01:00 00:02:00")
	})
}

// The machine sleeps for ten hours: its clocks agree, so nothing waits, and what
// was due meanwhile is a misfire.
func TestSuspend(t *testing.T) {
	simulate(t, func(w *world) {
		c := w.shift()
		w.apply("a", taskSpec())
		w.boot()
		w.until("00:03:30")
		c.sleep(10 * time.Hour)
		w.pass(6 * time.Second)
		w.wantDues("a", "00:01:00 00:02:00 00:03:00 10:03:00")
		w.wantStretches("a", "00:04:00-10:02:00 599 misfire")
		w.wantLog("the machine slept, or axd was stopped")
		if strings.Contains(w.log.String(), "the clock was set") {
			t.Error("to sleep is told as a step")
		}
		w.pass(time.Minute)
		w.wantDues("a", "00:01:00 00:02:00 00:03:00 10:03:00 10:04:00")
	})
}

// A clock that is twice as fast or half as slow, or stands still, is followed:
// each slot once, none early, none lost, no doubt.
func TestClockSlowAndFast(t *testing.T) {
	for name, rate := range map[string]float64{"twice as fast": 2, "little too fast": 1.001, "half as slow": 0.5, "still": 0} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(w *world) {
				c := w.shift()
				w.apply("a", taskSpec())
				w.boot()
				w.until("00:01:30")
				for range 600 {
					w.pass(time.Second)
					c.off.Add(int64((rate - 1) * float64(time.Second)))
				}
				due := int(math.Floor(1.5 + 10*rate))
				rows := w.rows("a")
				if n := len(rows); n != due && n != due-1 {
					t.Errorf("%d instances, %d slots", n, due)
				}
				for _, r := range rows {
					if r.ClaimedMs < r.DueMs {
						t.Errorf("%s was claimed early", clock(r.DueMs))
					}
				}
				w.dues("a")
				w.wantStretches("a")
				if strings.Contains(w.log.String(), "the clock was set") {
					t.Error("a clock that drifts is told as a step")
				}
			})
		})
	}
}

// Daylight saving is no matter of the clock: nothing is doubted, and the night's
// slots are those that the zone has.
func TestDaylightSavingIsNoStep(t *testing.T) {
	simulate(t, func(w *world) {
		c := w.shift()
		c.set(time.Until(time.Date(2000, 3, 25, 23, 30, 0, 0, time.UTC))) // spring in Berlin
		w.apply("a", taskSpec(func(s *ax.TaskSpec) {
			s.Schedules = []ax.ScheduleSpec{{Cron: "30 * * * *", Timezone: "Europe/Berlin"}}
			s.Misfire.Policy, s.Overlap = ax.MisfireSkip, ax.OverlapAllow
		}))
		w.boot()
		w.pass(70 * time.Second) // from now on it has caught up
		w.pass(4 * time.Hour)
		got := strings.Fields(w.dues("a"))
		if want := strings.Fields("23:30:00 00:30:00 01:30:00 02:30:00 03:30:00"); !slices.Equal(got[max(0, len(got)-4):], want[1:]) {
			t.Errorf("slots run: %s, want at the end %s", got, want)
		}
		if strings.Contains(w.log.String(), "the clock") {
			t.Error("the log speaks of the clock")
		}
	})
}

// Whatever the clock does within a day, no slot is used twice, none is lost (the
// store's invariants), and a minute after it is right and believed again a slot
// has run.
func TestClockSteps(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		h := clockHistory{
			steps:  rapid.SliceOfN(rapid.IntRange(-300, 300), 1, 5).Draw(r, "minutes off"),
			lasts:  rapid.SliceOfN(rapid.SampledFrom([]int{20, 45, 100, 200}), 5, 5).Draw(r, "seconds"),
			kills:  rapid.SliceOfN(rapid.Bool(), 5, 5).Draw(r, "killed"),
			boots:  rapid.SliceOfN(rapid.Bool(), 5, 5).Draw(r, "rebooted"),
			synced: rapid.SliceOfN(rapid.Bool(), 5, 5).Draw(r, "synchronised"),
			policy: rapid.SampledFrom(ax.MisfirePolicies).Draw(r, "policy"),
		}
		if !t.Run("", func(t *testing.T) { h.run(t) }) {
			r.Fatalf("%+v", h)
		}
	})
}

type clockHistory struct {
	steps, lasts         []int
	kills, boots, synced []bool
	policy               ax.MisfirePolicy
}

func (h clockHistory) run(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, folder)
		defer w.end()
		<-time.After(24 * time.Hour)
		c := w.shift()
		w.apply("a", taskSpec(func(s *ax.TaskSpec) {
			s.Misfire.Policy, s.Misfire.Max, s.Overlap = h.policy, 3, ax.OverlapAllow
		}))
		w.boot()
		w.pass(150 * time.Second)
		for i, m := range h.steps {
			if h.kills[i] {
				w.kill()
				if h.boots[i] {
					w.reboot(c)
				}
			}
			c.synced.Store(h.synced[i])
			c.set(time.Duration(m) * time.Minute)
			if h.kills[i] {
				w.boot()
			}
			w.pass(time.Duration(h.lasts[i]) * time.Second)
			w.dues("a")
		}
		c.set(0)
		w.pass(70 * time.Second)
		slot := time.Now().Truncate(time.Minute).Add(time.Minute)
		w.pass(time.Minute)
		w.dues("a")
		used := map[int64]bool{}
		for _, in := range w.rows("a") {
			used[in.DueMs] = true
		}
		if !used[slot.UnixMilli()] {
			t.Errorf("the slot of %s did not run", slot)
		}
	})
}
