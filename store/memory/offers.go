package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/axctl/ax"
)

// DeclaredPlugins implements ax.Plugins.
func (s *Store) DeclaredPlugins(context.Context) ([]ax.DeclaredPlugin, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var declared []ax.DeclaredPlugin
	for _, o := range s.objects {
		if o.Kind != ax.KindPlugin || o.Deleted {
			continue
		}
		p := ax.DeclaredPlugin{Stack: o.Stack, Name: o.Name, Version: o.Version}
		if json.Unmarshal(o.Definition, &p.Spec) != nil {
			p.Spec = ax.PluginSpec{}
		}
		declared = append(declared, p)
	}
	slices.SortFunc(declared, func(a, b ax.DeclaredPlugin) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Stack, b.Stack))
	})
	return declared, nil
}

// Offer implements ax.Plugins.
func (s *Store) Offer(_ context.Context, o ax.HostOffer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.hosts[o.Host]; !ok || h.Boot != o.Boot {
		return fmt.Errorf("host %s has not joined as boot %s: %w", o.Host, o.Boot, ax.ErrConflict)
	}
	o.Handlers, o.Plugins = slices.Clone(o.Handlers), slices.Clone(o.Plugins)
	for i := range o.Plugins {
		o.Plugins[i].Problem = ax.CleanText(o.Plugins[i].Problem, ax.MaxErrorBytes)
		o.Plugins[i].Declared = ax.CleanText(o.Plugins[i].Declared, ax.MaxErrorBytes)
		o.Plugins[i].Shadowed = ax.CleanText(o.Plugins[i].Shadowed, ax.MaxErrorBytes)
	}
	s.offers[o.Host] = o
	return nil
}

// Offers implements ax.Queries.
func (s *Store) Offers(context.Context) ([]ax.HostOffer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var offers []ax.HostOffer
	for _, host := range slices.Sorted(maps.Keys(s.offers)) {
		o := s.offers[host]
		o.Boot = s.hosts[host].Boot
		o.Handlers, o.Plugins = slices.Clone(o.Handlers), slices.Clone(o.Plugins)
		offers = append(offers, o)
	}
	return offers, nil
}
