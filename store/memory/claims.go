package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

// TaskVersions implements ax.Specs.
func (s *Store) TaskVersions(_ context.Context, keys []ax.VersionKey) ([]ax.TaskVersion, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var vs []ax.TaskVersion
	for _, k := range keys {
		o := s.objects[k.ObjectID]
		if o == nil || k.Version < 1 || k.Version > len(o.versions) || o.versions[k.Version-1].Deleted {
			continue
		}
		vs = append(vs, ax.TaskVersion{VersionKey: k, Stack: o.Stack, Name: o.Name, Spec: o.versions[k.Version-1].spec})
	}
	return vs, nil
}

// DueTasks implements ax.Claims.
func (s *Store) DueTasks(_ context.Context, untilMs int64, after ax.DueCursor, limit int) ([]ax.DueTask, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var due []ax.DueTask
	for _, o := range s.tasks() {
		t := o.due()
		past := cmp.Or(cmp.Compare(t.NextMs, after.NextMs), cmp.Compare(t.TaskID, after.TaskID)) > 0
		if o.canFire() && t.NextMs != 0 && t.NextMs <= untilMs && past {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b ax.DueTask) int {
		return cmp.Or(cmp.Compare(a.NextMs, b.NextMs), cmp.Compare(a.TaskID, b.TaskID))
	})
	return due[:min(len(due), limit)], nil
}

// ReloadTasks implements ax.Claims.
func (s *Store) ReloadTasks(_ context.Context, ids []int64) ([]ax.DueTask, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var due []ax.DueTask
	for _, id := range ids {
		if o := s.objects[id]; o != nil && o.canFire() {
			due = append(due, o.due())
		}
	}
	return due, nil
}

// EndingHolds implements ax.Claims.
func (s *Store) EndingHolds(_ context.Context, untilMs int64) ([]ax.HeldTask, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var held []ax.HeldTask
	for _, o := range s.tasks() {
		if h := o.Row.Hold; h != nil && h.UntilMs != 0 && h.UntilMs <= untilMs && !o.Deleted {
			held = append(held, ax.HeldTask{DueTask: o.due(), Enabled: o.Row.Enabled, Hold: *h})
		}
	}
	return held, nil
}

func (o *object) due() ax.DueTask {
	return ax.DueTask{
		TaskID: o.ID, Version: o.Version, NextMs: o.Row.NextMs,
		LastSlotMs: o.Row.LastSlotMs, LockVersion: o.Row.LockVersion,
	}
}

// Claim implements ax.Claims.
func (s *Store) Claim(_ context.Context, firings []ax.Firing) ([]ax.Claimed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	claimed := make([]ax.Claimed, len(firings))
	for i, f := range firings {
		claimed[i] = s.claim(f)
	}
	return claimed, nil
}

func (s *Store) claim(f ax.Firing) ax.Claimed {
	o := s.objects[f.TaskID]
	if o == nil || !o.canFire() || f.ExpectNextMs == 0 || o.Row.NextMs != f.ExpectNextMs || o.Row.LockVersion != f.ExpectLockVersion {
		return ax.Claimed{Lost: true}
	}
	seen := map[int64]bool{}
	for _, st := range f.Starts {
		if seen[st.DueMs] {
			return ax.Claimed{Lost: true}
		}
		seen[st.DueMs] = true
	}
	if used := s.used(f); len(used) > 0 {
		return ax.Claimed{Lost: true, Used: used}
	}
	o.Row.NextMs = f.NextMs
	o.Row.LastSlotMs = max(o.Row.LastSlotMs, f.LastSlotMs)
	o.Row.LockVersion++
	c := ax.Claimed{LockVersion: o.Row.LockVersion}
	for _, st := range f.Starts {
		c.Born = append(c.Born, s.start(o, f, st))
	}
	if f.Overlap != ax.OverlapAllow && slices.ContainsFunc(c.Born, func(b ax.Born) bool { return b.Status == ax.StatusPending }) {
		c.Ahead = s.ahead(o.ID, c.Born[0].ID)
	}
	for _, sk := range f.Skipped {
		sk.TaskID = o.ID
		s.stretches = append(s.stretches, sk)
	}
	return c
}

// ahead returns what of a task waited before an instance was born.
func (s *Store) ahead(taskID, born int64) (ids []int64) {
	waited := s.byKey(func(in *instance) bool { return in.TaskID == taskID && in.Status == ax.StatusPending && in.ID < born })
	slices.SortFunc(waited, func(a, b *instance) int { return cmp.Or(cmp.Compare(a.DueMs, b.DueMs), cmp.Compare(a.ID, b.ID)) })
	for _, in := range waited[:min(len(waited), ax.MaxAhead)] {
		ids = append(ids, in.ID)
	}
	return ids
}

// used returns the slots of f that have an instance.
func (s *Store) used(f ax.Firing) []int64 {
	var used []int64
	for _, st := range f.Starts {
		if _, ok := s.keys[ax.Ref{DueMs: st.DueMs, TaskID: f.TaskID, SlotKey: ax.ScheduleSlotKey(st.DueMs)}]; ok {
			used = append(used, st.DueMs)
		}
	}
	for ref := range s.keys {
		if ref.TaskID != f.TaskID || ref.SlotKey != ax.ScheduleSlotKey(ref.DueMs) {
			continue
		}
		for _, sk := range f.Skipped {
			if ref.DueMs >= sk.FromMs && ref.DueMs <= sk.ToMs {
				used = append(used, ref.DueMs)
			}
		}
	}
	slices.Sort(used)
	return used
}

// start lets one slot be born as the overlap rule says.
func (s *Store) start(o *object, f ax.Firing, st ax.FiringStart) ax.Born {
	verdict := rules.Wait
	if !st.CatchUp && st.Skip == "" {
		all := rules.Live{Active: o.Row.Active, Waiting: o.Row.Waiting}
		verdict = rules.AdmitBeside(f.Overlap, all, s.liveBackfills(o.ID), o.maxActive)
	}
	born := ax.Born{Status: ax.StatusPending}
	if st.Skip != "" {
		born.Status, born.Reason = ax.StatusSkipped, st.Skip
	}
	switch verdict {
	case rules.Begin:
		if st.Place != nil {
			born.Status = ax.StatusDispatched
		}
	case rules.Wait:
	case rules.Skip:
		born.Status, born.Reason = ax.StatusSkipped, ax.ReasonOverlap
	case rules.TakePlace:
		if old := s.newestReplaceable(o.ID); old != nil {
			s.endWaiting(old, ax.StatusSkipped, ax.ReasonReplaced, f.NowMs)
			old.note(f.NowMs, ax.StatusPending, ax.StatusSkipped, "claim", ax.CauseReplaced, "")
			born.Replaced = old.ID
		} else {
			born.Status, born.Reason = ax.StatusSkipped, ax.ReasonOverlap
		}
	case rules.CancelOldest:
		if old := s.oldestRunning(o.ID); old != nil && old.CancelBy == "" {
			old.CancelBy = ax.CancelByOverlap
			old.note(f.NowMs, ax.StatusDispatched, ax.StatusDispatched, "claim", ax.CauseReplaced, "")
			born.Cancelled = old.ID
		}
	}
	in := ax.Instance{
		Ref:     ax.Ref{DueMs: st.DueMs, TaskID: o.ID, SlotKey: ax.ScheduleSlotKey(st.DueMs)},
		Version: f.Version, Kind: ax.InstanceSchedule, Status: born.Status, Reason: born.Reason,
		NotBeforeMs: st.DueMs, ClaimedMs: f.NowMs,
	}
	switch born.Status {
	case ax.StatusDispatched:
		in.ClaimedMs = st.Place.AtMs
		place(&in, *st.Place)
		o.Row.Active++
	case ax.StatusPending:
		o.Row.Waiting++
	case ax.StatusSkipped:
		in.EndedMs = f.NowMs
	}
	row := s.bear(in)
	if born.Status == ax.StatusSkipped {
		row.note(f.NowMs, "", ax.StatusSkipped, "claim", ax.SkipCause(born.Reason), "")
	}
	born.Ref = row.Ref
	return born
}

func (s *Store) newestReplaceable(taskID int64) *instance {
	waiting := s.byKey(func(in *instance) bool {
		return in.TaskID == taskID && in.Status == ax.StatusPending && in.Kind == ax.InstanceSchedule && in.Attempt == 1
	})
	if len(waiting) == 0 {
		return nil
	}
	return waiting[len(waiting)-1]
}

func (s *Store) oldestRunning(taskID int64) *instance {
	running := s.byKey(func(in *instance) bool {
		return in.TaskID == taskID && in.Status == ax.StatusDispatched && in.Kind != ax.InstanceBackfill
	})
	if len(running) == 0 {
		return nil
	}
	return running[0]
}
