package sqlite_test

import (
	"testing"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store/sqlite"
	"github.com/axctl/ax/store/storetest"
)

// What writes more than one table writes all of them or none: a start with a key
// and no instance, or the other way round, would be a start that is lost or made
// twice. Here each write in turn fails, as a crash between two would leave it.
func TestCutShortHalfway(t *testing.T) {
	t.Parallel()
	const ms = storetest.PopulatedMs
	start := func(s *sqlite.Store) (ax.Backfill, error) {
		return s.StartBackfill(t.Context(), ax.BackfillRequest{
			TaskID: 1, Version: 2, FromMs: ms - 600_000, ToMs: ms - 540_000, Mode: ax.BackfillAll, Parallel: 1, Slots: 1, Who: "ann", AtMs: ms,
		})
	}
	fill := func(s *sqlite.Store, id int64) error {
		_, err := s.Fill(t.Context(), ax.Fill{BackfillID: id, ExpectPositionMs: ms - 600_000, Slots: []int64{ms - 600_000}, Last: true, NowMs: ms})
		return err
	}
	for _, c := range []struct {
		name   string
		writes []string // what fails, in turn
		before func(s *sqlite.Store) (int64, error)
		do     func(s *sqlite.Store, id int64) error
		want   int // more instances after it
	}{
		{
			"trigger with a key",
			[]string{"INSERT ON instance", "INSERT ON transition", "UPDATE ON task", "INSERT ON trigger_key", "UPDATE ON meta"},
			func(*sqlite.Store) (int64, error) { return 0, nil },
			func(s *sqlite.Store, _ int64) error {
				_, err := s.Trigger(t.Context(), ax.Trigger{ObjectID: 1, UID: "fresh", DueMs: ms, NowMs: ms, Who: "ann", Key: "fresh"})
				return err
			}, 1,
		},
		{
			"a step of a backfill",
			[]string{"INSERT ON instance", "INSERT ON transition", "UPDATE ON backfill", "UPDATE ON task", "UPDATE ON meta"},
			func(s *sqlite.Store) (int64, error) {
				b, err := start(s)
				return b.ID, err
			}, fill, 1,
		},
		{
			"the cancel of a backfill",
			[]string{"UPDATE ON backfill", "UPDATE ON instance", "UPDATE ON task", "INSERT ON transition"},
			func(s *sqlite.Store) (int64, error) {
				b, err := start(s)
				if err != nil {
					return 0, err
				}
				return b.ID, fill(s, b.ID)
			},
			func(s *sqlite.Store, id int64) error {
				_, err := s.MoveBackfill(t.Context(), ax.BackfillMove{ID: id, To: ax.BackfillCancelled, Who: "ann", NowMs: ms})
				return err
			}, 0,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := populate(t)
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{Now: storetest.PopulatedNow})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			id, err := c.before(s)
			if err != nil {
				t.Fatal(err)
			}
			db := open(t, path)
			rows := func() (n int) {
				if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM instance`).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			before := rows()
			for _, w := range c.writes {
				if _, err := db.ExecContext(t.Context(), `CREATE TRIGGER halfway BEFORE `+w+` BEGIN SELECT RAISE(ABORT, 'cut short'); END`); err != nil {
					t.Fatal(err)
				}
				if err := c.do(s, id); err == nil {
					t.Errorf("%s fails, and it says that all is well", w)
				}
				if _, err := db.ExecContext(t.Context(), `DROP TRIGGER halfway`); err != nil {
					t.Fatal(err)
				}
				if n := rows(); n != before {
					t.Errorf("%s fails, and there are %d instances more", w, n-before)
				}
				for _, f := range findings(t, path) {
					t.Errorf("%s fails: %s", w, f)
				}
			}
			if err := c.do(s, id); err != nil {
				t.Error(err)
			}
			if n := rows() - before; n != c.want {
				t.Errorf("%d instances more, want %d", n, c.want)
			}
			for _, f := range findings(t, path) {
				t.Errorf("after all: %s", f)
			}
		})
	}
}

// A step of a backfill over a million slots that have nothing to be run, which
// is the longest that it holds the writer.
func BenchmarkFill(b *testing.B) {
	s, err := sqlite.Open(b.Context(), b.TempDir()+"/ax.db", sqlite.Options{Create: true, Now: storetest.PopulatedNow})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	storetest.Populate(b, s)
	const to = storetest.PopulatedMs - 700_000
	var id, at int64
	for b.Loop() {
		if at == 0 || at+ax.MaxFillSlots*1000 > to {
			if id != 0 {
				if _, err := s.MoveBackfill(b.Context(), ax.BackfillMove{ID: id, To: ax.BackfillCancelled, Who: "ann", NowMs: to}); err != nil {
					b.Fatal(err)
				}
			}
			f, err := s.StartBackfill(b.Context(), ax.BackfillRequest{
				TaskID: 1, Version: 2, FromMs: to - 1_000_000_000, ToMs: to, Mode: ax.BackfillFailed, Parallel: 1, Slots: 1_000_000, Who: "ann", AtMs: to,
			})
			if err != nil {
				b.Fatal(err)
			}
			id, at = f.ID, f.FromMs
		}
		f := ax.Fill{BackfillID: id, ExpectPositionMs: at, NowMs: to}
		for range ax.MaxFillSlots {
			f.Slots = append(f.Slots, at)
			at += 1000
		}
		at = f.Slots[len(f.Slots)-1] + 1
		got, err := s.Fill(b.Context(), f)
		if err != nil || got.Lost || got.PositionMs != at {
			b.Fatal(got, err)
		}
	}
}
