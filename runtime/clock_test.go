package runtime_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/axctl/ax"
	"pgregory.net/rapid"
)

// shift gives the world a wall clock that can be set.
func (w *world) shift() *atomic.Int64 {
	var offset atomic.Int64
	w.cfg.Now = func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
	return &offset
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

// B038: the clock goes two hours forward for a minute and back. One catch-up,
// not 120; the next run comes within 60 s of the correction; when the clock
// comes to the slots that ran, they are passed over.
func TestClockForwardAndBack(t *testing.T) {
	simulate(t, func(w *world) {
		offset := w.shift()
		w.apply("a", taskSpec())
		w.boot()
		w.until("00:03:30")
		offset.Store(int64(2 * time.Hour))
		w.pass(time.Minute) // 02:04:30 there
		w.wantDues("a", "00:01:00 00:02:00 00:03:00 02:03:00 02:04:00")
		offset.Store(0)
		w.until("00:07:30")
		w.wantDues("a", "00:01:00 00:02:00 00:03:00 00:05:00 00:06:00 00:07:00 02:03:00 02:04:00")
		for _, line := range []string{"the clock went forward", "ms=7200000", "the clock went back", "they are set back\" component=claim tasks=1"} {
			if !strings.Contains(w.log.String(), line) {
				t.Errorf("the log does not say %s", line)
			}
		}
		st, err := w.store.Stretches(t.Context(), w.object("a").ID, 10)
		if err != nil || len(st) != 1 || clock(st[0].FromMs) != "00:04:00" || clock(st[0].ToMs) != "00:04:00" || st[0].Slots != 1 {
			t.Errorf("stretches %+v, %v", st, err)
		}
		w.until("02:05:30")
		if n := len(w.rows("a")); n != 3+2+118+1 { // 00:05 to 02:02, then 02:05
			t.Errorf("%d instances", n)
		}
		w.dues("a")
	})
}

// axd is killed while the clock is ahead, and starts after the correction; it is
// down when the clock comes to what ran ahead of its time.
func TestClockAheadWhileKilled(t *testing.T) {
	simulate(t, func(w *world) {
		offset := w.shift()
		w.apply("a", taskSpec())
		w.boot()
		w.until("00:03:30")
		offset.Store(int64(2 * time.Hour))
		w.pass(time.Minute)
		w.kill()
		offset.Store(0)
		w.boot()
		w.until("00:05:30")
		w.wantDues("a", "00:01:00 00:02:00 00:03:00 00:05:00 02:03:00 02:04:00")
		w.kill()
		w.until("02:10:30")
		w.boot()
		w.pass(10 * time.Second)
		w.wantDues("a", "00:01:00 00:02:00 00:03:00 00:05:00 02:03:00 02:04:00 02:10:00")
		st, err := w.store.Stretches(t.Context(), w.object("a").ID, 10)
		if err != nil || len(st) != 3 { // 00:04; 00:06 to 02:02; 02:05 to 02:09
			t.Errorf("stretches %+v, %v", st, err)
		}
	})
}

// A waiting instance that was born ahead of its time does not block the task for
// hours.
func TestClockBackFreesWhatWaits(t *testing.T) {
	simulate(t, func(w *world) {
		offset := w.shift()
		w.exec.play = func(ax.Job) play { return play{work: 90 * time.Second} }
		w.apply("a", taskSpec())
		w.boot()
		w.until("00:01:30")
		offset.Store(int64(2 * time.Hour))
		w.pass(20 * time.Second) // the catch-up waits for the one at work
		offset.Store(0)
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

// A step forward that stays is an outage.
func TestClockForwardStays(t *testing.T) {
	simulate(t, func(w *world) {
		offset := w.shift()
		w.apply("a", taskSpec())
		w.boot()
		w.until("00:01:30")
		offset.Store(int64(time.Hour))
		w.pass(time.Minute)
		w.wantDues("a", "00:01:00 01:01:00 01:02:00")
		st, err := w.store.Stretches(t.Context(), w.object("a").ID, 10)
		if err != nil || len(st) != 1 || st[0].Slots != 59 || st[0].Reason != ax.ReasonMisfire {
			t.Errorf("stretches %+v, %v", st, err)
		}
	})
}

// Whatever the clock does within a day, no slot is used twice, none is lost (the
// store's invariants), and a minute after it is right again a slot has run.
func TestClockSteps(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		steps := rapid.SliceOfN(rapid.IntRange(-300, 300), 1, 5).Draw(r, "minutes off")
		kills := rapid.SliceOfN(rapid.Bool(), 5, 5).Draw(r, "killed")
		policy := rapid.SampledFrom(ax.MisfirePolicies).Draw(r, "policy")
		if !t.Run("", func(t *testing.T) { clockSteps(t, steps, kills, policy) }) {
			r.Fatalf("steps %v, kills %v, policy %s", steps, kills, policy)
		}
	})
}

func clockSteps(t *testing.T, steps []int, kills []bool, policy ax.MisfirePolicy) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, folder)
		defer w.end()
		<-time.After(24 * time.Hour)
		offset := w.shift()
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Misfire.Policy, s.Misfire.Max, s.Overlap = policy, 3, ax.OverlapAllow }))
		w.boot()
		w.pass(150 * time.Second)
		for i, m := range steps {
			if kills[i] {
				w.kill()
			}
			offset.Store(int64(time.Duration(m) * time.Minute))
			if kills[i] {
				w.boot()
			}
			w.pass(100 * time.Second)
			w.dues("a")
		}
		offset.Store(0)
		w.pass(10 * time.Second)
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
