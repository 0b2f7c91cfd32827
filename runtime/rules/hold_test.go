package rules_test

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

// resumption is a row that is resumed at now, and what becomes of it. Its task,
// 7 in version 3, has slots at 10, 20 and so on to 60.
type resumption struct {
	policy ax.MisfirePolicy
	row    ax.TaskRow
	reason ax.Reason
	now    int64
	want   ax.Timetable
}

func resume(t *testing.T, cases map[string]resumption) {
	t.Helper()
	tt := slots{10, 20, 30, 40, 50, 60}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.want.Fingerprint == "" {
				c.want.Fingerprint = "new"
			}
			m := ax.MisfireSpec{OnResume: c.policy, Max: 100}
			if got := rules.Resume(tt, m, 3, 7, c.row, "new", c.reason, c.now); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// paused is a hold from 15 to untilMs, 0 for good.
func paused(untilMs int64) *ax.Hold {
	return &ax.Hold{Kind: ax.HoldPaused, Who: "ann", SinceMs: 15, UntilMs: untilMs}
}

func skipped(from, to int64, n int, why ax.Reason) []ax.SkippedStretch {
	return []ax.SkippedStretch{{TaskID: 7, FromMs: from, ToMs: to, Slots: n, Reason: why, Version: 3}}
}

func TestResume(t *testing.T) {
	t.Parallel()
	resume(t, map[string]resumption{
		"a held stretch is one skipped row": {
			ax.MisfireSkip,
			ax.TaskRow{Enabled: true, Hold: paused(0), NextMs: 20, LastSlotMs: 10, LockVersion: 4},
			ax.ReasonHeld, 45,
			ax.Timetable{
				ExpectNextMs: 20, ExpectLockVersion: 4, Settled: true, NextMs: 50, LastSlotMs: 40,
				Skipped: skipped(20, 40, 3, ax.ReasonHeld),
			},
		},
		"on_resume once runs the newest": {
			ax.MisfireOnce,
			ax.TaskRow{Enabled: true, Hold: paused(0), NextMs: 20, LastSlotMs: 10},
			ax.ReasonHeld, 45,
			ax.Timetable{
				ExpectNextMs: 20, Settled: true, NextMs: 50, LastSlotMs: 40,
				Starts: []ax.Start{{DueMs: 40, Version: 3}}, Skipped: skipped(20, 30, 2, ax.ReasonHeld),
			},
		},
		"no slot passed": {
			ax.MisfireSkip,
			ax.TaskRow{Enabled: true, Hold: paused(0), NextMs: 20, LastSlotMs: 10},
			ax.ReasonHeld, 19,
			ax.Timetable{ExpectNextMs: 20, NextMs: 20},
		},
		"resumed at the instant of a slot: it was held": {
			ax.MisfireSkip,
			ax.TaskRow{Enabled: true, Hold: paused(0), NextMs: 20, LastSlotMs: 10},
			ax.ReasonHeld, 20,
			ax.Timetable{
				ExpectNextMs: 20, Settled: true, NextMs: 30, LastSlotMs: 20,
				Skipped: skipped(20, 20, 1, ax.ReasonHeld),
			},
		},
		"a hold that ends at a slot does not hold it": {
			ax.MisfireSkip,
			ax.TaskRow{Enabled: true, Hold: paused(40), NextMs: 20, LastSlotMs: 10},
			ax.ReasonHeld, 40,
			ax.Timetable{
				ExpectNextMs: 20, Settled: true, NextMs: 40, LastSlotMs: 30,
				Skipped: skipped(20, 30, 2, ax.ReasonHeld),
			},
		},
		"slots after the hold's end are due as usual": {
			ax.MisfireSkip,
			ax.TaskRow{Enabled: true, Hold: paused(25), NextMs: 20, LastSlotMs: 10},
			ax.ReasonHeld, 55,
			ax.Timetable{
				ExpectNextMs: 20, Settled: true, NextMs: 30, LastSlotMs: 20,
				Skipped: skipped(20, 20, 1, ax.ReasonHeld),
			},
		},
		"resumed before its end": {
			ax.MisfireSkip,
			ax.TaskRow{Enabled: true, Hold: paused(99), NextMs: 20, LastSlotMs: 10},
			ax.ReasonHeld, 25,
			ax.Timetable{
				ExpectNextMs: 20, Settled: true, NextMs: 30, LastSlotMs: 20,
				Skipped: skipped(20, 20, 1, ax.ReasonHeld),
			},
		},
	})
}

// Enabling ends a stretch too; a disabled task has no next fire.
func TestResumeOfDisabled(t *testing.T) {
	t.Parallel()
	resume(t, map[string]resumption{
		"a disabled stretch begins after last_slot": {
			ax.MisfireSkip,
			ax.TaskRow{LastSlotMs: 20},
			ax.ReasonDisabled, 45,
			ax.Timetable{
				Settled: true, NextMs: 50, LastSlotMs: 40,
				Skipped: skipped(30, 40, 2, ax.ReasonDisabled),
			},
		},
		"enabling ends no hold, and its stretch is the disabled one": {
			ax.MisfireSkip,
			ax.TaskRow{Hold: paused(25), LastSlotMs: 20},
			ax.ReasonDisabled, 45,
			ax.Timetable{
				Settled: true, NextMs: 50, LastSlotMs: 40,
				Skipped: skipped(30, 40, 2, ax.ReasonDisabled),
			},
		},
		"ending the hold of a disabled task moves nothing": {
			ax.MisfireAll,
			ax.TaskRow{Hold: paused(0), LastSlotMs: 20, LockVersion: 9, Fingerprint: "old"},
			ax.ReasonHeld, 45,
			ax.Timetable{ExpectLockVersion: 9, Fingerprint: "old"},
		},
	})
}

// No slot is made up: not after the last, nor when the clock went back.
func TestResumeOfWhatIsOver(t *testing.T) {
	t.Parallel()
	resume(t, map[string]resumption{
		"the schedule is over": {
			ax.MisfireAll,
			ax.TaskRow{Enabled: true, Hold: paused(0), LastSlotMs: 60},
			ax.ReasonHeld, 99,
			ax.Timetable{},
		},
		"its last slots passed": {
			ax.MisfireOnce,
			ax.TaskRow{Enabled: true, Hold: paused(0), NextMs: 60, LastSlotMs: 50},
			ax.ReasonHeld, 99,
			ax.Timetable{ExpectNextMs: 60, Settled: true, LastSlotMs: 60, Starts: []ax.Start{{DueMs: 60, Version: 3}}},
		},
		"the clock went back: a used slot is not used again": {
			ax.MisfireSkip,
			ax.TaskRow{Enabled: true, Hold: paused(0), NextMs: 50, LastSlotMs: 40},
			ax.ReasonHeld, 25,
			ax.Timetable{ExpectNextMs: 50, NextMs: 50},
		},
	})
}

// Whatever the hold and its end, no slot vanishes, none is accounted for twice,
// and the task goes on where the account ends.
func TestResumeProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tt := drawSlots(t)
		last := rapid.Int64Range(0, 500_000).Draw(t, "last")
		now := rapid.Int64Range(1, 1_000_000).Draw(t, "now")
		row := ax.TaskRow{Enabled: rapid.Bool().Draw(t, "enabled"), LastSlotMs: last, LockVersion: 5}
		reason := ax.ReasonDisabled
		if row.Enabled {
			reason = ax.ReasonHeld
			row.NextMs, _ = tt.Next(last)
			row.Hold = &ax.Hold{UntilMs: rapid.SampledFrom([]int64{0, now / 2, now, 2 * now}).Draw(t, "until")}
		}
		m := ax.MisfireSpec{OnResume: drawPolicy(t), Max: rapid.IntRange(1, 4).Draw(t, "max")}
		got := rules.Resume(tt, m, 1, 1, row, "f", reason, now)

		var account slots
		for _, sk := range got.Skipped {
			if sk.Reason != reason {
				t.Fatalf("skipped as %s", sk.Reason)
			}
			account = append(account, tt.between(sk.FromMs, sk.ToMs)...)
		}
		for _, st := range got.Starts {
			account = append(account, st.DueMs)
		}
		if !slices.IsSorted(account) || len(slices.Compact(slices.Clone(account))) != len(account) {
			t.Fatalf("accounted twice or out of order: %v", account)
		}
		through := max(last, got.LastSlotMs)
		if want := tt.between(last+1, through); !slices.Equal(account, want) {
			t.Fatalf("accounted for %v, the slots from %d to %d are %v", account, last, through, want)
		}
		if next, _ := tt.Next(through); got.NextMs != next {
			t.Fatalf("goes on at %d, the slot after %d is %d", got.NextMs, through, next)
		}
		if got.Settled != (len(account) > 0) {
			t.Fatalf("settled = %v with %v", got.Settled, account)
		}
		if reason == ax.ReasonDisabled && got.NextMs != 0 && got.NextMs <= now {
			t.Fatalf("enabled at %d, next at %d", now, got.NextMs)
		}
	})
}
