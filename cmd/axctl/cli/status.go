package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/axctl/ax"
	"github.com/axctl/ax/why"
)

func statusCommand(c *call) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the store, whether axd runs, and what is about to fire",
		Args:  argumentCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			result, err := c.status(cmd.Context())
			if err != nil {
				return err
			}
			return c.print(result)
		},
	}
}

type statusResult struct {
	store   string
	info    ax.StoreInfo
	running bool
	hosts   []ax.Host // those that run
	offers  []ax.HostOffer
	tasks   []task
	counts  map[ax.Status]int64
	overdue []task
	// backfills are those that have not ended.
	backfills []ax.Backfill
	paused    []ax.InstanceRow
	coming    []firing
	nowMs     int64
}

func (c *call) status(ctx context.Context) (statusResult, error) {
	r := statusResult{store: c.storeName(), running: c.daemonRuns(), nowMs: c.nowMs()}
	s, err := c.open(ctx, OpenOptions{ReadOnly: true})
	if err != nil {
		return r, err
	}
	defer s.Close()
	if r.info, err = s.Info(ctx); err != nil {
		return r, err
	}
	hosts, err := s.Hosts(ctx)
	if err != nil {
		return r, err
	}
	r.hosts = liveHosts(hosts, r.running)
	if r.offers, err = s.Offers(ctx); err != nil {
		return r, err
	}
	if r.counts, err = s.Counts(ctx); err != nil {
		return r, err
	}
	if r.backfills, err = s.Backfills(ctx, ax.BackfillFilter{States: openBackfills}); err != nil {
		return r, err
	}
	if r.tasks, err = tasks(ctx, s, false); err != nil {
		return r, err
	}
	if n := r.counts[ax.StatusDispatched]; n > 0 {
		work, err := s.Instances(ctx, ax.InstanceFilter{Status: []ax.Status{ax.StatusDispatched}, Limit: int(min(n, 1000))})
		if err != nil {
			return r, err
		}
		r.paused = slices.DeleteFunc(work, func(in ax.InstanceRow) bool { return in.PausedMs == 0 })
	}
	r.overdue = overdue(r.tasks, r.nowMs)
	r.coming = soonest(r.tasks, 0, 3)
	return r, nil
}

// overdue returns the tasks that should have fired by now and did not.
func overdue(all []task, nowMs int64) []task {
	var late []task
	for _, t := range all {
		if t.Row.Enabled && t.Row.Hold == nil && t.Row.NextMs != 0 && t.Row.NextMs < nowMs-why.LateMs {
			late = append(late, t)
		}
	}
	return late
}

func (r statusResult) human(s *screen) {
	s.line("store      %s (serial %d)", r.store, r.info.Serial)
	switch {
	case len(r.hosts) > 0:
		for _, h := range r.hosts {
			s.line("axd        runs on %s since %s (pid %d, version %s)", clean(h.Name), s.at(h.StartedMs, nil), h.PID, h.Version)
			if h.Pools != nil {
				s.line("pools      %s", poolList(h.Pools))
			}
			s.offered(h, r.offers)
		}
	case r.running:
		s.line("axd        runs, but has not joined this store; if that lasts, the file was replaced: restart axd")
	default:
		s.line("axd        does not run: nothing fires until it does")
	}
	held, disabled := 0, 0
	for _, t := range r.tasks {
		switch {
		case t.Row.Hold != nil:
			held++
		case !t.Row.Enabled:
			disabled++
		}
	}
	s.line("tasks      %d, of them %d held, %d disabled", len(r.tasks), held, disabled)
	s.line("instances  %d running, %d waiting", r.counts[ax.StatusDispatched], r.counts[ax.StatusPending])
	if n := len(r.backfills); n > 0 {
		paused := 0
		for _, b := range r.backfills {
			if b.State == ax.BackfillPaused {
				paused++
			}
		}
		s.line("backfills  %d running, %d paused; axctl backfills lists them", n-paused, paused)
	}
	for i, in := range r.paused {
		if i == 5 {
			s.line("           and %d more", len(r.paused)-i)
			break
		}
		s.line("%-10s instance %d of %s, by %s since %s", first(i, "paused"), in.ID, clean(in.Task), clean(in.PausedBy), s.at(in.PausedMs, nil))
	}
	for i, f := range r.coming {
		s.line("%-10s %s  %s", first(i, "next"), s.at(f.dueMs, f.zone), clean(f.address))
	}
	for i, t := range r.overdue {
		if i == 5 {
			s.line("           and %d more", len(r.overdue)-i)
			break
		}
		s.line("%-10s %s  due %s, %s ago", first(i, "overdue"), clean(t.Address()), s.at(t.Row.NextMs, t.Zone), ax.Duration(r.nowMs-t.Row.NextMs).Rough())
	}
	s.failing(r.tasks)
	s.holds(r.tasks)
}

// offered tells what of a host is not as it should be, and how it keeps attempts
// together.
func (s *screen) offered(h ax.Host, offers []ax.HostOffer) {
	for _, o := range offers {
		if o.Host != h.Name {
			continue
		}
		if o.Containment != "" {
			s.line("attempts   in %s", clean(o.Containment))
		}
		if o.DataProblem != "" {
			s.line("data       %s; axctl doctor says what to do", clean(o.DataProblem))
		}
		n := 0
		for _, p := range o.Plugins {
			what := cmp.Or(p.Problem, p.Declared, p.Shadowed)
			switch {
			case what == "":
				continue
			case p.QuarantinedMs != 0:
				what = quarantineText(p.QuarantinedMs, p.RetryMs) + ": " + what
			case p.Problem == "" && p.Declared != "":
				what = "runs on as it was started: " + what
			}
			s.line("%-10s %s: %s", first(n, "plugins"), clean(p.Name), clean(what))
			n++
		}
		if n > 0 {
			s.line("           axctl doctor says what to do")
		}
	}
}

// failing lists tasks whose newest instances failed, the longest streak first;
// those that are frozen for it are among the holds.
func (s *screen) failing(all []task) {
	failing := slices.DeleteFunc(slices.Clone(all), func(t task) bool { return t.Row.FailureStreak == 0 || t.Row.Hold != nil })
	slices.SortStableFunc(failing, func(a, b task) int { return cmp.Compare(b.Row.FailureStreak, a.Row.FailureStreak) })
	for i, t := range failing {
		if i == 5 {
			s.line("           and %d more", len(failing)-i)
			break
		}
		freezing := ""
		if n := t.Spec.FreezeAfter; n > 0 {
			freezing = fmt.Sprintf(" (freeze_after = %d)", n)
		}
		s.line("%-10s %s  %s failed in a row%s", first(i, "failing"), clean(t.Address()), plural(t.Row.FailureStreak, "instance"), freezing)
	}
}

// first is the word in the first line of a group, and nothing in the others.
func first(i int, word string) string {
	if i > 0 {
		return ""
	}
	return word
}

func (r statusResult) json() document {
	hosts, late := []document{}, []document{}
	for _, h := range r.hosts {
		plugins, containment, dataProblem := []pluginRow{}, "", ""
		for _, o := range r.offers {
			if o.Host == h.Name {
				plugins, containment, dataProblem = pluginRows(o), o.Containment, o.DataProblem
			}
		}
		hosts = append(hosts, document{
			"plugins": plugins, "containment": containment, "data_problem": dataProblem,
			"name": h.Name, "pid": h.PID, "version": h.Version, "tzdata": h.TZData, "data_dir": h.DataDir, "listen": h.Listen, "pools": h.Pools,
			"started": stamp(h.StartedMs, nil), "started_ms": h.StartedMs,
		})
	}
	for _, t := range r.overdue {
		late = append(late, objectJSON(t))
	}
	paused := []document{}
	for _, in := range r.paused {
		paused = append(paused, document{"id": in.ID, "task": in.Task, "paused": stamp(in.PausedMs, nil), "paused_ms": in.PausedMs, "paused_by": in.PausedBy})
	}
	counts := document{}
	for _, st := range ax.Statuses {
		if !st.Final() {
			counts[string(st)] = r.counts[st]
		}
	}
	doc := nextResult{firings: r.coming}.json()
	doc["backfills"] = len(r.backfills)
	doc["store"], doc["store_id"], doc["serial"], doc["schema_version"] = r.info.URL, r.info.ID, r.info.Serial, r.info.SchemaVersion
	doc["axd_running"], doc["hosts"], doc["tasks"], doc["instances"], doc["overdue"] = r.running, hosts, len(r.tasks), counts, late
	doc["paused"] = paused
	return doc
}
