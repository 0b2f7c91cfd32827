package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/axctl/ax"
)

// formatVersion is the version of all JSON documents. It changes only when a
// key that was there means something else or is gone.
const formatVersion = "1.0"

// globals are the flags that every command has.
type globals struct {
	store   string
	json    bool
	zone    string
	noColor bool
	chdir   string
}

func (g *globals) register(flags *pflag.FlagSet) {
	flags.StringVar(&g.store, "store", "", "`URL` of the store, as sqlite:PATH (default sqlite:ax.db; env AX_STORE)")
	flags.BoolVar(&g.json, "json", false, "print one JSON document for programs")
	flags.StringVar(&g.zone, "zone", "", "show times in the zone `NAME`: Europe/Berlin, UTC or local (default each task's own)")
	flags.BoolVar(&g.noColor, "no-color", false, "no colour (env NO_COLOR)")
	flags.StringVar(&g.chdir, "chdir", "", "work in the folder `DIR`")
}

// call is one run of one command.
type call struct {
	env     Env
	globals globals
	// What begin makes of the global flags.
	dir      string         // absolute
	storeURL string         // with an absolute path
	zone     *time.Location // nil: each task's own
}

func newCall(env Env) *call { return &call{env: env, dir: env.Dir} }

// begin reads the global flags. It runs before every command.
func (c *call) begin() error {
	if c.globals.chdir != "" {
		c.dir = c.path(c.globals.chdir)
		if info, err := os.Stat(c.dir); err != nil || !info.IsDir() {
			return ax.WithHint(fmt.Errorf("-chdir: %s is no folder", c.dir), "Name a folder that exists.")
		}
	}
	c.storeURL = c.globals.store
	if c.storeURL == "" {
		c.storeURL = c.getenv("AX_STORE")
	}
	if c.storeURL == "" {
		c.storeURL = "sqlite:ax.db"
	}
	path, isSQLite := strings.CutPrefix(c.storeURL, "sqlite:")
	if bare := !strings.Contains(c.storeURL, ":"); path != "" && (isSQLite || bare) {
		c.storeURL = "sqlite:" + c.path(path)
	}
	if c.globals.zone != "" {
		zone, err := loadZone(c.globals.zone)
		if err != nil {
			return err
		}
		c.zone = zone
	}
	return nil
}

// storePath returns the file of a SQLite store, "" for any other store.
func (c *call) storePath() string {
	path, _ := strings.CutPrefix(c.storeURL, "sqlite:")
	if path == c.storeURL {
		return ""
	}
	return path
}

// storeName returns the store as people are told about it.
func (c *call) storeName() string {
	if path := c.storePath(); path != "" {
		return path
	}
	return c.storeURL
}

// path makes a path of the command line absolute.
func (c *call) path(p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(c.dir, p)
}

// short writes a path relative to the current folder where it lies in it.
func (c *call) short(p string) string {
	if rel, err := filepath.Rel(c.dir, p); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return p
}

// getenv returns the last value of name in the environment.
func (c *call) getenv(name string) string {
	for _, kv := range slices.Backward(c.env.Environ) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

func (c *call) nowMs() int64 { return c.env.Now().UnixMilli() }

// open opens the store that must be there. The driver says where it looked and
// what to do.
func (c *call) open(ctx context.Context, o OpenOptions) (Store, error) {
	return c.env.Open(ctx, c.storeURL, o)
}

// view is what a command prints of its result: for people, or as the document
// that scripts rely on (its keys beside format_version).
type view interface {
	human(*screen)
	json() document
}

// document is a JSON document's top level.
type document map[string]any

// print writes a result to stdout.
func (c *call) print(v view) error {
	if c.globals.json {
		return c.printJSON(v.json())
	}
	s := c.screen(c.env.Stdout, c.env.Terminals.Stdout)
	v.human(s)
	return s.flush()
}

func (c *call) printJSON(doc document) error {
	doc["format_version"] = formatVersion
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	if _, err := c.env.Stdout.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// warn writes warnings to stderr, before or after the result. With -json they
// are part of the result instead.
func (c *call) warn(ds ax.Diagnostics) {
	if c.globals.json || len(ds) == 0 {
		return
	}
	s := c.screen(c.env.Stderr, c.env.Terminals.Stderr)
	s.diagnostics(ds)
	_ = s.flush()
}

// end reports how the command ended and returns its exit code.
func (c *call) end(err error) int {
	var bare exit
	if err == nil || errors.As(err, &bare) {
		return exitCode(err)
	}
	ds := diagnose(err)
	if c.globals.json || slices.Contains(c.env.Args, "-json") || slices.Contains(c.env.Args, "--json") {
		_ = c.printJSON(document{"diagnostics": ds})
		return exitCode(err)
	}
	s := c.screen(c.env.Stderr, c.env.Terminals.Stderr)
	s.diagnostics(ds)
	_ = s.flush()
	return exitCode(err)
}

// screen makes a screen over one of the streams.
func (c *call) screen(w io.Writer, terminal bool) *screen {
	plain := c.globals.noColor || c.getenv("NO_COLOR") != "" || c.getenv("TERM") == "dumb"
	return &screen{
		out:   w,
		color: terminal && !plain,
		utf8:  terminal && utf8Locale(c.getenv),
		zone:  c.zone,
		short: c.short,
	}
}

// utf8Locale reports whether the environment asks for UTF-8.
func utf8Locale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(getenv(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}
