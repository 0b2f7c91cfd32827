package runtime_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax"
)

// A task that fails again and again is frozen by the instance that is one too
// many, after all its attempts; nothing of it starts until it is unfrozen, and
// then its failures are counted anew.
func TestFreezeAfter(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{work: time.Second, class: ax.ClassFailed} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) {
			s.FreezeAfter, s.Retry.Max, s.Retry.Initial = 3, 1, ax.Duration(5_000)
		}))
		w.apply("b", taskSpec())
		w.boot()
		w.until("00:10:00")
		w.wantStatuses("a", ax.StatusFailed, ax.StatusFailed, ax.StatusFailed)
		row := w.object("a").Row
		if h := row.Hold; h == nil || h.Kind != ax.HoldFrozen || h.Who != ax.FrozenBy || row.FailureStreak != 3 {
			t.Fatalf("the row is %+v", row)
		}
		if n := len(w.rows("b")); n < 8 {
			t.Errorf("the other task fired %d times", n)
		}
		if n := strings.Count(w.log.String(), "a task is frozen"); n != 1 || !strings.Contains(w.log.String(), "task=task.a failed_in_a_row=3") {
			t.Errorf("told %d times: %s", n, w.log.String())
		}
		w.resume("a")
		w.until("00:12:30")
		if row := w.object("a").Row; row.Hold != nil || row.FailureStreak != 2 || len(w.rows("a")) != 5 {
			t.Errorf("after it: %+v, %d rows", row, len(w.rows("a")))
		}
	})
}

// A task that waits for a resource is not frozen for it.
func TestNoFreezingForAResource(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{work: time.Second, class: ax.ClassResource} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.FreezeAfter, s.Retry.Max = 1, 0 }))
		w.boot()
		w.until("00:05:30")
		w.wantStatuses("a", ax.StatusFailed, ax.StatusFailed, ax.StatusFailed, ax.StatusFailed, ax.StatusFailed)
		if row := w.object("a").Row; row.Hold != nil || row.FailureStreak != 0 {
			t.Errorf("the row is %+v", row)
		}
	})
}

// An end that a restart settles freezes as any other, and is told.
func TestFreezeAtTheStart(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{work: time.Hour} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.FreezeAfter, s.Idempotent = 1, false }))
		w.boot()
		w.until("00:01:30")
		w.kill()
		w.boot()
		if h := w.object("a").Row.Hold; h == nil || h.Kind != ax.HoldFrozen {
			t.Errorf("the hold is %+v", h)
		}
		if !strings.Contains(w.log.String(), "a task is frozen") {
			t.Error("nobody was told")
		}
	})
}

// resume ends a hold as axctl does.
func (w *world) resume(name string) {
	w.t.Helper()
	o := w.object(name)
	now := time.Now().UnixMilli()
	next := now - now%int64(minute) + int64(minute)
	tt := ax.Timetable{ExpectNextMs: o.Row.NextMs, ExpectLockVersion: o.Row.LockVersion, NextMs: next, LastSlotMs: next - int64(minute)}
	if o.Row.NextMs < next {
		tt.Skipped = []ax.SkippedStretch{{
			FromMs: o.Row.NextMs, ToMs: next - int64(minute), Slots: int((next - o.Row.NextMs) / int64(minute)), Reason: ax.ReasonHeld, Version: o.Version,
		}}
		tt.Settled = true
	}
	if err := w.store.Resume(context.Background(), o.ID, tt, now); err != nil {
		w.t.Fatal(err)
	}
}
