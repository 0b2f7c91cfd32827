package why

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
	"github.com/axctl/ax/schedule"
)

// lateMs is how late a claim or a start may be before people are told. axd does
// both within its tick; a minute is far beyond that.
const lateMs = minuteMs

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
			Text: fmt.Sprintf("Instance %d was handed to axd on %s at %s, and that axd does not run any more: what became of it is not known.",
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
	case in.StartedMs == 0 && e.NowMs-in.HandedMs > lateMs:
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
	return "start axd on " + in.Host + "; it looks at what was running first"
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

// waits tells what a pending instance waits for.
func (e *explainer) waits(in ax.InstanceRow) {
	if !e.readable(e.current) {
		return
	}
	if in.Kind.ByPerson() {
		e.yes("May it start?", "a person started it; holds and enabled = false do not stop it")
	} else {
		e.free()
	}
	e.inTime(in)
	alive := e.daemon()
	offered := alive && e.offers(e.handlerOf(in)) && e.pooled()
	if e.timely(in) && e.turn(in) && offered && !e.answered() {
		e.place(in)
	}
	switch e.Answer.Code {
	case Held, DaemonDown, DaemonApart, NoHandler, NoPool, PluginDown, BodyRefused: // these are about the task
		e.Answer.Text = fmt.Sprintf("Instance %d waits. %s", in.ID, e.Answer.Text)
	}
}

// inTime tells how long an instance may wait. What is too late is skipped by axd
// as soon as it looks, so that is no cause of its own.
func (e *explainer) inTime(in ax.InstanceRow) {
	const question = "Is it in time?"
	within := e.versionNamed(in.Version).spec.StartWithin
	switch by := rules.StartBy(within, in.Kind, in.Attempt, in.DueMs, in.NotBeforeMs); {
	case by == 0:
	case by > e.NowMs:
		e.yes(question, "until %s (start_within = %q)", e.at(by), within)
	default:
		e.unknown(question, "it is too late since %s (start_within = %q), and axd skips it when it next looks", e.at(by), within)
	}
}

// timely asks whether an instance may start by its own time.
func (e *explainer) timely(in ax.InstanceRow) bool {
	const question = "Is its time come?"
	if in.NotBeforeMs <= e.NowMs {
		e.yes(question, "since "+e.at(in.NotBeforeMs))
		return true
	}
	text := fmt.Sprintf("Instance %d is not to start before %s.", in.ID, e.at(in.NotBeforeMs))
	if in.Attempt > 1 {
		text = fmt.Sprintf("Instance %d waits until %s for its attempt %d, since attempt %d failed: %s.",
			in.ID, e.at(in.NotBeforeMs), in.Attempt, in.Attempt-1, line(cmp.Or(in.LastError, "it gave no error")))
	}
	e.no(question, "not before "+e.at(in.NotBeforeMs), Answer{
		Code: BackOff, Text: text,
		Remedy: fmt.Sprintf("axctl trigger %s starts another one by hand; axctl instance %d tells the attempts", e.address(), in.ID),
	})
	return false
}

// place tells an instance that nothing but places can keep from starting.
func (e *explainer) place(in ax.InstanceRow) {
	pool := e.current.spec.PoolName()
	waited := ax.Duration(e.NowMs - max(in.NotBeforeMs, in.ClaimedMs)).Rough()
	if e.Busy == 0 {
		e.no("Was it handed over?", "no other instance of pool "+pool+" is at work", Answer{
			Code:   Starting,
			Text:   fmt.Sprintf("Instance %d is about to start: nothing has kept it for %s.", in.ID, waited),
			Remedy: "if that lasts, see axd's log",
		})
		return
	}
	e.no("Has it a place?", fmt.Sprintf("%s of pool %s at work%s", plural(e.Busy, "instance"), pool, e.size(pool)), Answer{
		Code: Place,
		Text: fmt.Sprintf("Instance %d has had its turn for %s and waits for a place of pool %s: %s at work%s.",
			in.ID, waited, pool, plural(e.Busy, "instance"), e.size(pool)),
		Remedy: "wait for one of them to end, raise its priority, or give axd more places: axd -pools " + pool + "=N; if there are places, see axd's log",
	})
}

// turn asks the rule that the runtime asks, of the rows that it asks.
func (e *explainer) turn(in ax.InstanceRow) bool {
	const question = "Is it its turn?"
	limit := max(e.current.spec.Concurrency, 1)
	var waiting []ax.Waiting
	index := -1
	var before []ax.InstanceRow
	for _, o := range e.Open {
		switch {
		case o.ID == in.ID:
			index = len(waiting)
		case o.Status == ax.StatusDispatched || o.Status.Final():
			before = append(before, o)
			continue
		case compareTurn(o, in) < 0:
			before = append(before, o)
		}
		waiting = append(waiting, ax.Waiting{
			Ref: o.Ref, Kind: o.Kind, Attempt: o.Attempt, NotBeforeMs: o.NotBeforeMs, Held: e.Object.Row.Hold != nil,
		})
	}
	policy := cmp.Or(e.current.spec.Overlap, ax.OverlapQueue)
	if slices.Contains(rules.Turn(policy, e.Object.Row.Active, limit, waiting, e.NowMs), index) || len(before) == 0 {
		e.yes(question, "%d of %d at work", e.Object.Row.Active, limit)
		return true
	}
	evidence := fmt.Sprintf("%d of %d at work; %s", e.Object.Row.Active, limit, e.lives(before))
	first := before[0]
	if i := slices.IndexFunc(before, func(o ax.InstanceRow) bool { return o.Status.Final() }); i >= 0 {
		o := before[i]
		if o.Unkillable != "" {
			e.no(question, evidence, unkillable(o, fmt.Sprintf("Instance %d waits: instance %d ended (%s)", in.ID, o.ID, o.Status)))
			return false
		}
		e.no(question, evidence, Answer{
			Code:   Unstopped,
			Text:   fmt.Sprintf("Instance %d waits since the processes of instance %d, which ended %s at %s, are not known to be gone.", in.ID, o.ID, o.Status, e.at(o.EndedMs)),
			Remedy: fmt.Sprintf("see axd's log for instance %d; its place is free when its processes are", o.ID),
		})
		return false
	}
	e.no(question, evidence, Answer{
		Code: Turn,
		Text: fmt.Sprintf("Instance %d waits for its turn behind instance %d (%s), since concurrency is %d and overlap is %q.",
			in.ID, first.ID, e.state(first), limit, policy),
		Remedy: fmt.Sprintf("axctl cancel %d ends what is before it; concurrency or overlap change the rule", first.ID),
	})
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

// daemon asks whether an axd works on the store.
func (e *explainer) daemon() bool {
	const question = "Does axd run on this store?"
	var live []string
	for _, h := range e.live() {
		live = append(live, fmt.Sprintf("on %s since %s (pid %d)", h.Name, e.at(h.StartedMs), h.PID))
	}
	switch {
	case len(live) > 0:
		e.yes(question, strings.Join(live, "; "))
		return true
	case e.Daemon:
		e.no(question, e.hosts(), Answer{
			Code:   DaemonApart,
			Text:   fmt.Sprintf("An axd holds the lock beside this store but has not joined it, so it works on another file: the store was replaced under it, or it just starts (%s).", e.hosts()),
			Remedy: "restart axd if that lasts",
		})
	default:
		e.no(question, e.hosts(), Answer{
			Code:   DaemonDown,
			Text:   fmt.Sprintf("No axd runs on this store, so nothing fires: %s.", e.hosts()),
			Remedy: "start axd",
		})
	}
	return false
}

// clock asks whether axd believes the clock of this machine.
func (e *explainer) clock() {
	const question = "Does axd believe the clock?"
	step := rules.ClockStep(e.Mark, e.Clock)
	switch {
	case e.Clock == ax.ClockMark{} || e.Mark == ax.ClockMark{}:
		e.unknown(question, "not looked at")
	case step == 0:
		e.yes(question, "it did at "+e.at(e.Mark.WallMs))
	default:
		way := "forward"
		if step < 0 {
			way, step = "back", -step
		}
		by := ax.Duration(step).Rough()
		e.no(question, "set "+way+" by "+by, Answer{
			Code: ClockDoubted,
			Text: fmt.Sprintf("The clock of this machine was set %s by %s since axd believed it last, when it said %s: axd claims nothing until it is confirmed.",
				way, by, e.at(e.Mark.WallMs)),
			Remedy: "axctl doctor tells what the kernel says of its clock; a minute without another step confirms it too",
		})
	}
}

// live returns the hosts whose axd runs.
func (e *explainer) live() []ax.Host {
	if !e.Daemon {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(e.Hosts), func(h ax.Host) bool { return h.LeftMs != 0 })
}

// size tells how many places a pool has where axd runs, as a tail of a sentence.
func (e *explainer) size(pool string) string {
	for _, h := range e.live() {
		if n, ok := h.Pools[pool]; ok {
			return fmt.Sprintf(" in its %s on %s", plural(n, "place"), h.Name)
		}
	}
	return ""
}

// pooled asks whether a running axd has the pool.
func (e *explainer) pooled() bool {
	const question = "Has axd its pool?"
	pool := e.current.spec.PoolName()
	var have []string
	for _, h := range e.live() {
		n, ok := h.Pools[pool]
		switch {
		case ok:
			e.yes(question, "%s on %s, %s", pool, h.Name, plural(n, "place"))
			return true
		case slices.ContainsFunc(e.offerOf(h).Handlers, func(o ax.OfferedHandler) bool { return o.Name == pool }):
			e.yes(question, "%s on %s, as its handler has", pool, h.Name)
			return true
		case h.Pools == nil:
			e.unknown(question, "axd on %s is of a version that does not tell its pools", h.Name)
			return true
		}
		have = append(have, fmt.Sprintf("%s has %s", h.Name, poolList(h.Pools)))
	}
	e.no(question, strings.Join(have, "; "), Answer{
		Code:   NoPool,
		Text:   fmt.Sprintf("No running axd has a pool %s, which %s chose: %s.", pool, e.Object.Address(), strings.Join(have, "; ")),
		Remedy: "axd -pools " + pool + "=N makes it, or choose one of these and apply",
	})
	return false
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
	if a := e.Object.Address(); strings.ContainsAny(a, "[\"") {
		return "'" + a + "'"
	} else {
		return a
	}
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
