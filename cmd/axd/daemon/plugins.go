package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins/folder"
	"github.com/axctl/ax/plugins/host"
)

// offerEvery is how often what the executors offer is compared with what the
// store was told of it.
const offerEvery = 250 * time.Millisecond

// pluginSet is this host's plugins: which were started, and what the store is
// told of them.
type pluginSet struct {
	store   ax.Plugins
	host    *host.Host
	name    string // of this host
	boot    string
	dir     string // of plugins, "" none
	environ []string
	builtIn []string // names of executors that are no plugins
	log     *slog.Logger
	now     func() time.Time
	signal  chan struct{} // holds a token when declarations may have changed

	started []folder.Plugin   // as they were found at the start
	later   map[string]string // by name: what has been declared since
	told    ax.HostOffer      // what the store has
	sums    map[string]string // of the files that were started, by path
	unread  bool              // declarations could not be read when they may have changed
	faulty  bool              // the last write failed
}

// findPlugins reads what is declared and what is in the folder. A fault of
// either keeps nothing else from running: it is told.
func (d *Daemon) findPlugins(ctx context.Context, boot string, executors []host.Command) (*pluginSet, error) {
	s := &pluginSet{
		store: d.store, name: d.cfg.Name, boot: boot, environ: d.cfg.Environ,
		log: d.cfg.Log.With("component", "plugins"), now: d.cfg.Now, signal: make(chan struct{}, 1), later: map[string]string{},
	}
	for _, c := range executors {
		s.builtIn = append(s.builtIn, c.Name)
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
		if o.Host == s.name {
			s.told = o
		}
	}
	if s.started, err = s.find(ctx); err != nil {
		return nil, err
	}
	for _, p := range s.started {
		if p.Problem != "" {
			s.log.Error("a plugin is not started", "plugin", p.Name, "path", p.Path, "problem", p.Problem)
		}
	}
	return s, nil
}

// find returns the plugins as they are declared and found now.
func (s *pluginSet) find(ctx context.Context) ([]folder.Plugin, error) {
	rows, err := s.store.DeclaredPlugins(ctx)
	if err != nil {
		return nil, fmt.Errorf("read declared plugins: %w", err)
	}
	declared := map[string]ax.PluginSpec{}
	problems := map[string]string{}
	stacks := map[string]string{}
	for _, p := range rows {
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
		for name, spec := range declared {
			found = append(found, folder.Plugin{Name: name, Path: spec.Path, Spec: spec, Problem: "axd runs without a plugin folder: axd -plugins DIR"})
		}
		slices.SortFunc(found, func(a, b folder.Plugin) int { return cmp.Compare(a.Name, b.Name) })
		return found, nil
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
		case slices.Contains(s.builtIn, p.Name):
			p.Problem = fmt.Sprintf("%q is the name of a built-in executor", p.Name)
		}
	}
	return found, nil
}

// commands returns how to start those that may be.
func (s *pluginSet) commands() []host.Command {
	var cs []host.Command
	for _, p := range s.started {
		if p.Problem != "" {
			continue
		}
		c := host.Command{Name: p.Name, Path: p.Path, SHA256: p.Spec.SHA256, Env: p.Environ(s.environ)}
		// A name that two plugins offer stays with the one that had it.
		for _, h := range s.told.Handlers {
			if h.Executor == p.Name {
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

// run tells the store what is offered, whenever that changes.
func (s *pluginSet) run(ctx context.Context) error {
	ticker := time.NewTicker(offerEvery)
	defer ticker.Stop()
	s.sums = map[string]string{}
	for _, p := range s.started {
		if sum, err := folder.Sum(p.Path); err == nil && p.Problem == "" {
			s.sums[p.Path] = sum
		}
	}
	for {
		s.tell(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if s.unread {
				s.compare(ctx)
			}
		case <-s.signal:
			s.compare(ctx)
		}
	}
}

// compare notes what is declared otherwise than what was started.
func (s *pluginSet) compare(ctx context.Context) {
	found, err := s.find(ctx)
	if s.unread = err != nil; s.unread {
		return // the store is away: with a later tick
	}
	later := map[string]string{}
	note := func(p folder.Plugin, what string) {
		later[p.Name] = what + "; axd takes that up when it is started again"
		if s.later[p.Name] != later[p.Name] {
			s.log.Warn("a plugin is declared otherwise than it runs", "plugin", p.Name, "what", later[p.Name])
		}
	}
	for _, p := range found {
		i := slices.IndexFunc(s.started, func(o folder.Plugin) bool { return o.Name == p.Name && o.Path == p.Path })
		switch {
		case i < 0:
			note(p, "it is new")
		case !reflect.DeepEqual(s.started[i].Spec, p.Spec):
			note(p, "its plugin block has changed")
		}
	}
	for _, p := range s.started {
		if !slices.ContainsFunc(found, func(o folder.Plugin) bool { return o.Name == p.Name }) {
			note(p, "it is gone")
		}
	}
	s.later = later
}

// tell writes what is offered now, if the store was told otherwise.
func (s *pluginSet) tell(ctx context.Context) {
	o := s.offer()
	last := s.told
	last.AtMs = 0
	if reflect.DeepEqual(o, last) {
		return
	}
	o.AtMs = s.now().UnixMilli()
	err := s.store.Offer(ctx, o)
	switch {
	case err == nil:
		s.told = o
	case ctx.Err() == nil && !s.faulty:
		s.log.Warn("what this host offers is not recorded; it is tried again", "error", err)
	}
	s.faulty = err != nil
}

// offer is what this host offers. A handler whose executor is down stays, as
// long as the executor is there to come up again.
func (s *pluginSet) offer() ax.HostOffer {
	o := ax.HostOffer{Host: s.name, Boot: s.boot}
	for _, h := range s.host.Handlers() {
		schema, err := json.Marshal(h.Schema)
		if err != nil {
			panic("schema of " + h.Schema.Handler + ": " + err.Error()) // it came as JSON
		}
		o.Handlers = append(o.Handlers, ax.OfferedHandler{Name: h.Schema.Handler, Executor: h.Executor, SchemaHash: h.SchemaHash, Schema: schema})
	}
	problems := s.host.Problems()
	for _, h := range s.told.Handlers {
		known := slices.ContainsFunc(o.Handlers, func(n ax.OfferedHandler) bool { return n.Name == h.Name })
		up := slices.ContainsFunc(o.Handlers, func(n ax.OfferedHandler) bool { return n.Executor == h.Executor })
		if !known && !up && s.has(h.Executor) {
			o.Handlers = append(o.Handlers, h)
		}
	}
	slices.SortFunc(o.Handlers, func(a, b ax.OfferedHandler) int { return cmp.Compare(a.Name, b.Name) })
	for _, p := range s.started {
		hp := ax.HostPlugin{Name: p.Name, Path: p.Path, SHA256: s.sums[p.Path], Problem: p.Problem}
		if hp.Problem == "" {
			hp.Problem, hp.Declared = problems[p.Name], s.later[p.Name]
		}
		o.Plugins = append(o.Plugins, hp)
	}
	for name, what := range s.later {
		if !slices.ContainsFunc(o.Plugins, func(p ax.HostPlugin) bool { return p.Name == name }) {
			o.Plugins = append(o.Plugins, ax.HostPlugin{Name: name, Path: s.dir, Problem: what})
		}
	}
	slices.SortFunc(o.Plugins, func(a, b ax.HostPlugin) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Path, b.Path)) })
	return o
}

// has reports whether an executor was started.
func (s *pluginSet) has(executor string) bool {
	return slices.Contains(s.builtIn, executor) ||
		slices.ContainsFunc(s.started, func(p folder.Plugin) bool { return p.Name == executor && p.Problem == "" })
}
