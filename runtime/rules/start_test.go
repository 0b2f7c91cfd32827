package rules_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

func TestStartBy(t *testing.T) {
	t.Parallel()
	const due, within = 1_000_000, 60_000
	for name, tt := range map[string]struct {
		within    ax.Duration
		kind      ax.InstanceKind
		attempt   int
		notBefore int64
		want      int64
	}{
		"a slot":                          {within, ax.InstanceSchedule, 1, due, due + within},
		"a slot that may start later":     {within, ax.InstanceSchedule, 1, due + 5, due + within},
		"no start_within":                 {0, ax.InstanceSchedule, 1, due, 0},
		"a retry waits by retry.within":   {within, ax.InstanceSchedule, 2, due + 10, 0},
		"by hand, for an old instant":     {within, ax.InstanceManual, 1, due + 86_400_000, due + 86_400_000 + within},
		"by hand, for an instant to come": {within, ax.InstanceManual, 1, due - 10, due + within},
		"a backfill":                      {within, ax.InstanceBackfill, 1, due, 0},
	} {
		if got := rules.StartBy(tt.within, tt.kind, tt.attempt, due, tt.notBefore); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// TestStartByLaws: never before the due instant, never earlier for a longer
// start_within, and none for what was started once.
func TestStartByLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(ax.InstanceKinds).Draw(t, "kind")
		within := ax.Duration(rapid.Int64Range(0, 1<<40).Draw(t, "within"))
		due := rapid.Int64Range(0, 1<<42).Draw(t, "due")
		notBefore := rapid.Int64Range(0, 1<<42).Draw(t, "not before")
		by := rules.StartBy(within, kind, 1, due, notBefore)
		if by != 0 && by < due+int64(within) {
			t.Fatalf("%d is before %d + %d", by, due, within)
		}
		if longer := rules.StartBy(within+1, kind, 1, due, notBefore); longer < by {
			t.Fatalf("a longer start_within ends at %d, a shorter one at %d", longer, by)
		}
		if again := rules.StartBy(within, kind, rapid.IntRange(2, 9).Draw(t, "attempt"), due, notBefore); again != 0 {
			t.Fatalf("attempts after the first end at %d", again)
		}
	})
}
