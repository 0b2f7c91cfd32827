package why_test

import (
	"github.com/axctl/ax"
	"github.com/axctl/ax/why"
)

var endCauses = []cause{
	{
		"success", func(w *world) {
			w.apply(task())
			w.fire("2026-11-30T12:00:00Z")
			w.finish(1, "2026-11-30T12:00:03Z", well)
		}, "2026-11-30T12:00:00Z", why.Succeeded,
		"It fired: instance 1 ran from Mon 2026-11-30 12:00 +00:00 for 3 s and ended in success.",
	},
	{
		"success, late", func(w *world) {
			w.apply(task())
			w.stop()
			w.at("2026-11-30T13:10:00Z")
			w.start("boot1")
			w.claim(true)
			w.dispatch(1)
			w.finish(1, "2026-11-30T13:10:03Z", well)
		}, "2026-11-30T13:00:00Z", why.SucceededLate,
		"It fired, but was claimed 10 min late, at Mon 2026-11-30 13:10 +00:00: axd did not run then as far as the store knows (axd on h1 (pid 7, data folder /var/lib/ax) started at Mon 2026-11-30 13:10 +00:00 and has not stopped cleanly since); instance 1 ran from Mon 2026-11-30 13:10 +00:00 for 3 s and ended in success.",
	},
	{
		"failed", func(w *world) {
			w.apply(task())
			w.fire("2026-11-30T12:00:00Z")
			w.finish(1, "2026-11-30T12:00:03Z", badly(ax.StatusFailed, ax.ClassFailed, "exit code 3"))
		}, "2026-11-30T12:00:00Z", why.Failed,
		"Instance 1 failed in its only attempt at Mon 2026-11-30 12:00:03 +00:00: exit code 3.",
	},
	{
		"failed, retried and marked", func(w *world) {
			w.apply(task())
			w.fire("2026-11-30T12:00:00Z")
			w.finish(1, "2026-11-30T12:00:03Z", badly(ax.StatusFailed, ax.ClassFailed, "exit code 3"))
			w.at("2026-11-30T12:10:00Z")
			_, err := w.store.Retry(w.t.Context(), ax.Retry{InstanceID: 1, NowMs: w.nowMs, Who: "bob"})
			w.check(err)
			w.check(w.store.Mark(w.t.Context(), ax.Mark{
				InstanceID: 1, Verdict: ax.VerdictSuccess, Reason: "by hand", NowMs: w.nowMs, Who: "bob",
			}))
		}, "2026-11-30T12:00:00Z", why.Failed,
		"Instance 1 failed in its only attempt at Mon 2026-11-30 12:00:03 +00:00: exit code 3. " +
			"It was marked by bob at Mon 2026-11-30 12:10 +00:00: success: by hand. It was retried as instance 2; axctl why 2 tells how that went.",
	},
	{
		"timeout", func(w *world) {
			w.apply(task())
			w.fire("2026-11-30T12:00:00Z")
			w.finish(1, "2026-11-30T13:00:00Z", badly(ax.StatusTimeout, ax.ClassTimeout, "took longer than 1h"))
		}, "2026-11-30T12:00:00Z", why.TimedOut,
		"Instance 1 took longer than its timeout of 1h in its only attempt and was stopped at Mon 2026-11-30 13:00 +00:00.",
	},
	{
		"lost", func(w *world) {
			w.apply(task())
			w.fire("2026-11-30T12:00:00Z")
			w.finish(1, "2026-11-30T12:10:00Z", func(e *ax.Ending) {
				badly(ax.StatusFailed, ax.ClassLost, "its executor ended (signal: killed)")(e)
				e.Cause = ax.CauseLost
			})
		}, "2026-11-30T12:00:00Z", why.Lost,
		"Instance 1 was lost in its only attempt: its executor ended (signal: killed).",
	},
	{
		"failed in the second attempt", func(w *world) {
			w.apply(task())
			w.fire("2026-11-30T12:00:00Z")
			w.finish(1, "2026-11-30T12:00:05Z", func(e *ax.Ending) {
				badly(ax.StatusPending, ax.ClassTransient, "connection refused")(e)
				e.RetryStatus, e.NotBeforeMs = ax.StatusFailed, w.nowMs+1000
			})
			w.at("2026-11-30T12:00:06Z")
			w.dispatch(1)
			w.finish(1, "2026-11-30T12:00:07Z", badly(ax.StatusFailed, ax.ClassPermanent, "no such table"))
		}, "2026-11-30T12:00:00Z", why.Failed,
		"Instance 1 failed (permanent) in attempt 2, the last at Mon 2026-11-30 12:00:07 +00:00: no such table.",
	},
	{
		"cancelled by a person", func(w *world) {
			w.apply(task())
			w.fire("2026-11-30T12:00:00Z")
			w.cancel(1)
			w.finish(1, "2026-11-30T12:00:07Z", badly(ax.StatusCancelled, ax.ClassCancelled, ""))
		}, "2026-11-30T12:00:00Z", why.Cancelled,
		"Instance 1 was cancelled by bob at Mon 2026-11-30 12:00:07 +00:00.",
	},
	{
		"cancelled while it waited", func(w *world) {
			w.apply(task())
			w.at("2026-11-30T12:00:00Z")
			w.claim(false)
			w.cancel(1)
		}, "2026-11-30T12:00:00Z", why.Cancelled,
		"Instance 1 was cancelled by bob at Mon 2026-11-30 12:00 +00:00.",
	},
	{
		"cancelled for a newer firing", func(w *world) {
			w.apply(task(overlap(ax.OverlapReplace)))
			w.fire("2026-11-30T12:00:00Z")
			w.fire("2026-11-30T13:00:00Z")
			w.finish(1, "2026-11-30T13:00:02Z", badly(ax.StatusCancelled, ax.ClassCancelled, ""))
		}, "2026-11-30T12:00:00Z", why.CancelledForNew,
		`Instance 1 was cancelled at Mon 2026-11-30 13:00:02 +00:00 since a newer firing took its place (overlap = "replace"): instance 2, due Mon 2026-11-30 13:00 +00:00.`,
	},
	{
		"skipped by overlap", func(w *world) {
			w.apply(task(overlap(ax.OverlapSkip)))
			w.fire("2026-11-30T12:00:00Z")
			w.fire("2026-11-30T13:00:00Z")
		}, "2026-11-30T13:00:00Z", why.SkippedOverlap,
		`Instance 2 was skipped since the task was at its concurrency of 1 (overlap = "skip"): instance 1 (schedule, v1) due Mon 2026-11-30 12:00 +00:00, handed over Mon 2026-11-30 12:00 +00:00 to h1, not begun.`,
	},
	{
		"replaced while it waited", func(w *world) {
			w.apply(task(overlap(ax.OverlapLatest)))
			w.fire("2026-11-30T12:00:00Z")
			w.fire("2026-11-30T13:00:00Z")
			w.fire("2026-11-30T14:00:00Z")
		}, "2026-11-30T13:00:00Z", why.SkippedReplaced,
		`Instance 2 waited for its turn and a newer firing took its place at Mon 2026-11-30 14:00 +00:00 (overlap = "latest"): instance 3, due Mon 2026-11-30 14:00 +00:00.`,
	},
	{
		"not started in time, behind another", func(w *world) {
			w.apply(task(startWithin(600_000)))
			w.fire("2026-11-30T12:00:00Z")
			w.fire("2026-11-30T13:00:00Z")
			w.lapse(2, "2026-11-30T13:10:00Z")
		}, "2026-11-30T13:00:00Z", why.SkippedTooLate,
		`Instance 2 waited and was not started before start_within = "10m" of version 1 was over, so it was skipped at Mon 2026-11-30 13:10 +00:00: instance 1 (schedule, v1) due Mon 2026-11-30 12:00 +00:00, handed over Mon 2026-11-30 12:00 +00:00 to h1, not begun.`,
	},
	{
		"not started in time, held", func(w *world) {
			w.apply(task(startWithin(600_000)))
			w.at("2026-11-30T12:00:00Z")
			w.claim(false)
			w.hold(ax.HoldPaused, 0)
			w.lapse(1, "2026-11-30T12:10:00Z")
		}, "2026-11-30T12:00:00Z", why.SkippedTooLate,
		`Instance 1 waited and was not started before start_within = "10m" of version 1 was over, so it was skipped at Mon 2026-11-30 12:10 +00:00: the task is paused by bob since Mon 2026-11-30 12:00 +00:00, until someone resumes it: moving house.`,
	},
	{
		"claimed too late", func(w *world) {
			w.apply(task(startWithin(600_000)))
			w.stop()
			w.at("2026-11-30T12:15:00Z")
			w.start("boot1")
			w.claim(true)
		}, "2026-11-30T12:00:00Z", why.SkippedTooLate,
		`Instance 1 was claimed 15 min after it was due, at Mon 2026-11-30 12:15 +00:00, which is beyond start_within = "10m" of version 1: axd did not run then as far as the store knows (axd on h1 (pid 7, data folder /var/lib/ax) started at Mon 2026-11-30 12:15 +00:00 and has not stopped cleanly since).`,
	},
	{
		"deleted while it waited", func(w *world) {
			w.apply(task())
			w.fire("2026-11-30T12:00:00Z")
			w.fire("2026-11-30T13:00:00Z")
			w.apply(nil)
		}, "2026-11-30T13:00:00Z", why.DeletedThen,
		"Instance 2 still waited when the task was deleted by ann on desk at Mon 2026-11-30 13:00 +00:00 (v2, serial 2, from /etc/ax, commit 0123456789ab).",
	},
	{
		"disabled while it waited", func(w *world) {
			w.apply(task())
			w.fire("2026-11-30T12:00:00Z")
			w.fire("2026-11-30T13:00:00Z")
			w.apply(task(disabled))
		}, "2026-11-30T13:00:00Z", why.DisabledThen,
		"Instance 2 still waited when the task was disabled by ann on desk at Mon 2026-11-30 13:00 +00:00 (v2, serial 2, from /etc/ax, commit 0123456789ab).",
	},
}
