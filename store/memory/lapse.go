package memory

import (
	"context"

	"github.com/axctl/ax"
)

// Lapse implements ax.Lapses.
func (s *Store) Lapse(_ context.Context, ls []ax.Lapse) ([]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := make([]bool, len(ls))
	for i, l := range ls {
		in := s.instanceAt(l.Ref)
		if in == nil || in.Status != ax.StatusPending || in.Attempt != 1 {
			continue
		}
		s.endWaiting(in, ax.StatusSkipped, ax.ReasonStartWithin, l.NowMs)
		in.note(l.NowMs, ax.StatusPending, ax.StatusSkipped, "dispatch", ax.CauseStartWithin, l.Detail)
		done[i] = true
	}
	return done, nil
}
