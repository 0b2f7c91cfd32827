package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/cmd/axctl/cli"
	"github.com/axctl/ax/store/memory"
)

// world is a folder, a clock and a store in memory that calls of axctl share.
// Scripts run axctl on the real store; here its ports can be made to fail.
type world struct {
	t     *testing.T
	dir   string
	now   time.Time
	env   []string
	stdin io.Reader
	tty   cli.Terminals
	store *memory.Store // nil until an apply makes it
	wrap  func(cli.Store) cli.Store
	ctx   context.Context
	fault error // of opening the store
}

func newWorld(t *testing.T) *world {
	return &world{
		t: t, dir: t.TempDir(), now: time.Date(2026, 11, 30, 15, 0, 0, 0, time.UTC), ctx: t.Context(),
		stdin: strings.NewReader(""), wrap: func(s cli.Store) cli.Store { return s },
	}
}

// file writes a file of the world's folder.
func (w *world) file(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// hello writes a configuration of tasks, each with the same schedule.
func (w *world) hello(cron string, names ...string) {
	w.t.Helper()
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "task %q {\n  schedule { cron = %q }\n  handler \"shell\" { command = \"true\" }\n}\n", name, cron)
	}
	w.file("main.hcl", b.String())
}

func (w *world) open(_ context.Context, url string, o cli.OpenOptions) (cli.Store, error) {
	if w.fault != nil {
		return nil, w.fault
	}
	if w.store == nil && !o.Create {
		return nil, ax.WithHint(fmt.Errorf("%w at %s", ax.ErrNoStore, strings.TrimPrefix(url, "sqlite:")), "axctl apply makes one")
	}
	if w.store == nil {
		w.store = memory.New(func() time.Time { return w.now })
	}
	return w.wrap(w.store), nil
}

// try runs axctl and returns its exit code and what it wrote.
func (w *world) try(args ...string) (code int, stdout, stderr string) {
	w.t.Helper()
	var out, errs bytes.Buffer
	code = cli.Main(w.ctx, cli.Env{
		Args: args, Dir: w.dir, Environ: append(os.Environ(), w.env...), Stdin: w.stdin,
		Stdout: &out, Stderr: &errs, Terminals: w.tty, User: "ada", Host: "host1", Version: "test",
		Now: func() time.Time { return w.now }, Open: w.open,
	})
	return code, out.String(), errs.String()
}

// run runs axctl, wants an exit code, and returns stdout and stderr together.
func (w *world) run(want int, args ...string) string {
	w.t.Helper()
	code, out, errs := w.try(args...)
	if code != want {
		w.t.Fatalf("axctl %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, out, errs)
	}
	return out + errs
}

// wants checks that a text has all of some parts.
func (w *world) wants(text string, parts ...string) {
	w.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			w.t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}
