package memory

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/axctl/ax"
)

// Info implements ax.Queries.
func (s *Store) Info(context.Context) (ax.StoreInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ax.StoreInfo{
		URL: "memory:", ID: s.id, Incarnation: s.incarnation,
		SchemaVersion: 1, MinReader: 1, Serial: s.serial, CreatedMs: s.createdMs, TZData: s.tzdata, Clock: s.clock,
	}, nil
}

// Objects implements ax.Queries.
func (s *Store) Objects(_ context.Context, f ax.ObjectFilter) ([]ax.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objectsOf(f), nil
}

// Versions implements ax.Queries.
func (s *Store) Versions(_ context.Context, objectID int64) ([]ax.VersionRow, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []ax.VersionRow
	if o := s.objects[objectID]; o != nil {
		for _, v := range slices.Backward(o.versions) {
			rows = append(rows, v.VersionRow)
		}
	}
	return rows, nil
}

// Instances implements ax.Queries.
func (s *Store) Instances(_ context.Context, f ax.InstanceFilter) ([]ax.InstanceRow, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.byKey(func(in *instance) bool {
		return (f.TaskID == 0 || in.TaskID == f.TaskID) &&
			(len(f.Status) == 0 || slices.Contains(f.Status, in.Status)) &&
			(len(f.Kinds) == 0 || slices.Contains(f.Kinds, in.Kind)) &&
			in.DueMs >= f.SinceMs &&
			(!f.Held || in.HandedMs != 0 && in.StoppedMs == 0) &&
			(f.Before == nil || compareKeys(in.Ref, *f.Before) < 0)
	})
	slices.Reverse(found)
	rows := []ax.InstanceRow{}
	for _, in := range found[:min(len(found), cmp.Or(f.Limit, 100))] {
		rows = append(rows, s.rowOf(in))
	}
	return rows, nil
}

func (s *Store) rowOf(in *instance) ax.InstanceRow {
	o := s.objects[in.TaskID]
	row := ax.InstanceRow{Instance: in.Instance, Stack: o.Stack, Task: o.Address()}
	if i := slices.IndexFunc(in.transitions, func(t ax.Transition) bool {
		return t.Cause == ax.CauseUnkillable && t.Attempt == in.Attempt
	}); i >= 0 && in.HandedMs != 0 && in.StoppedMs == 0 {
		row.Unkillable = in.transitions[i].Detail
	}
	if in.Status == ax.StatusPending && len(in.attempts) > 0 {
		row.LastError = in.attempts[len(in.attempts)-1].Error
	}
	if st := in.signalled(); st != nil {
		row.PausedMs, row.PausedBy = st.PausedMs, st.PausedBy
	}
	return row
}

// Instance implements ax.Queries.
func (s *Store) Instance(_ context.Context, id int64) (ax.Life, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.instances[id]
	if in == nil {
		return ax.Life{}, fmt.Errorf("instance %d: %w", id, ax.ErrNotFound)
	}
	life := ax.Life{
		InstanceRow: s.rowOf(in), Attempts: slices.Clone(in.attempts), Transitions: slices.Clone(in.transitions),
		RetriedBy: s.retriesOf(id),
	}
	if in.progress != nil {
		p := *in.progress
		life.Progress = &p
	}
	if in.signal != nil && in.signal.Attempt == in.Attempt {
		st := *in.signal
		life.Signal = &st
	}
	return life, nil
}

// Stretches implements ax.Queries.
func (s *Store) Stretches(_ context.Context, taskID int64, limit int) ([]ax.SkippedStretch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []ax.SkippedStretch
	for _, st := range s.stretches {
		if st.TaskID == taskID {
			found = append(found, st)
		}
	}
	slices.SortStableFunc(found, func(a, b ax.SkippedStretch) int { return cmp.Compare(b.FromMs, a.FromMs) })
	return found[:min(len(found), limit)], nil
}

// Hosts implements ax.Queries.
func (s *Store) Hosts(context.Context) ([]ax.Host, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var hosts []ax.Host
	for _, name := range slices.Sorted(maps.Keys(s.hosts)) {
		hosts = append(hosts, s.hosts[name])
	}
	return hosts, nil
}

// Counts implements ax.Queries.
func (s *Store) Counts(context.Context) (map[ax.Status]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[ax.Status]int64{}
	for _, in := range s.instances {
		if !in.Status.Final() {
			counts[in.Status]++
		}
	}
	return counts, nil
}

// Audit implements ax.Auditor. The store is locked while read runs.
func (s *Store) Audit(_ context.Context, read func(ax.Records) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return read(records{s})
}

type records struct{ s *Store }

func (r records) Objects() iter.Seq2[ax.Object, error] {
	var rows []ax.Object
	for _, id := range slices.Sorted(maps.Keys(r.s.objects)) {
		rows = append(rows, r.s.objects[id].snapshot())
	}
	return all(rows)
}

func (r records) Versions() iter.Seq2[ax.VersionRow, error] {
	var rows []ax.VersionRow
	for _, id := range slices.Sorted(maps.Keys(r.s.objects)) {
		for _, v := range r.s.objects[id].versions {
			rows = append(rows, v.VersionRow)
		}
	}
	return all(rows)
}

func (r records) Instances() iter.Seq2[ax.Instance, error] {
	var rows []ax.Instance
	for _, id := range slices.Sorted(maps.Keys(r.s.instances)) {
		rows = append(rows, r.s.instances[id].Instance)
	}
	return all(rows)
}

func (r records) Attempts() iter.Seq2[ax.Attempt, error] {
	var rows []ax.Attempt
	for _, id := range slices.Sorted(maps.Keys(r.s.instances)) {
		rows = append(rows, r.s.instances[id].attempts...)
	}
	return all(rows)
}

func (r records) Transitions() iter.Seq2[ax.Transition, error] {
	var rows []ax.Transition
	for _, id := range slices.Sorted(maps.Keys(r.s.instances)) {
		rows = append(rows, r.s.instances[id].transitions...)
	}
	return all(rows)
}

func (r records) Slots() iter.Seq2[ax.SlotRecord, error] {
	var rows []ax.SlotRecord
	for _, in := range r.s.instances {
		if in.Kind == ax.InstanceSchedule {
			rows = append(rows, ax.SlotRecord{TaskID: in.TaskID, FromMs: in.DueMs, ToMs: in.DueMs, Version: in.Version})
		}
	}
	for _, st := range r.s.stretches {
		rows = append(rows, ax.SlotRecord{TaskID: st.TaskID, FromMs: st.FromMs, ToMs: st.ToMs, Version: st.Version, Stretch: true})
	}
	slices.SortFunc(rows, func(a, b ax.SlotRecord) int {
		return cmp.Or(cmp.Compare(a.TaskID, b.TaskID), cmp.Compare(a.FromMs, b.FromMs), cmp.Compare(a.ToMs, b.ToMs))
	})
	return all(rows)
}

func (r records) Unindexed() iter.Seq2[ax.IndexFault, error] { return all[ax.IndexFault](nil) }

func (r records) Backfills() iter.Seq2[ax.Backfill, error] {
	var rows []ax.Backfill
	for _, b := range r.s.backfills {
		rows = append(rows, *b)
	}
	return all(rows)
}

func all[T any](rows []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}
