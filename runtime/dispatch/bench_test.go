package dispatch

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store/memory"
	"github.com/prometheus/client_golang/prometheus"
)

// BenchmarkTurns takes a thousand waiting instances, each of its own task, from
// their rows to their places: what a saturated pool costs an instance besides
// the store.
func BenchmarkTurns(b *testing.B) {
	const tasks = 1000
	journal, left, err := OpenJournal(filepath.Join(b.TempDir(), "reports"), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = journal.Close() }()
	st := memory.New(time.Now)
	d := New(Config{
		Store: st, Cancels: st, Executors: &host{}, Journal: journal, Left: left,
		Host: "h1", Boot: "b1", Incarnation: "inc", Places: Places(map[string]int{"work": tasks}, 2),
		Tick: time.Second, Scan: 5 * time.Second, Horizon: 5 * time.Minute,
		Now: time.Now, Log: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
	})
	now := time.Now().UnixMilli()
	var rows []ax.Waiting
	for id := range int64(tasks) {
		key := ax.VersionKey{ObjectID: id + 1, Version: 1}
		d.learn(&ax.TaskVersion{VersionKey: key, Name: fmt.Sprint(id), Spec: ax.TaskSpec{
			Handler: ax.HandlerSpec{Name: "work", Body: json.RawMessage("{}")}, Concurrency: 1, Overlap: ax.OverlapQueue,
		}})
		rows = append(rows, ax.Waiting{
			Ref:     ax.Ref{ID: id + 1, TaskID: id + 1, DueMs: now - id*7919%60_000},
			Version: 1, Kind: ax.InstanceSchedule, Attempt: 1, NotBeforeMs: now, MaxActive: 1, Overlap: ax.OverlapQueue,
		})
	}
	for b.Loop() {
		for _, w := range rows {
			d.add(w, now)
		}
		d.takeTurns(now)
		if len(d.handing) != tasks {
			b.Fatal(len(d.handing))
		}
		d.abandonHanding()
		for _, w := range rows {
			d.drop(d.items[w.ID])
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*tasks), "ns/instance")
}
