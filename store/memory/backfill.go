package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

// StartBackfill implements ax.BackfillOperations.
func (s *Store) StartBackfill(_ context.Context, r ax.BackfillRequest) (ax.Backfill, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[r.TaskID]
	switch {
	case o == nil || o.Deleted:
		return ax.Backfill{}, fmt.Errorf("task %d: %w", r.TaskID, ax.ErrNotFound)
	case o.Version != r.Version:
		return ax.Backfill{}, fmt.Errorf("%s is at version %d: %w", o.Address(), o.Version, ax.ErrStale)
	}
	for _, b := range s.backfills {
		if b.TaskID == r.TaskID && !b.State.Final() && b.FromMs < r.ToMs && b.ToMs > r.FromMs {
			return ax.Backfill{}, fmt.Errorf("backfill %d overlaps: %w", b.ID, ax.ErrConflict)
		}
	}
	b := &ax.Backfill{ID: int64(len(s.backfills)) + 1, BackfillRequest: r, State: ax.BackfillRunning, PositionMs: r.FromMs}
	s.backfills = append(s.backfills, b)
	s.foreign = true
	return *b, nil
}

// backfill finds one by its id.
func (s *Store) backfill(id int64) *ax.Backfill {
	if id < 1 || id > int64(len(s.backfills)) {
		return nil
	}
	return s.backfills[id-1]
}

// MoveBackfill implements ax.BackfillOperations.
func (s *Store) MoveBackfill(_ context.Context, m ax.BackfillMove) (ax.Backfill, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.backfill(m.ID)
	switch {
	case b == nil:
		return ax.Backfill{}, fmt.Errorf("backfill %d: %w", m.ID, ax.ErrNotFound)
	case b.State.Final() || b.State == m.To:
		return *b, fmt.Errorf("backfill %d is %s: %w", m.ID, b.State, ax.ErrConflict)
	}
	b.State, b.By, b.ByMs = m.To, m.Who, m.NowMs
	if m.To == ax.BackfillCancelled {
		b.EndedMs = m.NowMs
		for _, in := range s.byKey(func(in *instance) bool { return in.BackfillID() == b.ID && in.Status == ax.StatusPending }) {
			s.cancelWaiting(in, m.Who, m.NowMs)
		}
	}
	s.foreign = true
	return *b, nil
}

// Backfills implements ax.BackfillOperations and ax.Fills.
func (s *Store) Backfills(_ context.Context, f ax.BackfillFilter) ([]ax.Backfill, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []ax.Backfill
	for _, b := range slices.Backward(s.backfills) {
		if (f.ID == 0 || f.ID == b.ID) && (f.TaskID == 0 || f.TaskID == b.TaskID) && (len(f.States) == 0 || slices.Contains(f.States, b.State)) {
			found = append(found, *b)
		}
	}
	return found[:min(len(found), cmp.Or(f.Limit, 1000))], nil
}

// Tries implements ax.BackfillOperations.
func (s *Store) Tries(_ context.Context, taskID int64, dues []int64) ([]ax.Try, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tries(taskID, dues...), nil
}

func (s *Store) tries(taskID int64, dues ...int64) []ax.Try {
	var tries []ax.Try
	for _, in := range s.instances {
		if in.TaskID == taskID && slices.Contains(dues, in.DueMs) {
			tries = append(tries, ax.Try{Ref: in.Ref, Status: in.Status, Verdict: in.Verdict})
		}
	}
	slices.SortFunc(tries, func(a, b ax.Try) int { return cmp.Or(cmp.Compare(a.DueMs, b.DueMs), cmp.Compare(a.ID, b.ID)) })
	return tries
}

// Fill implements ax.Fills.
func (s *Store) Fill(_ context.Context, f ax.Fill) (ax.Filled, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.backfill(f.BackfillID)
	if b == nil || b.State != ax.BackfillRunning || b.PositionMs != f.ExpectPositionMs {
		return ax.Filled{Lost: true}, nil
	}
	o := s.objects[b.TaskID]
	done := ax.Filled{Open: s.openOf(b.ID), MaxActive: o.maxActive, Overlap: o.overlap}
	room := rules.BackfillRoom(b.Parallel, o.maxActive, done.Open)
	n := 0
	for ; n < len(f.Slots) && len(done.Made) < room; n++ {
		due := f.Slots[n]
		b.PositionMs = due + 1
		if !rules.Wanted(b.Mode, rules.StateOf(s.tries(b.TaskID, due), due <= o.Row.CheckedFromMs)) {
			b.Passed++
			continue
		}
		b.Made++
		in := s.bear(ax.Instance{
			Ref:     ax.Ref{DueMs: due, TaskID: b.TaskID, SlotKey: ax.BackfillSlotKey(b.ID, due)},
			Version: b.Version, Kind: ax.InstanceBackfill, Status: ax.StatusPending, NotBeforeMs: f.NowMs, ClaimedMs: f.NowMs,
		})
		in.note(f.NowMs, "", ax.StatusPending, b.Who, ax.CauseBackfill, fmt.Sprintf("backfill %d", b.ID))
		o.Row.Waiting++
		done.Made = append(done.Made, in.Ref)
	}
	done.Open += len(done.Made)
	if f.Last && n == len(f.Slots) {
		b.PositionMs = b.ToMs
		if done.Open == 0 {
			b.State, b.EndedMs = ax.BackfillDone, f.NowMs
		}
	}
	done.PositionMs, done.State = b.PositionMs, b.State
	return done, nil
}

// openOf counts the instances of a backfill that are not over.
func (s *Store) openOf(id int64) (open int) {
	for _, in := range s.instances {
		if in.BackfillID() == id && in.live() {
			open++
		}
	}
	return open
}

// live reports whether it counts towards its task's active or waiting.
func (in *instance) live() bool {
	return in.Status == ax.StatusPending || in.HandedMs != 0 && in.StoppedMs == 0
}

// liveBackfills counts a task's instances of backfills.
func (s *Store) liveBackfills(taskID int64) (l rules.Live) {
	for _, in := range s.instances {
		switch {
		case in.TaskID != taskID || in.Kind != ax.InstanceBackfill || !in.live():
		case in.Status == ax.StatusPending:
			l.Waiting++
		default:
			l.Active++
		}
	}
	return l
}

// endBackfills cancels those of a task whose definition is deleted.
func (s *Store) endBackfills(taskID int64, who string, nowMs int64) {
	for _, b := range s.backfills {
		if b.TaskID == taskID && !b.State.Final() {
			b.State, b.By, b.ByMs, b.Reason, b.EndedMs = ax.BackfillCancelled, who, nowMs, ax.ReasonDeleted, nowMs
		}
	}
}
