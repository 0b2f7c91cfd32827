package runtime_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/axctl/ax"
)

// A person's retry has all its attempts before it, whatever the instance had
// used up, waits its turn, starts in spite of a hold, and changes nothing of
// what it is a retry of (B103).
func TestRetryByHand(t *testing.T) {
	simulate(t, func(w *world) {
		failures := 4
		w.exec.play = func(ax.Job) play {
			if failures--; failures < 0 {
				return play{work: time.Second}
			}
			return play{work: time.Second, class: ax.ClassFailed}
		}
		w.apply("a", taskSpec(func(s *ax.TaskSpec) {
			s.Schedules = nil
			s.Retry.Max = 2
		}))
		w.boot()
		id := w.trigger("a")
		w.until("00:05:00")
		before := w.life(id)
		if before.Status != ax.StatusFailed || before.Attempt != 3 || len(before.Attempts) != 2 {
			t.Fatalf("before: %+v", before)
		}
		w.hold("a")
		now := time.Now().UnixMilli()
		ref, err := w.store.Retry(context.Background(), ax.Retry{InstanceID: id, NowMs: now, Who: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		if l := w.life(ref.ID); l.Attempt != 1 || l.HandedMs != 0 || l.StartedMs != 0 || l.EndedMs != 0 || l.Error != "" || l.ErrorClass != "" {
			t.Errorf("born as %+v", l.Instance)
		}
		w.until("00:10:00")
		l := w.life(ref.ID)
		if l.Status != ax.StatusSuccess || l.Attempt != 2 || l.DueMs != before.DueMs || l.RetryOf() != id {
			t.Errorf("after: %+v", l)
		}
		after := w.life(id)
		if len(after.RetriedBy) != 1 || after.RetriedBy[0] != ref.ID {
			t.Errorf("retried by %v", after.RetriedBy)
		}
		after.RetriedBy = nil
		if !reflect.DeepEqual(after, before) {
			t.Errorf("the old one is %+v, was %+v", after, before)
		}
	})
}

// Two retries of one instance do not run at once.
func TestRetriesWaitTheirTurn(t *testing.T) {
	simulate(t, func(w *world) {
		w.exec.play = func(ax.Job) play { return play{work: 90 * time.Second} }
		w.apply("a", taskSpec(func(s *ax.TaskSpec) { s.Schedules = nil }))
		w.boot()
		id := w.trigger("a")
		w.until("00:02:00")
		for range 2 {
			if _, err := w.store.Retry(context.Background(), ax.Retry{InstanceID: id, NowMs: time.Now().UnixMilli(), Who: "ann"}); err != nil {
				t.Fatal(err)
			}
		}
		w.until("00:06:00")
		w.wantStatuses("a", ax.StatusSuccess, ax.StatusSuccess, ax.StatusSuccess)
		if w.exec.most["task.a"] != 1 {
			t.Errorf("%d at once", w.exec.most["task.a"])
		}
	})
}
