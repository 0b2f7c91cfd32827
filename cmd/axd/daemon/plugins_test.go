package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins/host"
)

func pluginsOf(t *testing.T, dir string, rows ...ax.DeclaredPlugin) map[string]string {
	t.Helper()
	s := &pluginSet{declared: rows, dir: dir, builtIn: []host.Command{{Name: "shell"}}, log: slog.New(slog.DiscardHandler), now: time.Now}
	problems := map[string]string{}
	for _, p := range s.look().plugins {
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
		declared: []ax.DeclaredPlugin{{Name: "a", Spec: ax.PluginSpec{Path: "ax-handler-a", SHA256: "ff", Env: []string{"TOKEN"}}}},
		dir:      dir, environ: []string{"TOKEN=1", "SECRET=2"},
		told: ax.HostOffer{Handlers: []ax.OfferedHandler{{Name: "daily", Executor: "a"}, {Name: "shell", Executor: "shell"}}},
	}
	s.found = s.look()
	s.choose()
	cs := s.commands()
	want := host.Command{Name: "a", Path: filepath.Join(dir, "ax-handler-a"), SHA256: "ff", Env: []string{"TOKEN=1"}, Handlers: []string{"daily"}}
	if len(cs) != 1 || cs[0].Path != want.Path || cs[0].SHA256 != want.SHA256 || strings.Join(cs[0].Env, " ") != "TOKEN=1" || strings.Join(cs[0].Handlers, " ") != "daily" {
		t.Errorf("commands %+v, want %+v", cs, want)
	}
}

// A fault in the folder or in a block stops nothing that runs; a file that is
// gone does, and a plugin that nothing speaks of any more.
func TestPluginsThatRunOn(t *testing.T) {
	t.Parallel()
	block := func(stack, name, sum string) ax.DeclaredPlugin {
		return ax.DeclaredPlugin{Stack: stack, Name: name, Spec: ax.PluginSpec{Path: "ax-handler-" + name, SHA256: sum}}
	}
	for _, c := range []struct {
		what     string
		declared []ax.DeclaredPlugin
		change   func(dir, file string) error
		runs     bool
		declares string // what is told of it while it runs
	}{
		{"nothing changes", nil, func(string, string) error { return nil }, true, ""},
		{"its file is gone", nil, func(_, file string) error { return os.Remove(file) }, false, ""},
		{"its file is gone, and a block wants it", []ax.DeclaredPlugin{block("s", "a", "")}, func(_, file string) error { return os.Remove(file) }, false, ""},
		{"others may write it", nil, func(_, file string) error { return os.Chmod(file, 0o777) }, true, "may be written by others"},
		{"others may write the folder", nil, func(dir, _ string) error { return os.Chmod(dir, 0o777) }, true, "not there, or declared otherwise"},
		{"the folder is gone", nil, func(dir, _ string) error { return os.RemoveAll(dir) }, true, "not there, or declared otherwise"},
		{"two stacks disagree", []ax.DeclaredPlugin{block("s", "a", ""), block("r", "a", "ff")}, func(string, string) error { return nil }, true, "differently"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "plugins")
			file := filepath.Join(dir, "ax-handler-a")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, nil, 0o755); err != nil {
				t.Fatal(err)
			}
			var log strings.Builder
			s := &pluginSet{dir: dir, log: slog.New(slog.NewTextHandler(&log, nil)), now: time.Now, host: host.New(host.Config{})}
			s.found = s.look()
			s.choose()
			if err := c.change(dir, file); err != nil {
				t.Fatal(err)
			}
			s.declared = c.declared
			s.follow(t.Context())
			if !s.has("a") {
				t.Fatal("one look was enough")
			}
			s.follow(t.Context())
			if s.has("a") != c.runs {
				t.Errorf("it runs: %v", s.has("a"))
			}
			var declares string
			for _, p := range s.states(nil) {
				if p.Name == "a" && p.Declared != "" {
					declares = p.Declared
				}
			}
			if !strings.Contains(declares, c.declares) || c.declares == "" && declares != "" {
				t.Errorf("declared is %q, want %q", declares, c.declares)
			}
			if faulty := declares != "" || !c.runs && len(c.declared) > 0; faulty != strings.Contains(log.String(), "level=ERROR") {
				t.Errorf("log: %s", log.String())
			}
		})
	}
}
