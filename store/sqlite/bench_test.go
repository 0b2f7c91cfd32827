package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store/sqlite"
)

const benchTasks = 100_000

// BenchmarkFiring is the store-only loop: each firing is claimed with a place
// and finished, tasks in random order, so many in a batch, beside so many old
// instances. Next to firings/s it tells the CPU time of one, which a busy
// machine distorts less.
func BenchmarkFiring(b *testing.B) {
	for _, c := range []struct{ size, old int }{{10, 0}, {100, 0}, {1000, 0}, {1000, 2_000_000}} {
		b.Run(fmt.Sprintf("batch=%d/old=%d", c.size, c.old), func(b *testing.B) {
			size := c.size
			s, base := benchStore(b, benchTasks, c.old)
			order := rand.New(rand.NewPCG(1, 2)).Perm(benchTasks)
			lock := make([]int64, benchTasks+1)
			next := make([]int64, benchTasks+1)
			for i := range lock {
				lock[i], next[i] = 1, base
			}
			b.ResetTimer()
			before := cpuTime(b)
			at := 0
			for done := 0; done < b.N; {
				n := min(size, b.N-done)
				firings := make([]ax.Firing, n)
				for i := range firings {
					id := int64(order[at%benchTasks] + 1)
					at++
					due := base + int64(at) // rises, as time does
					firings[i] = ax.Firing{
						TaskID: id, Version: 1, ExpectNextMs: next[id], ExpectLockVersion: lock[id],
						NextMs: base + int64(at+benchTasks), LastSlotMs: due, NowMs: due, Overlap: ax.OverlapQueue,
						Starts: []ax.FiringStart{{DueMs: due, Place: &ax.Handover{
							Host: "host-1", Boot: "b0ff1ceb0ff1", Executor: "shell-1", AtMs: due, DeadlineMs: due + 30_000,
						}}},
					}
					next[id] = firings[i].NextMs
					lock[id]++
				}
				claimed, err := s.Claim(context.Background(), firings)
				if err != nil {
					b.Fatal(err)
				}
				endings := make([]ax.Ending, n)
				for i, c := range claimed {
					if len(c.Born) != 1 || c.Born[0].Status != ax.StatusDispatched {
						b.Fatalf("claimed %+v of %+v", c, firings[i])
					}
					at := firings[i].NowMs
					endings[i] = ax.Ending{
						Ref: c.Born[0].Ref, Attempt: 1, Status: ax.StatusSuccess,
						StartedMs: at, EndedMs: at + 5, StoppedMs: at + 5, NowMs: at + 6,
					}
				}
				if _, err := s.Finish(context.Background(), endings); err != nil {
					b.Fatal(err)
				}
				done += n
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "firings/s")
			b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/firing")
		})
	}
}

// BenchmarkApply is an apply that makes 10,000 tasks.
func BenchmarkApply(b *testing.B) {
	for range b.N {
		b.StopTimer()
		s := openBench(b)
		cs := creations(10_000, time.Now().UnixMilli())
		b.StartTimer()
		if _, err := s.Apply(context.Background(), cs); err != nil {
			b.Fatal(err)
		}
	}
}

func openBench(b testing.TB) *sqlite.Store {
	b.Helper()
	s, err := sqlite.Open(context.Background(), filepath.Join(b.TempDir(), "ax.db"), sqlite.Options{Create: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// cpuTime is what this process has used so far.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchStore returns a store with n tasks, all due at base, and old instances
// that ended long ago.
func benchStore(b testing.TB, n, old int) (s *sqlite.Store, base int64) {
	b.Helper()
	s = openBench(b)
	now := time.Now().UnixMilli()
	cs := creations(n, now)
	if _, err := s.Apply(context.Background(), cs); err != nil {
		b.Fatal(err)
	}
	base = cs.Changes[0].Task.Timetable.NextMs
	if old == 0 {
		return s, base
	}
	db, err := sql.Open("sqlite", s.Path())
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	_, err = db.ExecContext(context.Background(), `
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
		INSERT INTO instance (due_ms, task_id, slot_key, id, version, kind, status, attempt, not_before_ms, claimed_ms,
			assigned_ms, handed_ms, started_ms, ended_ms, stopped_ms, host, boot, executor)
		SELECT ?2 + i, 1 + i % ?3, 's:' || (?2 + i), i, 1, 'schedule', 'success', 1, ?2 + i, ?2 + i, ?2 + i, ?2 + i, ?2 + i, ?2 + i, ?2 + i,
			'host-1', 'b0ff1ceb0ff1', 'shell-1' FROM n`, old, base-10_000_000, n)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := db.ExecContext(context.Background(), `UPDATE meta SET next_instance_id = ?`, old+1); err != nil {
		b.Fatal(err)
	}
	return s, base
}

func creations(n int, nowMs int64) ax.ChangeSet {
	cs := ax.ChangeSet{ApplyID: "bench", Stack: "bench", NowMs: nowMs}
	for i := range n {
		def := ax.Definition{Kind: ax.KindTask, Name: fmt.Sprintf("task_%06d", i), Task: &ax.TaskSpec{
			Handler:   ax.HandlerSpec{Name: "shell", Body: []byte(`{"command":["true"]}`)},
			Schedules: []ax.ScheduleSpec{{Cron: "* * * * *", Timezone: "UTC"}}, Enabled: true, Concurrency: 1, Overlap: ax.OverlapQueue,
		}}
		body, hash := def.Canonical()
		cs.Changes = append(cs.Changes, ax.Change{
			Action: ax.ActionCreate, Kind: ax.KindTask, Name: def.Name, Definition: body, Hash: hash,
			Task: &ax.TaskChange{Enabled: true, MaxActive: 1, Overlap: ax.OverlapQueue, Timetable: &ax.Timetable{
				NextMs: nowMs + 3_600_000, Fingerprint: hash,
			}},
		})
	}
	return cs
}
