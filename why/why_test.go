package why_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/axctl/ax"
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
		"frozen by its failures", func(w *world) {
			w.apply(task(func(s *ax.TaskSpec) { s.FreezeAfter = 2 }))
			w.fire("2026-11-30T12:00:00Z")
			w.finish(1, "2026-11-30T12:00:03Z", badly(ax.StatusFailed, ax.ClassFailed, "exit code 3"))
			w.fire("2026-11-30T13:00:00Z")
			w.finish(2, "2026-11-30T13:00:03Z", badly(ax.StatusFailed, ax.ClassFailed, "exit code 3"))
			w.at("2026-11-30T15:00:00Z")
		}, "", why.Held,
		"task.a is frozen by freeze_after since Mon 2026-11-30 13:00:03 +00:00, until someone unfreezes it: 2 instances in a row failed, the last one is instance 2: exit code 3.",
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
		"pool that no axd has", func(w *world) { w.apply(task(pool("gpu"))) }, "", why.NoPool,
		"No running axd has a pool gpu, which task.a chose: h1 has hot=8, http=64, shell=64.",
	},
	{
		"an instance in a pool that no axd has", func(w *world) {
			w.apply(task(pool("gpu")))
			w.at("2026-11-30T12:00:00Z")
			w.claim(false)
		}, "", why.NoPool,
		"Instance 1 waits. No running axd has a pool gpu, which task.a chose: h1 has hot=8, http=64, shell=64.",
	},
	{
		"the clock was set back", func(w *world) {
			w.apply(task())
			w.check(w.store.KeepClock(w.t.Context(), ax.ClockMark{WallMs: w.nowMs, ElapsedMs: 500_000, Kernel: "k1"}))
			w.clock = ax.ClockMark{WallMs: w.nowMs - 7_190_000, ElapsedMs: 510_000, Kernel: "k1"}
		}, "", why.ClockDoubted,
		"The clock of this machine was set back by 2 h since axd believed it last, when it said Mon 2026-11-30 11:30 +00:00: axd claims nothing until it is confirmed.",
	},
	{
		"the clock is as it was", func(w *world) {
			w.apply(task())
			w.check(w.store.KeepClock(w.t.Context(), ax.ClockMark{WallMs: w.nowMs, ElapsedMs: 500_000, Kernel: "k1"}))
			w.clock = ax.ClockMark{WallMs: w.nowMs + 60_000, ElapsedMs: 560_000, Kernel: "k1"}
		}, "", why.Comes,
		"It fires next at Mon 2026-11-30 12:00 +00:00, in 30 min, by version 1.",
	},
	{
		"its executor is quarantined, a built-in one", func(w *world) {
			w.apply(task())
			w.check(w.store.Offer(w.t.Context(), ax.HostOffer{
				Host: "h1", Boot: "boot1", AtMs: w.nowMs,
				Handlers: []ax.OfferedHandler{{Name: "shell", Executor: "shell", SchemaHash: "1f", Schema: []byte(`{"handler":"shell"}`)}},
				Plugins: []ax.HostPlugin{
					{Name: "shell", Path: "/plugins/ax-handler-shell", Problem: "it is the name of a built-in executor"},
					{Name: "shell", Path: "/usr/bin/axd", Problem: "exit status 2", QuarantinedMs: w.nowMs - 60_000, RetryMs: w.nowMs + 30_000},
				},
			}))
			w.trigger()
		}, "", why.PluginDown,
		"Instance 1 waits. Handler shell is of plugin shell, which does not run on h1 as it should: quarantined after a crash loop since Mon 2026-11-30 11:29 +00:00: exit status 2.",
	},
	{
		"its plugin does not run", func(w *world) {
			w.apply(task(handler("daily")))
			w.offer("sha256 differs", `{"handler":"daily"}`)
		}, "", why.PluginDown,
		"Handler daily is of plugin report, which does not run on h1 as it should: sha256 differs.",
	},
	{
		"a plugin that has the name of the built-in handler is refused", func(w *world) {
			w.apply(task())
			w.check(w.store.Offer(w.t.Context(), ax.HostOffer{
				Host: "h1", Boot: "boot1", AtMs: w.nowMs,
				Handlers: []ax.OfferedHandler{{
					Name: "shell", Executor: "shell", SchemaHash: "1f",
					Schema: []byte(`{"handler":"shell","attributes":[{"name":"command","types":["string"]}]}`),
				}},
				Plugins: []ax.HostPlugin{{Name: "shell", Path: "/plugins/ax-handler-shell", Problem: "the name of a built-in executor"}},
			}))
		}, "", why.Comes,
		"It fires next at Mon 2026-11-30 12:00 +00:00, in 30 min, by version 1.",
	},
	{
		"its plugin runs, though not as it is declared now", func(w *world) {
			w.apply(task(handler("daily")))
			w.check(w.store.Offer(w.t.Context(), ax.HostOffer{
				Host: "h1", Boot: "boot1", AtMs: w.nowMs,
				Handlers: []ax.OfferedHandler{{Name: "daily", Executor: "report", SchemaHash: "1f", Schema: []byte(`{"handler":"daily","attributes":[{"name":"command","types":["string"]}]}`)}},
				Plugins:  []ax.HostPlugin{{Name: "report", Path: "/plugins/ax-handler-report", Declared: "its env differs"}},
			}))
		}, "", why.Comes,
		"It fires next at Mon 2026-11-30 12:00 +00:00, in 30 min, by version 1.",
	},
	{
		"another plugin does not run", func(w *world) {
			w.apply(task(handler("spark")))
			w.offer("sha256 differs", `{"handler":"daily"}`)
		}, "", why.NoHandler,
		"No running axd offers handler spark, which task.a needs: h1 has shell, http, daily; plugin report does not run on h1 as it should: sha256 differs.",
	},
	{
		"the handler's schema does not accept the body", func(w *world) {
			w.apply(task(handler("daily")))
			w.offer("", `{"handler":"daily","attributes":[{"name":"day","types":["string"]}]}`)
			w.trigger()
		}, "", why.BodyRefused,
		"Instance 1 waits. Handler daily as h1 offers it (plugin report) does not accept the body of task.a: there is no attribute \"command\".",
	},
	{
		"due and not claimed", func(w *world) { w.apply(task()); w.at("2026-11-30T12:00:40Z") }, "", why.Unclaimed,
		"The slot of Mon 2026-11-30 12:00 +00:00 is due for 40 s and axd has not claimed it yet.",
	},
	{
		"stands still", func(w *world) {
			w.apply(task())
			w.fire("2026-11-30T12:00:00Z")
			w.started(1)
			w.at("2026-11-30T12:10:00Z")
			w.check(w.store.Signal(w.t.Context(), ax.SignalRequest{InstanceID: 1, Signal: ax.SignalPause, NowMs: w.nowMs, Who: "bob"}))
			w.check(w.store.Signalled(w.t.Context(), []ax.SignalAnswer{{InstanceID: 1, Attempt: 1, Signal: ax.SignalPause, AtMs: w.nowMs, NowMs: w.nowMs}}))
			w.at("2026-11-30T12:30:00Z")
		}, "", why.Paused,
		"Instance 1 stands still: bob paused it at Mon 2026-11-30 12:10 +00:00, 20 min ago; it holds its place, and its timeout stands still too.",
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
		"Instance 1 was handed to axd on h1 at Mon 2026-11-30 12:00 +00:00, and that axd does not run any more; its executor may go on with it for some minutes.",
	},
	{
		"the axd that ran it was started again", func(w *world) {
			w.apply(task())
			w.fire("2026-11-30T12:00:00Z")
			w.start("boot2")
		}, "", why.Orphaned,
		"Instance 1 was handed to axd on h1 at Mon 2026-11-30 12:00 +00:00, and that axd does not run any more; its executor may go on with it for some minutes.",
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
		"an ended attempt cannot be killed", func(w *world) {
			w.apply(task())
			w.fire("2026-11-30T12:00:00Z")
			w.finish(1, "2026-11-30T12:30:00Z", func(e *ax.Ending) {
				badly(ax.StatusTimeout, ax.ClassTimeout, "took too long")(e)
				e.StoppedMs = 0
			})
			w.finish(1, "2026-11-30T12:30:15Z", stuck)
			w.fire("2026-11-30T13:00:00Z")
		}, "", why.Unkillable,
		"Instance 2 waits: instance 1 ended (timeout), but its processes do not end though they were killed, and hold its place: 4711 (cp, state D).",
	},
	{
		"an attempt that waits for its retry cannot be killed", func(w *world) {
			w.apply(task())
			w.fire("2026-11-30T12:00:00Z")
			w.finish(1, "2026-11-30T12:30:15Z", stuck)
		}, "", why.Unkillable,
		"Instance 1 was ended, but its processes do not end though they were killed, and hold its place: 4711 (cp, state D).",
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
		"Instance 2 has had its turn for 20 s and waits for a place of pool shell: 1 instance at work in its 64 places on h1.",
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

// An instance's id asks about that instance, whatever else its task does; the
// answer is a function of the facts alone.
func TestInstanceByID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(task())
	w.trigger()
	w.dispatch(1)
	w.finish(1, "2026-11-30T11:31:00Z", badly(ax.StatusFailed, ax.ClassFailed, "exit code 3"))
	w.fire("2026-11-30T12:00:00Z")
	f := w.facts("", 1)
	x := why.Explain(f)
	if want := "Instance 1 failed in its only attempt at Mon 2026-11-30 11:31 +00:00: exit code 3."; x.Answer.Text != want {
		t.Errorf("got %s\nwant %s", x.Answer.Text, want)
	}
	if want := "instance 1, by bob at Mon 2026-11-30 11:30 +00:00"; x.Checks[1].Evidence != want {
		t.Errorf("got %s\nwant %s", x.Checks[1].Evidence, want)
	}
	if !reflect.DeepEqual(x, why.Explain(f)) {
		t.Error("the same facts have two explanations")
	}
}

// All that is wrong is listed; the answer is what has to be mended first.
func TestSeveralCauses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(task(disabled))
	w.hold(ax.HoldPaused, 0)
	w.stop()
	x := why.Explain(w.facts("", 0))
	var no []string
	for _, c := range x.Checks {
		if c.Outcome == why.No {
			no = append(no, c.Question)
		}
	}
	want := []string{"Is it enabled?", "Is it free of holds?", "Does axd run on this store?"}
	if x.Answer.Code != why.Disabled || !slices.Equal(no, want) {
		t.Errorf("%s, and no to %q", x.Answer.Code, no)
	}
}

// deaf is a store that answers nothing from its n-th question on.
type deaf struct {
	why.Store
	left int
}

var errDeaf = errors.New("the store is gone")

func (d *deaf) ask() error {
	if d.left--; d.left < 0 {
		return errDeaf
	}
	return nil
}

func (d *deaf) Backfills(ctx context.Context, f ax.BackfillFilter) ([]ax.Backfill, error) {
	if err := d.ask(); err != nil {
		return nil, err
	}
	return d.Store.Backfills(ctx, f)
}

func (d *deaf) Versions(ctx context.Context, id int64) ([]ax.VersionRow, error) {
	if err := d.ask(); err != nil {
		return nil, err
	}
	return d.Store.Versions(ctx, id)
}

func (d *deaf) Hosts(ctx context.Context) ([]ax.Host, error) {
	if err := d.ask(); err != nil {
		return nil, err
	}
	return d.Store.Hosts(ctx)
}

func (d *deaf) Counts(ctx context.Context) (map[ax.Status]int64, error) {
	if err := d.ask(); err != nil {
		return nil, err
	}
	return d.Store.Counts(ctx)
}

func (d *deaf) Objects(ctx context.Context, f ax.ObjectFilter) ([]ax.Object, error) {
	if err := d.ask(); err != nil {
		return nil, err
	}
	return d.Store.Objects(ctx, f)
}

func (d *deaf) Instances(ctx context.Context, f ax.InstanceFilter) ([]ax.InstanceRow, error) {
	if err := d.ask(); err != nil {
		return nil, err
	}
	return d.Store.Instances(ctx, f)
}

func (d *deaf) Instance(ctx context.Context, id int64) (ax.Life, error) {
	if err := d.ask(); err != nil {
		return ax.Life{}, err
	}
	return d.Store.Instance(ctx, id)
}

func (d *deaf) Stretches(ctx context.Context, id int64, limit int) ([]ax.SkippedStretch, error) {
	if err := d.ask(); err != nil {
		return nil, err
	}
	return d.Store.Stretches(ctx, id, limit)
}

// A store that fails at any question gives that error and no explanation.
func TestGatherFromAStoreThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(task(overlap(ax.OverlapLatest)))
	w.fire("2026-11-30T12:00:00Z")
	w.fire("2026-11-30T13:00:00Z")
	w.fire("2026-11-30T14:00:00Z")
	q := why.Question{Object: w.object(), AtMs: w.ms("2026-11-30T13:00:00Z"), NowMs: w.nowMs, Zone: w.zone, Daemon: true}
	const questions = 13
	for n := range questions + 1 {
		_, err := why.Gather(t.Context(), &deaf{w.store, n}, q)
		if errors.Is(err, errDeaf) != (n < questions) {
			t.Errorf("with %d answers: %v", n, err)
		}
	}
}

// stuck says that the processes of an attempt cannot be killed.
func stuck(e *ax.Ending) {
	*e = ax.Ending{Ref: e.Ref, Attempt: e.Attempt, Cause: ax.CauseUnkillable, Detail: "4711 (cp, state D)", NowMs: e.NowMs}
}
