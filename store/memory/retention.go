package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/axctl/ax"
)

// Prune implements ax.Retention, in one step.
func (s *Store) Prune(_ context.Context, q ax.PruneQuery, step func(ax.Pruned) error) error {
	deleted := s.prune(q)
	if deleted.Rows() == 0 {
		return nil
	}
	return step(deleted)
}

func (s *Store) prune(q ax.PruneQuery) ax.Pruned {
	s.mu.Lock()
	defer s.mu.Unlock()
	var deleted ax.Pruned
	for _, o := range s.tasks() {
		mine := []int64{}
		for _, id := range slices.Sorted(maps.Keys(s.instances)) {
			if s.instances[id].TaskID == o.ID {
				mine = append(mine, id)
			}
		}
		for _, id := range mine[:max(0, len(mine)-q.KeepLast)] {
			in := s.instances[id]
			if !in.Prunable(q.EndedByMs) {
				break
			}
			delete(s.instances, id)
			delete(s.keys, key(in.Ref))
			if in.Kind == ax.InstanceSchedule || in.Kind == ax.InstanceBackfill {
				o.Row.CheckedFromMs = max(o.Row.CheckedFromMs, in.DueMs)
			}
			deleted = deleted.Plus(ax.Pruned{
				Instances: 1, Attempts: int64(len(in.attempts)), Transitions: int64(len(in.transitions)),
			})
		}
		deleted.Stretches += s.pruneStretches(o, q)
	}
	for k, t := range s.triggers {
		if t.atMs <= q.KeysByMs {
			delete(s.triggers, k)
			deleted.Keys++
		}
	}
	return deleted
}

func (s *Store) pruneStretches(o *object, q ax.PruneQuery) (deleted int64) {
	var mine, others []ax.SkippedStretch
	for _, st := range s.stretches {
		if st.TaskID == o.ID {
			mine = append(mine, st)
		} else {
			others = append(others, st)
		}
	}
	slices.SortStableFunc(mine, func(a, b ax.SkippedStretch) int { return cmp.Compare(a.FromMs, b.FromMs) })
	for len(mine) > q.KeepLast && mine[0].ToMs <= q.EndedByMs {
		o.Row.CheckedFromMs = max(o.Row.CheckedFromMs, mine[0].ToMs)
		mine = mine[1:]
		deleted++
	}
	s.stretches = append(others, mine...)
	return deleted
}

// IndexHistory implements ax.Upkeep: there is nothing to do.
func (s *Store) IndexHistory(context.Context, func() error) error { return nil }

// Checkpoint implements ax.Upkeep: there is nothing to do.
func (s *Store) Checkpoint(context.Context) error { return nil }

// Holds implements ax.Upkeep.
func (s *Store) Holds() []ax.WriterHold { return nil }
