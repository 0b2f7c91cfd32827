package daemon

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins/builtin"
	"github.com/axctl/ax/plugins/folder"
	"github.com/axctl/ax/plugins/host"
)

// offerEvery is how often what the executors offer is compared with what the
// store was told of it, and lookEvery how often the plugin folder is looked at.
const (
	offerEvery = 250 * time.Millisecond
	lookEvery  = time.Second
)

// pluginSet is this host's plugins: which run, and what the store is told of
// them. It follows the plugin blocks and the folder while axd runs.
type pluginSet struct {
	store   ax.Plugins
	host    *host.Host
	self    ax.HostOffer // what this host always says
	dir     string       // of plugins, "" none
	environ []string
	builtIn []host.Command // executors that are no plugins
	log     *slog.Logger
	now     func() time.Time
	signal  chan struct{} // holds a token when declarations may have changed
	data    func() string // what is wrong with the data folder

	declared []ax.DeclaredPlugin
	unread   bool                     // they may have changed since they were read
	found    findings                 // by the last look
	running  map[string]folder.Plugin // by name: those that the host has, as it has them
	logged   map[string]string        // problem by path
	told     ax.HostOffer             // what the store has
	faulty   bool                     // the last write failed
}

// findings are the plugins that are declared or in the folder.
type findings struct {
	plugins []folder.Plugin
	unsafe  bool // the folder as a whole cannot be used
}

// findPlugins reads what is declared and what is in the folder. A fault of
// either keeps nothing else from running: it is told.
func (d *Daemon) findPlugins(ctx context.Context, boot string, executors []host.Command) (*pluginSet, error) {
	s := &pluginSet{
		store: d.store, self: ax.HostOffer{Host: d.cfg.Name, Boot: boot, Containment: builtin.Containment()}, environ: d.cfg.Environ, builtIn: executors,
		log: d.cfg.Log.With("component", "plugins"), now: d.cfg.Now, signal: make(chan struct{}, 1),
	}
	if d.cfg.PluginDir != "" {
		dir, err := filepath.Abs(d.cfg.PluginDir)
		if err != nil {
			return nil, fmt.Errorf("plugin folder: %w", err)
		}
		s.dir = dir
	}
	offers, err := d.store.Offers(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what hosts offer: %w", err)
	}
	for _, o := range offers {
		if o.Host == s.self.Host {
			s.told = o
		}
	}
	if s.declared, err = s.store.DeclaredPlugins(ctx); err != nil {
		return nil, fmt.Errorf("read declared plugins: %w", err)
	}
	s.found = s.look()
	s.choose()
	return s, nil
}

// look returns the plugins as they are declared and found now.
func (s *pluginSet) look() findings {
	declared := map[string]ax.PluginSpec{}
	problems := map[string]string{}
	stacks := map[string]string{}
	for _, p := range s.declared {
		first, twice := declared[p.Name]
		switch {
		case p.Spec.Path == "":
			problems[p.Name] = fmt.Sprintf("version %d of its definition cannot be read by this axd", p.Version)
		case twice && !reflect.DeepEqual(first, p.Spec):
			problems[p.Name] = fmt.Sprintf("stacks %s and %s declare it differently", stacks[p.Name], p.Stack)
		}
		declared[p.Name], stacks[p.Name] = p.Spec, p.Stack
	}
	if s.dir == "" {
		var found []folder.Plugin
		for _, name := range slices.Sorted(maps.Keys(declared)) {
			found = append(found, folder.Plugin{
				Name: name, Path: declared[name].Path, Spec: declared[name], Problem: "axd runs without a plugin folder: axd -plugins DIR",
			})
		}
		return findings{plugins: found}
	}
	found, err := folder.Find(s.dir, declared)
	if err != nil {
		found = append(found, folder.Plugin{Path: s.dir, Problem: err.Error()})
	}
	for i := range found {
		p := &found[i]
		switch {
		case problems[p.Name] != "":
			p.Problem = problems[p.Name]
		case s.isBuiltIn(p.Name):
			p.Problem = fmt.Sprintf("%q is the name of a built-in executor", p.Name)
		}
	}
	return findings{plugins: found, unsafe: err != nil}
}

// choose decides which plugins run from now on: those that may, and of those
// that run already the ones that are only not as they should be. A fault in the
// folder or in a block stops nothing that works; that the file is gone does, as
// does that nothing speaks of it any more.
func (s *pluginSet) choose() {
	missing := map[string]bool{}
	for _, p := range s.found.plugins {
		missing[p.Name] = missing[p.Name] || p.Missing
	}
	next := map[string]folder.Plugin{}
	logged := map[string]string{}
	for _, p := range s.found.plugins {
		old, runs := s.running[p.Name]
		switch {
		case p.Problem == "":
			next[p.Name] = p
		case runs && !missing[p.Name]:
			if _, chosen := next[p.Name]; !chosen {
				next[p.Name] = old
			}
		}
		if logged[p.Path] = p.Problem; p.Problem != "" && p.Problem != s.logged[p.Path] {
			s.log.Error("a plugin is not started", "plugin", p.Name, "path", p.Path, "problem", p.Problem, "runs_on", runs && !missing[p.Name])
		}
	}
	if s.found.unsafe {
		for name, p := range s.running {
			if _, chosen := next[name]; !chosen {
				next[name] = p
			}
		}
	}
	s.running, s.logged = next, logged
}

// commands returns how to start all executors.
func (s *pluginSet) commands() []host.Command {
	cs := slices.Clone(s.builtIn)
	for _, name := range slices.Sorted(maps.Keys(s.running)) {
		p := s.running[name]
		c := host.Command{Name: name, Path: p.Path, SHA256: p.Spec.SHA256, Env: p.Environ(s.environ), Declared: p.Spec.Path != ""}
		for _, h := range s.told.Handlers { // until it tells itself
			if h.Executor == name {
				c.Handlers = append(c.Handlers, h.Name)
			}
		}
		cs = append(cs, c)
	}
	return cs
}

// changed says that plugins may be declared otherwise now.
func (s *pluginSet) changed() {
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// run follows what is declared and what is in the folder, and tells the store
// what is offered, whenever that changes.
func (s *pluginSet) run(ctx context.Context) error {
	ticker := time.NewTicker(offerEvery)
	defer ticker.Stop()
	looks := time.NewTicker(lookEvery)
	defer looks.Stop()
	for {
		s.tell(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-s.signal:
			s.unread = true
		case <-looks.C:
			s.follow(ctx)
		}
	}
}

// follow takes up what has become another one, as soon as two looks in a row
// find the same: a file is often not whole, or not there, for a moment.
func (s *pluginSet) follow(ctx context.Context) {
	if s.unread {
		declared, err := s.store.DeclaredPlugins(ctx)
		if err != nil {
			return // the store is away: with a later look
		}
		s.declared, s.unread = declared, false
	}
	found := s.look()
	stands := reflect.DeepEqual(found, s.found)
	s.found = found
	if !stands {
		return
	}
	was := s.running
	s.choose()
	if reflect.DeepEqual(was, s.running) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.running)) {
		switch before, ran := was[name]; {
		case !ran:
			s.log.Info("plugin is new", "plugin", name, "path", s.running[name].Path)
		case !reflect.DeepEqual(before, s.running[name]):
			s.log.Info("plugin is declared otherwise", "plugin", name, "path", s.running[name].Path)
		}
	}
	s.host.Configure(s.commands())
}

func (s *pluginSet) isBuiltIn(executor string) bool {
	return slices.ContainsFunc(s.builtIn, func(c host.Command) bool { return c.Name == executor })
}

// has reports whether the host has an executor.
func (s *pluginSet) has(executor string) bool {
	_, runs := s.running[executor]
	return runs || s.isBuiltIn(executor)
}

// byPath orders what a host tells of plugins.
func byPath(a, b ax.HostPlugin) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Path, b.Path))
}
