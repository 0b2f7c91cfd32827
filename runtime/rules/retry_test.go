package rules_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

const now = 1_700_000_000_000

// spec is the retry of the language's defaults, without jitter.
func spec() ax.RetrySpec {
	return ax.RetrySpec{Max: 3, Initial: 10_000, Factor: 2, MaxInterval: 300_000, On: ax.RetryBlockOn}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	with := func(change func(*ax.RetrySpec)) ax.RetrySpec {
		r := spec()
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		r          ax.RetrySpec
		idempotent bool
		attempt    int
		class      ax.ErrorClass
		wait       int64 // -1: no retry
	}{
		"the first retry waits initial":          {spec(), true, 1, ax.ClassFailed, 10_000},
		"the second twice as long":               {spec(), true, 2, ax.ClassFailed, 20_000},
		"the third is the last":                  {spec(), true, 3, ax.ClassFailed, 40_000},
		"max retries are used up":                {spec(), true, 4, ax.ClassFailed, -1},
		"max 0 never retries":                    {with(func(r *ax.RetrySpec) { r.Max = 0 }), true, 1, ax.ClassTransient, -1},
		"a fixed interval":                       {with(func(r *ax.RetrySpec) { r.Factor = 1 }), true, 3, ax.ClassFailed, 10_000},
		"max_interval bounds":                    {with(func(r *ax.RetrySpec) { r.Max = 1000 }), true, 900, ax.ClassFailed, 300_000},
		"no wait at all":                         {with(func(r *ax.RetrySpec) { r.Initial, r.Factor, r.Max = 0, 1e6, 1000 }), true, 900, ax.ClassFailed, 0},
		"transient":                              {spec(), true, 1, ax.ClassTransient, 10_000},
		"timeout":                                {spec(), true, 1, ax.ClassTimeout, 10_000},
		"resource waits max_interval":            {spec(), true, 1, ax.ClassResource, 300_000},
		"resource counts as an attempt":          {spec(), true, 4, ax.ClassResource, -1},
		"permanent never":                        {with(func(r *ax.RetrySpec) { r.On = []ax.ErrorClass{ax.ClassPermanent} }), true, 1, ax.ClassPermanent, -1},
		"cancelled never":                        {with(func(r *ax.RetrySpec) { r.On = []ax.ErrorClass{ax.ClassCancelled} }), true, 1, ax.ClassCancelled, -1},
		"a class that on does not name":          {with(func(r *ax.RetrySpec) { r.On = ax.DefaultRetryOn }), true, 1, ax.ClassFailed, -1},
		"lost":                                   {spec(), true, 1, ax.ClassLost, 10_000},
		"lost and not idempotent":                {spec(), false, 1, ax.ClassLost, -1},
		"a reported failure, not idempotent":     {spec(), false, 1, ax.ClassFailed, 10_000},
		"within holds":                           {with(func(r *ax.RetrySpec) { r.Within = 70_000 }), true, 1, ax.ClassFailed, 10_000},
		"within would be passed by the wait":     {with(func(r *ax.RetrySpec) { r.Within = 69_999 }), true, 1, ax.ClassFailed, -1},
		"within that has passed before the wait": {with(func(r *ax.RetrySpec) { r.Within = 1 }), true, 1, ax.ClassFailed, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := rules.Failure{InstanceID: 8812, Attempt: c.attempt, DueMs: now - 60_000, Class: c.class}
			at, again := rules.Retry(c.r, c.idempotent, f, now)
			if again != (c.wait >= 0) || again && at != now+c.wait {
				t.Errorf("retry = %v in %d ms, want in %d ms", again, at-now, c.wait)
			}
		})
	}
}

// Fault B074: max = 5 is exactly six attempts, whatever the class.
func TestRetryLimit(t *testing.T) {
	t.Parallel()
	r := spec()
	r.Max = 5
	for _, class := range ax.RetryClasses {
		attempts := 1
		for {
			if _, again := rules.Retry(r, true, rules.Failure{Attempt: attempts, DueMs: now, Class: class}, now); !again {
				break
			}
			attempts++
		}
		if attempts != 6 {
			t.Errorf("%s: %d attempts, want 6", class, attempts)
		}
	}
}

func TestRetryProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := ax.RetrySpec{
			Max: rapid.IntRange(0, 1000).Draw(t, "max"), Initial: ax.Duration(rapid.Int64Range(0, 3_600_000).Draw(t, "initial")),
			Factor: rapid.Float64Range(1, 1000).Draw(t, "factor"), Jitter: rapid.Float64Range(0, 1).Draw(t, "jitter"),
			On: ax.RetryBlockOn, Within: ax.Duration(rapid.Int64Range(0, 3_600_000).Draw(t, "within")),
		}
		r.MaxInterval = r.Initial + ax.Duration(rapid.Int64Range(0, 3_600_000).Draw(t, "more"))
		f := rules.Failure{
			InstanceID: rapid.Int64Min(1).Draw(t, "instance"), Attempt: rapid.IntRange(1, 1001).Draw(t, "attempt"),
			DueMs: now - rapid.Int64Range(0, 3_600_000).Draw(t, "late"),
			Class: rapid.SampledFrom(ax.RetryClasses).Draw(t, "class"),
		}
		at, again := rules.Retry(r, true, f, now)
		if at2, again2 := rules.Retry(r, true, f, now); at2 != at || again2 != again {
			t.Fatal("the same failure gives two answers: a restart would shift the retry")
		}
		if !again {
			return
		}
		if f.Attempt > r.Max {
			t.Fatalf("attempt %d of 1+%d is followed", f.Attempt, r.Max)
		}
		if at < now || at > now+int64(r.MaxInterval) {
			t.Fatalf("waits %d ms, max_interval is %d", at-now, r.MaxInterval)
		}
		if r.Within > 0 && at > f.DueMs+int64(r.Within) {
			t.Fatalf("starts %d ms after due, within is %d", at-f.DueMs, r.Within)
		}
	})
}

// Instances that failed together are spread over the whole jitter, also where
// max_interval cuts it.
func TestRetrySpread(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		class    ax.ErrorClass
		from, to int64
	}{
		"around the wait":       {ax.ClassFailed, 8_000, 12_000},
		"below the longest one": {ax.ClassResource, 240_000, 300_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := spec()
			r.Jitter = 0.2
			const tenths = 10
			var histogram [tenths]int
			for id := range int64(1000) {
				at, again := rules.Retry(r, true, rules.Failure{InstanceID: id + 1, Attempt: 1, DueMs: now, Class: c.class}, now)
				wait := at - now
				if !again || wait < c.from || wait > c.to {
					t.Fatalf("instance %d waits %d ms, want %d to %d", id, wait, c.from, c.to)
				}
				histogram[min(tenths-1, (wait-c.from)*tenths/(c.to-c.from))]++
			}
			for i, n := range histogram {
				if n < 50 || n > 200 {
					t.Errorf("tenth %d of the spread holds %d of 1000: %v", i, n, histogram)
				}
			}
		})
	}
}
