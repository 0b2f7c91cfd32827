package daemon

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins/host"
)

// declaring is a store of which only plugins are asked.
type declaring struct {
	ax.Plugins
	rows []ax.DeclaredPlugin
}

func (d declaring) DeclaredPlugins(context.Context) ([]ax.DeclaredPlugin, error) { return d.rows, nil }

func pluginsOf(t *testing.T, dir string, rows ...ax.DeclaredPlugin) map[string]string {
	t.Helper()
	s := &pluginSet{store: declaring{rows: rows}, dir: dir, builtIn: []string{"shell"}, log: slog.New(slog.DiscardHandler), now: time.Now}
	found, err := s.find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	problems := map[string]string{}
	for _, p := range found {
		problems[p.Name] = p.Problem
	}
	return problems
}

func TestFindPlugins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "shell"} {
		if err := os.WriteFile(filepath.Join(dir, "ax-handler-"+name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	row := func(stack, name, version string) ax.DeclaredPlugin {
		return ax.DeclaredPlugin{Stack: stack, Name: name, Version: 3, Spec: ax.PluginSpec{Path: "ax-handler-" + name, Version: version}}
	}
	got := pluginsOf(t, dir, row("s1", "a", "1"), row("s2", "a", "1"), row("s1", "b", "1"), row("s2", "b", "2"),
		ax.DeclaredPlugin{Stack: "s1", Name: "newer", Version: 3})
	want := map[string]string{
		"a":     "", // two stacks declare it alike
		"b":     "stacks s1 and s2 declare it differently",
		"shell": `"shell" is the name of a built-in executor`,
		"newer": "version 3 of its definition cannot be read by this axd",
	}
	for name, problem := range want {
		if got[name] != problem {
			t.Errorf("%s: problem %q, want %q", name, got[name], problem)
		}
	}
	if got := pluginsOf(t, "", row("s1", "a", "1")); got["a"] != "axd runs without a plugin folder: axd -plugins DIR" {
		t.Errorf("without a folder: %v", got)
	}
	if got := pluginsOf(t, filepath.Join(dir, "none"), row("s1", "a", "1")); !strings.Contains(got[""], "no such file") || got["a"] == "" {
		t.Errorf("a folder that is not there: %v", got)
	}
}

// A plugin gets the variables that its block names and no others, its pin, and
// the handlers that it had.
func TestPluginCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ax-handler-a"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	s := &pluginSet{
		store: declaring{rows: []ax.DeclaredPlugin{{Name: "a", Spec: ax.PluginSpec{Path: "ax-handler-a", SHA256: "ff", Env: []string{"TOKEN"}}}}},
		dir:   dir, environ: []string{"TOKEN=1", "SECRET=2"},
		told: ax.HostOffer{Handlers: []ax.OfferedHandler{{Name: "daily", Executor: "a"}, {Name: "shell", Executor: "shell"}}},
	}
	var err error
	if s.started, err = s.find(t.Context()); err != nil {
		t.Fatal(err)
	}
	cs := s.commands()
	want := host.Command{Name: "a", Path: filepath.Join(dir, "ax-handler-a"), SHA256: "ff", Env: []string{"TOKEN=1"}, Handlers: []string{"daily"}}
	if len(cs) != 1 || cs[0].Path != want.Path || cs[0].SHA256 != want.SHA256 || strings.Join(cs[0].Env, " ") != "TOKEN=1" || strings.Join(cs[0].Handlers, " ") != "daily" {
		t.Errorf("commands %+v, want %+v", cs, want)
	}
}
