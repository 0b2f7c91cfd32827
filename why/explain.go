package why

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/schedule"
)

// LateMs is how late a claim or a start may be before people are told. axd does
// both within its tick; a minute is far beyond that.
const LateMs = minuteMs

// Explain answers the question of f.
func Explain(f Facts) Explanation {
	e := &explainer{Facts: f}
	if len(f.Versions) > 0 {
		e.latest = f.Versions[0]
	}
	e.current = e.read(e.latest, f.Object.Definition)
	if f.AtMs == 0 && f.Slot == nil {
		e.now()
	} else {
		e.instant()
		e.byHand()
	}
	return e.Explanation
}

// explainer asks the checks one after the other.
type explainer struct {
	Facts
	Explanation
	latest  ax.VersionRow
	current version // the latest that was no deletion
}

// version is a version of the task, compiled.
type version struct {
	row   ax.VersionRow
	spec  ax.TaskSpec
	times *schedule.Schedule
	fault error // why this program cannot read it
}

// read compiles a version.
func (e *explainer) read(row ax.VersionRow, definition json.RawMessage) version {
	v := version{row: row}
	if v.fault = json.Unmarshal(definition, &v.spec); v.fault == nil {
		v.times, v.fault = schedule.Compile(v.spec.Schedules)
	}
	return v
}

// now asks why the task runs, or does not.
func (e *explainer) now() {
	if !e.exists() {
		return
	}
	for _, b := range e.Backfills {
		e.yes("Is a backfill under way?", e.backfill(b))
	}
	if e.runs() {
		return
	}
	if i := slices.IndexFunc(e.Open, func(in ax.InstanceRow) bool { return in.Status == ax.StatusPending }); i >= 0 {
		e.yes("Was it claimed?", e.life(e.Open[i]))
		e.waits(e.Open[i])
		return
	}
	if !e.readable(e.current) {
		return
	}
	scheduled := e.scheduled()
	enabled := e.enabled()
	free := e.free()
	if scheduled && enabled {
		e.coming()
	}
	alive := e.daemon()
	if alive {
		if e.offers(e.current.spec.Handler) {
			e.pooled()
		}
		e.clock()
	}
	if next := e.Object.Row.NextMs; scheduled && enabled && free && next != 0 {
		e.due(next)
	}
}

func (e *explainer) exists() bool {
	if !e.Object.Deleted {
		e.yes("Does the task exist?", e.by(e.latest))
		return true
	}
	e.no("Does the task exist?", e.by(e.latest), Answer{
		Code:   Deleted,
		Text:   fmt.Sprintf("%s was deleted by %s.", e.Object.Address(), e.by(e.latest)),
		Remedy: "declare it again and apply; it goes on with its history",
	})
	return false
}

// runs tells what of the task is at work.
func (e *explainer) runs() bool {
	i := slices.IndexFunc(e.Open, func(in ax.InstanceRow) bool { return in.Status == ax.StatusDispatched })
	if i < 0 {
		return false
	}
	e.work(e.Open[i], e.life(e.Open[i]))
	return true
}

// work tells what becomes of a dispatched instance.
func (e *explainer) work(in ax.InstanceRow, life string) {
	const question = "Does it run?"
	switch {
	case e.gone(in.Instance):
		e.no(question, life, Answer{
			Code: Orphaned,
			Text: fmt.Sprintf("Instance %d was handed to axd on %s at %s, and that axd does not run any more; its executor may go on with it for some minutes.",
				in.ID, in.Host, e.at(in.HandedMs)),
			Remedy: e.afterwards(in.Instance),
		})
	case in.Unkillable != "":
		e.no(question, life, unkillable(in, fmt.Sprintf("Instance %d was ended", in.ID)))
	case in.CancelBy != "":
		e.yes(question, life)
		e.settle(Answer{
			Code:   Stopping,
			Text:   fmt.Sprintf("Instance %d is being stopped: %s.", in.ID, ax.CancelDetail(in.CancelBy)),
			Remedy: fmt.Sprintf("wait for its processes to end (kill_after); axctl instance %d shows it", in.ID),
		})
	case in.PausedMs != 0:
		e.no(question, life, Answer{
			Code: Paused,
			Text: fmt.Sprintf("Instance %d stands still: %s paused it at %s, %s ago; it holds its place, and its timeout stands still too.",
				in.ID, in.PausedBy, e.at(in.PausedMs), ax.Duration(e.NowMs-in.PausedMs).Rough()),
			Remedy: fmt.Sprintf("axctl signal %d resume lets it go on; axctl cancel %d ends it", in.ID, in.ID),
		})
	case in.StartedMs == 0 && e.NowMs-in.HandedMs > LateMs:
		e.no(question, life, Answer{
			Code:   Handed,
			Text:   fmt.Sprintf("Instance %d was handed to an executor on %s at %s, which has not begun.", in.ID, in.Host, e.at(in.HandedMs)),
			Remedy: "look at axd's log for handler " + e.current.spec.Handler.Name,
		})
	default:
		e.yes(question, life)
		e.settle(Answer{
			Code:   Running,
			Text:   fmt.Sprintf("It runs: instance %d, attempt %d on %s, since %s%s.", in.ID, in.Attempt, in.Host, e.at(cmp.Or(in.StartedMs, in.HandedMs)), e.limit(in.Instance)),
			Remedy: fmt.Sprintf("axctl logs -f %d shows what it prints", in.ID),
		})
	}
}

// unkillable tells that what was killed does not end.
func unkillable(in ax.InstanceRow, so string) Answer {
	return Answer{
		Code:   Unkillable,
		Text:   fmt.Sprintf("%s, but its processes do not end though they were killed, and hold its place: %s.", so, line(in.Unkillable)),
		Remedy: "see what they wait for (state D: a file system or device that does not answer); when they end the place is free",
	}
}

// afterwards says how an instance whose axd is gone comes to its end.
func (e *explainer) afterwards(in ax.Instance) string {
	if e.Daemon {
		return "axd judges what an earlier one left; if this lasts, see its log"
	}
	return "start axd on " + in.Host + "; it takes over what still runs (executors without axd end after 5 minutes), and learns how the rest ended"
}

// limit tells when a running instance is cut off.
func (e *explainer) limit(in ax.Instance) string {
	if in.StartedMs == 0 || in.DeadlineMs == 0 {
		return ""
	}
	return ", until " + e.at(in.DeadlineMs) + " at most"
}

// gone reports whether the axd that an instance was handed to is known not to
// run any more.
func (e *explainer) gone(in ax.Instance) bool {
	if !e.Daemon {
		return true
	}
	for _, h := range e.Hosts {
		if h.Name == in.Host {
			return h.LeftMs != 0 || h.Boot != in.Boot
		}
	}
	return false
}

func (e *explainer) readable(v version) bool {
	const question = "Can its definition be read?"
	if v.fault == nil {
		e.yes(question, fmt.Sprintf("handler %s", v.spec.Handler.Name))
		return true
	}
	e.no(question, line(v.fault.Error()), Answer{
		Code:   Unreadable,
		Text:   fmt.Sprintf("Version %d of %s, written by %s, cannot be read by this program: %s.", v.row.Version, e.Object.Address(), e.by(v.row), line(v.fault.Error())),
		Remedy: "use the ax that wrote it, or mend it in the configuration and apply",
	})
	return false
}

func (e *explainer) scheduled() bool {
	const question = "Has it a schedule?"
	if specs := e.current.spec.Schedules; len(specs) > 0 {
		e.yes(question, rulesOf(specs))
		return true
	}
	e.no(question, "", Answer{
		Code:   NoSchedule,
		Text:   fmt.Sprintf("%s has no schedule since %s: it starts only by hand.", e.Object.Address(), e.by(e.since(func(s ax.TaskSpec) bool { return len(s.Schedules) == 0 }))),
		Remedy: "axctl trigger " + e.address() + ", or add a schedule block and apply",
	})
	return false
}

func (e *explainer) enabled() bool {
	const question = "Is it enabled?"
	if e.Object.Row.Enabled {
		e.yes(question, "")
		return true
	}
	by := e.by(e.since(func(s ax.TaskSpec) bool { return !s.Enabled }))
	e.no(question, by, Answer{
		Code:   Disabled,
		Text:   fmt.Sprintf("%s is disabled (enabled = false) by %s.", e.Object.Address(), by),
		Remedy: "set enabled = true there and apply",
	})
	return false
}

// free asks for holds.
func (e *explainer) free() bool {
	const question = "Is it free of holds?"
	h := e.Object.Row.Hold
	switch {
	case h == nil:
		e.yes(question, "")
		return true
	case h.UntilMs != 0 && h.UntilMs <= e.NowMs:
		e.unknown(question, "%s; that is over, and axd ends it when it next looks", e.hold(*h))
		return true
	}
	e.held(*h)
	return false
}

// held tells a hold as the cause.
func (e *explainer) held(h ax.Hold) {
	remedy := "axctl resume " + e.address() + " lets it go on"
	if h.Kind == ax.HoldFrozen {
		remedy = "mend what fails, then axctl unfreeze " + e.address()
	}
	e.no("Is it free of holds?", e.hold(h), Answer{
		Code:   Held,
		Text:   fmt.Sprintf("%s is %s.", e.Object.Address(), e.hold(h)),
		Remedy: remedy,
	})
}

// coming asks whether next_fire_time is what it is a function of.
func (e *explainer) coming() {
	const question = "Is next_fire_time as its schedule says?"
	row := e.Object.Row
	want, ok := e.current.times.Next(row.LastSlotMs)
	switch {
	case !ok && row.NextMs == 0:
		e.no(question, "no slot is left", Answer{
			Code:   Exhausted,
			Text:   fmt.Sprintf("The schedule of %s is exhausted: %s, its last slot was %s.", e.Object.Address(), rulesOf(e.current.spec.Schedules), e.at(row.LastSlotMs)),
			Remedy: "change the schedule and apply",
		})
	case row.NextMs == want:
		e.yes(question, e.at(row.NextMs))
	default:
		because := "the row was changed by something else than ax"
		if row.Fingerprint != e.current.times.Fingerprint() {
			because = "the rules of its time zone differ from those it was computed with"
		}
		e.no(question, fmt.Sprintf("%s, and the schedule says %s", e.at(row.NextMs), e.at(want)), Answer{
			Code: NextDiffers,
			Text: fmt.Sprintf("next_fire_time of %s is %s and should be %s, the first slot after %s: %s.",
				e.Object.Address(), e.at(row.NextMs), e.at(want), e.at(row.LastSlotMs), because),
			Remedy: "axctl plan shows it and axctl apply mends it",
		})
	}
}

// due asks whether a slot is due, and else tells that it comes.
func (e *explainer) due(slotMs int64) {
	const question = "Is all that is due claimed?"
	if slotMs > e.NowMs {
		e.yes(question, "up to "+e.at(e.Object.Row.LastSlotMs))
		e.settle(Answer{
			Code: Comes,
			Text: fmt.Sprintf("It fires next at %s, in %s, by version %d.", e.at(slotMs), ax.Duration(slotMs-e.NowMs).Rough(), e.latest.Version),
		})
		return
	}
	late := ax.Duration(e.NowMs - slotMs).Rough()
	e.no(question, fmt.Sprintf("the slot of %s is due for %s", e.at(slotMs), late), Answer{
		Code:   Unclaimed,
		Text:   fmt.Sprintf("The slot of %s is due for %s and axd has not claimed it yet.", e.at(slotMs), late),
		Remedy: "axd claims within its tick; if this lasts, see axctl doctor and axd's log",
	})
}

// address is the task as a shell takes it.
func (e *explainer) address() string {
	a := e.Object.Address()
	if strings.ContainsAny(a, "[\"") {
		return "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return a
}

func (e *explainer) at(ms int64) string {
	if ms == 0 {
		return "never"
	}
	t := time.UnixMilli(ms).In(e.Zone)
	layout := "Mon 2006-01-02 15:04 -07:00"
	if t.Second() != 0 {
		layout = "Mon 2006-01-02 15:04:05 -07:00"
	}
	return t.Format(layout)
}
