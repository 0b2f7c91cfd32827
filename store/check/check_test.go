package check_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store/check"
)

const (
	start  = int64(1_800_000_000_000)
	minute = int64(60_000)
)

// rows is a store made of slices.
type rows struct {
	objects     []ax.Object
	versions    []ax.VersionRow
	instances   []ax.Instance
	attempts    []ax.Attempt
	transitions []ax.Transition
	slots       []ax.SlotRecord
	unindexed   []ax.IndexFault
	concurrency int // of versions that are added
	backfills   []ax.Backfill
	err         error // at the end of each stream
}

func (r *rows) Audit(_ context.Context, read func(ax.Records) error) error { return read(r) }

func (r *rows) Objects() iter.Seq2[ax.Object, error]         { return stream(r.objects, r.err) }
func (r *rows) Versions() iter.Seq2[ax.VersionRow, error]    { return stream(r.versions, r.err) }
func (r *rows) Instances() iter.Seq2[ax.Instance, error]     { return stream(r.instances, r.err) }
func (r *rows) Attempts() iter.Seq2[ax.Attempt, error]       { return stream(r.attempts, r.err) }
func (r *rows) Transitions() iter.Seq2[ax.Transition, error] { return stream(r.transitions, r.err) }
func (r *rows) Slots() iter.Seq2[ax.SlotRecord, error]       { return stream(r.slots, r.err) }
func (r *rows) Unindexed() iter.Seq2[ax.IndexFault, error]   { return stream(r.unindexed, r.err) }
func (r *rows) Backfills() iter.Seq2[ax.Backfill, error]     { return stream(r.backfills, r.err) }

func stream[T any](rows []T, err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
		if err != nil {
			var none T
			yield(none, err)
		}
	}
}

// sound is a store with one minutely task, task 1, that fired twice.
func sound() *rows {
	r := &rows{}
	r.version("1m", start)
	r.objects = []ax.Object{{
		ID: 1, Kind: ax.KindTask, Stack: "main", Name: "a", Version: 1,
		Row: ax.TaskRow{Enabled: true, NextMs: start + 3*minute, LastSlotMs: start + 2*minute},
	}}
	r.success(1, start+minute, 1)
	r.success(2, start+2*minute, 1)
	return r
}

// version adds the next version of task 1; every "" is a deletion.
func (r *rows) version(every string, effectiveMs int64) {
	v := ax.VersionRow{
		VersionKey: ax.VersionKey{ObjectID: 1, Version: len(r.versions) + 1},
		Revision:   ax.Revision{Stack: "main", AtMs: effectiveMs}, Deleted: every == "",
	}
	if every != "" {
		d, err := ax.ParseDuration(every)
		if err != nil {
			panic(err)
		}
		v.Definition, v.Hash = ax.Definition{Kind: ax.KindTask, Name: "a", Task: &ax.TaskSpec{
			Schedules: []ax.ScheduleSpec{{Every: d, Timezone: "UTC"}}, Timeout: 1000, Concurrency: max(1, r.concurrency),
		}}.Canonical()
	}
	r.versions = append(r.versions, v)
	if len(r.objects) > 0 {
		r.objects[0].Version, r.objects[0].Deleted = v.Version, v.Deleted
	}
}

// success adds an instance of task 1 that succeeded.
func (r *rows) success(id, dueMs int64, version int) *ax.Instance {
	r.instances = append(r.instances, ax.Instance{
		Ref:     ax.Ref{ID: id, DueMs: dueMs, TaskID: 1, SlotKey: ax.ScheduleSlotKey(dueMs)},
		Version: version, Kind: ax.InstanceSchedule, Status: ax.StatusSuccess, Attempt: 1, Host: "h1",
		NotBeforeMs: dueMs, ClaimedMs: dueMs, HandedMs: dueMs, EndedMs: dueMs, StoppedMs: dueMs,
	})
	r.slots = append(r.slots, ax.SlotRecord{TaskID: 1, FromMs: dueMs, ToMs: dueMs, Version: version})
	return &r.instances[len(r.instances)-1]
}

// retry adds the n-th retry of an instance.
func (r *rows) retry(id, dueMs, of int64, n int) {
	in := r.success(id, dueMs, 1)
	in.Kind, in.SlotKey = ax.InstanceManual, ax.RetrySlotKey(of, n)
	r.slots = r.slots[:len(r.slots)-1]
}

// backfill adds a backfill of the two slots that is done and made n instances,
// with ids from 10 on.
func (r *rows) backfill(n int) *ax.Backfill {
	for i := range int64(n) {
		due := start + (i+1)*minute
		in := r.success(10+i, due, 1)
		in.Kind, in.SlotKey = ax.InstanceBackfill, ax.BackfillSlotKey(1, due)
		r.slots = r.slots[:len(r.slots)-1]
	}
	r.backfills = append(r.backfills, ax.Backfill{
		ID: 1, State: ax.BackfillDone, PositionMs: start + 3*minute, Made: int64(n), EndedMs: start + 3*minute,
		BackfillRequest: ax.BackfillRequest{TaskID: 1, Version: 1, FromMs: start, ToMs: start + 3*minute, Mode: ax.BackfillAll, Parallel: 1},
	})
	return &r.backfills[0]
}

func (r *rows) stretch(fromMs, toMs int64, version int) {
	r.slots = append(r.slots, ax.SlotRecord{TaskID: 1, FromMs: fromMs, ToMs: toMs, Version: version, Stretch: true})
}

func (r *rows) next(ms int64) { r.objects[0].Row.NextMs = ms }

// find checks the rows and returns the findings as lines.
func (r *rows) find(t *testing.T) []check.Finding {
	t.Helper()
	found, err := check.Check(t.Context(), r, time.UnixMilli(start+10*minute))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// What moves slots about in ways that are right.
func TestSoundStores(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		edit func(*rows)
	}{
		{"fired twice", func(*rows) {}},
		{"a backlog in a stretch", func(r *rows) { r.stretch(start+3*minute, start+9*minute, 1); r.next(start + 10*minute) }},
		{"slots used ahead of their time", func(r *rows) { r.success(3, start+8*minute, 1); r.success(4, start+9*minute, 1) }},
		{"a version applied while the clock was ahead", func(r *rows) {
			r.version("2m", start+60*minute)
			r.success(3, start+4*minute, 2)
			r.next(start + 6*minute)
		}},
		{"retention took the first", func(r *rows) {
			r.slots, r.instances = r.slots[1:], r.instances[1:]
			r.objects[0].Row.CheckedFromMs = start + minute
		}},
		{"retention took all, over two versions", func(r *rows) {
			r.version("5m", start+2*minute+1)
			r.slots, r.instances = nil, nil
			r.objects[0].Row.CheckedFromMs = start + 5*minute
			r.next(start + 10*minute)
		}},
		{"retention left an old stretch", func(r *rows) {
			r.slots, r.instances = nil, nil
			r.stretch(start+minute, start+2*minute, 1)
			r.success(3, start+7*minute, 1)
			r.objects[0].Row.CheckedFromMs = start + 6*minute
			r.next(start + 8*minute)
		}},
		{"retried twice", func(r *rows) {
			r.retry(5, start+2*minute, 2, 1)
			r.retry(6, start+2*minute, 2, 2)
			r.retry(7, start+2*minute, 5, 1)
		}},
		{"retention took what a retry is of", func(r *rows) {
			r.retry(5, start+minute, 1, 1)
			r.slots, r.instances = r.slots[1:], r.instances[1:]
			r.objects[0].Row.CheckedFromMs = start + minute
		}},
		{"backfilled", func(r *rows) { r.backfill(2) }},
		{"a backfill under way", func(r *rows) {
			b := r.backfill(1)
			b.State, b.PositionMs, b.EndedMs = ax.BackfillPaused, start+minute+1, 0
		}},
		{"retention took a backfill's instances", func(r *rows) {
			r.backfill(2).Made = 9
			r.objects[0].Row.CheckedFromMs = start + minute
		}},
		{"held: next stays", func(r *rows) { r.objects[0].Row.Hold = &ax.Hold{Kind: ax.HoldPaused, Who: "ann"} }},
		{"concurrency was lowered while two ran", func(r *rows) {
			for i := range r.instances {
				in := &r.instances[i]
				in.Status, in.EndedMs, in.StoppedMs, in.DeadlineMs = ax.StatusDispatched, 0, 0, start+20*minute
			}
			r.objects[0].Row.Active = 2
			r.concurrency = 2
			r.versions = nil
			r.version("1m", start)
			r.concurrency = 1
			r.version("1m", start+2*minute+1)
		}},
		{"disabled: none is owed", func(r *rows) { r.objects[0].Row.Enabled = false; r.next(0) }},
		{"deleted: none is owed", func(r *rows) { r.version("", start+2*minute+1); r.next(0) }},
		{"deleted and made again", func(r *rows) {
			r.version("", start+2*minute+1)
			r.version("1m", start+7*minute)
			r.next(start + 8*minute)
		}},
		{"another schedule", func(r *rows) {
			r.version("5m", start+2*minute+1)
			r.success(3, start+5*minute, 2)
			r.next(start + 10*minute)
		}},
		{"two changes with nothing due in between", func(r *rows) {
			r.version("1h", start+2*minute+1)
			r.version("5m", start+6*minute)
			r.success(3, start+10*minute, 3)
			r.next(start + 15*minute)
		}},
		{"an old version's slot after the change was computed", func(r *rows) {
			r.version("1m", start+2*minute+1)
			r.success(3, start+3*minute, 1)
			r.next(start + 4*minute)
		}},
		{"other zone data", func(r *rows) { r.objects[0].Row.Fingerprint = "of other zones"; r.next(start + 7*minute) }},
	}
	for _, tt := range tests {
		r := sound()
		tt.edit(r)
		for _, f := range r.find(t) {
			t.Errorf("%s: %s", tt.name, f)
		}
	}
}

func TestFindings(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		edit      func(*rows)
		invariant int
		subject   string
		says      string
	}{
		{"a slot twice", func(r *rows) { r.success(3, start+2*minute, 1) }, 1, "task.a", "two instances"},
		{"a slot lost before one used ahead of its time", func(r *rows) { r.success(3, start+9*minute, 1); r.next(start + 4*minute) }, 6, "task.a", "neither an instance"},
		{"an unknown task", func(r *rows) { r.instances[1].TaskID = 9 }, 2, "instance 2", "task 9"},
		{"an unknown version", func(r *rows) { r.instances[1].Version = 5 }, 2, "instance 2", "version 5"},
		{"a deletion's instance", func(r *rows) {
			r.version("", start+2*minute+1)
			r.next(0)
			r.instances[1].Version = 2
		}, 2, "instance 2", "version 2"},
		{"a version of nothing", func(r *rows) { r.versions[0].ObjectID = 9 }, 2, "object 9", "no object"},
		{"no version at all", func(r *rows) { r.versions = nil }, 2, "task.a", "no version"},
		{"a version missing", func(r *rows) { r.versions[0].Version = 2 }, 2, "task.a", "version 1 is missing"},
		{"a definition that is none", func(r *rows) { r.versions[0].Definition = []byte(`[]`) }, 2, "task.a", "cannot be read"},
		{"active", func(r *rows) { r.instances[1].StoppedMs = 0 }, 3, "task.a", "active is 0"},
		{"waiting", func(r *rows) { r.objects[0].Row.Waiting = 1 }, 3, "task.a", "waiting is 1"},
		{"never handed over", func(r *rows) { r.instances[1].HandedMs = 0 }, 4, "instance 2", "never handed over"},
		{"no end", func(r *rows) { r.instances[1].EndedMs = 0 }, 4, "instance 2", "no end"},
		{"an unknown status", func(r *rows) { r.instances[1].Status = "odd" }, 4, "instance 2", "odd"},
		{"skipped for no reason", func(r *rows) {
			r.instances[1].Status, r.instances[1].HandedMs, r.instances[1].StoppedMs = ax.StatusSkipped, 0, 0
			r.transitions = []ax.Transition{{InstanceID: 2, To: ax.StatusSkipped, Cause: ax.CauseOverlap}}
		}, 4, "instance 2", "no reason"},
		{"no deadline", func(r *rows) {
			in := &r.instances[1]
			in.Status, in.EndedMs, in.StoppedMs = ax.StatusDispatched, 0, 0
			r.objects[0].Row.Active = 1
		}, 4, "instance 2", "no deadline"},
		{"a retry of nothing", func(r *rows) { r.retry(5, start+2*minute, 3, 1) }, 2, "instance 5", "instance 3, which does not exist"},
		{"a retry of another instant", func(r *rows) { r.retry(5, start+2*minute, 1, 1) }, 2, "instance 5", "instance 1, which is no older"},
		{"a retry of itself", func(r *rows) { r.retry(5, start+2*minute, 5, 1) }, 2, "instance 5", "instance 5, which is no older"},
		{"a retry of what goes on", func(r *rows) {
			r.retry(5, start+2*minute, 2, 1)
			in := &r.instances[1]
			in.Status, in.EndedMs, in.StoppedMs, in.DeadlineMs = ax.StatusDispatched, 0, 0, start+3*minute
			r.objects[0].Row.Active = 1
		}, 2, "instance 5", "which has not ended"},
		{"a retry's key twice", func(r *rows) {
			r.retry(5, start+2*minute, 2, 1)
			r.retry(6, start+2*minute, 2, 1)
		}, 1, "instance 6", "key r:2:1"},
		{"of no backfill", func(r *rows) { r.backfill(1); r.backfills = nil }, 13, "instance 10", "of no backfill"},
		{"a backfill's key, and not its kind", func(r *rows) { r.backfill(1); r.instances[2].Kind = ax.InstanceManual }, 13, "instance 10", "of no backfill"},
		{"of another version than its backfill", func(r *rows) { r.backfill(1).Version = 2 }, 13, "instance 10", "differ from those of backfill 1"},
		{"out of the range", func(r *rows) { r.backfill(2).FromMs = start + 2*minute }, 13, "instance 10", "not among the slots"},
		{"beyond the position", func(r *rows) { r.backfill(2).PositionMs = start + 2*minute }, 13, "instance 11", "not among the slots"},
		{"fewer than the backfill made", func(r *rows) { r.backfill(1).Made = 2 }, 13, "backfill 1", "has made 2 instances, and 1 are there"},
		{"more than the backfill made", func(r *rows) { r.backfill(2).Made = 1 }, 13, "backfill 1", "has made 1 instances, and 2 are there"},
		{"more open than parallel", func(r *rows) {
			b := r.backfill(2)
			b.State, b.EndedMs = ax.BackfillRunning, 0
			for i := range r.instances[2:] {
				r.instances[2+i].StoppedMs = 0
			}
			r.objects[0].Row.Active = 2
		}, 13, "backfill 1", "2 of its instances are open"},
		{"done and not over", func(r *rows) {
			r.backfill(1)
			r.instances[2].StoppedMs = 0
			r.objects[0].Row.Active = 1
		}, 13, "backfill 1", "it is done, and 1 of its instances"},
		{"done before its end", func(r *rows) { r.backfill(0).PositionMs = start + minute }, 13, "backfill 1", "it is done, and its position"},
		{"an end that is none", func(r *rows) { r.backfill(0).State = ax.BackfillRunning }, 13, "backfill 1", "its end is"},
		{"a backfill of nothing", func(r *rows) { r.backfill(0).TaskID = 9 }, 13, "backfill 1", "task 9"},
		{"a backfill of what is deleted", func(r *rows) {
			b := r.backfill(0)
			b.State, b.EndedMs = ax.BackfillRunning, 0
			r.version("", start+2*minute+1)
			r.next(0)
		}, 13, "backfill 1", "is deleted"},
		{"left its final status", func(r *rows) {
			r.transitions = []ax.Transition{
				{InstanceID: 2, From: ax.StatusDispatched, To: ax.StatusTimeout, Cause: ax.CauseTimeout},
				{InstanceID: 2, From: ax.StatusSuccess, To: ax.StatusSuccess, Cause: ax.CauseLateResult},
			}
		}, 5, "instance 2", "from timeout to success"},
		{"not as its life line ends", func(r *rows) {
			r.transitions = []ax.Transition{{InstanceID: 2, From: ax.StatusDispatched, To: ax.StatusTimeout, Cause: ax.CauseTimeout}}
		}, 5, "instance 2", "ends with timeout"},
		{"next not after last", func(r *rows) { r.objects[0].Row.LastSlotMs = start + 3*minute }, 6, "task.a", "not after"},
		{"a hole", func(r *rows) { r.success(3, start+5*minute, 1); r.next(start + 6*minute) }, 6, "task.a", "2027-01-15T08:03:00Z"},
		{"a hole at the start", func(r *rows) { r.slots, r.instances = r.slots[1:], r.instances[1:] }, 6, "task.a", "08:01:00"},
		{"a hole after what retention took", func(r *rows) {
			r.slots, r.instances = nil, nil
			r.objects[0].Row.CheckedFromMs = start + minute
		}, 6, "task.a", "08:02:00"},
		{"a hole at the end", func(r *rows) { r.next(start + 4*minute) }, 6, "task.a", "08:03:00"},
		{"nothing next", func(r *rows) { r.next(0) }, 6, "task.a", "08:03:00"},
		{"a hole before the change", func(r *rows) {
			r.version("5m", start+4*minute)
			r.success(3, start+5*minute, 2)
			r.next(start + 10*minute)
		}, 6, "task.a", "08:03:00Z of version 1"},
		{"a hole after the change", func(r *rows) {
			r.version("5m", start+2*minute+1)
			r.next(start + 10*minute)
		}, 6, "task.a", "08:05:00Z of version 2"},
		{"a stretch over a slot", func(r *rows) { r.stretch(start+2*minute, start+2*minute, 1) }, 6, "task.a", "by two records"},
		{"an impossible transition", func(r *rows) {
			r.transitions = []ax.Transition{{InstanceID: 2, From: ax.StatusPending, To: ax.StatusSuccess, Cause: ax.CauseCancel}}
		}, 8, "instance 2", "no transition"},
		{"born twice", func(r *rows) {
			r.transitions = []ax.Transition{
				{InstanceID: 2, To: ax.StatusPending, Cause: ax.CauseTrigger},
				{InstanceID: 2, To: ax.StatusPending, Cause: ax.CauseTrigger},
			}
		}, 8, "instance 2", "two births"},
		{"an attempt forgotten", func(r *rows) { r.instances[1].Attempt = 2 }, 8, "instance 2", "0 ended attempts"},
		{"attempts out of order", func(r *rows) {
			r.instances[1].Attempt = 2
			r.attempts = []ax.Attempt{{InstanceID: 2, Attempt: 2, EndedMs: 1, StoppedMs: 1}}
		}, 8, "instance 2", "attempt 2 is recorded"},
		{"an attempt that goes on", func(r *rows) {
			r.instances[1].Attempt = 2
			r.attempts = []ax.Attempt{{InstanceID: 2, Attempt: 1, Status: ax.StatusFailed, EndedMs: 1}}
		}, 10, "instance 2", "has not stopped"},
		{"not in its task's history", func(r *rows) { r.unindexed = []ax.IndexFault{{Ref: r.instances[0].Ref, Missing: true}} }, 12, "instance 1", "does not list it"},
		{"only in its task's history", func(r *rows) {
			r.unindexed = []ax.IndexFault{{Ref: ax.Ref{TaskID: 1, DueMs: start, SlotKey: "s:1"}}}
		}, 12, "task 1", "which does not exist"},
		{"one attempt too many", func(r *rows) {
			for i := range r.instances {
				r.instances[i].StoppedMs = 0
			}
			r.objects[0].Row.Active = 2
		}, 3, "task.a", "lets more than 1"},
		{"held by nobody", func(r *rows) { r.objects[0].Row.Hold = &ax.Hold{Kind: ax.HoldPaused} }, 8, "task.a", "who did it"},
		{"never claimed", func(r *rows) { r.instances[1].ClaimedMs = 0 }, 4, "instance 2", "never claimed"},
		{"started nowhere", func(r *rows) {
			in := &r.instances[1]
			in.Status, in.HandedMs, in.StartedMs, in.StoppedMs = ax.StatusCancelled, 0, 1, 0
		}, 4, "instance 2", "has started"},
		{"a cancel that nobody noted", func(r *rows) { r.instances[1].CancelBy = "ann" }, 8, "instance 2", "ann asked to cancel it"},
		{"a cancel by nobody", func(r *rows) {
			r.transitions = []ax.Transition{{InstanceID: 2, Attempt: 1, From: ax.StatusDispatched, To: ax.StatusDispatched, Actor: "ann", Cause: ax.CauseCancel}}
		}, 8, "instance 2", "does not have who"},
		{"a verdict that nobody gave", func(r *rows) { r.instances[1].Verdict = ax.VerdictSkipped }, 8, "instance 2", `its verdict is "skipped"`},
		{"a verdict that was changed", func(r *rows) {
			r.instances[1].Verdict = ax.VerdictSkipped
			r.transitions = []ax.Transition{{
				InstanceID: 2, Attempt: 1, From: ax.StatusSuccess, To: ax.StatusSuccess, Actor: "ann", Cause: ax.CauseMark, Detail: "success: it is good",
			}}
		}, 8, "instance 2", `life line "success"`},
		{"skipped for another reason", func(r *rows) {
			r.instances[1].Status, r.instances[1].HandedMs, r.instances[1].StoppedMs, r.instances[1].Reason = ax.StatusSkipped, 0, 0, ax.ReasonDeleted
			r.transitions = []ax.Transition{{InstanceID: 2, Attempt: 1, To: ax.StatusSkipped, Cause: ax.CauseOverlap}}
		}, 8, "instance 2", "skipped for deleted"},
		{"noted of another attempt", func(r *rows) {
			r.transitions = []ax.Transition{{InstanceID: 2, Attempt: 2, From: ax.StatusSuccess, To: ax.StatusSuccess, Cause: ax.CauseLateResult}}
		}, 8, "instance 2", "notes late_result of attempt 2"},
		{"an attempt that did not fail", func(r *rows) {
			r.instances[1].Attempt = 2
			r.attempts = []ax.Attempt{{InstanceID: 2, Attempt: 1, Status: ax.StatusSuccess, EndedMs: 1, StoppedMs: 1}}
		}, 8, "instance 2", "attempt 1 ended as"},
		{"another stack", func(r *rows) { r.versions[0].Revision.Stack = "other" }, 11, "task.a", "stack other"},
	}
	for _, tt := range tests {
		r := sound()
		tt.edit(r)
		found := r.find(t)
		told := false
		for _, f := range found {
			told = told || f.Invariant == tt.invariant && f.Subject == tt.subject && strings.Contains(f.Problem, tt.says) && f.Remedy != ""
		}
		if !told {
			t.Errorf("%s: findings are %v, want invariant %d of %s saying %q", tt.name, found, tt.invariant, tt.subject, tt.says)
		}
	}
}

func TestFindingsAreBounded(t *testing.T) {
	t.Parallel()
	r := sound()
	for id := range int64(2 * check.MaxFindings) {
		r.instances = append(r.instances, ax.Instance{Ref: ax.Ref{ID: id + 10, TaskID: 9}})
	}
	if n := len(r.find(t)); n != check.MaxFindings {
		t.Errorf("%d findings, want %d", n, check.MaxFindings)
	}
}

func TestReadErrors(t *testing.T) {
	t.Parallel()
	r := sound()
	r.err = errors.New("the disk is gone")
	if _, err := check.Check(t.Context(), r, time.UnixMilli(start)); !errors.Is(err, r.err) {
		t.Errorf("error is %v", err)
	}
}
