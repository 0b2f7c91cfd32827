package memory

import (
	"context"

	"github.com/axctl/ax"
)

// ScheduledTasks implements ax.Rewinds.
func (s *Store) ScheduledTasks(_ context.Context, afterID int64, limit int) ([]ax.ScheduledTask, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []ax.ScheduledTask
	for _, o := range s.tasks() {
		if o.ID > afterID && !o.Deleted && len(all) < limit {
			all = append(all, ax.ScheduledTask{DueTask: o.due(), Enabled: o.Row.Enabled, Fingerprint: o.Row.Fingerprint})
		}
	}
	return all, nil
}

// Rewind implements ax.Rewinds.
func (s *Store) Rewind(_ context.Context, rs []ax.Rewind) ([]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := make([]bool, len(rs))
	for i, r := range rs {
		o := s.objects[r.TaskID]
		if o == nil || o.Deleted || o.Row.NextMs != r.ExpectNextMs || o.Row.LockVersion != r.ExpectLockVersion {
			continue
		}
		o.Row.NextMs, o.Row.LastSlotMs = r.NextMs, r.LastSlotMs
		o.Row.LockVersion++
		s.takeBack(r)
		for _, in := range s.byKey(func(in *instance) bool { return in.TaskID == r.TaskID && in.Status == ax.StatusPending }) {
			if in.DueMs > r.NowMs {
				in.NotBeforeMs = min(in.NotBeforeMs, r.NowMs)
			}
		}
		done[i] = true
	}
	return done, nil
}

// takeBack cuts the stretches of a task at r.NowMs.
func (s *Store) takeBack(r ax.Rewind) {
	var kept []ax.SkippedStretch
	for _, st := range s.stretches {
		if st.TaskID == r.TaskID && st.ToMs > r.NowMs {
			if st.FromMs > r.NowMs {
				continue
			}
			st.ToMs, st.Slots = max(st.FromMs, r.LastSlotMs), -1
			if st.ToMs == st.FromMs {
				st.Slots = 1
			}
		}
		kept = append(kept, st)
	}
	s.stretches = kept
}
