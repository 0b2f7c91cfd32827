package runtime_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/axctl/ax"
)

// Three days of downtime of a minute task: 4,320 missed slots (B011).
func TestThreeDaysOfDowntime(t *testing.T) {
	for _, c := range []struct {
		policy ax.MisfirePolicy
		max    int
		ran    int
		missed int // in the stretch
	}{
		{ax.MisfireSkip, 100, 0, -1},
		{ax.MisfireOnce, 100, 1, -1},
		{ax.MisfireAll, 10, 10, -1},
		{ax.MisfireAll, 700, 700, -1},
	} {
		t.Run(fmt.Sprint(c.policy, c.max), func(t *testing.T) {
			simulate(t, func(w *world) {
				w.apply("a", taskSpec(func(s *ax.TaskSpec) {
					s.Misfire.Policy, s.Misfire.Max = c.policy, c.max
				}))
				w.pass(72*time.Hour + 10*time.Second)
				back := time.Now().UnixMilli()
				w.boot()
				w.pass(48 * time.Second) // before the next slot, but for 700
				rows := w.rows("a")
				if c.max < 700 && len(rows) != c.ran {
					t.Errorf("%d instances, want %d", len(rows), c.ran)
				}
				w.pass(2 * time.Minute)
				rows = w.rows("a")
				for i, r := range rows[:c.ran] {
					want := back - 10_000 - int64(c.ran-1-i)*60_000
					if r.DueMs != want || r.Status != ax.StatusSuccess {
						t.Fatalf("instance %d: %+v, want due %d", i, r, want)
					}
					if i > 0 && r.StartedMs < rows[i-1].StoppedMs {
						t.Fatalf("instance %d began before the one before had ended", i)
					}
				}
				st, err := w.store.Stretches(t.Context(), w.object("a").ID, 10)
				if err != nil || len(st) != 1 || st[0].Reason != ax.ReasonMisfire || st[0].Slots != c.missed {
					t.Errorf("stretches %+v, %v", st, err)
				}
				live := rows[c.ran]
				if live.DueMs != back+50_000 {
					t.Errorf("first live instance %+v", live)
				}
			})
		})
	}
}

// A backlog of many tasks does not hold up what is due now.
func TestLiveBeforeBacklog(t *testing.T) {
	simulate(t, func(w *world) {
		w.cfg.Pools = map[string]int{"work": 4}
		w.exec.play = func(ax.Job) play { return play{work: time.Second} }
		for i := range 40 {
			w.apply(fmt.Sprintf("old%d", i), taskSpec(func(s *ax.TaskSpec) {
				s.Misfire.Policy, s.Misfire.Max = ax.MisfireAll, 20
				s.Overlap = ax.OverlapAllow
				s.Schedules[0].Every = 10 * minute
			}))
		}
		w.pass(5*time.Hour + time.Minute + 500*time.Millisecond)
		w.apply("live", taskSpec(func(s *ax.TaskSpec) { s.Schedules[0].Every = 10_000 }))
		w.boot()
		w.pass(2 * time.Minute)
		rows := w.rows("live")
		if len(rows) < 12 {
			t.Fatalf("%d live instances", len(rows))
		}
		for _, r := range rows[:11] {
			if r.Status != ax.StatusSuccess || r.StartedMs-r.DueMs > 1000 {
				t.Errorf("live instance began %d ms late: %v", r.StartedMs-r.DueMs, r.Status)
			}
		}
		w.pass(4 * time.Minute)
		for i := range 40 {
			if got := w.count(fmt.Sprintf("old%d", i)); got[ax.StatusSuccess] < 20 {
				t.Errorf("old%d: %v", i, got)
			}
		}
	})
}

// A slot however late is found: the scan has no lower bound (B014).
func TestOverdueIsFound(t *testing.T) {
	simulate(t, func(w *world) {
		w.apply("daily", taskSpec(func(s *ax.TaskSpec) {
			s.Schedules = []ax.ScheduleSpec{{Cron: "0 2 * * *", Timezone: "UTC"}}
		}))
		w.until("02:10:00")
		w.boot()
		w.pass(time.Second)
		w.wantStatuses("daily", ax.StatusSuccess)
		w.pass(23*time.Hour + 45*time.Minute) // 01:55:01
		w.faults.set(failing("", ax.ErrUnavailable), nil)
		w.pass(10 * time.Minute)
		w.faults.set(nil, nil)
		w.pass(10 * time.Second)
		w.wantStatuses("daily", ax.StatusSuccess, ax.StatusSuccess)
	})
}

// A short stop is no misfire: every slot within the grace runs.
func TestWithinGraceEverySlotRuns(t *testing.T) {
	simulate(t, func(w *world) {
		w.apply("a", taskSpec(func(s *ax.TaskSpec) {
			s.Schedules[0].Every = 10_000
			s.Overlap = ax.OverlapAllow
		}))
		w.until("00:00:55")
		w.boot()
		w.pass(time.Second)
		if got := w.count("a"); got[ax.StatusSuccess] != 5 {
			t.Errorf("statuses %v", got)
		}
	})
}

// Never early, never a turn of the wheel off, however long the delay (B060).
func TestFarAwaySlots(t *testing.T) {
	simulate(t, func(w *world) {
		delays := []time.Duration{
			time.Second, 63 * time.Second, 64 * time.Second, 65 * time.Second,
			(3*64 + 7) * time.Second, 2 * time.Hour, 30 * 24 * time.Hour,
		}
		for i, d := range delays {
			w.apply(fmt.Sprintf("t%d", i), taskSpec(func(s *ax.TaskSpec) {
				s.Schedules = []ax.ScheduleSpec{{At: []string{time.Now().Add(d).UTC().Format(time.RFC3339)}, Timezone: "UTC"}}
			}))
		}
		w.cfg.Poll, w.cfg.Scan, w.cfg.Horizon = time.Hour, 10*time.Minute, time.Hour
		w.boot()
		w.pass(30*24*time.Hour + time.Minute)
		for i := range delays {
			rows := w.rows(fmt.Sprintf("t%d", i))
			if len(rows) != 1 || rows[0].StartedMs != rows[0].DueMs {
				t.Errorf("t%d: %+v", i, rows)
			}
		}
	})
}

// After a pause of axd lateness is gone at once (B062): the store blocks for
// 7.5 s, then slots are on time again.
func TestLatenessDoesNotStay(t *testing.T) {
	simulate(t, func(w *world) {
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Schedules[0].Every = 1000 }))
		w.boot()
		w.until("00:00:10.5")
		w.faults.set(failing("", ax.ErrBusy), nil)
		w.pass(7500 * time.Millisecond)
		w.faults.set(nil, nil)
		w.until("00:10:00")
		for _, r := range w.rows("a") {
			if r.Status == ax.StatusSuccess && clock(r.DueMs) > "00:00:20" && r.StartedMs-r.DueMs > 5 {
				t.Fatalf("%s began %d ms late", clock(r.DueMs), r.StartedMs-r.DueMs)
			}
		}
	})
}
