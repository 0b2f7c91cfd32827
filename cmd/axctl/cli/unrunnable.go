package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins"
)

// waitingWork is instances of one version of a task that have not been started:
// they keep the body of that version.
type waitingWork struct {
	task    string // address
	version int
	oldest  int64 // id
	count   int
	handler ax.HandlerSpec
}

// text names the instances.
func (w waitingWork) text() string {
	if w.count == 1 {
		return fmt.Sprintf("instance %d of %s (v%d), which waits,", w.oldest, w.task, w.version)
	}
	return fmt.Sprintf("%d instances of %s (v%d) that wait, the oldest is %d,", w.count, w.task, w.version, w.oldest)
}

// waitingGroups collects waiting instances by task and version.
type waitingGroups struct {
	q      ax.Queries
	of     map[[2]int64]*waitingWork
	order  []*waitingWork
	latest map[int64]ax.Object
}

func groupWaiting(q ax.Queries, objects []ax.Object) *waitingGroups {
	g := &waitingGroups{q: q, of: map[[2]int64]*waitingWork{}, latest: map[int64]ax.Object{}}
	for _, o := range objects {
		g.latest[o.ID] = o
	}
	return g
}

// add takes one instance. A version that cannot be read is left out: definitions
// tells it.
func (g *waitingGroups) add(ctx context.Context, objectID int64, version int, id int64, address string) error {
	key := [2]int64{objectID, int64(version)}
	w, ok := g.of[key]
	if !ok {
		definition, err := g.definition(ctx, objectID, version)
		if err != nil {
			return err
		}
		var spec ax.TaskSpec
		if json.Unmarshal(definition, &spec) == nil {
			w = &waitingWork{task: address, version: version, handler: spec.Handler}
			g.order = append(g.order, w)
		}
		g.of[key] = w
	}
	if w == nil {
		return nil
	}
	if w.count++; w.oldest == 0 || id < w.oldest {
		w.oldest = id
	}
	return nil
}

func (g *waitingGroups) definition(ctx context.Context, objectID int64, version int) (json.RawMessage, error) {
	if o, ok := g.latest[objectID]; ok && o.Version == version {
		return o.Definition, nil
	}
	versions, err := g.q.Versions(ctx, objectID)
	if err != nil {
		return nil, fmt.Errorf("versions: %w", err)
	}
	for _, v := range versions {
		if v.Version == version {
			return v.Definition, nil
		}
	}
	return nil, nil
}

const (
	waitingPage = 1000
	maxWaiting  = 50_000 // instances that are looked at
)

// waiting reads all that waits.
func waiting(ctx context.Context, q ax.Queries, all []task) ([]*waitingWork, error) {
	var objects []ax.Object
	for _, t := range all {
		objects = append(objects, t.Object)
	}
	g := groupWaiting(q, objects)
	filter := ax.InstanceFilter{Status: []ax.Status{ax.StatusPending}, Limit: waitingPage}
	for seen := 0; seen < maxWaiting; {
		rows, err := q.Instances(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, in := range rows {
			if err := g.add(ctx, in.TaskID, in.Version, in.ID, in.Task); err != nil {
				return nil, err
			}
		}
		if seen += len(rows); len(rows) < waitingPage {
			break
		}
		last := rows[len(rows)-1]
		filter.Before = &last.Ref
	}
	return g.order, nil
}

// unfit says why no host that runs can start a handler with a body, "" when one
// can, or it is not known.
func unfit(h ax.HandlerSpec, live []ax.Host, offers []ax.HostOffer) string {
	why := ""
	for _, host := range live {
		i := slices.IndexFunc(offers, func(o ax.HostOffer) bool { return o.Host == host.Name })
		if i < 0 {
			return "" // it has not told yet
		}
		j := slices.IndexFunc(offers[i].Handlers, func(o ax.OfferedHandler) bool { return o.Name == h.Name })
		if j < 0 {
			if slices.Contains(host.Handlers, h.Name) {
				return ""
			}
			why = fmt.Sprintf("no running axd offers handler %q", h.Name)
			continue
		}
		schema, err := plugins.ReadSchema(h.Name, offers[i].Handlers[j].Schema)
		if err != nil {
			return ""
		}
		if err = schema.Accepts(h.Body); err == nil {
			return ""
		}
		return fmt.Sprintf("handler %q as %s offers it (plugin %s) does not accept the body: %v", h.Name, host.Name, offers[i].Handlers[j].Executor, err)
	}
	return why
}

// unrunnableFindings tells instances that wait for a handler that does not come.
func unrunnableFindings(work []*waitingWork, live []ax.Host, offers []ax.HostOffer) []finding {
	var found []finding
	for _, w := range work {
		why := unfit(w.handler, live, offers)
		if why == "" {
			continue
		}
		found = append(found, finding{
			What: fmt.Sprintf("%s cannot be started, and what comes after waits too: %s", w.text(), why),
			Remedy: fmt.Sprintf("install the plugin that takes this body, or end what waits (axctl cancel %d); axctl retry %d -with-current then runs it as the task is now",
				w.oldest, w.oldest),
		})
	}
	return found
}

// unrunnable warns of instances that wait with a body that the handler, as the
// configuration knows it from its plugins, does not accept: once hosts have that
// plugin they cannot be started.
func (k *catalog) unrunnable(ctx context.Context, s Store, state ax.StackState) (ax.Diagnostics, error) {
	g := groupWaiting(s, state.Objects)
	for _, in := range state.InFlight {
		o, ok := g.latest[in.ObjectID]
		if !ok || in.Status != ax.StatusPending {
			continue
		}
		if err := g.add(ctx, in.ObjectID, in.Version, in.ID, o.Address()); err != nil {
			return nil, err
		}
	}
	var found ax.Diagnostics
	for _, w := range g.order {
		known, ok := k.handlers[w.handler.Name]
		if !ok || known.plugin == "" {
			continue
		}
		if err := known.schema.Accepts(w.handler.Body); err != nil {
			found = append(found, ax.Diagnostic{
				Severity: ax.SeverityWarning, Address: w.task,
				Summary: fmt.Sprintf("Instances of %s wait with a body that plugin %q does not accept", w.task, known.plugin),
				Detail: sentence(fmt.Sprintf("%s cannot be started once hosts have the plugin that %s describes, and what comes after waits too: %v. Let them run first, or axctl cancel %d",
					upper(w.text()), known.source, err, w.oldest)),
			})
		}
	}
	return found, nil
}
