package planner_test

import (
	"fmt"
	"testing"

	"github.com/axctl/ax"
	"github.com/axctl/ax/planner"
)

// BenchmarkDiff plans 10,000 tasks: unchanged ones, and all new.
func BenchmarkDiff(b *testing.B) {
	var defs []ax.Definition
	for i := range 10_000 {
		defs = append(defs, task(fmt.Sprintf("t%05d", i), cron(fmt.Sprintf("%d %d * * *", i%60, i/60%24), "Europe/Berlin")))
	}
	w := newWorld(b, "2026-03-01T00:00:00Z")
	w.apply(defs...)
	desired, applied := conf(defs...), w.state()
	for name, state := range map[string]ax.StackState{"same": applied, "new": {Stack: "s"}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := planner.Diff(desired, state, planner.Options{}, w.nowMs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
