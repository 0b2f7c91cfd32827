package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/axctl/ax"
	"github.com/axctl/ax/config"
)

type handlersArgs struct {
	sourceArgs
	check bool
}

func handlersCommand(c *call) *cobra.Command {
	var a handlersArgs
	cmd := &cobra.Command{
		Use:   "handlers [PATH]",
		Short: "List the handlers that are known here, where from, and what hosts offer",
		Args:  argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				a.path = args[0]
			}
			result, err := c.handlers(cmd.Context(), a)
			if err != nil {
				return err
			}
			return c.print(result)
		},
	}
	a.register(cmd.Flags())
	cmd.AddCommand(lockCommand(c))
	return cmd
}

func lockCommand(c *call) *cobra.Command {
	var a handlersArgs
	cmd := &cobra.Command{
		Use:   "lock -plugins DIR [PATH]",
		Short: "Write " + lockName + " beside a configuration: what its plugins offer",
		Long: "lock asks the plugins of a folder what they offer and writes it beside the configuration,\n" +
			"to be committed: then validate and plan check handler bodies where there are no plugins.\n" +
			"With -check it writes nothing and ends with 3 when the file is not what it would write.",
		Args: argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				a.path = args[0]
			}
			result, err := c.lockHandlers(cmd.Context(), a)
			if err != nil {
				return err
			}
			if err := c.print(result); err != nil {
				return err
			}
			if a.check && len(result.differences) > 0 {
				return exit(ExitFindings)
			}
			return nil
		},
	}
	a.register(cmd.Flags())
	cmd.Flags().BoolVar(&a.check, "check", false, "write nothing; end with 3 when the file is stale")
	return cmd
}

// knownRow is a handler of one source.
type knownRow struct {
	Handler string `json:"handler"`
	Source  string `json:"source"`
	Host    string `json:"host,omitempty"`
	Plugin  string `json:"plugin,omitempty"`
	Hash    string `json:"schema_hash"`
}

// pluginRow is a plugin of a host.
type pluginRow struct {
	Host    string `json:"host"`
	Plugin  string `json:"plugin"`
	Path    string `json:"path"`
	SHA256  string `json:"sha256,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Declared says why it runs on as it was; Shadowed which of its handlers are
	// another one's.
	Declared      string `json:"declared,omitempty"`
	Shadowed      string `json:"shadowed,omitempty"`
	QuarantinedMs int64  `json:"quarantined_ms,omitempty"`
	RetryMs       int64  `json:"retry_ms,omitempty"`
}

// pluginRows are the plugins of a host.
func pluginRows(o ax.HostOffer) []pluginRow {
	rows := []pluginRow{}
	for _, p := range o.Plugins {
		rows = append(rows, pluginRow{
			Host: o.Host, Plugin: p.Name, Path: p.Path, SHA256: p.SHA256, Problem: p.Problem,
			Declared: p.Declared, Shadowed: p.Shadowed, QuarantinedMs: p.QuarantinedMs, RetryMs: p.RetryMs,
		})
	}
	return rows
}

type handlersResult struct {
	rows    []knownRow
	plugins []pluginRow
	found   ax.Diagnostics
}

func (c *call) handlers(ctx context.Context, a handlersArgs) (handlersResult, error) {
	var r handlersResult
	path := c.configuration(a.sourceArgs)
	k, err := c.newCatalog(folderOf(path), c.pluginDir(a.sourceArgs), nil)
	if err != nil {
		return r, err
	}
	// A folder without a configuration has no plugin blocks; faults of others are
	// validate's to tell.
	blocks, _ := config.Plugins(path, config.Options{Env: c.env.Environ})
	_, r.found = k.declared(ctx, blocks)
	for _, name := range slices.Sorted(maps.Keys(k.handlers)) {
		h := k.handlers[name]
		r.rows = append(r.rows, knownRow{Handler: name, Source: h.source, Plugin: h.plugin, Hash: h.schema.Hash()})
	}
	s, err := c.open(ctx, OpenOptions{ReadOnly: true})
	if errors.Is(err, ax.ErrNoStore) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	defer s.Close()
	offers, err := s.Offers(ctx)
	if err != nil {
		return r, err
	}
	for _, o := range offers {
		for _, h := range o.Handlers {
			r.rows = append(r.rows, knownRow{Handler: h.Name, Source: "host", Host: o.Host, Plugin: h.Executor, Hash: h.SchemaHash})
		}
		r.plugins = append(r.plugins, pluginRows(o)...)
	}
	return r, nil
}

func (r handlersResult) human(s *screen) {
	var rows [][]string
	for _, h := range r.rows {
		from := h.Source
		if h.Host != "" {
			from += " " + h.Host
		}
		rows = append(rows, []string{clean(h.Handler), clean(from), clean(h.Plugin), h.Hash})
	}
	s.table([]string{"HANDLER", "FROM", "PLUGIN", "SCHEMA"}, rows)
	for _, p := range r.plugins {
		problem := p.Problem
		if p.QuarantinedMs != 0 {
			problem = quarantineText(p.QuarantinedMs, p.RetryMs) + ": " + problem
		}
		for _, what := range []string{problem, p.Declared, p.Shadowed} {
			if what != "" {
				s.line("")
				s.line("%s host %s: plugin %s (%s): %s", s.paint(yellow, "!"), clean(p.Host), clean(p.Plugin), clean(p.Path), clean(what))
			}
		}
	}
	for _, d := range r.found {
		s.line("")
		s.line("%s %s: %s", s.paint(yellow, "!"), clean(d.Summary), clean(d.Detail))
	}
}

func (r handlersResult) json() document {
	return document{"handlers": list(r.rows), "plugins": list(r.plugins), "diagnostics": list(r.found)}
}

type lockResult struct {
	path        string
	check       bool
	handlers    []string
	differences []string
}

func (c *call) lockHandlers(ctx context.Context, a handlersArgs) (lockResult, error) {
	path := c.configuration(a.sourceArgs)
	r := lockResult{path: filepath.Join(folderOf(path), lockName), check: a.check}
	dir := c.pluginDir(a.sourceArgs)
	if dir == "" {
		return r, ax.Diagnostic{Severity: ax.SeverityError, Summary: "-plugins is missing", Detail: "Name the folder whose plugins are to be asked: axctl handlers lock -plugins DIR"}
	}
	options, err := c.options(a.sourceArgs)
	if err != nil {
		return r, err
	}
	defs, found := config.Plugins(path, options)
	if found.HasErrors() {
		return r, faults(found)
	}
	blocks := map[string]ax.Definition{}
	for _, d := range defs {
		blocks[d.Name] = d
	}
	described, problems, lost := c.describeFolder(ctx, dir, blocks)
	if len(problems) > 0 { // half a lock file would make the other half unchecked
		for i := range problems {
			problems[i].Severity = ax.SeverityError
		}
		return r, faults(problems)
	}
	c.warn(lost)
	now := &lockFile{FormatVersion: formatVersion, Plugins: described}
	text, err := now.encode()
	if err != nil {
		return r, err
	}
	was, err := readLock(r.path)
	if err != nil && a.check {
		return r, err
	}
	if err != nil {
		was = &lockFile{} // it is written anew
	}
	r.handlers, r.differences = now.names(), was.differences(now)
	if old, err := os.ReadFile(r.path); err == nil && bytes.Equal(old, text) {
		return r, nil
	}
	if len(r.differences) == 0 {
		r.differences = []string{"it is laid out otherwise, or not there"}
	}
	if a.check {
		return r, nil
	}
	return r, writeFile(r.path, text, 0o644)
}

func (l *lockFile) names() []string {
	var names []string
	for _, p := range l.Plugins {
		names = append(names, slices.Collect(maps.Keys(p.hashes()))...)
	}
	slices.Sort(names)
	return names
}

// differences tells what o has otherwise than l.
func (l *lockFile) differences(o *lockFile) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(l.Plugins)) {
		p, there := o.Plugins[name]
		if !there {
			out = append(out, fmt.Sprintf("plugin %q is gone", name))
		} else if d := l.Plugins[name].difference(p); d != "" {
			out = append(out, fmt.Sprintf("plugin %q: %s", name, d))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Plugins)) {
		if _, there := l.Plugins[name]; !there {
			out = append(out, fmt.Sprintf("plugin %q is new", name))
		}
	}
	return out
}

func (r lockResult) human(s *screen) {
	switch path := s.short(r.path); {
	case len(r.differences) == 0:
		s.line("%s is up to date: %s.", path, plural(len(r.handlers), "handler"))
		return
	case r.check:
		s.line("%s is stale:", path)
	default:
		s.line("Wrote %s: %s (%s).", path, plural(len(r.handlers), "handler"), clean(words(r.handlers)))
	}
	for _, d := range r.differences {
		s.line("  %s", clean(d))
	}
}

func (r lockResult) json() document {
	return document{
		"file": r.path, "stale": r.check && len(r.differences) > 0, "written": !r.check && len(r.differences) > 0,
		"handlers": list(r.handlers), "differences": list(r.differences),
	}
}

// folderOf returns the folder of a configuration, which may be one file.
func folderOf(path string) string {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return filepath.Dir(path)
	}
	return path
}
