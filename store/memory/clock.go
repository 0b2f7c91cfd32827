package memory

import (
	"context"

	"github.com/axctl/ax"
)

// ClockMark implements ax.Clocks.
func (s *Store) ClockMark(context.Context) (ax.ClockMark, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock, nil
}

// KeepClock implements ax.Clocks.
func (s *Store) KeepClock(_ context.Context, m ax.ClockMark) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock = m
	return nil
}
