package rules_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

func TestStreak(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		streak int
		after  int
		status ax.Status
		class  ax.ErrorClass
		want   int
		freeze bool
		key    string
	}{
		{"a success ends it", 4, 5, ax.StatusSuccess, "", 0, false, ""},
		{"a failure counts", 3, 5, ax.StatusFailed, ax.ClassFailed, 4, false, ""},
		{"the last one freezes", 4, 5, ax.StatusFailed, ax.ClassFailed, 5, true, ""},
		{"so does a timeout", 4, 5, ax.StatusTimeout, ax.ClassTimeout, 5, true, ""},
		{"and one that is lost", 4, 5, ax.StatusFailed, ax.ClassLost, 5, true, ""},
		{"and one that is permanent", 4, 5, ax.StatusFailed, ax.ClassPermanent, 5, true, ""},
		{"a resource says nothing", 4, 5, ax.StatusFailed, ax.ClassResource, 4, false, ""},
		{"a cancel says nothing", 4, 5, ax.StatusCancelled, ax.ClassCancelled, 4, false, ""},
		{"nor does a skip", 4, 5, ax.StatusSkipped, "", 4, false, ""},
		{"a backfill's failure says nothing", 4, 5, ax.StatusFailed, ax.ClassFailed, 4, false, ax.BackfillSlotKey(1, 60_000)},
		{"nor does its success", 4, 5, ax.StatusSuccess, "", 4, false, ax.BackfillSlotKey(1, 60_000)},
		{"0 never freezes", 99, 0, ax.StatusFailed, ax.ClassFailed, 100, false, ""},
		{"1 freezes at once", 0, 1, ax.StatusFailed, ax.ClassFailed, 1, true, ""},
		{"it was lowered below the streak", 7, 3, ax.StatusFailed, ax.ClassFailed, 8, true, ""},
	} {
		got, freeze := rules.Streak(tt.streak, tt.after, ax.Ref{SlotKey: tt.key}, tt.status, tt.class)
		if got != tt.want || freeze != tt.freeze {
			t.Errorf("%s: %d, %v, want %d, %v", tt.name, got, freeze, tt.want, tt.freeze)
		}
	}
}

// TestStreakIsTheTail: over any history the streak is the number of failures
// since the last success, backfills left out, that are not for want of a resource, and it freezes
// when that reaches freeze_after.
func TestStreakIsTheTail(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		after := rapid.IntRange(0, 4).Draw(t, "freeze_after")
		streak, want := 0, 0
		for range rapid.IntRange(1, 30).Draw(t, "ends") {
			status := rapid.SampledFrom([]ax.Status{ax.StatusSuccess, ax.StatusFailed, ax.StatusTimeout, ax.StatusCancelled, ax.StatusSkipped}).Draw(t, "status")
			class := rapid.SampledFrom(append([]ax.ErrorClass{ax.ClassPermanent}, ax.RetryClasses...)).Draw(t, "class")
			of := ax.Ref{SlotKey: rapid.SampledFrom([]string{ax.ScheduleSlotKey(60_000), ax.ManualSlotKey("u"), ax.BackfillSlotKey(1, 60_000)}).Draw(t, "slot key")}
			failed := of.BackfillID() == 0 && (status == ax.StatusFailed || status == ax.StatusTimeout) && class != ax.ClassResource
			if status == ax.StatusSuccess && of.BackfillID() == 0 {
				want = 0
			} else if failed {
				want++
			}
			var freeze bool
			streak, freeze = rules.Streak(streak, after, of, status, class)
			if streak != want || freeze != (failed && after > 0 && want >= after) {
				t.Fatalf("%d, %v, want %d", streak, freeze, want)
			}
		}
	})
}
