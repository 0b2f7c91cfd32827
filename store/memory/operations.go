package memory

import (
	"context"
	"fmt"

	"github.com/axctl/ax"
)

// Trigger implements ax.Operations. The same UID again gives the same Ref.
func (s *Store) Trigger(_ context.Context, t ax.Trigger) (ax.Ref, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[t.ObjectID]
	if o == nil || o.Deleted {
		return ax.Ref{}, fmt.Errorf("task %d: %w", t.ObjectID, ax.ErrNotFound)
	}
	ref := ax.Ref{DueMs: t.DueMs, TaskID: o.ID, SlotKey: ax.ManualSlotKey(t.UID)}
	if id, ok := s.keys[ref]; ok {
		ref.ID = id
		return ref, nil
	}
	in := s.bear(ax.Instance{
		Ref: ref, Version: o.Version, Kind: ax.InstanceManual, Status: ax.StatusPending,
		NotBeforeMs: t.NowMs, ClaimedMs: t.NowMs,
	})
	in.note(t.NowMs, "", ax.StatusPending, t.Who, ax.CauseTrigger, "")
	o.Row.Waiting++
	s.foreign = true
	return in.Ref, nil
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
		s.endWaiting(in, ax.StatusCancelled, ax.ReasonNone, nowMs)
		in.CancelBy, in.ErrorClass = who, ax.ClassCancelled
		in.note(nowMs, ax.StatusPending, ax.StatusCancelled, who, ax.CauseCancel, "")
	case in.CancelBy == "":
		in.CancelBy = who
		in.note(nowMs, in.Status, in.Status, who, ax.CauseCancel, "")
	}
	s.foreign = true
	return in.Status, nil
}

// Hold implements ax.Operations.
func (s *Store) Hold(_ context.Context, objectID int64, h ax.Hold) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[objectID]
	if o == nil || o.Deleted {
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
	o.Row.Hold = nil
	o.Row.LockVersion++
	s.moveTimetable(o, tt, nowMs)
	s.foreign = true
	return nil
}
