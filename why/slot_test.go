package why_test

import (
	"github.com/axctl/ax"
	"github.com/axctl/ax/schedule"
	"github.com/axctl/ax/why"
)

var instantCauses = []cause{
	{
		"before it was made", func(w *world) { w.apply(task()) }, "2026-11-30T11:00:00Z", why.BeforeBirth,
		"task.a did not exist at Mon 2026-11-30 11:00 +00:00: it was created by ann on desk at Mon 2026-11-30 11:30 +00:00 (v1, serial 1, from /etc/ax, commit 0123456789ab).",
	},
	{
		"deleted then", func(w *world) {
			w.apply(task())
			w.at("2026-11-30T11:40:00Z")
			w.apply(nil)
			w.at("2026-11-30T12:10:00Z")
			w.apply(task())
		}, "2026-11-30T12:00:00Z", why.DeletedThen,
		"task.a did not exist at Mon 2026-11-30 12:00 +00:00: it was deleted by ann on desk at Mon 2026-11-30 11:40 +00:00 (v2, serial 2, from /etc/ax, commit 0123456789ab) and made again by ann on desk at Mon 2026-11-30 12:10 +00:00 (v3, serial 3, from /etc/ax, commit 0123456789ab).",
	},
	{
		"deleted while it was due", func(w *world) {
			w.apply(task())
			w.stop()
			w.at("2026-11-30T12:10:00Z")
			w.apply(nil)
		}, "2026-11-30T12:00:00Z", why.DeletedThen,
		"It was deleted by ann on desk at Mon 2026-11-30 12:10 +00:00 (v2, serial 2, from /etc/ax, commit 0123456789ab) before axd had claimed what was due, which left out the slot of Mon 2026-11-30 12:00 +00:00.",
	},
	{
		"no schedule then", func(w *world) { w.apply(task(unscheduled)); w.at("2026-11-30T12:10:00Z") }, "2026-11-30T12:00:00Z", why.NoSchedule,
		"task.a had no schedule at Mon 2026-11-30 12:00 +00:00, by ann on desk at Mon 2026-11-30 11:30 +00:00 (v1, serial 1, from /etc/ax, commit 0123456789ab): it started only by hand.",
	},
	{
		"no slot", func(w *world) { w.apply(task()); w.at("2026-11-30T12:10:00Z") }, "2026-11-30T11:45:00Z", why.NotASlot,
		`Mon 2026-11-30 11:45 +00:00 is no slot of version 1, which was in force then: cron "0 * * * *" in UTC; the slot before is Mon 2026-11-30 11:00 +00:00, the one after Mon 2026-11-30 12:00 +00:00.`,
	},
	{
		"no slot, but by hand", func(w *world) {
			w.apply(task())
			w.at("2026-11-30T11:45:12Z")
			w.trigger()
			w.dispatch(1)
			w.finish(1, "2026-11-30T11:45:13Z", well)
		}, "2026-11-30T11:45:00Z", why.NotASlot,
		`Mon 2026-11-30 11:45 +00:00 is no slot of version 1, which was in force then: cron "0 * * * *" in UTC; the slot before is Mon 2026-11-30 11:00 +00:00, the one after Mon 2026-11-30 12:00 +00:00. Instance 1, due Mon 2026-11-30 11:45:12 +00:00, was started by hand (success at Mon 2026-11-30 11:45:13 +00:00).`,
	},
	{
		"before from", func(w *world) {
			w.apply(task(func(s *ax.TaskSpec) { s.Schedules[0].From = "2026-12-01T00:00" }))
			w.at("2026-11-30T12:10:00Z")
		}, "2026-11-30T12:00:00Z", why.BeforeFrom,
		`Mon 2026-11-30 12:00 +00:00 lies before from = "2026-12-01T00:00" of version 1, by ann on desk at Mon 2026-11-30 11:30 +00:00 (v1, serial 1, from /etc/ax, commit 0123456789ab).`,
	},
	{
		"before from, of an interval", func(w *world) {
			w.apply(task(func(s *ax.TaskSpec) {
				s.Schedules = []ax.ScheduleSpec{{Every: 90_000, From: "2026-12-01T00:00", Timezone: "UTC"}}
			}))
			w.at("2026-11-30T12:10:00Z")
		}, "2026-11-30T23:58:30Z", why.BeforeFrom,
		`Mon 2026-11-30 23:58:30 +00:00 lies before from = "2026-12-01T00:00" of version 1, by ann on desk at Mon 2026-11-30 11:30 +00:00 (v1, serial 1, from /etc/ax, commit 0123456789ab).`,
	},
	{
		"the clocks skipped it", func(w *world) {
			w.berlin()
			w.at("2027-03-28T05:00:00Z")
		}, "2027-03-28T01:30:00Z", why.ClockSkips,
		"2027-03-28 02:30 does not exist in Europe/Berlin, since the clocks skip it: the slot of version 1 is the change, Sun 2027-03-28 03:00 +02:00.",
	},
	{
		"the clocks repeated it", func(w *world) {
			w.berlin()
			w.at("2027-10-31T05:00:00Z")
		}, "2027-10-31T01:30:00Z", why.ClockRepeats,
		"2027-10-31 02:30 comes twice in Europe/Berlin, and only the first, Sun 2027-10-31 02:30 +02:00, is a slot of version 1.",
	},
	{
		"a slot of the version before", func(w *world) {
			w.apply(task())
			w.apply(task(cron("30 * * * *", "UTC")))
			w.at("2026-11-30T12:10:00Z")
		}, "2026-11-30T12:00:00Z", why.OtherVersion,
		`Mon 2026-11-30 12:00 +00:00 is a slot of version 1 (cron "0 * * * *" in UTC), which was replaced before: version 2, by ann on desk at Mon 2026-11-30 11:30 +00:00 (v2, serial 2, from /etc/ax, commit 0123456789ab), was in force then and has cron "30 * * * *" in UTC.`,
	},
	{
		"a slot of a later version", func(w *world) {
			w.apply(task(cron("30 * * * *", "UTC")))
			w.at("2026-11-30T12:10:00Z")
			w.apply(task())
		}, "2026-11-30T12:00:00Z", why.OtherVersion,
		`Mon 2026-11-30 12:00 +00:00 is a slot of version 2 (cron "0 * * * *" in UTC), which was in force only later: version 1, by ann on desk at Mon 2026-11-30 11:30 +00:00 (v1, serial 1, from /etc/ax, commit 0123456789ab), was in force then and has cron "30 * * * *" in UTC.`,
	},
	{
		"disabled then and still", func(w *world) {
			w.apply(task(disabled))
			w.at("2026-11-30T12:10:00Z")
		}, "2026-11-30T12:00:00Z", why.DisabledThen,
		"task.a was disabled (enabled = false) at Mon 2026-11-30 12:00 +00:00, by ann on desk at Mon 2026-11-30 11:30 +00:00 (v1, serial 1, from /etc/ax, commit 0123456789ab).",
	},
	{
		"disabled then and enabled since", func(w *world) {
			w.apply(task(disabled))
			w.at("2026-11-30T12:10:00Z")
			w.apply(task())
		}, "2026-11-30T12:00:00Z", why.DisabledThen,
		"It was disabled then, by ann on desk at Mon 2026-11-30 11:30 +00:00 (v1, serial 1, from /etc/ax, commit 0123456789ab), which left out the slot of Mon 2026-11-30 12:00 +00:00.",
	},
	{
		"disabled while it was due", func(w *world) {
			w.apply(task())
			w.at("2026-11-30T12:10:00Z")
			w.apply(task(disabled))
		}, "2026-11-30T12:00:00Z", why.DisabledThen,
		"It was disabled by ann on desk at Mon 2026-11-30 12:10 +00:00 (v2, serial 2, from /etc/ax, commit 0123456789ab) before axd had claimed what was due, which left out the slot of Mon 2026-11-30 12:00 +00:00.",
	},
	{
		"held since before", func(w *world) {
			w.apply(task())
			w.hold(ax.HoldPaused, 0)
			w.at("2026-11-30T12:10:00Z")
		}, "2026-11-30T12:00:00Z", why.Held,
		"task.a is paused by bob since Mon 2026-11-30 11:30 +00:00, until someone resumes it: moving house.",
	},
	{
		"held then", func(w *world) {
			w.apply(task())
			w.hold(ax.HoldPaused, 0)
			w.at("2026-11-30T13:10:00Z")
			w.resume()
		}, "2026-11-30T12:00:00Z", why.HeldThen,
		`It was held then, and misfire.on_resume = "skip" of version 1 left out 2 slots from Mon 2026-11-30 12:00 +00:00 to Mon 2026-11-30 13:00 +00:00.`,
	},
	{
		"missed in an outage", func(w *world) {
			w.apply(task())
			w.stop()
			w.at("2026-11-30T15:10:00Z")
			w.start("boot2")
			w.claim(true)
		}, "2026-11-30T13:00:00Z", why.Misfired,
		`axd did not claim it in time, and misfire.policy = "once" of version 1 left out 3 slots from Mon 2026-11-30 12:00 +00:00 to Mon 2026-11-30 14:00 +00:00: axd did not run then as far as the store knows (axd on h1 (pid 7, data folder /var/lib/ax) started at Mon 2026-11-30 15:10 +00:00 and has not stopped cleanly since).`,
	},
	{
		"missed while axd ran", func(w *world) {
			w.apply(task(misfire(ax.MisfireSkip)))
			w.at("2026-11-30T12:10:00Z")
			w.claim(true)
		}, "2026-11-30T12:00:00Z", why.Misfired,
		`axd did not claim it in time, and misfire.policy = "skip" of version 1 left out the slot of Mon 2026-11-30 12:00 +00:00: axd on h1 had been started at Mon 2026-11-30 11:30 +00:00, so it was stopped, starved or without its store.`,
	},
	{
		"due while axd is down", func(w *world) {
			w.apply(task())
			w.stop()
			w.at("2026-11-30T15:10:00Z")
		}, "2026-11-30T13:00:00Z", why.DaemonDown,
		"No axd runs on this store, so nothing fires: axd on h1 (pid 7, data folder /var/lib/ax) started at Mon 2026-11-30 11:30 +00:00 and stopped at Mon 2026-11-30 11:30 +00:00.",
	},
	{
		"due, not claimed, axd runs", func(w *world) { w.apply(task()); w.at("2026-11-30T12:00:20Z") }, "2026-11-30T12:00:00Z", why.Unclaimed,
		"The slot of Mon 2026-11-30 12:00 +00:00 is due for 20 s and axd has not claimed it yet.",
	},
	{
		"nothing is kept of it", func(w *world) {
			w.apply(task())
			w.at("2026-11-30T12:00:00Z")
			row := w.object().Row
			_, err := w.store.Claim(w.t.Context(), []ax.Firing{{
				TaskID: 1, Version: 1, ExpectNextMs: row.NextMs, ExpectLockVersion: row.LockVersion,
				NextMs: w.ms("2026-11-30T13:00:00Z"), LastSlotMs: row.NextMs, NowMs: w.nowMs, Overlap: ax.OverlapQueue,
			}})
			w.check(err)
		}, "2026-11-30T12:00:00Z", why.NoRecord,
		"The store accounts for all slots up to Mon 2026-11-30 12:00 +00:00, and keeps nothing of that of Mon 2026-11-30 12:00 +00:00.",
	},
	{
		"deleted as old", func(w *world) {
			w.apply(task())
			for id, at := range []string{"2026-11-30T12:00:00Z", "2026-11-30T13:00:00Z", "2026-11-30T14:00:00Z"} {
				w.fire(at)
				w.finish(int64(id+1), at, well)
			}
			w.check(w.store.Prune(w.t.Context(), ax.PruneQuery{EndedByMs: w.nowMs, KeepLast: 1}, func(ax.Pruned) error { return nil }))
		}, "2026-11-30T12:00:00Z", why.Forgotten,
		"What became of the slot of Mon 2026-11-30 12:00 +00:00 is not kept any more: history up to the slot of Mon 2026-11-30 13:00 +00:00 was deleted as old.",
	},
	{
		"a slot to come", func(w *world) { w.apply(task()) }, "2026-11-30T18:00:00Z", why.Comes,
		"Mon 2026-11-30 18:00 +00:00 is a slot to come, in 6 h 30 min, by version 1.",
	},
	{
		"a slot to come, held until after it", func(w *world) {
			w.apply(task())
			w.hold(ax.HoldPaused, w.ms("2026-11-30T20:00:00Z"))
		}, "2026-11-30T18:00:00Z", why.Held,
		"task.a is paused by bob since Mon 2026-11-30 11:30 +00:00, until Mon 2026-11-30 20:00 +00:00: moving house.",
	},
	{
		"a slot to come, disabled", func(w *world) { w.apply(task(disabled)) }, "2026-11-30T18:00:00Z", why.Disabled,
		"task.a is disabled (enabled = false) by ann on desk at Mon 2026-11-30 11:30 +00:00 (v1, serial 1, from /etc/ax, commit 0123456789ab).",
	},
}

// berlin applies a task of 02:30 in Berlin and shows its times there.
func (w *world) berlin() {
	w.t.Helper()
	w.apply(task(cron("30 2 * * *", "Europe/Berlin")))
	zone, err := schedule.Zone("Europe/Berlin")
	w.check(err)
	w.zone = zone
}
