package why_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/axctl/ax"
	"github.com/axctl/ax/schedule"
	"github.com/axctl/ax/why"
)

// cause is one cause, set up through the ports, and the answer that it has.
type cause struct {
	name string
	set  func(*world)
	at   string // "" now
	code why.Code
	text string
}

// Each cause gives its own first answer, and every answer rests on a check.
func TestCauses(t *testing.T) {
	t.Parallel()
	if len(slices.Concat(nowCauses, instantCauses, endCauses)) < 25 {
		t.Fatal("there are fewer than 25 causes")
	}
	seen := map[why.Code]bool{}
	for _, c := range slices.Concat(nowCauses, instantCauses, endCauses) {
		seen[c.code] = true
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.set(w)
			x := why.Explain(w.facts(c.at, 0))
			if x.Answer.Code != c.code || x.Answer.Text != c.text {
				t.Errorf("got %s: %s\nwant %s: %s\n%s", x.Answer.Code, x.Answer.Text, c.code, c.text, list(x))
			}
			first := slices.IndexFunc(x.Checks, func(c why.Check) bool { return c.Outcome == why.No })
			good := slices.Contains([]why.Code{why.Running, why.Comes, why.Stopping, why.Succeeded, why.SucceededLate}, c.code)
			if (first < 0) != good {
				t.Errorf("%s has its first no at %d:\n%s", c.code, first, list(x))
			}
			if x.Answer.Remedy == "" && !good {
				t.Errorf("%s does not say what to do", c.code)
			}
		})
	}
	for _, code := range why.Codes {
		if !seen[code] && code != why.SkippedOtherwise {
			t.Errorf("no cause gives %s", code)
		}
	}
}

var nowCauses = []cause{
	{
		"comes", func(w *world) { w.apply(task()) }, "", why.Comes,
		"It fires next at Mon 2026-11-30 12:00 +00:00, in 30 min, by version 1.",
	},
	{
		"deleted", func(w *world) { w.apply(task()); w.apply(nil) }, "", why.Deleted,
		"task.a was deleted by ann on desk at Mon 2026-11-30 11:30 +00:00 (v2, serial 2, from /etc/ax, commit 0123456789ab).",
	},
	{
		"a definition of a newer ax", func(w *world) { w.applyNewer() }, "", why.Unreadable,
		`Version 1 of task.a, written by ann on desk at Mon 2026-11-30 11:30 +00:00 (v1, serial 1, from /etc/ax), cannot be read by this program: Bad value "L" in the day of month field: The day of month is 1 to 31. Quartz texts belong in the attribute quartz, which is designed but not built in this version.`,
	},
	{
		"no schedule", func(w *world) { w.apply(task()); w.apply(task(unscheduled)) }, "", why.NoSchedule,
		"task.a has no schedule since ann on desk at Mon 2026-11-30 11:30 +00:00 (v2, serial 2, from /etc/ax, commit 0123456789ab): it starts only by hand.",
	},
	{
		"disabled", func(w *world) { w.apply(task()); w.apply(task(disabled)) }, "", why.Disabled,
		"task.a is disabled (enabled = false) by ann on desk at Mon 2026-11-30 11:30 +00:00 (v2, serial 2, from /etc/ax, commit 0123456789ab).",
	},
	{
		"paused", func(w *world) { w.apply(task()); w.hold(ax.HoldPaused, 0) }, "", why.Held,
		"task.a is paused by bob since Mon 2026-11-30 11:30 +00:00, until someone resumes it: moving house.",
	},
	{
		"frozen for a time", func(w *world) {
			w.apply(task())
			w.hold(ax.HoldFrozen, w.ms("2026-12-01T00:00:00Z"))
		}, "", why.Held,
		"task.a is frozen by bob since Mon 2026-11-30 11:30 +00:00, until Tue 2026-12-01 00:00 +00:00: moving house.",
	},
	{
		"a hold that is over while axd is down", func(w *world) {
			w.apply(task())
			w.hold(ax.HoldPaused, w.ms("2026-11-30T12:30:00Z"))
			w.stop()
			w.at("2026-11-30T14:10:00Z")
		}, "", why.DaemonDown,
		"No axd runs on this store, so nothing fires: axd on h1 (pid 7, data folder /var/lib/ax) started at Mon 2026-11-30 11:30 +00:00 and stopped at Mon 2026-11-30 11:30 +00:00.",
	},
	{
		"exhausted", func(w *world) {
			w.apply(task(func(s *ax.TaskSpec) {
				s.Schedules = []ax.ScheduleSpec{{At: []string{"2026-11-30T12:00:00Z"}, Timezone: "UTC"}}
			}))
			w.fire("2026-11-30T12:00:00Z")
			w.finish(1, "2026-11-30T12:00:01Z", well)
		}, "", why.Exhausted,
		"The schedule of task.a is exhausted: at 2026-11-30T12:00:00Z in UTC, its last slot was Mon 2026-11-30 12:00 +00:00.",
	},
	{
		"next_fire_time that somebody changed", func(w *world) {
			w.apply(task())
			w.at("2026-11-30T12:00:00Z")
			row := w.object().Row
			_, err := w.store.Claim(w.t.Context(), []ax.Firing{{
				TaskID: 1, Version: 1, ExpectNextMs: row.NextMs, ExpectLockVersion: row.LockVersion,
				NextMs: w.ms("2026-12-24T18:00:00Z"), LastSlotMs: row.NextMs, NowMs: w.nowMs, Overlap: ax.OverlapQueue,
			}})
			w.check(err)
		}, "", why.NextDiffers,
		"next_fire_time of task.a is Thu 2026-12-24 18:00 +00:00 and should be Mon 2026-11-30 13:00 +00:00, the first slot after Mon 2026-11-30 12:00 +00:00: the row was changed by something else than ax.",
	},
	{
		"axd never ran", func(w *world) { w.stop(); w.apply(task()) }, "", why.DaemonDown,
		"No axd runs on this store, so nothing fires: axd on h1 (pid 7, data folder /var/lib/ax) started at Mon 2026-11-30 11:30 +00:00 and stopped at Mon 2026-11-30 11:30 +00:00.",
	},
	{
		"axd works on another file", func(w *world) { w.apply(task()); w.stop(); w.daemon = true }, "", why.DaemonApart,
		"An axd holds the lock beside this store but has not joined it, so it works on another file: the store was replaced under it, or it just starts (axd on h1 (pid 7, data folder /var/lib/ax) started at Mon 2026-11-30 11:30 +00:00 and stopped at Mon 2026-11-30 11:30 +00:00).",
	},
	{
		"handler not offered", func(w *world) { w.apply(task(handler("spark"))) }, "", why.NoHandler,
		"No running axd offers handler spark, which task.a needs: h1 has shell, http.",
	},
	{
		"due and not claimed", func(w *world) { w.apply(task()); w.at("2026-11-30T12:00:40Z") }, "", why.Unclaimed,
		"The slot of Mon 2026-11-30 12:00 +00:00 is due for 40 s and axd has not claimed it yet.",
	},
	{
		"runs", func(w *world) {
			w.apply(task())
			w.fire("2026-11-30T12:00:00Z")
			w.started(1)
			w.at("2026-11-30T12:05:00Z")
		}, "", why.Running,
		"It runs: instance 1, attempt 1 on h1, since Mon 2026-11-30 12:00 +00:00, until Mon 2026-11-30 13:00 +00:00 at most.",
	},
	{
		"handed over and not begun", func(w *world) {
			w.apply(task())
			w.fire("2026-11-30T12:00:00Z")
			w.at("2026-11-30T12:05:00Z")
		}, "", why.Handed,
		"Instance 1 was handed to an executor on h1 at Mon 2026-11-30 12:00 +00:00, which has not begun.",
	},
	{
		"is being stopped", func(w *world) {
			w.apply(task())
			w.fire("2026-11-30T12:00:00Z")
			w.started(1)
			w.cancel(1)
		}, "", why.Stopping,
		"Instance 1 is being stopped: asked for by bob.",
	},
	{
		"the axd that ran it is gone", func(w *world) {
			w.apply(task())
			w.fire("2026-11-30T12:00:00Z")
			w.daemon = false
		}, "", why.Orphaned,
		"Instance 1 was handed to axd on h1 at Mon 2026-11-30 12:00 +00:00, and that axd does not run any more: what became of it is not known.",
	},
	{
		"waits while held", func(w *world) {
			w.apply(task())
			w.at("2026-11-30T12:00:00Z")
			w.claim(false)
			w.hold(ax.HoldPaused, 0)
		}, "", why.Held,
		"Instance 1 waits. task.a is paused by bob since Mon 2026-11-30 12:00 +00:00, until someone resumes it: moving house.",
	},
	{
		"waits while axd is down", func(w *world) {
			w.apply(task())
			w.stop()
			w.trigger()
		}, "", why.DaemonDown,
		"Instance 1 waits. No axd runs on this store, so nothing fires: axd on h1 (pid 7, data folder /var/lib/ax) started at Mon 2026-11-30 11:30 +00:00 and stopped at Mon 2026-11-30 11:30 +00:00.",
	},
	{
		"waits for a handler", func(w *world) { w.apply(task(handler("spark"))); w.trigger() }, "", why.NoHandler,
		"Instance 1 waits. No running axd offers handler spark, which task.a needs: h1 has shell, http.",
	},
	{
		"started by hand in spite of a hold", func(w *world) {
			w.apply(task())
			w.hold(ax.HoldPaused, 0)
			w.trigger()
			w.dispatch(1)
			w.started(1)
		}, "", why.Running,
		"It runs: instance 1, attempt 1 on h1, since Mon 2026-11-30 11:30 +00:00, until Mon 2026-11-30 12:30 +00:00 at most.",
	},
	{
		"back-off", func(w *world) {
			w.apply(task())
			w.fire("2026-11-30T12:00:00Z")
			w.finish(1, "2026-11-30T12:00:05Z", func(e *ax.Ending) {
				badly(ax.StatusPending, ax.ClassTransient, "connection refused\nmore")(e)
				e.RetryStatus, e.NotBeforeMs = ax.StatusFailed, w.nowMs+90_000
			})
		}, "", why.BackOff,
		"Instance 1 waits until Mon 2026-11-30 12:01:35 +00:00 for its attempt 2, since attempt 1 failed: connection refused.",
	},
	{
		"its turn", func(w *world) {
			w.apply(task())
			w.fire("2026-11-30T12:00:00Z")
			w.started(1)
			w.fire("2026-11-30T13:00:00Z")
		}, "2026-11-30T13:00:00Z", why.Turn,
		`Instance 2 waits for its turn behind instance 1 (running), since concurrency is 1 and overlap is "queue".`,
	},
	{
		"its turn behind one in back-off", func(w *world) {
			w.apply(task())
			w.fire("2026-11-30T12:00:00Z")
			w.finish(1, "2026-11-30T12:59:05Z", func(e *ax.Ending) {
				badly(ax.StatusPending, ax.ClassTransient, "connection refused")(e)
				e.RetryStatus, e.NotBeforeMs = ax.StatusFailed, w.nowMs+90_000
			})
			w.fire("2026-11-30T13:00:00Z")
		}, "2026-11-30T13:00:00Z", why.Turn,
		`Instance 2 waits for its turn behind instance 1 (waiting until Mon 2026-11-30 13:00:35 +00:00), since concurrency is 1 and overlap is "queue".`,
	},
	{
		"an ended attempt still holds the place", func(w *world) {
			w.apply(task())
			w.fire("2026-11-30T12:00:00Z")
			w.finish(1, "2026-11-30T12:30:00Z", func(e *ax.Ending) {
				badly(ax.StatusTimeout, ax.ClassTimeout, "took too long")(e)
				e.StoppedMs = 0
			})
			w.fire("2026-11-30T13:00:00Z")
		}, "", why.Unstopped,
		"Instance 2 waits since the processes of instance 1, which ended timeout at Mon 2026-11-30 12:30 +00:00, are not known to be gone.",
	},
	{
		"about to start", func(w *world) { w.apply(task()); w.trigger() }, "", why.Starting,
		"Instance 1 is about to start: nothing has kept it for 0 s.",
	},
	{
		"all places taken", func(w *world) {
			w.apply(task(func(s *ax.TaskSpec) { s.Concurrency = 2 }))
			w.fire("2026-11-30T12:00:00Z")
			w.started(1)
			w.at("2026-11-30T13:00:00Z")
			w.claim(false)
			w.at("2026-11-30T13:00:20Z")
		}, "2026-11-30T13:00:00Z", why.Place,
		"Instance 2 has had its turn for 20 s and waits for a place of handler shell: 1 instance at work.",
	},
}

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
		`Mon 2026-11-30 11:45 +00:00 is no slot of version 1, which was in force then: cron "0 * * * *" in UTC; the slot before is Mon 2026-11-30 11:00 +00:00, the one after Mon 2026-11-30 12:00 +00:00; instance 1 (manual, v1) due Mon 2026-11-30 11:45:12 +00:00, started Mon 2026-11-30 11:45:12 +00:00 on h1, success at Mon 2026-11-30 11:45:13 +00:00 was started by hand.`,
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

// applyNewer applies a schedule that only a later version can read.
func (w *world) applyNewer() {
	w.t.Helper()
	definition := json.RawMessage(`{"handler":{"name":"shell","body":{}},"schedule":[{"cron":"0 12 L * *","timezone":"UTC"}],"enabled":true}`)
	_, err := w.store.Apply(w.t.Context(), ax.ChangeSet{
		ApplyID: "newer", Stack: "s", NowMs: w.nowMs, Revision: ax.Revision{Who: "ann", Host: "desk", Origin: "/etc/ax"},
		Changes: []ax.Change{{
			Action: ax.ActionCreate, Kind: ax.KindTask, Name: "a", Definition: definition, Hash: "h",
			Task: &ax.TaskChange{Enabled: true, MaxActive: 1, Overlap: ax.OverlapQueue},
		}},
	})
	w.check(err)
}

// berlin applies a task of 02:30 in Berlin and shows its times there.
func (w *world) berlin() {
	w.t.Helper()
	w.apply(task(cron("30 2 * * *", "Europe/Berlin")))
	zone, err := schedule.Zone("Europe/Berlin")
	w.check(err)
	w.zone = zone
}
