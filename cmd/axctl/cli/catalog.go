package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins"
	"github.com/axctl/ax/plugins/builtin/schemas"
	"github.com/axctl/ax/plugins/folder"
)

// describeLimit bounds how long all plugins of a folder, which are asked side by
// side, may take to describe themselves.
const describeLimit = 5 * time.Second

// knownHandler is a handler's schema and where it is from.
type knownHandler struct {
	schema plugins.Schema
	source string // "built in", "-plugins", handlers.lock.json, or a host's name
	plugin string // "" built in
}

// catalog knows handlers from several sources; the first that has one counts:
// what is built in, the folder of -plugins, the lock file beside the
// configuration, and what hosts offer.
type catalog struct {
	call     *call
	dir      string // of plugins, "" none
	lock     *lockFile
	handlers map[string]knownHandler // of the first three

	once   sync.Once // guards the reading of the store, of which the rest is
	ask    func() []ax.HostOffer
	offers []ax.HostOffer
}

// newCatalog reads what is cheap: the built-in handlers and the lock file. ask
// reads what hosts offer, nil where no store is to be asked.
func (c *call) newCatalog(beside, dir string, ask func() []ax.HostOffer) (*catalog, error) {
	k := &catalog{call: c, dir: dir, handlers: map[string]knownHandler{}, ask: ask}
	for _, s := range schemas.All() {
		k.handlers[s.Handler] = knownHandler{schema: s, source: "built in"}
	}
	var err error
	if k.lock, err = readLock(filepath.Join(beside, lockName)); err != nil {
		return nil, err
	}
	return k, nil
}

// storeOffers reads what the hosts of the store offer; a store that is not
// there, or does not answer, offers nothing.
func (c *call) storeOffers(ctx context.Context) func() []ax.HostOffer {
	return func() []ax.HostOffer {
		s, err := c.open(ctx, OpenOptions{ReadOnly: true})
		if err != nil {
			return nil
		}
		defer s.Close()
		offers, _ := s.Offers(ctx) // none: then the handler is unchecked, which is told
		return offers
	}
}

// declared describes the plugins of the folder and merges what the lock file
// has. It is config.Options.Declared.
func (k *catalog) declared(ctx context.Context, defs []ax.Definition) (names []string, found ax.Diagnostics) {
	blocks := map[string]ax.Definition{}
	for _, d := range defs {
		blocks[d.Name] = d
	}
	described := map[string]lockedPlugin{}
	if k.dir != "" {
		all, problems, lost := k.call.describeFolder(ctx, k.dir, blocks)
		found = append(append(found, problems...), lost...)
		described = all
	}
	for _, name := range slices.Sorted(maps.Keys(described)) {
		for _, s := range described[name].Handlers {
			k.handlers[s.Handler] = knownHandler{schema: s, source: "-plugins", plugin: name}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.lock.Plugins)) {
		locked := k.lock.Plugins[name]
		block, isDeclared := blocks[name]
		now, isDescribed := described[name]
		switch {
		case isDescribed && !locked.equal(now):
			found = append(found, k.stale(block, name, "the plugin in "+k.call.short(k.dir)+" is another one: "+locked.difference(now)))
		case isDeclared && block.Plugin.SHA256 != "" && block.Plugin.SHA256 != locked.SHA256:
			found = append(found, k.stale(block, name, fmt.Sprintf("it has sha256 %s, and the plugin block pins %s", locked.SHA256, block.Plugin.SHA256)))
		}
		for _, s := range locked.Handlers {
			if _, taken := k.handlers[s.Handler]; !taken {
				k.handlers[s.Handler] = knownHandler{schema: s, source: lockName, plugin: name}
			}
		}
	}
	return slices.Sorted(maps.Keys(k.handlers)), found
}

func (k *catalog) stale(block ax.Definition, plugin, what string) ax.Diagnostic {
	return warning(block, "Stale "+lockName, fmt.Sprintf("What it says of plugin %q is not so: %s. axctl handlers lock -plugins DIR writes it anew.", plugin, what))
}

// warning is about a plugin block, where there is one.
func warning(block ax.Definition, summary, detail string) ax.Diagnostic {
	d := ax.Diagnostic{Severity: ax.SeverityWarning, Summary: summary, Detail: detail}
	if block.Plugin != nil {
		at := block.Source
		d.Range, d.Address = &at, block.Address()
	}
	return d
}

// find is config.Options.Schemas. It may be called by many at once.
func (k *catalog) find(handler string) (plugins.Schema, bool) {
	if h, ok := k.handlers[handler]; ok {
		return h.schema, true
	}
	if h := k.offered(handler); len(h) > 0 {
		return h[0].schema, true
	}
	return plugins.Schema{}, false
}

// offered returns a handler as hosts offer it, each schema once.
func (k *catalog) offered(handler string) []knownHandler {
	k.once.Do(func() {
		if k.ask != nil {
			k.offers = k.ask()
		}
	})
	var all []knownHandler
	for _, o := range k.offers {
		for _, h := range o.Handlers {
			s, err := plugins.ReadSchema(h.Name, h.Schema)
			if h.Name != handler || err != nil || slices.ContainsFunc(all, func(a knownHandler) bool { return a.schema.Hash() == s.Hash() }) {
				continue
			}
			all = append(all, knownHandler{schema: s, source: o.Host, plugin: h.Executor})
		}
	}
	return all
}

// compare tells the tasks whose body was checked with another schema than a host
// offers, and which that one does not accept: their instances would wait.
func (k *catalog) compare(conf *ax.Configuration) ax.Diagnostics {
	var found ax.Diagnostics
	for _, d := range conf.Definitions {
		if d.Task == nil {
			continue
		}
		used, ok := k.handlers[d.Task.Handler.Name]
		if !ok || k.ask == nil || used.source == "built in" {
			continue
		}
		for _, o := range k.offered(d.Task.Handler.Name) {
			err := o.schema.Accepts(d.Task.Handler.Body)
			if o.schema.Hash() == used.schema.Hash() || err == nil {
				continue
			}
			at := d.Source
			found = append(found, ax.Diagnostic{
				Severity: ax.SeverityWarning, Summary: "No host accepts this body", Address: d.Address(), Range: &at,
				Detail: fmt.Sprintf("Host %s offers handler %q with another schema than %s has, and that does not accept the body: %v. Its instances wait until the host has the newer plugin.",
					o.source, d.Task.Handler.Name, used.source, err),
			})
		}
	}
	return found
}

// describeFolder asks all plugins of a folder at once what they offer. One that
// cannot be asked is told and keeps none of the others; so is, apart from that,
// a handler that by the rule of axd is another one's (folder.Owners).
func (c *call) describeFolder(
	ctx context.Context, dir string, blocks map[string]ax.Definition,
) (described map[string]lockedPlugin, problems, lost ax.Diagnostics) {
	specs := map[string]ax.PluginSpec{}
	for name, d := range blocks {
		specs[name] = *d.Plugin
	}
	found, err := folder.Find(dir, specs)
	if err != nil {
		return nil, ax.Diagnostics{{Severity: ax.SeverityError, Summary: "Cannot use the plugin folder", Detail: sentence(err.Error())}}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, describeLimit)
	defer cancel()
	answers := make([]folder.Description, len(found))
	errs := make([]error, len(found))
	var wg sync.WaitGroup
	for i, p := range found {
		wg.Go(func() { answers[i], errs[i] = folder.Describe(ctx, p, c.env.Environ) })
	}
	wg.Wait()
	claims := map[folder.Claimant][]string{}
	for _, s := range schemas.All() {
		own := folder.Claimant{Name: "axd itself", BuiltIn: true}
		claims[own] = append(claims[own], s.Handler)
	}
	for i, p := range found {
		if _, builtIn := schemas.Find(p.Name); builtIn && errs[i] == nil { // axd refuses it too
			errs[i] = fmt.Errorf("%q is the name of a built-in executor", p.Name)
		}
		for _, s := range answers[i].Schemas {
			if errs[i] == nil {
				claims[claimant(p)] = append(claims[claimant(p)], s.Handler)
			}
		}
	}
	owners := folder.Owners(claims)
	described = map[string]lockedPlugin{}
	for i, p := range found {
		block := blocks[p.Name]
		if err := errs[i]; err != nil {
			if errors.Is(err, folder.ErrMute) {
				err = fmt.Errorf("%w: within %s", err, describeLimit)
			}
			problems = append(problems, warning(block, fmt.Sprintf("Plugin %q cannot be used", p.Name), sentence(err.Error())))
			continue
		}
		rel, err := filepath.Rel(dir, p.Path)
		if err != nil {
			rel = p.Path
		}
		l := lockedPlugin{File: rel, SHA256: answers[i].SHA256}
		for _, s := range answers[i].Schemas {
			if owner := owners[s.Handler]; owner != claimant(p) {
				lost = append(lost, warning(block, fmt.Sprintf("Handler %q of plugin %q is %s's", s.Handler, p.Name, owner.Name),
					fmt.Sprintf("%s offers it too, and who has it: %s.", p.Path, folder.OwnersRule)))
				continue
			}
			l.Handlers = append(l.Handlers, s)
		}
		slices.SortFunc(l.Handlers, func(a, b plugins.Schema) int { return cmp.Compare(a.Handler, b.Handler) })
		described[p.Name] = l
	}
	return described, problems, lost
}

// claimant is the plugin as axd has it too.
func claimant(p folder.Plugin) folder.Claimant {
	return folder.Claimant{Name: p.Name, Declared: p.Spec.Path != ""}
}

// words writes names one after the other.
func words(names []string) string { return strings.Join(names, ", ") }
