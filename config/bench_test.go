package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"
)

// bareFile and its parts are the least that decodes a task with all it has:
// what Load is measured against.
type bareFile struct {
	Tasks []bareTask `hcl:"task,block"`
}

type bareTask struct {
	Name        string            `hcl:"name,label"`
	Description string            `hcl:"description,optional"`
	Owner       string            `hcl:"owner,optional"`
	Labels      map[string]string `hcl:"labels,optional"`
	Timeout     string            `hcl:"timeout,optional"`
	Concurrency int               `hcl:"concurrency,optional"`
	Overlap     string            `hcl:"overlap,optional"`
	Idempotent  bool              `hcl:"idempotent,optional"`
	Schedules   []bareSchedule    `hcl:"schedule,block"`
	Retry       *bareRetry        `hcl:"retry,block"`
	Handler     bareHandler       `hcl:"handler,block"`
}

type bareSchedule struct {
	Cron     string `hcl:"cron,optional"`
	Timezone string `hcl:"timezone,optional"`
}

type bareRetry struct {
	Max     int      `hcl:"max,optional"`
	Initial string   `hcl:"initial,optional"`
	On      []string `hcl:"on,optional"`
}

type bareHandler struct {
	Name    string            `hcl:"name,label"`
	Command string            `hcl:"command,optional"`
	Env     map[string]string `hcl:"env,optional"`
}

// writeTasks writes a folder of n tasks with 15 attributes each, perFile to a
// file.
func writeTasks(tb testing.TB, n, perFile int) string {
	tb.Helper()
	dir := tb.TempDir()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `task "task_%d" {
  description = "Builds the daily report number %d."
  owner       = "team-%d@example.org"
  labels      = { team = "team-%d", tier = "gold" }
  timeout     = "%dm"
  concurrency = 2
  overlap     = "latest"
  idempotent  = true

  schedule {
    cron     = "%d %d * * *"
    timezone = "Europe/Berlin"
  }

  retry {
    max     = 5
    initial = "20s"
    on      = ["failed", "lost"]
  }

  handler "shell" {
    command = "report --number %d --out /srv/reports/%d.pdf"
    env     = { REGION = "eu", NUMBER = "%d" }
  }
}

`, i, i, i%50, i%50, 1+i%59, i%60, i%24, i, i, i)
		if (i+1)%perFile == 0 || i == n-1 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("tasks_%05d.hcl", i/perFile)), []byte(b.String()), 0o644); err != nil {
				tb.Fatal(err)
			}
			b.Reset()
		}
	}
	return dir
}

// bare reads a folder's files one after another and decodes them.
func bare(tb testing.TB, dir string) int {
	tb.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.hcl"))
	if err != nil {
		tb.Fatal(err)
	}
	tasks := 0
	for _, name := range names {
		file, diags := hclparse.NewParser().ParseHCLFile(name)
		if diags.HasErrors() {
			tb.Fatal(diags)
		}
		var decoded bareFile
		if diags := gohcl.DecodeBody(file.Body, &hcl.EvalContext{}, &decoded); diags.HasErrors() {
			tb.Fatal(diags)
		}
		tasks += len(decoded.Tasks)
	}
	return tasks
}

// BenchmarkLoad loads 10,000 tasks, in files of 100 and in one file, and
// reports the time as a ratio to bare parsing and decoding of the same files
// in the same run, on one core. Wanted: at most 1.5.
func BenchmarkLoad(b *testing.B) {
	const tasks = 10_000
	for _, perFile := range []int{100, tasks} {
		b.Run(fmt.Sprintf("per_file=%d", perFile), func(b *testing.B) {
			dir := writeTasks(b, tasks, perFile)
			var own, other time.Duration
			for b.Loop() {
				start := time.Now()
				c, diags := Load(dir, testOptions())
				own += time.Since(start)
				if diags.HasErrors() || len(c.Definitions) != tasks {
					b.Fatal(tell(diags))
				}
				start = time.Now()
				if n := bare(b, dir); n != tasks {
					b.Fatalf("bare decoded %d tasks", n)
				}
				other += time.Since(start)
			}
			b.ReportMetric(own.Seconds()/float64(b.N), "s/load")
			b.ReportMetric(other.Seconds()/float64(b.N), "s/bare")
			b.ReportMetric(own.Seconds()/other.Seconds(), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}
