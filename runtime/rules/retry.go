package rules

import (
	"hash/fnv"
	"math"
	"slices"

	"github.com/axctl/ax"
)

// Failure is an attempt that ended without success.
type Failure struct {
	InstanceID int64
	Attempt    int // from 1
	DueMs      int64
	Class      ax.ErrorClass
}

// Retry says whether another attempt follows f, and the earliest instant it
// may start. There are three levels: transient and what else retry.on names
// back off exponentially; resource waits max_interval; permanent and cancelled
// never retry. A lost attempt of a task that is not idempotent is
// never run again, since its end is unknown.
func Retry(r ax.RetrySpec, idempotent bool, f Failure, nowMs int64) (notBeforeMs int64, again bool) {
	switch {
	case f.Class == ax.ClassPermanent || f.Class == ax.ClassCancelled:
		return 0, false
	case f.Class == ax.ClassLost && !idempotent:
		return 0, false
	case f.Attempt > r.Max || !slices.Contains(r.On, f.Class):
		return 0, false
	}
	wait := backoff(r, f)
	notBeforeMs = nowMs + wait
	if r.Within > 0 && notBeforeMs > f.DueMs+int64(r.Within) {
		return 0, false
	}
	return notBeforeMs, true
}

// backoff returns the wait in ms: initial·factor^(attempt-1), spread by ±jitter
// and never above max_interval: what would reach beyond it is spread over what
// lies below. The spread is a hash of instance and attempt: stable over
// restarts, and different between instances that failed together.
func backoff(r ax.RetrySpec, f Failure) int64 {
	wait, longest := float64(r.Initial), float64(r.MaxInterval)
	if wait > 0 { // else the power may overflow, and 0 times that is no number
		wait *= math.Pow(r.Factor, float64(f.Attempt-1))
	}
	if f.Class == ax.ClassResource {
		wait = longest
	}
	wait = min(wait, longest)
	shortest := wait * (1 - r.Jitter)
	longest = min(wait*(1+r.Jitter), longest)
	h := fnv.New64a()
	var b [16]byte
	for i := range 8 {
		b[i] = byte(uint64(f.InstanceID) >> (8 * i))
		b[8+i] = byte(uint64(f.Attempt) >> (8 * i))
	}
	_, _ = h.Write(b[:])
	unit := float64(h.Sum64()>>11) / (1 << 53) // [0, 1)
	return int64(shortest + (longest-shortest)*unit)
}
