package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/axctl/ax"
)

// Trigger implements ax.Operations. The same UID again gives the same Ref.
func (s *Store) Trigger(_ context.Context, t ax.Trigger) (ax.Ref, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[t.ObjectID]
	if o == nil || o.Deleted || o.Kind != ax.KindTask {
		return ax.Ref{}, fmt.Errorf("task %d: %w", t.ObjectID, ax.ErrNotFound)
	}
	ref := ax.Ref{DueMs: t.DueMs, TaskID: o.ID, SlotKey: ax.ManualSlotKey(t.UID)}
	if id, ok := s.keys[ref]; ok {
		ref.ID = id
		return ref, nil
	}
	if t.Key == "" {
		return s.startByHand(ref, o.Version, t.NowMs, t.Who, ax.CauseTrigger, ""), nil
	}
	k := triggerKey{o.ID, t.Key}
	if first, ok := s.triggers[k]; ok && first.atMs > t.NowMs-ax.TriggerKeyMs {
		return first.Ref, nil
	}
	ref = s.startByHand(ref, o.Version, t.NowMs, t.Who, ax.CauseTrigger, "key "+t.Key)
	s.triggers[k] = triggered{ref, t.NowMs}
	return ref, nil
}

// startByHand makes a waiting instance that a person asked for.
func (s *Store) startByHand(ref ax.Ref, version int, nowMs int64, who string, cause ax.Cause, detail string) ax.Ref {
	in := s.bear(ax.Instance{
		Ref: ref, Version: version, Kind: ax.InstanceManual, Status: ax.StatusPending, NotBeforeMs: nowMs, ClaimedMs: nowMs,
	})
	in.note(nowMs, "", ax.StatusPending, who, cause, detail)
	s.objects[ref.TaskID].Row.Waiting++
	s.foreign = true
	return in.Ref
}

// Retry implements ax.Operations.
func (s *Store) Retry(_ context.Context, r ax.Retry) (ax.Ref, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, err := s.endedInstance(r.InstanceID)
	if err != nil {
		return ax.Ref{}, err
	}
	o := s.objects[old.TaskID]
	if o.Deleted {
		return ax.Ref{}, fmt.Errorf("%s of instance %d: %w", o.Address(), r.InstanceID, ax.ErrNotFound)
	}
	version := old.Version
	if r.WithCurrent {
		version = o.Version
	}
	ref := ax.Ref{DueMs: old.DueMs, TaskID: o.ID, SlotKey: ax.RetrySlotKey(old.ID, len(s.retriesOf(old.ID))+1)}
	return s.startByHand(ref, version, r.NowMs, r.Who, ax.CauseRetryOf, fmt.Sprintf("instance %d", old.ID)), nil
}

// retriesOf returns the ids of an instance's retries in order.
func (s *Store) retriesOf(id int64) []int64 {
	var ids []int64
	for _, in := range s.instances {
		if in.RetryOf() == id {
			ids = append(ids, in.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// endedInstance finds an instance that must have ended.
func (s *Store) endedInstance(id int64) (*instance, error) {
	in := s.instances[id]
	switch {
	case in == nil:
		return nil, fmt.Errorf("instance %d: %w", id, ax.ErrNotFound)
	case !in.Status.Final():
		return nil, fmt.Errorf("instance %d has not ended: %w", id, ax.ErrConflict)
	}
	return in, nil
}

// Mark implements ax.Operations.
func (s *Store) Mark(_ context.Context, m ax.Mark) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	in, err := s.endedInstance(m.InstanceID)
	if err != nil {
		return err
	}
	in.Verdict = m.Verdict
	in.note(m.NowMs, in.Status, in.Status, m.Who, ax.CauseMark, m.Detail())
	s.foreign = true
	return nil
}

// Cancel implements ax.Operations. A second intent changes nothing.
func (s *Store) Cancel(_ context.Context, id int64, who string, nowMs int64) (ax.Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.instances[id]
	switch {
	case in == nil:
		return "", fmt.Errorf("instance %d: %w", id, ax.ErrNotFound)
	case in.Status.Final():
		return in.Status, fmt.Errorf("instance %d ended as %s: %w", id, in.Status, ax.ErrConflict)
	case in.Status == ax.StatusPending:
		s.cancelWaiting(in, who, nowMs)
	case in.CancelBy == "":
		in.CancelBy = who
		in.note(nowMs, in.Status, in.Status, who, ax.CauseCancel, "")
	}
	s.foreign = true
	return in.Status, nil
}

func (s *Store) cancelWaiting(in *instance, who string, nowMs int64) {
	s.endWaiting(in, ax.StatusCancelled, ax.ReasonNone, nowMs)
	in.CancelBy, in.ErrorClass = who, ax.ClassCancelled
	in.note(nowMs, ax.StatusPending, ax.StatusCancelled, who, ax.CauseCancel, "")
}

// Hold implements ax.Operations.
func (s *Store) Hold(_ context.Context, objectID int64, h ax.Hold) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[objectID]
	if o == nil || o.Deleted || o.Kind != ax.KindTask {
		return fmt.Errorf("task %d: %w", objectID, ax.ErrNotFound)
	}
	h.Reason = ax.CleanText(h.Reason, ax.MaxErrorBytes)
	o.Row.Hold = &h
	o.Row.LockVersion++
	s.foreign = true
	return nil
}

// Resume implements ax.Operations and ax.Claims.
func (s *Store) Resume(_ context.Context, objectID int64, tt ax.Timetable, nowMs int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[objectID]
	switch {
	case o == nil || o.Deleted:
		return fmt.Errorf("task %d: %w", objectID, ax.ErrNotFound)
	case o.Row.Hold == nil:
		return fmt.Errorf("%s is not held: %w", o.Address(), ax.ErrConflict)
	}
	if err := s.checkTimetable(o, tt, true, nowMs); err != nil {
		return err
	}
	if o.Row.Hold.Kind == ax.HoldFrozen {
		o.Row.FailureStreak = 0
	}
	o.Row.Hold = nil
	o.Row.LockVersion++
	s.moveTimetable(o, tt, nowMs)
	s.foreign = true
	return nil
}
