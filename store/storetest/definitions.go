package storetest

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/axctl/ax"
)

func testApply(f *fixture) {
	st, err := f.ReadStack(f.ctx, "main")
	f.ok(err)
	if st.StoreID == "" || st.Serial != 0 || len(st.Objects) != 0 {
		f.Fatalf("a stack never applied is %+v", st)
	}
	made := f.apply(f.create("a", spec()), f.create("b", spec()))
	if made.Serial != 1 || made.Revision.AtMs != f.nowMs || made.Revision.Stack != "main" || !made.StoreMade {
		f.Errorf("apply answered %+v", made)
	}
	st, err = f.ReadStack(f.ctx, "main")
	f.ok(err)
	equal(f, "serial", st.Serial, 1)
	equal(f, "origin", st.Origin, "/etc/ax")
	equal(f, "objects", len(st.Objects), 2)
	a := st.Objects[0]
	want := f.create("a", spec())
	if a.Name != "a" || a.Version != 1 || a.Hash != want.Hash || !bytes.Equal(a.Definition, want.Definition) {
		f.Errorf("object is %+v", a)
	}
	equal(f, "written by", a.WrittenBy, "ann")
	equal(f, "written at", a.WrittenMs, f.nowMs)
	if row := a.Row; !row.Enabled || row.Hold != nil || row.NextMs != start+minute || row.LastSlotMs != 0 || row.LockVersion != 1 {
		f.Errorf("row is %+v", row)
	}
	info, err := f.Info(f.ctx)
	f.ok(err)
	equal(f, "store id", info.ID, st.StoreID)
	equal(f, "store serial", info.Serial, 1)
	if info.Incarnation == "" || bytes.ContainsRune([]byte(info.Incarnation), '-') {
		f.Errorf("incarnation %q does not fit a batch number", info.Incarnation)
	}
	versions, err := f.TaskVersions(f.ctx, []ax.VersionKey{{ObjectID: a.ID, Version: 1}, {ObjectID: a.ID, Version: 2}, {ObjectID: 99, Version: 1}})
	f.ok(err)
	if len(versions) != 1 || versions[0].Name != "a" || versions[0].Stack != "main" || versions[0].Spec.Timeout != ax.Duration(minute) {
		f.Errorf("versions are %+v", versions)
	}
}

func testApplyStale(f *fixture) {
	a := f.task("a", nil)
	f.task("b", nil)
	changed := spec()
	changed.Timeout = 1000
	before, err := f.ReadStack(f.ctx, "main")
	f.ok(err)
	tests := []struct {
		name string
		edit func(*ax.ChangeSet)
	}{
		{"an older version", func(cs *ax.ChangeSet) { cs.Changes[0].BaseVersion = 3 }},
		{"an older serial", func(cs *ax.ChangeSet) { cs.BaseSerial-- }},
		{"another store", func(cs *ax.ChangeSet) { cs.StoreID = "elsewhere" }},
		{"a name that is taken", func(cs *ax.ChangeSet) { cs.Changes = append(cs.Changes, f.create("b", spec())) }},
		{"another object's id", func(cs *ax.ChangeSet) { cs.Changes[0].ObjectID = 2 }},
		{"a delete of nothing", func(cs *ax.ChangeSet) {
			cs.Changes = append(cs.Changes, f.remove(ax.Object{ID: 77, Kind: ax.KindTask, Name: "z", Version: 1}))
		}},
	}
	for _, tt := range tests {
		cs := f.changeSet("main", f.update(a, changed))
		tt.edit(&cs)
		_, err := f.Apply(f.ctx, cs)
		if !errors.Is(err, ax.ErrStale) {
			f.Errorf("%s: error is %v, want ErrStale", tt.name, err)
		}
		_, err = f.Revision(f.ctx, cs.ApplyID)
		f.fails(err, ax.ErrNotFound)
	}
	after, err := f.ReadStack(f.ctx, "main")
	f.ok(err)
	if after.Serial != before.Serial || after.Objects[0].Version != 1 || after.Objects[0].Row != before.Objects[0].Row {
		f.Errorf("a refused apply left %+v", after)
	}
	cs := f.changeSet("main", f.update(a, changed))
	cs.Changes[0].BaseVersion = 3
	_, err = f.Apply(f.ctx, cs)
	var stale *ax.StaleError
	if !errors.As(err, &stale) || stale.Address != "task.a" || stale.Read != 3 || stale.Found != 1 || stale.Who != "ann" || stale.AtMs != start {
		f.Errorf("stale error is %+v", stale)
	}
}

// testApplyPlugin: a plugin has versions as a task has, and no hot row: nothing
// of it is due, and nobody starts it.
func testApplyPlugin(f *fixture) {
	define := func(version string) ax.Change {
		body, hash := ax.Definition{Kind: ax.KindPlugin, Name: "p", Plugin: &ax.PluginSpec{Path: "ax-handler-p", Version: version}}.Canonical()
		return ax.Change{Action: ax.ActionCreate, Kind: ax.KindPlugin, Name: "p", Definition: body, Hash: hash}
	}
	f.apply(f.create("p", spec()), define("1"))
	of := func() (task, plugin ax.Object) {
		st, err := f.ReadStack(f.ctx, "main")
		f.ok(err)
		equal(f, "objects", len(st.Objects), 2)
		return st.Objects[1], st.Objects[0]
	}
	task, p := of()
	if task.Address() != "task.p" || p.Address() != "plugin.p" || p.Version != 1 || p.Row != (ax.TaskRow{}) {
		f.Fatalf("objects are %+v and %+v", task, p)
	}
	c := define("2")
	c.Action, c.ObjectID, c.BaseVersion = ax.ActionUpdate, p.ID, 1
	f.apply(c)
	_, p = of()
	equal(f, "version", p.Version, 2)
	equal(f, "row", p.Row, ax.TaskRow{})
	f.apply(ax.Change{Action: ax.ActionDelete, Kind: ax.KindPlugin, Name: "p", ObjectID: p.ID, BaseVersion: 2})
	versions, err := f.Versions(f.ctx, p.ID)
	f.ok(err)
	if len(versions) != 3 || !versions[0].Deleted || !bytes.Equal(versions[1].Definition, c.Definition) {
		f.Errorf("versions are %+v", versions)
	}
	f.apply(define("3"))
	task, p = of()
	if p.Version != 4 || p.Deleted || task.Version != 1 || task.Row.LockVersion != 1 {
		f.Errorf("made again: %+v beside %+v", p, task)
	}
	_, err = f.Trigger(f.ctx, ax.Trigger{ObjectID: p.ID, UID: "u", DueMs: f.nowMs, NowMs: f.nowMs, Who: "bob"})
	f.fails(err, ax.ErrNotFound)
	f.fails(f.Hold(f.ctx, p.ID, ax.Hold{Kind: ax.HoldPaused, Who: "ann"}), ax.ErrNotFound)
	due, err := f.ScheduledTasks(f.ctx, 0, 10)
	f.ok(err)
	equal(f, "scheduled tasks", len(due), 1)
}

func testApplyAgain(f *fixture) {
	cs := f.changeSet("main", f.create("a", spec()))
	first, err := f.Apply(f.ctx, cs)
	f.ok(err)
	again, err := f.Apply(f.ctx, cs) // its answer was lost, and it is sent once more
	f.ok(err)
	equal(f, "serial", again.Serial, first.Serial)
	found, err := f.Revision(f.ctx, cs.ApplyID)
	f.ok(err)
	equal(f, "revision", found, first.Revision)
	equal(f, "version", f.object("a").Version, 1)
}

func testVersions(f *fixture) {
	a := f.task("a", nil)
	changed := spec()
	changed.Timeout = 1000
	f.nowMs++
	f.apply(f.update(a, changed))
	a = f.object("a")
	equal(f, "version after an update", a.Version, 2)
	equal(f, "next fire time after an update", a.Row.NextMs, start+minute)
	f.nowMs++
	f.apply(f.update(a, changed))
	equal(f, "version after an update to the same", f.object("a").Version, 2)
	f.nowMs++
	f.apply(f.remove(a))
	gone := f.object("a")
	if !gone.Deleted || gone.Version != 3 || gone.Row.NextMs != 0 || gone.Hash != a.Hash {
		f.Errorf("deleted object is %+v", gone)
	}
	f.nowMs++
	revived := f.create("a", spec())
	revived.ObjectID = a.ID
	f.apply(revived)
	back := f.object("a")
	if back.ID != a.ID || back.Version != 4 || back.Deleted || back.Row.NextMs != start+minute {
		f.Errorf("revived object is %+v", back)
	}
	versions, err := f.Versions(f.ctx, a.ID)
	f.ok(err)
	equal(f, "versions", len(versions), 4)
	for i, v := range versions {
		if v.Version != 4-i || v.Deleted != (v.Version == 3) || v.Deleted != (v.Definition == nil) || v.Revision.Who != "ann" {
			f.Errorf("version %d is %+v", 4-i, v)
		}
	}
	specs, err := f.TaskVersions(f.ctx, []ax.VersionKey{{ObjectID: a.ID, Version: 2}, {ObjectID: a.ID, Version: 3}})
	f.ok(err)
	if len(specs) != 1 || specs[0].Spec.Timeout != 1000 {
		f.Errorf("specs are %+v", specs)
	}
}

func testStacks(f *fixture) {
	f.task("a", nil)
	cs := f.changeSet("other", f.create("a", spec()))
	other, err := f.Apply(f.ctx, cs)
	f.ok(err)
	equal(f, "serial of the other stack", other.Serial, 1)
	cs = f.changeSet("other", f.remove(f.object("a")))
	cs.Changes[0].Name = "a"
	_, err = f.Apply(f.ctx, cs)
	f.fails(err, ax.ErrStale)
	mine, err := f.Objects(f.ctx, ax.ObjectFilter{Stack: "other"})
	f.ok(err)
	equal(f, "objects of the other stack", len(mine), 1)
	equal(f, "stack", mine[0].Stack, "other")
}

// testObjects asks for objects by all that a filter has; what is deleted is found
// as what is not.
func testObjects(f *fixture) {
	a, b, each := f.task("a", nil), f.task("b", nil), f.task(`each["x"]`, nil)
	cs := f.changeSet("other", f.create("a", spec()))
	_, err := f.Apply(f.ctx, cs)
	f.ok(err)
	others, err := f.Objects(f.ctx, ax.ObjectFilter{Stack: "other"})
	f.ok(err)
	other := others[0]
	_, err = f.Apply(f.ctx, f.changeSet("main", f.remove(f.object("b"))))
	f.ok(err)
	all := []int64{a.ID, b.ID, each.ID, other.ID}
	for _, tt := range []struct {
		by   ax.ObjectFilter
		want []int64
	}{
		{ax.ObjectFilter{}, all},
		{ax.ObjectFilter{Kind: ax.KindTask}, all},
		{ax.ObjectFilter{Kind: ax.KindPlugin}, nil},
		{ax.ObjectFilter{Kind: ax.KindTask, Name: "a"}, []int64{a.ID, other.ID}},
		{ax.ObjectFilter{Kind: ax.KindTask, Name: "b"}, []int64{b.ID}},
		{ax.ObjectFilter{Kind: ax.KindTask, Name: `each["x"]`}, []int64{each.ID}},
		{ax.ObjectFilter{Kind: ax.KindPlugin, Name: "a"}, nil},
		{ax.ObjectFilter{Name: "A"}, nil},
		{ax.ObjectFilter{Stack: "main", Name: "a"}, []int64{a.ID}},
		{ax.ObjectFilter{IDs: []int64{other.ID, b.ID, 99}}, []int64{b.ID, other.ID}},
		{ax.ObjectFilter{Stack: "main", IDs: []int64{other.ID, b.ID}}, []int64{b.ID}},
	} {
		found, err := f.Objects(f.ctx, tt.by)
		f.ok(err)
		var ids []int64
		for _, o := range found {
			ids = append(ids, o.ID)
			if len(o.Definition) == 0 || o.Deleted != (o.ID == b.ID) {
				f.Errorf("%+v: %+v", tt.by, o)
			}
		}
		equal(f, fmt.Sprintf("objects by %+v", tt.by), fmt.Sprint(ids), fmt.Sprint(tt.want))
	}
}

func testTimetable(f *fixture) {
	a := f.task("a", nil)
	hourly := spec()
	hourly.Schedules[0].Every = ax.Duration(60 * minute)
	nextHour := start - start%(60*minute) + 60*minute
	move := func(settled bool) ax.ChangeSet {
		row := f.object("a").Row
		c := f.update(f.object("a"), hourly)
		c.Task.Timetable = &ax.Timetable{
			ExpectNextMs: row.NextMs, ExpectLockVersion: row.LockVersion, Settled: settled, NextMs: nextHour,
		}
		return f.changeSet("main", c)
	}
	// A claim between reading and writing does not matter to what left no slot due.
	cs := move(false)
	born := f.fire(a, nil)
	f.finish(f.ending(born.Ref, 1, ax.StatusSuccess))
	exact := move(true)
	exact.Changes[0].Task.Timetable.ExpectLockVersion--
	_, err := f.Apply(f.ctx, exact)
	f.fails(err, ax.ErrMoved)
	again := move(false) // a slot that was used would be used again
	again.Changes[0].Task.Timetable.NextMs = born.DueMs
	_, err = f.Apply(f.ctx, again)
	f.fails(err, ax.ErrMoved)
	// A slot that is due and not claimed would be lost.
	f.nowMs += minute
	late := move(false)
	_, err = f.Apply(f.ctx, late)
	f.fails(err, ax.ErrMoved)
	f.nowMs -= minute
	// The moment that was to be the next one has passed.
	cs.ValidUntilMs = f.nowMs
	_, err = f.Apply(f.ctx, cs)
	f.fails(err, ax.ErrMoved)
	equal(f, "next fire time", f.object("a").Row.NextMs, start+2*minute)
	cs.ValidUntilMs = f.nowMs + 1
	cs.NowMs = f.nowMs
	_, err = f.Apply(f.ctx, cs)
	f.ok(err)
	equal(f, "next fire time", f.object("a").Row.NextMs, nextHour)
}

func testSettled(f *fixture) {
	f.task("a", nil)
	f.nowMs += 5*minute + 1 // five slots were missed
	row := f.object("a").Row
	hourly := spec()
	hourly.Schedules[0].Every = ax.Duration(60 * minute)
	c := f.update(f.object("a"), hourly)
	c.Task.Timetable = &ax.Timetable{
		ExpectNextMs: row.NextMs, ExpectLockVersion: row.LockVersion, Settled: true,
		NextMs: start - start%(60*minute) + 60*minute, LastSlotMs: start + 5*minute, Fingerprint: "",
		Starts: []ax.Start{{DueMs: start + 5*minute, Version: 1}},
		Skipped: []ax.SkippedStretch{{
			FromMs: start + minute, ToMs: start + 4*minute, Slots: 4, Reason: ax.ReasonMisfire, Version: 1,
		}},
	}
	f.apply(c)
	o := f.object("a")
	f.wantRow(o, 0, 1)
	equal(f, "last slot", o.Row.LastSlotMs, start+5*minute)
	rows, err := f.Instances(f.ctx, ax.InstanceFilter{TaskID: o.ID})
	f.ok(err)
	if len(rows) != 1 || rows[0].Version != 1 || rows[0].Status != ax.StatusPending || rows[0].DueMs != start+5*minute || rows[0].Task != "task.a" {
		f.Errorf("instances are %+v", rows)
	}
	stretches, err := f.Stretches(f.ctx, o.ID, 10)
	f.ok(err)
	if len(stretches) != 1 || stretches[0].TaskID != o.ID || stretches[0].Slots != 4 || stretches[0].Reason != ax.ReasonMisfire {
		f.Errorf("stretches are %+v", stretches)
	}
	st, err := f.ReadStack(f.ctx, "main")
	f.ok(err)
	if len(st.InFlight) != 1 || st.InFlight[0].Status != ax.StatusPending || st.InFlight[0].ObjectID != o.ID || st.InFlight[0].Version != 1 {
		f.Errorf("in flight are %+v", st.InFlight)
	}
}

func testSkipPending(f *fixture) {
	a := f.task("a", nil)
	running := f.fire(a, nil)
	waiting := f.fire(a, nil)
	manual, err := f.Trigger(f.ctx, ax.Trigger{ObjectID: a.ID, UID: "u1", DueMs: f.nowMs, NowMs: f.nowMs, Who: "ann"})
	f.ok(err)
	f.wantRow(a, 1, 2)
	off := spec()
	off.Enabled = false
	c := f.update(f.object("a"), off)
	row := f.object("a").Row
	c.Task.SkipPending = ax.ReasonDisabled
	c.Task.Timetable = &ax.Timetable{ExpectNextMs: row.NextMs, ExpectLockVersion: row.LockVersion}
	f.apply(c)
	f.wantRow(a, 1, 1)
	l := f.wantStatus(waiting.ID, ax.StatusSkipped)
	equal(f, "reason", l.Reason, ax.ReasonDisabled)
	equal(f, "life line", f.causes(waiting.ID), "disabled")
	f.wantStatus(running.ID, ax.StatusDispatched)
	f.wantStatus(manual.ID, ax.StatusPending)
	f.apply(f.remove(f.object("a")))
	f.wantRow(a, 1, 0)
	equal(f, "reason", f.wantStatus(manual.ID, ax.StatusSkipped).Reason, ax.ReasonDeleted)
	f.finish(f.ending(running.Ref, 1, ax.StatusSuccess))
	f.wantStatus(running.ID, ax.StatusSuccess)
	f.wantRow(a, 0, 0)
}
