package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/axctl/ax"
)

// alike is equal for what has no ==.
func alike(f *fixture, what string, got, want any) {
	f.Helper()
	if !reflect.DeepEqual(got, want) {
		f.Errorf("%s is %+v, want %+v", what, got, want)
	}
}

// A person's retry is another instance for the same instant, with all its
// attempts before it; what it is a retry of stays as it was (B103).
func testRetryByHand(f *fixture) {
	a := f.task("a", nil)
	old := f.fire(a, nil).Ref
	for attempt := 1; attempt < 3; attempt++ {
		f.finish(f.again(old, attempt, f.nowMs))
		f.handOver(old, attempt+1)
	}
	retry := ax.Retry{InstanceID: old.ID, NowMs: f.nowMs + 50, Who: "bob"}
	_, err := f.Retry(f.ctx, retry)
	f.fails(err, ax.ErrConflict)
	end := f.ending(old, 3, ax.StatusFailed)
	end.ErrorClass, end.Error = ax.ClassFailed, "exit status 1"
	f.finish(end)
	before := f.life(old.ID)
	row := f.object("a").Row

	f.ok(f.Hold(f.ctx, a.ID, ax.Hold{Kind: ax.HoldPaused, Who: "ann", SinceMs: f.nowMs}))
	ref, err := f.Retry(f.ctx, retry)
	f.ok(err)
	l := f.wantStatus(ref.ID, ax.StatusPending)
	alike(f, "instance", l.Instance, ax.Instance{
		Ref:     ax.Ref{ID: ref.ID, DueMs: old.DueMs, TaskID: a.ID, SlotKey: ax.RetrySlotKey(old.ID, 1)},
		Version: 1, Kind: ax.InstanceManual, Status: ax.StatusPending, Attempt: 1, NotBeforeMs: f.nowMs + 50, ClaimedMs: f.nowMs + 50,
	})
	equal(f, "retry of", l.RetryOf(), old.ID)
	birth := ax.Transition{
		InstanceID: ref.ID, AtMs: f.nowMs + 50, Attempt: 1, To: ax.StatusPending, Actor: "bob", Cause: ax.CauseRetryOf, Detail: fmt.Sprintf("instance %d", old.ID),
	}
	equal(f, "life line", len(l.Transitions), 1)
	equal(f, "birth", l.Transitions[0], birth)
	equal(f, "next_fire_time", f.object("a").Row.NextMs, row.NextMs)
	f.wantRow(a, 0, 1)

	// It has all its attempts before it, in spite of the hold.
	f.handOver(ref, 1)
	equal(f, "its first failure", f.finish(f.again(ref, 1, f.nowMs)), ax.Ended{Status: ax.StatusPending, Freed: true})
	f.handOver(ref, 2)
	f.finish(f.ending(ref, 2, ax.StatusSuccess))
	equal(f, "attempts", f.wantStatus(ref.ID, ax.StatusSuccess).Attempt, 2)
	f.wantRow(a, 0, 0)

	// The version is the old one's unless the current one is asked for.
	changed := spec()
	changed.Timeout *= 2
	f.apply(f.update(f.object("a"), changed))
	second, err := f.Retry(f.ctx, retry)
	f.ok(err)
	retry.WithCurrent = true
	third, err := f.Retry(f.ctx, retry)
	f.ok(err)
	equal(f, "key of the second", second.SlotKey, ax.RetrySlotKey(old.ID, 2))
	equal(f, "version as was", f.life(second.ID).Version, 1)
	equal(f, "version with current", f.life(third.ID).Version, 2)
	of, err := f.Retry(f.ctx, ax.Retry{InstanceID: ref.ID, NowMs: f.nowMs, Who: "bob"})
	f.ok(err)
	equal(f, "retry of a retry", of.RetryOf(), ref.ID)

	after := f.life(old.ID)
	if want := []int64{ref.ID, second.ID, third.ID}; !slices.Equal(after.RetriedBy, want) {
		f.Errorf("retried by %v, want %v", after.RetriedBy, want)
	}
	after.RetriedBy = nil
	alike(f, "the old one", after, before)

	_, err = f.Retry(f.ctx, ax.Retry{InstanceID: 99, NowMs: f.nowMs})
	f.fails(err, ax.ErrNotFound)
	f.apply(f.remove(f.object("a")))
	_, err = f.Retry(f.ctx, retry)
	f.fails(err, ax.ErrNotFound)
	f.check()
	// Retention may take what they are retries of.
	f.prune(f.nowMs+minute, 4)
	_, err = f.Instance(f.ctx, old.ID)
	f.fails(err, ax.ErrNotFound)
}

func testMark(f *fixture) {
	a := f.task("a", nil)
	ref := f.fire(a, nil).Ref
	mark := ax.Mark{InstanceID: ref.ID, Verdict: ax.VerdictSuccess, Reason: "done by hand", NowMs: f.nowMs + 30, Who: "bob"}
	f.fails(f.Mark(f.ctx, mark), ax.ErrConflict)
	f.finish(f.ending(ref, 1, ax.StatusFailed))
	before := f.life(ref.ID)
	f.ok(f.Mark(f.ctx, mark))
	l := f.life(ref.ID)
	equal(f, "verdict", l.Verdict, ax.VerdictSuccess)
	equal(f, "life line", len(l.Transitions), 1)
	equal(f, "what it says", l.Transitions[0], ax.Transition{
		InstanceID: ref.ID, AtMs: f.nowMs + 30, Attempt: 1, From: ax.StatusFailed, To: ax.StatusFailed, Actor: "bob",
		Cause: ax.CauseMark, Detail: "success: done by hand",
	})
	l.Verdict = ""
	alike(f, "the rest", l.Instance, before.Instance)
	mark.Verdict = ax.VerdictSkipped
	f.ok(f.Mark(f.ctx, mark))
	rows, err := f.Instances(f.ctx, ax.InstanceFilter{TaskID: a.ID})
	f.ok(err)
	equal(f, "the last verdict", rows[0].Verdict, ax.VerdictSkipped)
	equal(f, "life line", f.causes(ref.ID), "mark mark")
	mark.InstanceID = 99
	f.fails(f.Mark(f.ctx, mark), ax.ErrNotFound)
	f.wantRow(a, 0, 0)
}

func testTriggerKey(f *fixture) {
	a, b := f.task("a", nil), f.task("b", nil)
	t := ax.Trigger{ObjectID: a.ID, UID: "u1", DueMs: f.nowMs - 5, NowMs: f.nowMs, Who: "bob", Key: "load-7"}
	first, err := f.Trigger(f.ctx, t)
	f.ok(err)
	equal(f, "what the life line says", f.life(first.ID).Transitions[0].Detail, "key load-7")
	trigger := func(uid string, edit func(*ax.Trigger)) ax.Ref {
		f.Helper()
		u := t
		u.UID, u.DueMs = uid, f.nowMs
		edit(&u)
		ref, err := f.Trigger(f.ctx, u)
		f.ok(err)
		return ref
	}
	equal(f, "the same key", trigger("u2", func(*ax.Trigger) {}), first)
	equal(f, "the last moment", trigger("u3", func(u *ax.Trigger) { u.NowMs += ax.TriggerKeyMs - 1 }), first)
	f.wantRow(a, 0, 1)
	for name, other := range map[string]ax.Ref{
		"another task": trigger("u4", func(u *ax.Trigger) { u.ObjectID = b.ID }),
		"another key":  trigger("u5", func(u *ax.Trigger) { u.Key = "load-8" }),
		"no key":       trigger("u6", func(u *ax.Trigger) { u.Key = "" }),
	} {
		if other.ID == first.ID {
			f.Errorf("%s gives the first instance", name)
		}
	}
	var group sync.WaitGroup
	at := make([]ax.Ref, 8)
	errs := make([]error, len(at))
	for i := range at {
		group.Go(func() {
			u := t
			u.UID, u.Key = fmt.Sprint("at once ", i), "at once"
			at[i], errs[i] = f.Trigger(f.ctx, u)
		})
	}
	group.Wait()
	for i := range at {
		f.ok(errs[i])
		equal(f, "one of many at once", at[i], at[0])
	}
	later := trigger("u7", func(u *ax.Trigger) { u.NowMs += ax.TriggerKeyMs })
	if later.ID == first.ID {
		f.Error("the key is known for over 30 days")
	}
	again := trigger("u8", func(u *ax.Trigger) { u.NowMs += ax.TriggerKeyMs + 1 })
	equal(f, "the key anew", again, later)

	// A key outlives its instance, and goes by its own age.
	_, err = f.Cancel(f.ctx, first.ID, "bob", f.nowMs)
	f.ok(err)
	var born ax.Ref
	for i, key := range []string{"load-8", "load-9"} {
		born = trigger("v"+key, func(u *ax.Trigger) { u.Key, u.NowMs = key, f.nowMs+int64(i) })
		_, err = f.Cancel(f.ctx, born.ID, "bob", f.nowMs)
		f.ok(err)
	}
	equal(f, "deleted", f.prune(f.nowMs, 0).Keys, 0)
	_, err = f.Instance(f.ctx, first.ID)
	f.fails(err, ax.ErrNotFound)
	var sum ax.Pruned
	f.ok(f.Prune(f.ctx, ax.PruneQuery{KeysByMs: f.nowMs}, func(n ax.Pruned) error { sum = sum.Plus(n); return nil }))
	equal(f, "deleted", sum, ax.Pruned{Keys: 3}) // load-8 and "at once" of a, load-7 of b
	equal(f, "a key that stays", trigger("w1", func(u *ax.Trigger) { u.Key = "load-9" }), born)
}
