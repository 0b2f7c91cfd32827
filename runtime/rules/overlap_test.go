package rules_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

func TestAdmit(t *testing.T) {
	t.Parallel()
	const most = ax.MaxWaiting
	for _, c := range []struct {
		policy               ax.Overlap
		active, waiting, max int
		want                 rules.Verdict
	}{
		{ax.OverlapQueue, 0, 0, 1, rules.Begin},
		{ax.OverlapQueue, 1, 0, 1, rules.Wait},
		{ax.OverlapQueue, 1, 1, 1, rules.Skip},
		{ax.OverlapQueue, 0, 1, 1, rules.Wait}, // one in back-off keeps its turn
		{ax.OverlapQueue, 0, 2, 1, rules.Skip},
		{ax.OverlapQueue, 1, 0, 2, rules.Begin},
		{ax.OverlapQueue, 1, 1, 2, rules.Wait},
		{ax.OverlapQueue, 2, 0, 2, rules.Wait},
		{ax.OverlapQueue, 2, 1, 2, rules.Skip},
		{ax.OverlapQueue, 3, 0, 2, rules.Skip}, // concurrency was lowered
		{ax.OverlapQueue, 0, 100, 1, rules.Skip},

		{ax.OverlapLatest, 0, 0, 1, rules.Begin},
		{ax.OverlapLatest, 1, 0, 1, rules.Wait},
		{ax.OverlapLatest, 1, 1, 1, rules.TakePlace},
		{ax.OverlapLatest, 0, 1, 1, rules.Wait},
		{ax.OverlapLatest, 0, 2, 1, rules.TakePlace},
		{ax.OverlapLatest, 2, 1, 2, rules.TakePlace},

		{ax.OverlapSkip, 0, 0, 1, rules.Begin},
		{ax.OverlapSkip, 1, 0, 1, rules.Skip},
		{ax.OverlapSkip, 0, 1, 1, rules.Skip},
		{ax.OverlapSkip, 1, 0, 2, rules.Begin},
		{ax.OverlapSkip, 0, 1, 2, rules.Wait},
		{ax.OverlapSkip, 1, 1, 2, rules.Skip},

		{ax.OverlapReplace, 0, 0, 1, rules.Begin},
		{ax.OverlapReplace, 1, 0, 1, rules.CancelOldest},
		{ax.OverlapReplace, 1, 1, 1, rules.TakePlace},
		{ax.OverlapReplace, 0, 1, 1, rules.Wait}, // nothing runs that could be cancelled
		{ax.OverlapReplace, 0, 2, 1, rules.TakePlace},
		{ax.OverlapReplace, 1, 0, 2, rules.Begin},
		{ax.OverlapReplace, 0, 1, 2, rules.Wait},
		{ax.OverlapReplace, 1, 1, 2, rules.CancelOldest},
		{ax.OverlapReplace, 2, 1, 2, rules.TakePlace},
		{ax.OverlapReplace, 3, 0, 2, rules.CancelOldest},

		{ax.OverlapAllow, 0, 0, 1, rules.Begin},
		{ax.OverlapAllow, 0, 1, 1, rules.Begin}, // no order
		{ax.OverlapAllow, 1, 0, 1, rules.Wait},
		{ax.OverlapAllow, 1, most - 1, 1, rules.Wait},
		{ax.OverlapAllow, 1, most, 1, rules.Skip},
	} {
		if got := rules.Admit(c.policy, c.active, c.waiting, c.max); got != c.want {
			t.Errorf("%s with %d active, %d waiting of %d: verdict %d, want %d", c.policy, c.active, c.waiting, c.max, got, c.want)
		}
	}
}

// Firing after firing on a task whose counters only grow, live never exceeds
// what the policy allows, and only free places are begun in.
func TestAdmitProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom(ax.Overlaps).Draw(t, "policy")
		maxActive := rapid.IntRange(1, 5).Draw(t, "max_active")
		limit := map[ax.Overlap]int{
			ax.OverlapQueue: maxActive + 1, ax.OverlapLatest: maxActive + 1, ax.OverlapReplace: maxActive + 1,
			ax.OverlapSkip: maxActive, ax.OverlapAllow: maxActive + ax.MaxWaiting,
		}[policy]
		active, waiting := 0, 0
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"fire", "fire", "fire", "end", "retry", "dispatch"}).Draw(t, "step") {
			case "end":
				active = max(0, active-1)
			case "retry":
				if active > 0 {
					active, waiting = active-1, waiting+1
				}
			case "dispatch":
				if waiting > 0 && active < maxActive {
					active, waiting = active+1, waiting-1
				}
			case "fire":
				switch v := rules.Admit(policy, active, waiting, maxActive); v {
				case rules.Begin:
					active++
				case rules.Wait:
					waiting++
				case rules.CancelOldest:
					if active == 0 {
						t.Fatalf("the oldest running one is to be cancelled, none runs (%d waiting)", waiting)
					}
					waiting++
				case rules.TakePlace:
					if waiting == 0 {
						t.Fatalf("a place is to be taken, none waits (%d active)", active)
					}
				case rules.Skip:
					if active < maxActive && waiting == 0 {
						t.Fatal("skipped beside a free place")
					}
				}
			}
			if active > maxActive {
				t.Fatalf("%d active of %d", active, maxActive)
			}
			if active+waiting > limit {
				t.Fatalf("%s: %d active and %d waiting of %d", policy, active, waiting, maxActive)
			}
		}
	})
}

func TestTurn(t *testing.T) {
	t.Parallel()
	ready := ax.Waiting{Attempt: 1, NotBeforeMs: 50, Kind: ax.InstanceSchedule}
	backoff := ax.Waiting{Attempt: 2, NotBeforeMs: 150, Kind: ax.InstanceSchedule}
	held := ax.Waiting{Attempt: 1, NotBeforeMs: 50, Kind: ax.InstanceSchedule, Held: true}
	heldRetry := ax.Waiting{Attempt: 2, NotBeforeMs: 150, Kind: ax.InstanceSchedule, Held: true}
	manual := ax.Waiting{Attempt: 1, NotBeforeMs: 50, Kind: ax.InstanceManual, Held: true}
	for name, c := range map[string]struct {
		policy      ax.Overlap
		active, max int
		waiting     []ax.Waiting
		want        []int
	}{
		"the oldest first":                   {ax.OverlapQueue, 0, 2, []ax.Waiting{ready, ready, ready}, []int{0, 1}},
		"no place":                           {ax.OverlapQueue, 1, 1, []ax.Waiting{ready}, nil},
		"above the limit":                    {ax.OverlapQueue, 3, 1, []ax.Waiting{ready}, nil},
		"one in back-off keeps its turn":     {ax.OverlapQueue, 0, 1, []ax.Waiting{backoff, ready}, nil},
		"and holds only its own place":       {ax.OverlapQueue, 0, 2, []ax.Waiting{backoff, ready}, []int{1}},
		"allow knows no order":               {ax.OverlapAllow, 0, 1, []ax.Waiting{backoff, ready}, []int{1}},
		"a held one does not start":          {ax.OverlapQueue, 0, 1, []ax.Waiting{held}, nil},
		"a manual start passes a hold":       {ax.OverlapQueue, 0, 1, []ax.Waiting{held, manual}, []int{1}},
		"and a held retry, which must wait":  {ax.OverlapQueue, 0, 1, []ax.Waiting{heldRetry, manual}, []int{1}},
		"a manual start waits for its place": {ax.OverlapSkip, 1, 1, []ax.Waiting{manual}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := rules.Turn(c.policy, c.active, c.max, c.waiting, 100); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestTurnProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom(ax.Overlaps).Draw(t, "policy")
		active, most := rapid.IntRange(0, 4).Draw(t, "active"), rapid.IntRange(1, 4).Draw(t, "max")
		held := rapid.Bool().Draw(t, "held")
		var waiting []ax.Waiting
		for range rapid.IntRange(0, 8).Draw(t, "n") {
			waiting = append(waiting, ax.Waiting{
				Attempt: rapid.IntRange(1, 3).Draw(t, "attempt"), Held: held,
				NotBeforeMs: rapid.SampledFrom([]int64{50, 100, 150}).Draw(t, "not_before"),
				Kind:        rapid.SampledFrom([]ax.InstanceKind{ax.InstanceSchedule, ax.InstanceManual}).Draw(t, "kind"),
			})
		}
		turn := rules.Turn(policy, active, most, waiting, 100)
		if len(turn) > max(0, most-active) {
			t.Fatalf("%d starts in %d places", len(turn), most-active)
		}
		if !slices.IsSorted(turn) {
			t.Fatalf("out of due order: %v", turn)
		}
		mayStart := func(w ax.Waiting) bool {
			return w.NotBeforeMs <= 100 && (!w.Held || w.Kind == ax.InstanceManual)
		}
		taken := map[int]bool{}
		for _, i := range turn {
			if taken[i] = true; !mayStart(waiting[i]) {
				t.Fatalf("%+v is tried", waiting[i])
			}
		}
		if policy != ax.OverlapAllow {
			return
		}
		for i, w := range waiting {
			if mayStart(w) && !taken[i] && len(turn) < most-active {
				t.Fatalf("%+v is not tried, %d places are free", w, most-active-len(turn))
			}
		}
	})
}

func TestAdmitRefusesUnknownPolicy(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("an unknown policy was taken")
		}
	}()
	rules.Admit("perhaps", 0, 0, 1)
}
