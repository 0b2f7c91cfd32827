package host

import (
	"slices"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins/folder"
)

// Configure changes which executors there are while they run, by the same rule
// as a restart: what is another one is started, and what was there before only
// finishes what it has. An executor that is not named any more takes no more
// jobs and ends when its last attempt has. The own program's executors are to be
// named again.
func (h *Host) Configure(executors []Command) {
	var reports []ax.Report
	var gone []Command
	h.mu.Lock()
	for _, x := range slices.Clone(h.executors) {
		i := slices.IndexFunc(executors, func(c Command) bool { return c.Name == x.cmd.Name })
		if i < 0 {
			reports = append(reports, h.retire(x)...)
			gone = append(gone, x.cmd)
			continue
		}
		c := executors[i]
		was := x.cmd
		x.cmd.Path, x.cmd.Args, x.cmd.Env, x.cmd.SHA256, x.cmd.Declared = c.Path, c.Args, c.Env, c.SHA256, c.Declared
		if x.cmd.Path != was.Path || x.cmd.SHA256 != was.SHA256 || x.cmd.setup() != was.setup() {
			select {
			case x.changed <- struct{}{}:
			default:
			}
		}
	}
	for _, c := range executors {
		if slices.ContainsFunc(h.executors, func(x *executor) bool { return x.cmd.Name == c.Name }) {
			continue
		}
		if h.begun && h.spawn == nil {
			break // it ends
		}
		x := newExecutor(h, c)
		h.executors = append(h.executors, x)
		if h.spawn != nil {
			h.spawn(x)
		}
	}
	lost := h.resolve()
	h.checkReady()
	h.mu.Unlock()
	h.outbox.put(reports...)
	for _, c := range gone {
		h.cfg.Log.Info("executor is configured no more: it finishes what it has and takes no more jobs", "executor", c.Name, "path", c.Path)
	}
	h.tell(lost)
}

// retire lets an executor finish what it has, and nothing else. What waits for a
// process of it was never begun, and is refused. Called with mu held.
func (h *Host) retire(x *executor) []ax.Report {
	h.executors = slices.DeleteFunc(h.executors, func(o *executor) bool { return o == x })
	for _, name := range x.names {
		h.former[name] = true
	}
	x.retired = true
	close(x.removed)
	if l := x.current; l != nil {
		x.current = nil
		l.drain()
	}
	var reports []ax.Report
	for _, e := range h.entries {
		if e.executor == x && e.state == waiting {
			reports = append(reports, e.refuse(ax.ClassTransient, "plugin "+x.cmd.Name+" was taken away before it began", h.nowMs()))
		}
	}
	x.jobs = nil
	h.metrics.up.DeleteLabelValues(x.cmd.Name)
	h.metrics.quarantined.DeleteLabelValues(x.cmd.Name)
	return reports
}

// shadow is a handler that two executors offer.
type shadow struct {
	handler       string
	winner, loser Command
}

// tell logs handlers that an executor offers in vain from now on.
func (h *Host) tell(all []shadow) {
	for _, s := range all {
		h.cfg.Log.Warn("two plugins offer one handler: one of them has it", "handler", s.handler, "rule", folder.OwnersRule,
			"plugin", s.winner.Name, "path", s.winner.Path, "not", s.loser.Name, "not_path", s.loser.Path)
	}
}

// resolve decides whose each handler is, and offers those of processes that run.
// It returns those that are offered in vain and were not before. Called with mu
// held, or before anybody else has the host.
func (h *Host) resolve() []shadow {
	var news []shadow
	claims := map[folder.Claimant][]string{}
	by := map[folder.Claimant]*executor{}
	for _, x := range h.executors {
		c := folder.Claimant{Name: x.cmd.Name, BuiltIn: x.cmd.Own, Declared: x.cmd.Declared}
		claims[c], by[c] = x.names, x
	}
	h.handlers = map[string]*executor{}
	for name, c := range folder.Owners(claims) {
		h.handlers[name] = by[c]
		delete(h.former, name)
	}
	offered := map[string]Offer{}
	for _, x := range h.executors {
		for _, o := range x.offers {
			if x.current != nil && h.handlers[o.Schema.Handler] == x {
				offered[o.Schema.Handler] = o
			}
		}
		var shadowed []string
		for _, name := range x.names {
			other := h.handlers[name]
			if other == x {
				continue
			}
			shadowed = append(shadowed, name)
			if !slices.Contains(x.shadowed, name) {
				news = append(news, shadow{name, other.cmd, x.cmd})
			}
		}
		x.shadowed = shadowed
	}
	h.offered.Store(&offered)
	return news
}

// checkReady says that every executor has either come up or failed to, once.
// Called with mu held, or before anybody else has the host.
func (h *Host) checkReady() {
	select {
	case <-h.ready:
		return
	default:
	}
	if !slices.ContainsFunc(h.executors, func(x *executor) bool { return !x.settled }) {
		close(h.ready)
	}
}

// State is what becomes of an executor.
type State struct {
	Executor string
	Path     string
	BuiltIn  bool
	SHA256   string // of the program that came up last; "" none has
	Problem  string // why it does not run; "" it runs, or starts for the first time
	Words    string // the last that it said on standard error then
	Note     string // why the process that runs is not the one that it should be now
	// QuarantinedMs is since when it has been in a crash loop, 0 it is not, and
	// RetryMs when it is started again, 0 it is being.
	QuarantinedMs, RetryMs int64
	// Shadowed are its handlers that another executor has, by name, with that.
	Shadowed map[string]string
}

// States returns what becomes of the executors that are configured.
func (h *Host) States() []State {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []State
	for _, x := range h.executors {
		s := State{
			Executor: x.cmd.Name, Path: x.cmd.Path, BuiltIn: x.cmd.Own, SHA256: x.sum,
			Problem: x.problem, Words: x.words, Note: x.note, QuarantinedMs: x.quarantinedMs,
		}
		if x.quarantinedMs != 0 {
			s.RetryMs = x.retryMs
		}
		for _, name := range x.shadowed {
			if s.Shadowed == nil {
				s.Shadowed = map[string]string{}
			}
			s.Shadowed[name] = h.handlers[name].cmd.Name + " (" + h.handlers[name].cmd.Path + ")"
		}
		all = append(all, s)
	}
	return all
}

// Quarantined returns why executors are not started for now, by name.
func (h *Host) Quarantined() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	why := map[string]string{}
	for _, x := range h.executors {
		if x.quarantined != "" {
			why[x.cmd.Name] = x.quarantined
		}
	}
	return why
}
