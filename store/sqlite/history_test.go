package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store/sqlite"
)

// A store that was never indexed lists the same before, in the middle of and
// after it, also when indexing is cut short, and when retention deletes what is
// being indexed.
func TestHistoryFromNothing(t *testing.T) {
	t.Parallel()
	const old = 6000
	s, base := benchStore(t, 7, old)
	list := func() (ids []int64) {
		for _, f := range []ax.InstanceFilter{{TaskID: 3, Limit: 2000}, {TaskID: 3, Limit: 5, SinceMs: base - 10_000_000 + 2000, Before: &ax.Ref{DueMs: base - 10_000_000 + 4000}}} {
			rows, err := s.Instances(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			for _, in := range rows {
				ids = append(ids, in.ID)
			}
		}
		return ids
	}
	want := list()
	if len(want) != old/7+5 {
		t.Fatalf("%d instances are listed", len(want))
	}
	db := open(t, s.Path())
	var indexed, to int64
	look := func() {
		t.Helper()
		if err := db.QueryRowContext(t.Context(), `SELECT count(*), (SELECT COALESCE(history_to, 0) FROM meta) FROM history`).Scan(&indexed, &to); err != nil {
			t.Fatal(err)
		}
		if got := list(); !slices.Equal(got, want) {
			t.Errorf("with %d indexed: %v", indexed, got)
		}
	}
	enough := errors.New("enough")
	if err := s.IndexHistory(t.Context(), func() error { return enough }); !errors.Is(err, enough) {
		t.Fatal(err)
	}
	if look(); indexed == 0 || indexed == old || to != 0 {
		t.Errorf("cut short, %d rows up to %d are indexed", indexed, to)
	}
	// The oldest 2,800 go, some after they were indexed and some before.
	pruned := false
	err := s.IndexHistory(t.Context(), func() error {
		if pruned {
			return nil
		}
		pruned = true
		want = slices.DeleteFunc(want, func(id int64) bool { return id <= 2800 })
		return s.Prune(t.Context(), ax.PruneQuery{EndedByMs: base - 10_000_000 + 2800, KeepLast: 1}, func(ax.Pruned) error { return nil })
	})
	if err != nil {
		t.Fatal(err)
	}
	if look(); indexed != old-2800 || to != old {
		t.Errorf("%d rows up to %d are indexed", indexed, to)
	}
}

// A stretch over which others fired a lot is checked for used slots as one over
// which little ran, indexed or not.
func TestUsedSlotsAmongMany(t *testing.T) {
	t.Parallel()
	const old = 4000
	s, base := benchStore(t, 2, old)
	first := base - 10_000_000
	if _, err := open(t, s.Path()).ExecContext(t.Context(), `UPDATE task SET last_slot = ?`, base-1); err != nil {
		t.Fatal(err)
	}
	for _, index := range []bool{false, true} {
		if index {
			if err := s.IndexHistory(t.Context(), func() error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		for _, to := range []int64{300, 3000} {
			claimed, err := s.Claim(t.Context(), []ax.Firing{{
				TaskID: 2, Version: 1, ExpectNextMs: base, ExpectLockVersion: 1, NextMs: base + 1, LastSlotMs: base, NowMs: base, Overlap: ax.OverlapQueue,
				Skipped: []ax.SkippedStretch{{TaskID: 2, FromMs: first, ToMs: first + to, Slots: -1, Reason: ax.ReasonMisfire, Version: 1}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			var want []int64
			for i := int64(1); i <= to; i++ {
				if 1+i%2 == 2 {
					want = append(want, first+i)
				}
			}
			if !claimed[0].Lost || !slices.Equal(claimed[0].Used, want) {
				t.Errorf("indexed %v, up to %d: %d are used, want %d", index, to, len(claimed[0].Used), len(want))
			}
		}
	}
}

// BenchmarkPages tells how long a page of a million past instances takes,
// before and after they are indexed, and what indexing them costs.
func BenchmarkPages(b *testing.B) {
	const old, tasks = 1_000_000, 1000
	s, base := benchStore(b, tasks, old)
	// One in a thousand failed, and task 7 had little to do.
	db := open(b, s.Path())
	for _, sql := range []string{
		`UPDATE instance SET status = 'failed' WHERE id % 1009 = 0`,
		`DELETE FROM instance WHERE task_id = 7 AND id > 20000`,
	} {
		if _, err := db.ExecContext(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	pages := []struct {
		name   string
		filter ax.InstanceFilter
	}{
		{"all", ax.InstanceFilter{}},
		{"task", ax.InstanceFilter{TaskID: 5}},
		{"rare-task", ax.InstanceFilter{TaskID: 7}},
		{"failed", ax.InstanceFilter{Status: []ax.Status{ax.StatusFailed}}},
		{"failed-of-task", ax.InstanceFilter{TaskID: 5, Status: []ax.Status{ax.StatusFailed, ax.StatusTimeout}}},
		{"running", ax.InstanceFilter{Status: []ax.Status{ax.StatusDispatched}}},
		{"since", ax.InstanceFilter{TaskID: 5, SinceMs: base - 10_000_000 + old/2}},
	}
	for _, state := range []string{"new", "indexed"} {
		for _, p := range pages {
			b.Run(p.name+"/"+state, func(b *testing.B) {
				for b.Loop() {
					if _, err := s.Instances(context.Background(), p.filter); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		began := time.Now()
		if err := s.IndexHistory(context.Background(), func() error { return nil }); err != nil {
			b.Fatal(err)
		}
		b.Log("indexed in", time.Since(began), "holds", holdsOf(s))
	}
}

// holdsOf tells the longest hold of each kind.
func holdsOf(s *sqlite.Store) string {
	text := ""
	for _, h := range s.Holds() {
		text += fmt.Sprintf(" %s %s (%d)", h.Kind, h.Longest.Round(time.Microsecond), h.Count)
	}
	return text
}
