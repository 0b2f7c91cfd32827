package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/axctl/ax"
)

// signalled returns what was asked of the attempt that runs, nil when nothing.
func (in *instance) signalled() *ax.SignalState {
	if in.Status != ax.StatusDispatched || in.signal == nil || in.signal.Attempt != in.Attempt {
		return nil
	}
	return in.signal
}

// Signal implements ax.Signaller.
func (s *Store) Signal(_ context.Context, r ax.SignalRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.instances[r.InstanceID]
	switch {
	case in == nil:
		return fmt.Errorf("instance %d: %w", r.InstanceID, ax.ErrNotFound)
	case in.Status != ax.StatusDispatched:
		return fmt.Errorf("instance %d is %s: %w", r.InstanceID, in.Status, ax.ErrConflict)
	case in.CancelBy != "":
		return fmt.Errorf("instance %d is to be cancelled: %w", r.InstanceID, ax.ErrConflict)
	}
	next := ax.SignalState{InstanceID: in.ID, Attempt: in.Attempt, Signal: r.Signal, Who: r.Who, AskedMs: r.NowMs}
	switch st := in.signalled(); {
	case st != nil && st.Asks(r.Signal):
		return nil
	case r.Signal == ax.SignalResume && (st == nil || st.PausedMs == 0 && st.Settled()):
		return fmt.Errorf("instance %d is not paused: %w", r.InstanceID, ax.ErrConflict)
	case st != nil:
		next.PausedMs, next.PausedBy = st.PausedMs, st.PausedBy
	}
	in.signal = &next
	in.note(r.NowMs, in.Status, in.Status, r.Who, r.Signal.Cause(), ax.SignalAsked)
	s.foreign = true
	return nil
}

// SignalStates implements ax.Live.
func (s *Store) SignalStates(_ context.Context, host string) ([]ax.SignalState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var states []ax.SignalState
	for _, id := range slices.Sorted(maps.Keys(s.instances)) {
		in := s.instances[id]
		if st := in.signalled(); st != nil && in.Host == host && (!st.Settled() || st.PausedMs != 0) {
			states = append(states, *st)
		}
	}
	return states, nil
}

// Signalled implements ax.Live.
func (s *Store) Signalled(_ context.Context, as []ax.SignalAnswer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range as {
		in := s.instances[a.InstanceID]
		if in == nil || in.Attempt != a.Attempt || in.signalled() == nil {
			continue
		}
		after, news := in.signal.Answered(a)
		if after == *in.signal {
			continue
		}
		in.signal = &after
		if a.DeadlineMs != 0 && after.PausedMs == 0 {
			in.DeadlineMs = a.DeadlineMs
		}
		if news != "" {
			in.note(a.AtMs, in.Status, in.Status, "dispatch", a.Signal.Cause(), news)
		}
	}
	return nil
}

// Progressed implements ax.Live.
func (s *Store) Progressed(_ context.Context, ps []ax.Progress) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range ps {
		in := s.instances[p.InstanceID]
		if in == nil {
			continue
		}
		if old := in.progress; old != nil && (old.Attempt > p.Attempt || old.Attempt == p.Attempt && old.AtMs >= p.AtMs) {
			continue
		}
		p = p.Clean()
		in.progress = &p
	}
	return nil
}
