package why

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins"
)

// handlerOf is the handler block of the version that an instance was born with.
func (e *explainer) handlerOf(in ax.InstanceRow) ax.HandlerSpec {
	for _, v := range e.Versions {
		var spec ax.TaskSpec
		if v.Version == in.Version && json.Unmarshal(v.Definition, &spec) == nil {
			return spec.Handler
		}
	}
	return e.current.spec.Handler
}

// offers asks whether a running axd has the handler, in a plugin that runs, and
// with a schema that accepts the body.
func (e *explainer) offers(h ax.HandlerSpec) bool {
	const question = "Does axd offer its handler?"
	var have, down []string
	for _, host := range e.live() {
		offer := e.offerOf(host)
		for _, p := range offer.Plugins {
			if p.Problem != "" {
				down = append(down, fmt.Sprintf("plugin %s does not run on %s as it should: %s", p.Name, host.Name, e.ailment(p)))
			}
		}
		names := slices.Clone(host.Handlers)
		for _, o := range offer.Handlers {
			if !slices.Contains(names, o.Name) {
				names = append(names, o.Name)
			}
			if o.Name == h.Name {
				return e.fits(h, host, o, offer.Plugins)
			}
		}
		if slices.Contains(names, h.Name) {
			e.yes(question, "%s on %s", h.Name, host.Name)
			return true
		}
		have = append(have, fmt.Sprintf("%s has %s", host.Name, strings.Join(names, ", ")))
	}
	all := strings.Join(append(have, down...), "; ")
	e.no(question, all, Answer{
		Code:   NoHandler,
		Text:   fmt.Sprintf("No running axd offers handler %s, which %s needs: %s.", h.Name, e.Object.Address(), all),
		Remedy: "install the handler's plugin for axd, or change the handler and apply",
	})
	return false
}

// fits asks about the one handler that a host offers under the name.
func (e *explainer) fits(h ax.HandlerSpec, host ax.Host, o ax.OfferedHandler, all []ax.HostPlugin) bool {
	const question = "Does axd offer its handler?"
	builtIn := slices.Contains(host.Handlers, o.Name)
	i := slices.IndexFunc(all, func(p ax.HostPlugin) bool {
		// A file that has the name of a built-in executor was refused, and is not
		// what runs it; what is quarantined is.
		return p.Name == o.Executor && p.Problem != "" && (!builtIn || p.QuarantinedMs != 0)
	})
	if i >= 0 {
		problem := e.ailment(all[i])
		e.no(question, problem, Answer{
			Code:   PluginDown,
			Text:   fmt.Sprintf("Handler %s is of plugin %s, which does not run on %s as it should: %s.", h.Name, o.Executor, host.Name, problem),
			Remedy: "mend the plugin (" + all[i].Path + "); axctl doctor tells of all of them",
		})
		return false
	}
	e.yes(question, "%s on %s", h.Name, host.Name)
	schema, err := plugins.ReadSchema(o.Name, o.Schema)
	if err == nil {
		err = schema.Accepts(h.Body)
	}
	const accepts = "Does the handler's schema accept its body?"
	if err == nil {
		e.yes(accepts, "schema "+o.SchemaHash)
		return true
	}
	e.no(accepts, err.Error(), Answer{
		Code:   BodyRefused,
		Text:   fmt.Sprintf("Handler %s as %s offers it (plugin %s) does not accept the body of %s: %v.", h.Name, host.Name, o.Executor, e.Object.Address(), err),
		Remedy: "install the version of the plugin that the body was written for, or change the handler block and apply; what waits already keeps its body: axctl cancel ID ends it",
	})
	return false
}

// ailment says why a plugin does not run.
func (e *explainer) ailment(p ax.HostPlugin) string {
	if p.QuarantinedMs == 0 {
		return line(p.Problem)
	}
	return fmt.Sprintf("quarantined after a crash loop since %s: %s", e.at(p.QuarantinedMs), line(p.Problem))
}

// offerOf returns what a host offers, as its axd told.
func (e *explainer) offerOf(h ax.Host) ax.HostOffer {
	for _, o := range e.Offers {
		if o.Host == h.Name {
			return o
		}
	}
	return ax.HostOffer{}
}
