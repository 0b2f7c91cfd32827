package planner_test

import (
	"testing"

	"github.com/axctl/ax"
	"github.com/axctl/ax/planner"
)

func plugin(name, version string) ax.Definition {
	return ax.Definition{Kind: ax.KindPlugin, Name: name, Plugin: &ax.PluginSpec{Path: "ax-handler-" + name, Version: version}}
}

// A plugin is planned, saved, applied and deleted like a task, and does nothing
// to time; a task of the same name is another object.
func TestPluginChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "2026-03-01T10:00:00Z")
	steps := []struct {
		name   string
		defs   []ax.Definition
		counts planner.Counts
		path   string // of the first difference of the plugin
	}{
		{"create", []ax.Definition{plugin("p", "1"), task("p", cron("0 2 * * *", "UTC"))}, planner.Counts{Added: 2}, "path"},
		{"nothing", []ax.Definition{plugin("p", "1"), task("p", cron("0 2 * * *", "UTC"))}, planner.Counts{Unchanged: 2}, ""},
		{"update", []ax.Definition{plugin("p", "2"), task("p", cron("0 2 * * *", "UTC"))}, planner.Counts{Changed: 1, Unchanged: 1}, "version"},
		{"delete", []ax.Definition{task("p", cron("0 2 * * *", "UTC"))}, planner.Counts{Deleted: 1, Unchanged: 1}, ""},
		{"make again", []ax.Definition{plugin("p", "2"), task("p", cron("0 2 * * *", "UTC"))}, planner.Counts{Added: 1, Unchanged: 1}, "path"},
	}
	for _, step := range steps {
		saved, err := planner.Encode(w.plan(step.defs...))
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		p, err := planner.Decode(saved)
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if p.Counts != step.counts {
			t.Errorf("%s: counts %+v, want %+v", step.name, p.Counts, step.counts)
		}
		for _, c := range p.Changes {
			if c.Kind != ax.KindPlugin {
				continue
			}
			if e := c.Effects; e.Moved || e.NextFireAfterMs != 0 || len(e.Notes)+len(e.Warnings) > 0 || e.Backlog != nil {
				t.Errorf("%s: effects %+v", step.name, e)
			}
			if step.path != "" && (len(c.Attributes) == 0 || c.Attributes[0].Path != step.path) {
				t.Errorf("%s: attributes %+v", step.name, c.Attributes)
			}
		}
		if p.Empty() {
			continue
		}
		for _, c := range w.changeSet(p).Changes {
			if c.Kind == ax.KindPlugin && c.Task != nil {
				t.Errorf("%s: a task row would be written", step.name)
			}
		}
		w.commit(p)
	}
}
