package rules_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

func TestStateOf(t *testing.T) {
	t.Parallel()
	const (
		none    = ax.VerdictNone
		success = ax.StatusSuccess
		failed  = ax.StatusFailed
		skipped = ax.StatusSkipped
	)
	try := func(s ax.Status, v ax.Verdict) ax.Try { return ax.Try{Status: s, Verdict: v} }
	for _, c := range []struct {
		name  string
		tries []ax.Try
		want  rules.SlotState
	}{
		{"nothing", nil, rules.SlotMissing},
		{"skipped", []ax.Try{try(skipped, none)}, rules.SlotMissing},
		{"skipped twice", []ax.Try{try(skipped, none), try(skipped, none)}, rules.SlotMissing},
		{"skipped, marked success", []ax.Try{try(skipped, ax.VerdictSuccess)}, rules.SlotSucceeded},
		{"success", []ax.Try{try(success, none)}, rules.SlotSucceeded},
		{"success, marked skipped", []ax.Try{try(success, ax.VerdictSkipped)}, rules.SlotMissing},
		{"failed", []ax.Try{try(failed, none)}, rules.SlotFailed},
		{"timeout", []ax.Try{try(ax.StatusTimeout, none)}, rules.SlotFailed},
		{"cancelled", []ax.Try{try(ax.StatusCancelled, none)}, rules.SlotFailed},
		{"failed, marked success", []ax.Try{try(failed, ax.VerdictSuccess)}, rules.SlotSucceeded},
		{"failed, then success", []ax.Try{try(failed, none), try(success, none)}, rules.SlotSucceeded},
		{"success, then failed", []ax.Try{try(success, none), try(failed, none)}, rules.SlotFailed},
		{"success, then skipped", []ax.Try{try(success, none), try(skipped, none)}, rules.SlotSucceeded},
		{"failed, then skipped", []ax.Try{try(failed, none), try(skipped, none)}, rules.SlotFailed},
		{"waiting", []ax.Try{try(ax.StatusPending, none)}, rules.SlotOpen},
		{"running again", []ax.Try{try(success, none), try(ax.StatusDispatched, none)}, rules.SlotOpen},
		{"open, with a younger end", []ax.Try{try(ax.StatusPending, none), try(success, none)}, rules.SlotOpen},
	} {
		if got := rules.StateOf(c.tries, false); got != c.want {
			t.Errorf("%s is %s, want %s", c.name, got, c.want)
		}
		want := c.want
		if len(c.tries) == 0 {
			want = rules.SlotForgotten
		}
		if got := rules.StateOf(c.tries, true); got != want {
			t.Errorf("%s, long ago, is %s, want %s", c.name, got, want)
		}
	}
}

// No mode runs what is open, missing and failed never run what the other does,
// and neither runs what succeeded or is forgotten.
func TestWanted(t *testing.T) {
	t.Parallel()
	want := map[ax.BackfillMode][]rules.SlotState{
		ax.BackfillMissing: {rules.SlotMissing},
		ax.BackfillFailed:  {rules.SlotFailed},
		ax.BackfillAll:     {rules.SlotMissing, rules.SlotFailed, rules.SlotSucceeded, rules.SlotForgotten},
	}
	for _, mode := range ax.BackfillModes {
		for _, s := range rules.SlotStates {
			if got := rules.Wanted(mode, s); got != slices.Contains(want[mode], s) {
				t.Errorf("%s of a slot that is %s: %v", mode, s, got)
			}
		}
	}
}

// What backfills have open never makes a start be skipped, take a place or
// cancel, unless the others would have made it so; and nobody begins where the
// task is at its concurrency.
func TestAdmitBeside(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom(ax.Overlaps).Draw(t, "policy")
		most := rapid.IntRange(1, 4).Draw(t, "concurrency")
		own := rules.Live{Active: rapid.IntRange(0, 5).Draw(t, "active"), Waiting: rapid.IntRange(0, 3).Draw(t, "waiting")}
		fills := rules.Live{Active: rapid.IntRange(0, 5).Draw(t, "backfills active"), Waiting: rapid.IntRange(0, 3).Draw(t, "backfills waiting")}
		all := rules.Live{Active: own.Active + fills.Active, Waiting: own.Waiting + fills.Waiting}
		got, alone := rules.AdmitBeside(policy, all, fills, most), rules.Admit(policy, own.Active, own.Waiting, most)
		switch {
		case got == rules.Begin && all.Active >= most:
			t.Fatal("it begins beyond the concurrency")
		case got != rules.Begin && got != rules.Wait && got != alone:
			t.Fatalf("verdict %d, and %d without backfills", got, alone)
		case fills == (rules.Live{}) && got != alone:
			t.Fatalf("verdict %d, and %d of Admit", got, alone)
		}
	})
}

func TestCompareTurn(t *testing.T) {
	t.Parallel()
	w := func(id, due int64, kind ax.InstanceKind) ax.Waiting {
		return ax.Waiting{Ref: ax.Ref{ID: id, DueMs: due}, Kind: kind}
	}
	ws := []ax.Waiting{
		w(1, 10, ax.InstanceBackfill), w(2, 90, ax.InstanceSchedule), w(3, 20, ax.InstanceBackfill),
		w(5, 80, ax.InstanceManual), w(4, 80, ax.InstanceSchedule), w(6, 10, ax.InstanceBackfill),
	}
	slices.SortFunc(ws, rules.CompareTurn)
	var ids []int64
	for _, w := range ws {
		ids = append(ids, w.ID)
	}
	if want := []int64{4, 5, 2, 1, 6, 3}; !slices.Equal(ids, want) {
		t.Errorf("in the order %v, want %v", ids, want)
	}
}

func TestBackfillRoom(t *testing.T) {
	t.Parallel()
	for _, c := range [][4]int{{1, 1, 0, 1}, {1, 9, 1, 0}, {5, 3, 0, 3}, {5, 3, 2, 1}, {5, 9, 2, 3}, {5, 1, 4, 0}} {
		if got := rules.BackfillRoom(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("parallel %d, concurrency %d, open %d: %d, want %d", c[0], c[1], c[2], got, c[3])
		}
	}
}

// Slots that the schedule has still to decide on are its own.
func TestBackfillEnd(t *testing.T) {
	t.Parallel()
	const now = 1000
	held := &ax.Hold{Kind: ax.HoldPaused}
	for _, c := range []struct {
		name   string
		row    ax.TaskRow
		resume ax.MisfirePolicy
		want   int64
	}{
		{"all claimed", ax.TaskRow{Enabled: true, NextMs: 1010, LastSlotMs: 1000}, ax.MisfireSkip, now + 1},
		{"some unclaimed", ax.TaskRow{Enabled: true, NextMs: 950, LastSlotMs: 940}, ax.MisfireSkip, 950},
		{"no slot left", ax.TaskRow{Enabled: true, LastSlotMs: 1010}, ax.MisfireAll, now + 1},
		{"held, to be skipped", ax.TaskRow{Enabled: true, Hold: held, NextMs: 950, LastSlotMs: 940}, ax.MisfireSkip, now + 1},
		{"held, to be run", ax.TaskRow{Enabled: true, Hold: held, NextMs: 950, LastSlotMs: 940}, ax.MisfireOnce, 950},
		{"disabled, to be skipped", ax.TaskRow{LastSlotMs: 940}, ax.MisfireSkip, now + 1},
		{"disabled, to be run", ax.TaskRow{LastSlotMs: 940}, ax.MisfireAll, 950},
		{"disabled since ever", ax.TaskRow{}, ax.MisfireAll, now + 1},
	} {
		if got := rules.BackfillEnd(slots{930, 940, 950, 960, 1010}, ax.MisfireSpec{OnResume: c.resume}, c.row, now); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
