package rules_test

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

func TestMisfired(t *testing.T) {
	t.Parallel()
	m := ax.MisfireSpec{Grace: 60_000}
	for _, c := range []struct {
		late int64
		want bool
	}{{-1, false}, {0, false}, {60_000, false}, {60_001, true}, {86_400_000, true}} {
		if got := rules.Misfired(m, 1_000_000, 1_000_000+c.late); got != c.want {
			t.Errorf("a slot %d ms late: misfired = %v, want %v", c.late, got, c.want)
		}
	}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	tt := slots{10, 20, 30, 40, 50, 60}
	for name, c := range map[string]struct {
		policy     ax.MisfirePolicy
		most       int
		first, now int64
		want       rules.Settlement
	}{
		"once runs the newest": {
			ax.MisfireOnce, 100, 20, 45,
			rules.Settlement{Starts: []int64{40}, Skipped: &rules.Stretch{FromMs: 20, ToMs: 30, Slots: 2}, LastMs: 40, NextMs: 50},
		},
		"once with one slot skips none": {
			ax.MisfireOnce, 100, 40, 45,
			rules.Settlement{Starts: []int64{40}, LastMs: 40, NextMs: 50},
		},
		"all runs the newest two in due order": {
			ax.MisfireAll, 2, 10, 40,
			rules.Settlement{Starts: []int64{30, 40}, Skipped: &rules.Stretch{FromMs: 10, ToMs: 20, Slots: 2}, LastMs: 40, NextMs: 50},
		},
		"all with room skips none": {
			ax.MisfireAll, 4, 10, 40,
			rules.Settlement{Starts: []int64{10, 20, 30, 40}, LastMs: 40, NextMs: 50},
		},
		"skip runs none": {
			ax.MisfireSkip, 100, 10, 40,
			rules.Settlement{Skipped: &rules.Stretch{FromMs: 10, ToMs: 40, Slots: 4}, LastMs: 40, NextMs: 50},
		},
		"nothing is due yet":            {ax.MisfireAll, 9, 50, 45, rules.Settlement{NextMs: 50}},
		"the schedule ends":             {ax.MisfireOnce, 9, 60, 99, rules.Settlement{Starts: []int64{60}, LastMs: 60}},
		"no slot lies in the stretch":   {ax.MisfireSkip, 9, 41, 45, rules.Settlement{NextMs: 50}},
		"a first that is no slot of it": {ax.MisfireSkip, 9, 15, 30, rules.Settlement{Skipped: &rules.Stretch{FromMs: 20, ToMs: 30, Slots: 2}, LastMs: 30, NextMs: 40}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := rules.Settle(tt, c.policy, c.most, c.first, c.now); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v (%+v), want %+v (%+v)", got, got.Skipped, c.want, c.want.Skipped)
			}
		})
	}
}

// The input of fault B011: 4320 slots of a minute job missed in three days.
func TestSettleMinuteJobAfterThreeDays(t *testing.T) {
	t.Parallel()
	tt := cron(t, "* * * * *", "UTC")
	first, now := ms(t, "2026-03-01T00:00:00Z"), ms(t, "2026-03-04T00:00:00Z")
	for policy, starts := range map[ax.MisfirePolicy][]int64{
		ax.MisfireSkip: nil,
		ax.MisfireOnce: {now},
		ax.MisfireAll:  {now - 9*60_000, now - 8*60_000, now - 7*60_000, now - 6*60_000, now - 5*60_000, now - 4*60_000, now - 3*60_000, now - 2*60_000, now - 60_000, now},
	} {
		s := rules.Settle(tt, policy, 10, first, now)
		if !slices.Equal(s.Starts, starts) {
			t.Errorf("%s starts %v, want %v", policy, s.Starts, starts)
		}
		if s.NextMs != now+60_000 || s.LastMs != now {
			t.Errorf("%s goes on at %d after %d", policy, s.NextMs, s.LastMs)
		}
		if s.Skipped == nil || s.Skipped.Slots != -1 || s.Skipped.FromMs != first {
			t.Errorf("%s skips %+v, want a stretch of more than it counts", policy, s.Skipped)
		}
	}
}

// Months of downtime cost no more than minutes: Settle asks the timetable a
// bounded number of times.
func TestSettleIsBounded(t *testing.T) {
	t.Parallel()
	for _, policy := range ax.MisfirePolicies {
		counting := &counted{Timetable: cron(t, "* * * * *", "UTC")}
		rules.Settle(counting, policy, 100, ms(t, "2020-01-01T00:00:00Z"), ms(t, "2026-01-01T00:00:00Z"))
		if counting.calls > 110 {
			t.Errorf("%s made %d calls for six years of minutes", policy, counting.calls)
		}
		if counting.limit > ax.MaxCountedSlots {
			t.Errorf("%s counted up to %d slots", policy, counting.limit)
		}
	}
}

type counted struct {
	rules.Timetable
	calls, limit int
}

func (c *counted) Next(after int64) (int64, bool) {
	c.calls++
	return c.Timetable.Next(after)
}

func (c *counted) Prev(before int64) (int64, bool) {
	c.calls++
	return c.Timetable.Prev(before)
}

func (c *counted) Count(from, to int64, limit int) (int, bool) {
	c.calls++
	c.limit = limit
	return c.Timetable.Count(from, to, limit)
}

func TestSettleProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tt := drawSlots(t)
		first := rapid.Int64Range(1, 1_000_000).Draw(t, "first")
		now := rapid.Int64Range(1, 1_000_000).Draw(t, "now")
		policy, most := drawPolicy(t), rapid.IntRange(1, 5).Draw(t, "most")
		s := rules.Settle(tt, policy, most, first, now)

		due := tt.between(first, now)
		// Every slot is in exactly one of the two, the newest ones run.
		var skipped slots
		if s.Skipped != nil {
			skipped = tt.between(s.Skipped.FromMs, s.Skipped.ToMs)
			if len(skipped) != s.Skipped.Slots || len(skipped) == 0 {
				t.Fatalf("the stretch says %d slots and holds %v", s.Skipped.Slots, skipped)
			}
			if skipped[0] != s.Skipped.FromMs || skipped[len(skipped)-1] != s.Skipped.ToMs {
				t.Fatalf("the stretch's ends are no slots: %+v of %v", s.Skipped, skipped)
			}
		}
		if all := append(slices.Clone(skipped), s.Starts...); !slices.Equal(all, due) {
			t.Fatalf("accounted for %v, due are %v", all, due)
		}
		want := map[ax.MisfirePolicy]int{ax.MisfireSkip: 0, ax.MisfireOnce: 1, ax.MisfireAll: most}[policy]
		if len(s.Starts) != min(want, len(due)) {
			t.Fatalf("%d start, policy %s of %d with %d due", len(s.Starts), policy, most, len(due))
		}
		if len(due) > 0 && s.LastMs != due[len(due)-1] || len(due) == 0 && s.LastMs != 0 {
			t.Fatalf("last is %d, due are %v", s.LastMs, due)
		}
		if next, _ := tt.Next(now); s.NextMs != next {
			t.Fatalf("next is %d, want %d", s.NextMs, next)
		}
	})
}

func TestSettleRefusesUnknownPolicy(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("an unknown policy was taken")
		}
	}()
	rules.Settle(slots{10}, "sometimes", 1, 10, 20)
}
