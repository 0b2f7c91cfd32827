package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// A data folder that is removed, or replaced, under axd is told once, by log and
// metric, and so is that it is back.
func TestDataFolder(t *testing.T) {
	t.Parallel()
	dir, aside := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "aside")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fill := func() {
		t.Helper()
		must(os.Mkdir(dir, 0o700))
		must(os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600))
	}
	fill()
	var log strings.Builder
	reg := prometheus.NewRegistry()
	d, err := newDataFolder(dir, slog.New(slog.NewTextHandler(&log, nil)), reg)
	must(err)
	lost := func() float64 {
		t.Helper()
		families, err := reg.Gather()
		must(err)
		return families[0].GetMetric()[0].GetGauge().GetValue()
	}
	for _, step := range []struct {
		change  func()
		problem string
		lost    float64
		errors  int
	}{
		{func() {}, "", 0, 0},
		{func() { must(os.Rename(dir, aside)) }, "was removed", 1, 1},
		{func() {}, "was removed", 1, 1}, // once
		{fill, "is another one", 1, 2},
		{func() { must(os.RemoveAll(dir)); must(os.Rename(aside, dir)) }, "", 0, 2},
	} {
		step.change()
		if p := d.check(); (p == "") != (step.problem == "") || !strings.Contains(p, step.problem) {
			t.Errorf("problem is %q, want %q", p, step.problem)
		}
		if n := strings.Count(log.String(), "level=ERROR"); n != step.errors || lost() != step.lost {
			t.Errorf("after %q: %d errors in the log, metric %v\n%s", step.problem, n, lost(), log.String())
		}
	}
	if !strings.Contains(log.String(), "is back") {
		t.Errorf("log: %s", log.String())
	}
}
