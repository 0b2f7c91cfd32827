package claim

import (
	"errors"
	"slices"
	"testing"

	"github.com/axctl/ax"
	"github.com/axctl/ax/schedule"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const second = 1000

func everySeconds(t interface{ Fatal(...any) }, n int) *schedule.Schedule {
	s, err := schedule.Compile([]ax.ScheduleSpec{{Every: ax.Duration(n * second), Timezone: "UTC"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func taskSpec(policy ax.MisfirePolicy, max int) *ax.TaskSpec {
	return &ax.TaskSpec{Concurrency: 1, Misfire: ax.MisfireSpec{Policy: policy, Max: max, Grace: 60 * second}}
}

func dues(f ax.Firing) []int64 {
	var ds []int64
	for _, s := range f.Starts {
		ds = append(ds, s.DueMs)
	}
	return ds
}

func TestDecide(t *testing.T) {
	t.Parallel()
	const base = 100_000 * second
	for _, c := range []struct {
		name    string
		policy  ax.MisfirePolicy
		max     int
		budget  int
		now     int64 // after base
		starts  []int64
		next    int64
		last    int64
		skipped *ax.SkippedStretch
		backlog bool
	}{
		{name: "one slot", policy: ax.MisfireOnce, budget: 500, starts: []int64{0}, next: 10},
		{name: "within grace all run", policy: ax.MisfireSkip, budget: 500, now: 35, starts: []int64{0, 10, 20, 30}, next: 40, last: 30},
		{name: "budget", policy: ax.MisfireSkip, budget: 2, now: 35, starts: []int64{0, 10}, next: 20, last: 10},
		{name: "at the grace", policy: ax.MisfireSkip, budget: 500, now: 60, starts: []int64{0, 10, 20, 30, 40, 50, 60}, next: 70, last: 60},
		{
			name: "skip", policy: ax.MisfireSkip, budget: 500, now: 95, next: 100, last: 90, backlog: true,
			skipped: &ax.SkippedStretch{FromMs: 0, ToMs: 90, Slots: 10},
		},
		{
			name: "once", policy: ax.MisfireOnce, budget: 500, now: 95, starts: []int64{90}, next: 100, last: 90, backlog: true,
			skipped: &ax.SkippedStretch{FromMs: 0, ToMs: 80, Slots: 9},
		},
		{
			name: "all", policy: ax.MisfireAll, max: 3, budget: 500, now: 95, starts: []int64{70, 80, 90}, next: 100, last: 90, backlog: true,
			skipped: &ax.SkippedStretch{FromMs: 0, ToMs: 60, Slots: 7},
		},
		{
			name: "all, more than a transaction", policy: ax.MisfireAll, max: 5, budget: 2, now: 95, starts: []int64{50, 60}, next: 70, last: 60, backlog: true,
			skipped: &ax.SkippedStretch{FromMs: 0, ToMs: 40, Slots: 5},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			row := ax.DueTask{TaskID: 7, Version: 2, NextMs: base, LastSlotMs: base - 10*second, LockVersion: 4}
			f, backlog, err := decide(row, taskSpec(c.policy, c.max), everySeconds(t, 10), c.budget, base+c.now*second)
			if err != nil {
				t.Fatal(err)
			}
			var want []int64
			for _, s := range c.starts {
				want = append(want, base+s*second)
			}
			if got := dues(f); !slices.Equal(got, want) || backlog != c.backlog {
				t.Errorf("starts %v, backlog %v, want %v, %v", got, backlog, want, c.backlog)
			}
			if f.NextMs != base+c.next*second || f.LastSlotMs != base+c.last*second || f.ExpectNextMs != base || f.ExpectLockVersion != 4 {
				t.Errorf("firing %+v", f)
			}
			for _, s := range f.Starts {
				if s.CatchUp != backlog || s.Place != nil {
					t.Errorf("start %+v", s)
				}
			}
			switch {
			case c.skipped == nil && f.Skipped != nil, c.skipped != nil && len(f.Skipped) != 1:
				t.Errorf("skipped %+v", f.Skipped)
			case c.skipped != nil:
				w := ax.SkippedStretch{
					TaskID: 7, Version: 2, Reason: ax.ReasonMisfire,
					FromMs: base + c.skipped.FromMs*second, ToMs: base + c.skipped.ToMs*second, Slots: c.skipped.Slots,
				}
				if f.Skipped[0] != w {
					t.Errorf("skipped %+v, want %+v", f.Skipped[0], w)
				}
			}
		})
	}
}

// Repeating decide until nothing is due accounts for every slot exactly once,
// in order, whatever the policy, the budget and the time that goes by.
func TestDecideLosesNoSlot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		every := rapid.IntRange(1, 30).Draw(t, "every")
		tt := everySeconds(t, every)
		spec := taskSpec(rapid.SampledFrom(ax.MisfirePolicies).Draw(t, "policy"), rapid.IntRange(1, 40).Draw(t, "max"))
		budget := rapid.IntRange(1, 20).Draw(t, "budget")
		now := int64(1_000_000 * second)
		first, _ := tt.Next(now)
		row := ax.DueTask{TaskID: 1, NextMs: first}
		accounted := first - 1
		for range rapid.IntRange(1, 12).Draw(t, "wakes") {
			now += int64(rapid.IntRange(0, 400).Draw(t, "sleep")) * second
			for tries := 0; row.NextMs <= now; tries++ {
				f, _, err := decide(row, spec, tt, budget, now)
				if err != nil || len(f.Starts) > budget || tries > 1000 {
					t.Fatalf("%+v, %v", f, err)
				}
				account := func(from, to int64) {
					if next, _ := tt.Next(accounted); next != from {
						t.Fatalf("%d is accounted for after %d, which leaves out %d", from, accounted, next)
					}
					accounted = to
				}
				for _, s := range f.Skipped {
					account(s.FromMs, s.ToMs)
				}
				for _, d := range dues(f) {
					account(d, d)
				}
				if next, _ := tt.Next(accounted); f.NextMs != next || f.LastSlotMs != accounted {
					t.Fatalf("goes on at %d after %d, want %d after %d", f.NextMs, f.LastSlotMs, next, accounted)
				}
				row.NextMs, row.LastSlotMs = f.NextMs, f.LastSlotMs
			}
		}
	})
}

// frozen is a timetable with the fault of B040: its next instant is not after
// the one asked for.
type frozen struct{ at int64 }

func (f frozen) Next(int64) (int64, bool)            { return f.at, true }
func (f frozen) Prev(int64) (int64, bool)            { return f.at, true }
func (f frozen) Count(_, _ int64, _ int) (int, bool) { return 1, false }

func TestDecideNeverSpins(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		row ax.DueTask
		now int64
	}{
		"next is the slot":        {ax.DueTask{NextMs: 5000, LastSlotMs: 4000}, 5000},
		"next is before the slot": {ax.DueTask{NextMs: 6000, LastSlotMs: 4000}, 6000},
		"backlog":                 {ax.DueTask{NextMs: 5000, LastSlotMs: 4000}, 500_000},
		"the row does not go on":  {ax.DueTask{NextMs: 4000, LastSlotMs: 4000}, 6000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _, err := decide(c.row, taskSpec(ax.MisfireOnce, 1), frozen{5000}, 500, c.now)
			if !errors.Is(err, errStuck) {
				t.Errorf("got %+v, %v", f, err)
			}
		})
	}
}

// New zone data may leave a stored slot that the schedule has no more. It was
// promised, so it runs once.
func TestDecideSlotOfNoSchedule(t *testing.T) {
	t.Parallel()
	tt, err := schedule.Compile([]ax.ScheduleSpec{{At: []string{"1970-01-02T00:00:00Z"}, Timezone: "UTC"}})
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := decide(ax.DueTask{TaskID: 1, NextMs: 90_000_000}, taskSpec(ax.MisfireOnce, 1), tt, 500, 100_000_000)
	if err != nil || !slices.Equal(dues(f), []int64{90_000_000}) || f.NextMs != 0 || f.LastSlotMs != 90_000_000 {
		t.Errorf("%+v, %v", f, err)
	}
}

// What is claimed too late to start is born skipped, whether it is a backlog or
// not; what is not late is as ever.
func TestDecideStartWithin(t *testing.T) {
	t.Parallel()
	const base = 100_000 * second
	for _, c := range []struct {
		name   string
		within ax.Duration
		now    int64
		skip   []bool
	}{
		{"none", 0, 35, []bool{false, false, false, false}},
		{"all in time", 36 * second, 35, []bool{false, false, false, false}},
		{"at the instant itself", 35 * second, 35, []bool{true, false, false, false}},
		{"some", 20 * second, 35, []bool{true, true, false, false}},
		{"a backlog in time", 6 * second, 95, []bool{false}},
		{"a backlog too late", 5 * second, 95, []bool{true}},
	} {
		spec := taskSpec(ax.MisfireOnce, 1)
		spec.StartWithin = c.within
		s := everySeconds(t, 10)
		f, _, err := decide(ax.DueTask{TaskID: 1, Version: 1, NextMs: base, LastSlotMs: base - 10*second}, spec, s, maxSlots, base+c.now*second)
		if err != nil {
			t.Fatal(err)
		}
		var skip []bool
		for _, st := range f.Starts {
			if st.Skip != "" && st.Skip != ax.ReasonStartWithin {
				t.Errorf("%s: reason %s", c.name, st.Skip)
			}
			skip = append(skip, st.Skip != "")
		}
		if !slices.Equal(skip, c.skip) {
			t.Errorf("%s: %v, want %v", c.name, skip, c.skip)
		}
	}
}
