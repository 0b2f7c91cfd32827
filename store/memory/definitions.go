package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/axctl/ax"
)

// ReadStack implements ax.Definitions.
func (s *Store) ReadStack(_ context.Context, name string) (ax.StackState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := ax.StackState{StoreID: s.id, Stack: name}
	if k, ok := s.stacks[name]; ok {
		st.Serial, st.Origin = k.serial, k.last.Origin
	}
	st.Objects = s.objectsOf(ax.ObjectFilter{Stack: name})
	open := s.byKey(func(in *instance) bool {
		return !in.Status.Final() && s.objects[in.TaskID].Stack == name
	})
	slices.SortFunc(open, func(a, b *instance) int {
		return cmp.Or(cmp.Compare(a.DueMs, b.DueMs), cmp.Compare(a.ID, b.ID))
	})
	for _, in := range open {
		if len(st.InFlight) == ax.MaxInFlight {
			break
		}
		st.InFlight = append(st.InFlight, ax.InFlight{
			ID: in.ID, ObjectID: in.TaskID, Version: in.Version, Kind: in.Kind, Status: in.Status,
		})
	}
	return st, nil
}

// objectsOf returns objects by stack, kind and name.
func (s *Store) objectsOf(f ax.ObjectFilter) []ax.Object {
	var objects []ax.Object
	for _, o := range s.objects {
		if (f.Stack == "" || o.Stack == f.Stack) && (f.Kind == "" || o.Kind == f.Kind) && (f.Name == "" || o.Name == f.Name) &&
			(len(f.IDs) == 0 || slices.Contains(f.IDs, o.ID)) {
			objects = append(objects, o.snapshot())
		}
	}
	slices.SortFunc(objects, func(a, b ax.Object) int {
		return cmp.Or(strings.Compare(a.Stack, b.Stack), strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Name, b.Name))
	})
	return objects
}

// snapshot copies what callers may keep.
func (o *object) snapshot() ax.Object {
	c := o.Object
	if c.Row.Hold != nil {
		h := *c.Row.Hold
		c.Row.Hold = &h
	}
	return c
}

// Revision implements ax.Definitions.
func (s *Store) Revision(_ context.Context, applyID string) (ax.Revision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.revisions[applyID]
	if !ok {
		return ax.Revision{}, fmt.Errorf("apply %q: %w", applyID, ax.ErrNotFound)
	}
	return r, nil
}

// Apply implements ax.Definitions. An apply id that was committed before gives
// the answer it had.
func (s *Store) Apply(_ context.Context, cs ax.ChangeSet) (ax.Applied, error) {
	for _, c := range cs.Changes {
		if c.Kind == ax.KindTask && c.Action != ax.ActionDelete && c.Task == nil {
			return ax.Applied{}, fmt.Errorf("change of %s has no task", ax.Address(c.Kind, c.Name))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.revisions[cs.ApplyID]; ok {
		return ax.Applied{Serial: r.Serial, Revision: r}, nil
	}
	commitMs := max(s.now().UnixMilli(), cs.NowMs)
	if err := s.checkApply(cs, commitMs); err != nil {
		return ax.Applied{}, err
	}
	st := s.stacks[cs.Stack]
	if st == nil {
		st = &stack{}
		s.stacks[cs.Stack] = st
	}
	st.serial++
	r := cs.Revision
	r.ApplyID, r.Stack, r.Serial, r.AtMs = cs.ApplyID, cs.Stack, st.serial, cs.NowMs
	st.last = r
	s.revisions[r.ApplyID] = r
	for _, c := range cs.Changes {
		s.change(cs, c, r)
	}
	made := !s.applied
	s.serial, s.applied, s.foreign = s.serial+1, true, true
	return ax.Applied{Serial: r.Serial, Revision: r, StoreMade: made}, nil
}

// checkApply refuses what has moved since the change was computed.
func (s *Store) checkApply(cs ax.ChangeSet, commitMs int64) error {
	if cs.StoreID != "" && cs.StoreID != s.id {
		return fmt.Errorf("the change was computed from another store (%s): %w", cs.StoreID, ax.ErrStale)
	}
	for _, c := range cs.Changes {
		if err := s.checkChange(cs, c, commitMs); err != nil {
			return err
		}
	}
	if st := s.stacks[cs.Stack]; st != nil && st.serial != cs.BaseSerial {
		return &ax.StaleError{Read: int(cs.BaseSerial), Found: int(st.serial), Who: st.last.Who, AtMs: st.last.AtMs}
	} else if st == nil && cs.BaseSerial != 0 {
		return &ax.StaleError{Read: int(cs.BaseSerial)}
	}
	if cs.ValidUntilMs != 0 && commitMs >= cs.ValidUntilMs {
		return fmt.Errorf("a new next fire time has passed: %w", ax.ErrMoved)
	}
	return nil
}

func (s *Store) checkChange(cs ax.ChangeSet, c ax.Change, commitMs int64) error {
	o := s.named(cs.Stack, c.Kind, c.Name)
	found := 0
	if o != nil && !o.Deleted {
		found = o.Version
	}
	sameID := o == nil && c.ObjectID == 0 || o != nil && (c.ObjectID == o.ID || c.ObjectID == 0 && o.Deleted)
	if found != c.BaseVersion || !sameID || (c.Action == ax.ActionCreate) != (found == 0) {
		stale := &ax.StaleError{Address: ax.Address(c.Kind, c.Name), Read: c.BaseVersion, Found: found}
		if o != nil {
			stale.Who, stale.AtMs = o.WrittenBy, o.WrittenMs
		}
		return stale
	}
	if c.Task == nil || c.Task.Timetable == nil {
		return nil
	}
	return s.checkTimetable(o, *c.Task.Timetable, c.Task.Timetable.Settled, commitMs)
}

// checkTimetable refuses a timetable that a claim or time has overtaken; o is
// nil for a new task.
func (s *Store) checkTimetable(o *object, tt ax.Timetable, exact bool, commitMs int64) error {
	if o == nil {
		return nil
	}
	moved := fmt.Errorf("%s: %w", o.Address(), ax.ErrMoved)
	switch {
	case exact && (o.Row.NextMs != tt.ExpectNextMs || o.Row.LockVersion != tt.ExpectLockVersion):
		return moved
	case !exact && o.Row.NextMs != 0 && o.Row.NextMs <= commitMs:
		return moved
	case tt.NextMs != 0 && tt.NextMs <= max(o.Row.LastSlotMs, tt.LastSlotMs):
		return moved
	}
	for _, st := range tt.Starts {
		if _, taken := s.keys[ax.Ref{DueMs: st.DueMs, TaskID: o.ID, SlotKey: ax.ScheduleSlotKey(st.DueMs)}]; taken {
			return moved
		}
	}
	return nil
}

func (s *Store) named(stack string, kind ax.ObjectKind, name string) *object {
	for _, o := range s.objects {
		if o.Stack == stack && o.Kind == kind && o.Name == name {
			return o
		}
	}
	return nil
}

// change writes one checked change.
func (s *Store) change(cs ax.ChangeSet, c ax.Change, r ax.Revision) {
	o := s.named(cs.Stack, c.Kind, c.Name)
	if o == nil {
		o = &object{Object: ax.Object{ID: int64(len(s.objects) + 1), Kind: c.Kind, Stack: cs.Stack, Name: c.Name}}
		s.objects[o.ID] = o
	}
	deleted := c.Action == ax.ActionDelete
	if o.Deleted || deleted || o.Version == 0 || c.Hash != o.Hash {
		o.Version++
		o.Deleted = deleted
		if !deleted {
			o.Hash, o.Definition = c.Hash, c.Definition
		}
		o.WrittenBy, o.WrittenMs = r.Who, r.AtMs
		v := version{VersionRow: ax.VersionRow{
			VersionKey: ax.VersionKey{ObjectID: o.ID, Version: o.Version}, Deleted: deleted, Revision: r,
		}}
		if !deleted {
			v.Hash, v.Definition = c.Hash, c.Definition
		}
		if !deleted && c.Kind == ax.KindTask {
			if err := json.Unmarshal(c.Definition, &v.spec); err != nil {
				panic(fmt.Sprintf("definition of %s: %v", o.Address(), err))
			}
		}
		o.versions = append(o.versions, v)
	}
	if c.Kind != ax.KindTask { // it has no hot row
		return
	}
	o.Row.LockVersion++
	if !deleted {
		s.changeTask(o, *c.Task, cs.NowMs)
		return
	}
	if c.Task != nil && c.Task.Timetable != nil {
		s.moveTimetable(o, *c.Task.Timetable, cs.NowMs)
	}
	o.Row.NextMs = 0
	s.skipWaiting(o, ax.ReasonDeleted, cs.NowMs)
	s.endBackfills(o.ID, r.Who, cs.NowMs)
}

func (s *Store) changeTask(o *object, t ax.TaskChange, nowMs int64) {
	o.Row.Enabled, o.maxActive, o.overlap, o.freezeAfter = t.Enabled, t.MaxActive, t.Overlap, t.FreezeAfter
	if t.SkipPending != ax.ReasonNone {
		s.skipWaiting(o, t.SkipPending, nowMs)
	}
	if t.Timetable != nil {
		s.moveTimetable(o, *t.Timetable, nowMs)
	}
}

// moveTimetable writes a checked timetable.
func (s *Store) moveTimetable(o *object, tt ax.Timetable, nowMs int64) {
	o.Row.NextMs = tt.NextMs
	o.Row.LastSlotMs = max(o.Row.LastSlotMs, tt.LastSlotMs)
	o.Row.Fingerprint = cmp.Or(tt.Fingerprint, o.Row.Fingerprint)
	for _, st := range tt.Starts {
		s.bear(ax.Instance{
			Ref:     ax.Ref{DueMs: st.DueMs, TaskID: o.ID, SlotKey: ax.ScheduleSlotKey(st.DueMs)},
			Version: st.Version, Kind: ax.InstanceSchedule, Status: ax.StatusPending,
			NotBeforeMs: st.DueMs, ClaimedMs: nowMs,
		})
		o.Row.Waiting++
	}
	for _, sk := range tt.Skipped {
		sk.TaskID = o.ID
		s.stretches = append(s.stretches, sk)
	}
}

// skipWaiting ends the task's waiting instances: of a disabled task the
// scheduled ones, of a deleted one all.
func (s *Store) skipWaiting(o *object, why ax.Reason, nowMs int64) {
	cause := ax.CauseDisabled
	if why == ax.ReasonDeleted {
		cause = ax.CauseDeleted
	}
	for _, in := range s.byKey(func(in *instance) bool {
		return in.TaskID == o.ID && in.Status == ax.StatusPending &&
			(why == ax.ReasonDeleted || in.Kind == ax.InstanceSchedule)
	}) {
		s.endWaiting(in, ax.StatusSkipped, why, nowMs)
		in.note(nowMs, ax.StatusPending, ax.StatusSkipped, "apply", cause, "")
	}
}
