package why

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

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
