package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/clock"
	"github.com/axctl/ax/runtime/rules"
	"github.com/axctl/ax/schedule"
	"github.com/axctl/ax/store/check"
)

func doctorCommand(c *call) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check the store and what runs on it; end with 3 when something is wrong",
		Args:  argumentCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			result, err := c.doctor(cmd.Context())
			if err != nil {
				return err
			}
			if err := c.print(result); err != nil {
				return err
			}
			if len(result.findings) > 0 {
				return exit(ExitFindings)
			}
			return nil
		},
	}
}

// finding is something that is wrong, and what to do about it.
type finding struct {
	Check  string `json:"check"`
	What   string `json:"what"`
	Remedy string `json:"remedy"`
}

type doctorResult struct {
	store    string
	passed   []string // the checks that found nothing
	findings []finding
	notes    []string // good to know, and no fault
	held     []task   // likewise
}

// add takes what one check found.
func (r *doctorResult) add(check string, found []finding) {
	if len(found) == 0 {
		r.passed = append(r.passed, check)
	}
	for _, f := range found {
		f.Check = check
		r.findings = append(r.findings, f)
	}
}

func (c *call) doctor(ctx context.Context) (doctorResult, error) {
	r := doctorResult{store: c.storeName()}
	s, err := c.open(ctx, OpenOptions{ReadOnly: true})
	if err != nil {
		return r, err
	}
	defer s.Close()
	broken, err := check.Check(ctx, s, c.env.Now())
	if err != nil {
		return r, err
	}
	r.add("invariants of the store", invariantFindings(broken))
	all, err := tasks(ctx, s, false)
	if err != nil {
		return r, err
	}
	hosts, err := s.Hosts(ctx)
	if err != nil {
		return r, err
	}
	info, err := s.Info(ctx)
	if err != nil {
		return r, err
	}
	running := c.daemonRuns()
	live := liveHosts(hosts, running)
	r.add("axd", c.daemonFindings(all, live, running))
	offers, err := s.Offers(ctx)
	if err != nil {
		return r, err
	}
	r.add("plugins", pluginFindings(offers, live))
	r.notes = append(r.notes, hostNotes(offers, live)...)
	work, err := waiting(ctx, s, all)
	if err != nil {
		return r, err
	}
	r.add("instances that wait for a handler", unrunnableFindings(work, live, offers))
	r.add("overdue tasks", overdueFindings(all, c.nowMs(), running))
	r.add("pools", poolFindings(all, live))
	held, err := s.Instances(ctx, ax.InstanceFilter{Held: true, Limit: 1000})
	if err != nil {
		return r, err
	}
	r.add("attempts that cannot be killed", unkillableFindings(held))
	r.add("definitions", definitionFindings(all))
	r.add("tasks ahead of their schedule", aheadFindings(all, c.nowMs(), running))
	r.add("clock", clockFindings(info.Clock, c.clock(), running))
	r.add("data folder", dataFindings(offers, live))
	r.add("disk space", c.diskFindings(live))
	r.add("time zone data", tzdataFindings(info, live))
	if c.env.Kernel != nil {
		r.notes = append(r.notes, kernelNote(c.env.Kernel()))
	}
	for _, t := range all {
		if t.Row.Hold != nil {
			r.held = append(r.held, t)
		}
	}
	return r, nil
}

func invariantFindings(broken []check.Finding) []finding {
	var found []finding
	for _, b := range broken {
		found = append(found, finding{What: fmt.Sprintf("%s: %s (invariant %d)", b.Subject, b.Problem, b.Invariant), Remedy: b.Remedy})
	}
	return found
}

func (c *call) daemonFindings(all []task, live []ax.Host, running bool) []finding {
	switch {
	case running && len(live) == 0 && c.storePath() != "":
		return []finding{{
			What:   "an axd runs beside this store but has not joined it: the file was replaced while it ran",
			Remedy: "restart axd",
		}}
	case running || len(all) == 0:
		return nil
	}
	return []finding{{What: "no axd runs on this store, so nothing fires", Remedy: "axd -store " + shellWord(c.storeURL)}}
}

func overdueFindings(all []task, nowMs int64, running bool) []finding {
	if !running {
		return nil // that is the reason, and it has been told
	}
	var found []finding
	for _, t := range overdue(all, nowMs) {
		found = append(found, finding{
			What:   fmt.Sprintf("%s was due %s and has not fired, %s ago", t.Address(), when(t.Row.NextMs, t.Zone), ax.Duration(nowMs-t.Row.NextMs).Rough()),
			Remedy: "look at axd's log: it may not reach the store, or offer no handler " + t.Spec.Handler.Name,
		})
	}
	return found
}

// poolFindings tells pools that tasks chose and no running axd has.
func poolFindings(all []task, live []ax.Host) []finding {
	chosen := map[string][]string{} // addresses by pool
	for _, t := range all {
		if t.Spec.Pool != "" {
			chosen[t.Spec.Pool] = append(chosen[t.Spec.Pool], t.Address())
		}
	}
	var found []finding
	for _, pool := range absentPools(live, slices.Collect(maps.Keys(chosen))) {
		found = append(found, finding{
			What:   fmt.Sprintf("no running axd has a pool %s, so instances of %s wait: %s", pool, plural(len(chosen[pool]), "task"), poolsOf(live)),
			Remedy: "axd -pools " + pool + "=N, or give " + chosen[pool][0] + " another pool",
		})
	}
	return found
}

// unkillableFindings tells attempts that hold a place though they were killed.
func unkillableFindings(held []ax.InstanceRow) []finding {
	var found []finding
	for _, in := range held {
		if in.Unkillable == "" {
			continue
		}
		found = append(found, finding{
			What: fmt.Sprintf("instance %d of %s holds its place on %s though it was killed: %s", in.ID, in.Task, in.Host, in.Unkillable),
			Remedy: "see what the process waits for (its state D: a file system that does not answer, a device): " +
				"when it ends the place is free; a restart of the machine ends it too",
		})
	}
	return found
}

// definitionFindings tells tasks whose stored definition this program does not
// take.
func definitionFindings(all []task) []finding {
	var found []finding
	for _, t := range all {
		if _, err := t.timetable(); err != nil {
			found = append(found, finding{
				What:   err.Error(),
				Remedy: "mend it in the configuration and apply",
			})
		}
	}
	return found
}

// aheadFindings tells tasks that wait for longer than their schedule says, as a
// clock that was ahead leaves them. One whose rule has other zone data is told
// by the plan.
func aheadFindings(all []task, nowMs int64, running bool) []finding {
	remedy := "start axd: it sets the task back when it starts"
	if running {
		remedy = "axd sets tasks back when it starts and after a step of the clock: if this stays, restart axd"
	}
	var found []finding
	for _, t := range all {
		times, err := t.timetable()
		if err != nil || t.Row.Fingerprint != "" && t.Row.Fingerprint != times.Fingerprint() {
			continue
		}
		row := ax.ScheduledTask{
			DueTask: ax.DueTask{NextMs: t.Row.NextMs, LastSlotMs: t.Row.LastSlotMs}, Enabled: t.Row.Enabled,
		}
		next, _, ahead := rules.Rewind(times, row, nowMs)
		switch {
		case t.Row.LastSlotMs > nowMs+rules.MaxAhead:
			found = append(found, finding{
				What: fmt.Sprintf("%s has accounted for its slots up to %s, over a day ahead of the clock, and waits until then",
					t.Address(), when(t.Row.LastSlotMs, t.Zone)),
				Remedy: "check the clock of this machine; if it is right and was ahead, give the task another name and apply",
			})
		case ahead && t.Row.Enabled:
			found = append(found, finding{
				What:   fmt.Sprintf("%s waits for %s, and its schedule says %s", t.Address(), when(t.Row.NextMs, t.Zone), when(next, t.Zone)),
				Remedy: remedy,
			})
		}
	}
	return found
}

// clockFindings tells a clock that axd does not believe.
func clockFindings(mark, now ax.ClockMark, running bool) []finding {
	step := rules.ClockStep(mark, now)
	if now == (ax.ClockMark{}) || step == 0 {
		return nil
	}
	way, by := "forward", step
	if step < 0 {
		way, by = "back", -step
	}
	what := fmt.Sprintf("the clock of this machine was set %s by %s since axd believed it last, when it said %s",
		way, ax.Duration(by).Rough(), when(mark.WallMs, time.UTC))
	remedy := "see that it is right now: an axd that starts claims nothing until it is confirmed"
	if running {
		remedy = "axd claims nothing until it is confirmed: if it is right, wait a minute, or let a time server (chrony, systemd-timesyncd) keep it; if it is not, set it"
	}
	return []finding{{What: what, Remedy: remedy}}
}

// kernelNote tells who keeps the clock of this machine right.
func kernelNote(k clock.State, err error) string {
	switch {
	case err != nil:
		return fmt.Sprintf("clock: the kernel does not say whether it is synchronised (%v)", err)
	case k.Synced:
		return fmt.Sprintf("clock: synchronised (NTP, PTP or the like), being corrected by %s, wrong by %s at most", k.Offset, k.MaxError)
	default:
		return "clock: no time server keeps it right, so it will run away by and by, and axd believes it only a minute after it was set; " +
			"timedatectl set-ntp true, or chrony, does (in a container: on its host)"
	}
}

// minFree is the free space below which writes are about to fail.
const minFree = 256 << 20

// diskFindings looks at the disks of the store and of the data folders of
// hosts that run.
func (c *call) diskFindings(live []ax.Host) []finding {
	dirs := map[string]string{}
	if path := c.storePath(); path != "" {
		dirs[filepath.Dir(path)] = "store"
	}
	for _, h := range live {
		dirs[h.DataDir] = "data"
	}
	var found []finding
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		what := dirs[dir]
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			remedy := "run axctl doctor as axd's user"
			if errors.Is(err, fs.ErrNotExist) {
				remedy = "put the folder back, or start axd again: it makes a new one, without the logs of the old one"
			}
			found = append(found, finding{What: fmt.Sprintf("the %s folder %s cannot be looked at: %v", what, dir, err), Remedy: remedy})
			continue
		}
		free := int64(st.Bavail) * st.Bsize
		if free < minFree {
			found = append(found, finding{
				What:   fmt.Sprintf("the disk of the %s folder %s has %d MiB left", what, dir, free>>20),
				Remedy: "make room; a full disk stops claims until there is some",
			})
		}
		if st.Files > 0 && st.Ffree < 1000 {
			found = append(found, finding{What: fmt.Sprintf("the disk of the %s folder %s has %d inodes left", what, dir, st.Ffree), Remedy: "delete files there"})
		}
	}
	return found
}

// tzdataFindings tells when schedules are computed with different data.
func tzdataFindings(info ax.StoreInfo, live []ax.Host) []finding {
	own := schedule.TZDataVersion()
	var found []finding
	for _, h := range live {
		if h.TZData != "" && h.TZData != own {
			found = append(found, finding{
				What:   fmt.Sprintf("axd on %s has time zone data %s, this axctl %s", h.Name, h.TZData, own),
				Remedy: "run axctl and axd of one version: a plan may tell other instants than axd fires at",
			})
		}
	}
	if info.TZData != "" && info.TZData > own {
		found = append(found, finding{
			What:   fmt.Sprintf("the store was written with time zone data %s, this axctl has %s", info.TZData, own),
			Remedy: "use the newer axctl",
		})
	}
	return found
}

func (r doctorResult) human(s *screen) {
	s.line("store %s", r.store)
	for _, name := range r.passed {
		s.line("%s   %s", s.paint(green, "ok  "), name)
	}
	for _, f := range r.findings {
		s.line("%s   %s: %s", s.paint(red, "FAIL"), f.Check, clean(f.What))
		s.line("       -> %s", clean(f.Remedy))
	}
	for _, n := range r.notes {
		s.line("note   %s", clean(n))
	}
	s.holds(r.held)
}

func (r doctorResult) json() document {
	held := []document{}
	for _, t := range r.held {
		held = append(held, objectJSON(t))
	}
	return document{"store": r.store, "passed": list(r.passed), "findings": list(r.findings), "notes": list(r.notes), "held": held}
}
