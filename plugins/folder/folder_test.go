package folder_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins/folder"
	"github.com/axctl/ax/plugins/sdk"
)

// The test binary is also a plugin, whose role is in its file's name: what the
// environment holds is what is under test.
func TestMain(m *testing.M) {
	_, role, ok := strings.Cut(filepath.Base(os.Args[0]), folder.Prefix)
	switch {
	case !ok:
		os.Exit(m.Run())
	case role == "exits":
		fmt.Fprintln(os.Stderr, "no license")
		os.Exit(3)
	case role == "silent":
		waitForEver()
	case role == "garbage":
		fmt.Println("hello | from | an | init | function")
		fmt.Print(strings.Repeat("x", 200_000), "\n")
	}
	type in struct {
		Day string `ax:"day" doc:"Day."`
	}
	doc := "env " + strings.Join(os.Environ(), " ")
	sdk.Serve(role, sdk.Handler("daily", doc, func(context.Context, sdk.Job, in) (sdk.Outputs, error) { return nil, nil }))
}

func waitForEver() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR2, syscall.SIGTERM)
	for {
		<-c
	}
}

// plugin puts this test binary into a folder as a plugin.
func plugin(t *testing.T, dir, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, folder.Prefix+name)
	if err := os.Link(self, path); err != nil { // a copy, where a link cannot be
		b, err := os.ReadFile(self)
		if err == nil {
			err = os.WriteFile(path, b, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestFind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(path string, mode os.FileMode) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/false\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	write("ax-handler-good", 0o755)
	write("ax-handler-group", 0o775)
	write("ax-handler-world", 0o757)
	write("ax-handler-plain", 0o644)
	write("ax-handler-old.bak", 0o755)
	write("ax-handler-declared-v2", 0o755)
	write("ax-handler-elsewhere", 0o755)
	write("sub/ax-handler-elsewhere", 0o700)
	write("open/ax-handler-open", 0o755)
	write("other", 0o777)
	if err := os.Chmod(filepath.Join(dir, "open"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/bin/true", filepath.Join(dir, "ax-handler-link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "ax-handler-folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	found, err := folder.Find(dir, map[string]ax.PluginSpec{
		"declared":  {Path: "ax-handler-declared-v2"},
		"elsewhere": {Path: "sub/ax-handler-elsewhere"},
		"open":      {Path: "open/ax-handler-open"},
		"gone":      {Path: "ax-handler-gone"},
		"out":       {Path: "../ax-handler-out"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []struct{ file, name, problem string }{
		{"ax-handler-declared-v2", "declared", ""},
		{"ax-handler-elsewhere", "elsewhere", `plugin "elsewhere" is declared with path "sub/ax-handler-elsewhere"`},
		{"sub/ax-handler-elsewhere", "elsewhere", ""},
		{"ax-handler-folder", "folder", "is no regular file"},
		{"ax-handler-gone", "gone", "no such file"},
		{"ax-handler-good", "good", ""},
		{"ax-handler-group", "group", "may be written by others"},
		{"ax-handler-link", "link", "is no regular file"},
		{"ax-handler-old.bak", "old.bak", "no name of a plugin"},
		{"open/ax-handler-open", "open", "the folder " + filepath.Join(dir, "open") + " may be written by others"},
		{"../ax-handler-out", "out", "leaves the plugin folder"},
		{"ax-handler-plain", "plain", "is not executable"},
		{"ax-handler-world", "world", "may be written by others"},
	}
	if len(found) != len(want) {
		t.Fatalf("found %+v", found)
	}
	for i, w := range want {
		p := found[i]
		if p.Name != w.name || p.Path != filepath.Join(dir, w.file) || (p.Problem == "") != (w.problem == "") || !strings.Contains(p.Problem, w.problem) {
			t.Errorf("found %+v, want %+v", p, w)
		}
		if w.problem != "" && w.name != "old.bak" && w.file[0] == 'a' && !strings.Contains(p.Problem, w.name) {
			t.Errorf("%q does not name the file", p.Problem)
		}
	}
	if _, err := folder.Find(filepath.Join(dir, "open"), nil); err == nil || !strings.Contains(err.Error(), "may be written by others") {
		t.Errorf("an open folder: %v", err)
	}
	if _, err := folder.Find(filepath.Join(dir, "none"), nil); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no folder: %v", err)
	}
}

// Only root can give files away, and tests run as root where it matters.
func TestFindForeign(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "ax-handler-x")
	if err := os.WriteFile(path, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 12345, 12345); err != nil {
		if os.Geteuid() != 0 {
			return
		}
		t.Fatal(err)
	}
	found, err := folder.Find(dir, nil)
	if err != nil || len(found) != 1 || !strings.Contains(found[0].Problem, "belongs to user 12345") {
		t.Errorf("found %+v, %v", found, err)
	}
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if found, err := folder.Find(dir, nil); err == nil || len(found) != 0 {
		t.Errorf("found %+v, %v", found, err)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	environ := []string{"SECRET=1", "TOKEN=abc", "PATH=/nowhere"}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, name := range []string{"good", "garbage"} {
		p := folder.Plugin{Name: name, Path: plugin(t, dir, name), Spec: ax.PluginSpec{Env: []string{"TOKEN"}}}
		d, err := folder.Describe(ctx, p, environ)
		if err != nil || len(d.Schemas) != 1 || d.Schemas[0].Handler != "daily" || len(d.SHA256) != 64 {
			t.Fatalf("%s: described %+v, %v", name, d, err)
		}
		env := d.Schemas[0].Doc
		if !strings.Contains(env, "TOKEN=abc") || strings.Contains(env, "SECRET=1") || strings.Contains(env, "/nowhere") {
			t.Errorf("%s: its environment is %s", name, env)
		}
	}
	pinned := folder.Plugin{Name: "pinned", Path: plugin(t, dir, "pinned"), Spec: ax.PluginSpec{SHA256: strings.Repeat("0", 64)}}
	if _, err := folder.Describe(ctx, pinned, nil); err == nil || !strings.Contains(err.Error(), "is pinned") || !strings.Contains(err.Error(), pinned.Path) {
		t.Errorf("another file than the pinned one: %v", err)
	}
	sum, err := folder.Sum(pinned.Path)
	if err != nil {
		t.Fatal(err)
	}
	pinned.Spec.SHA256 = sum
	if _, err := folder.Describe(ctx, pinned, nil); err != nil {
		t.Errorf("the pinned file: %v", err)
	}
	// A script's interpreter reads the file that was opened as well.
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho it is $0 >&2\nexit 4\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := folder.Describe(ctx, folder.Plugin{Name: "script", Path: script}, nil); err == nil || !strings.Contains(err.Error(), "exit status 4") {
		t.Errorf("a script: %v", err)
	}
	exits := folder.Plugin{Name: "exits", Path: plugin(t, dir, "exits")}
	if _, err := folder.Describe(ctx, exits, nil); err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no license") {
		t.Errorf("one that exits: %v", err)
	}
	soon, end := context.WithTimeout(ctx, 300*time.Millisecond)
	defer end()
	silent := folder.Plugin{Name: "silent", Path: plugin(t, dir, "silent")}
	if _, err := folder.Describe(soon, silent, nil); !errors.Is(err, folder.ErrMute) {
		t.Errorf("one that says nothing: %v", err)
	}
}
