package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins/host"
)

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
	o := s.self
	if s.data != nil {
		o.DataProblem = s.data()
	}
	for _, h := range s.host.Handlers() {
		schema, err := json.Marshal(h.Schema)
		if err != nil {
			panic("schema of " + h.Schema.Handler + ": " + err.Error()) // it came as JSON
		}
		o.Handlers = append(o.Handlers, ax.OfferedHandler{Name: h.Schema.Handler, Executor: h.Executor, SchemaHash: h.SchemaHash, Schema: schema})
	}
	for _, h := range s.told.Handlers {
		known := slices.ContainsFunc(o.Handlers, func(n ax.OfferedHandler) bool { return n.Name == h.Name })
		up := slices.ContainsFunc(o.Handlers, func(n ax.OfferedHandler) bool { return n.Executor == h.Executor })
		if !known && !up && s.has(h.Executor) {
			o.Handlers = append(o.Handlers, h)
		}
	}
	slices.SortFunc(o.Handlers, func(a, b ax.OfferedHandler) int { return cmp.Compare(a.Name, b.Name) })
	o.Plugins = s.states(s.host.States())
	return o
}

// states is what becomes of each plugin, and of built-in executors that are
// quarantined.
func (s *pluginSet) states(all []host.State) []ax.HostPlugin {
	var out []ax.HostPlugin
	state := map[string]host.State{}
	for _, st := range all {
		state[st.Executor] = st
		if s.isBuiltIn(st.Executor) && st.QuarantinedMs != 0 {
			out = append(out, told(ax.HostPlugin{Name: st.Executor, Path: st.Path}, st))
		}
	}
	listed := map[string]bool{} // running ones
	for _, p := range s.found.plugins {
		hp := ax.HostPlugin{Name: p.Name, Path: p.Path}
		running, runs := s.running[p.Name]
		switch runs = runs && running.Path == p.Path; {
		case runs:
			listed[p.Name] = true
			hp = told(hp, state[p.Name])
			hp.Declared = cmp.Or(p.Problem, hp.Declared)
		case p.Problem != "":
			hp.Problem = p.Problem
		default:
			hp.Problem = "it is new, and is about to be started"
		}
		out = append(out, hp)
	}
	for _, name := range slices.Sorted(maps.Keys(s.running)) {
		if !listed[name] {
			hp := told(ax.HostPlugin{Name: name, Path: s.running[name].Path}, state[name])
			hp.Declared = cmp.Or(hp.Declared, "it is not there, or declared otherwise")
			out = append(out, hp)
		}
	}
	slices.SortFunc(out, byPath)
	return slices.CompactFunc(out, func(a, b ax.HostPlugin) bool { return byPath(a, b) == 0 })
}

// maxWords bounds what is told of a plugin's last words.
const maxWords = 300

// told adds what the host says of an executor.
func told(hp ax.HostPlugin, st host.State) ax.HostPlugin {
	hp.SHA256, hp.Problem, hp.Declared = st.SHA256, st.Problem, st.Note
	hp.QuarantinedMs, hp.RetryMs = st.QuarantinedMs, st.RetryMs
	if words := strings.Join(strings.Fields(st.Words), " "); hp.Problem != "" && words != "" {
		if len(words) > maxWords {
			words = "…" + strings.ToValidUTF8(words[len(words)-maxWords:], "")
		}
		hp.Problem += "; its last words: " + words
	}
	var lost []string
	for _, handler := range slices.Sorted(maps.Keys(st.Shadowed)) {
		lost = append(lost, fmt.Sprintf("handler %q is %s's", handler, st.Shadowed[handler]))
	}
	hp.Shadowed = strings.Join(lost, ", ")
	return hp
}
