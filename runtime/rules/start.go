package rules

import "github.com/axctl/ax"

// StartBy returns the instant from which on an instance is not started any
// more and ends as skipped (start_within); 0 never.
//
// It is about the first attempt only: what was started once is retry.within's.
// A slot's time is counted from its due instant, which neither a hold nor a
// restart moves. What a person started is wanted now, whatever instant it is
// for, so its time is counted from when it was asked for, where that is later. A
// backfill runs old slots on purpose, and has no such instant.
func StartBy(within ax.Duration, kind ax.InstanceKind, attempt int, dueMs, notBeforeMs int64) int64 {
	switch {
	case within <= 0 || attempt != 1 || kind == ax.InstanceBackfill:
		return 0
	case kind == ax.InstanceManual:
		return max(dueMs, notBeforeMs) + int64(within)
	default:
		return dueMs + int64(within)
	}
}
