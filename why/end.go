package why

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/axctl/ax"
)

// fired tells the instance that a slot, or a person, made.
func (e *explainer) fired(l ax.Life) {
	v := e.versionNamed(l.Version)
	e.yes("Did the task exist then?", e.by(v.row))
	late := l.ClaimedMs - l.DueMs
	born := fmt.Sprintf("instance %d", l.ID)
	if l.Kind == ax.InstanceSchedule {
		born = fmt.Sprintf("instance %d, %s after it was due", l.ID, ax.Duration(late).Rough())
	} else if i := slices.IndexFunc(l.Transitions, func(t ax.Transition) bool { return t.From == "" }); i >= 0 {
		born = fmt.Sprintf("instance %d, by %s at %s", l.ID, l.Transitions[i].Actor, e.at(l.Transitions[i].AtMs))
	}
	if id := l.BackfillID(); id != 0 {
		born += fmt.Sprintf(", made by backfill %d", id)
	}
	if of := l.RetryOf(); of != 0 {
		born += fmt.Sprintf(", a retry of instance %d", of)
	}
	e.yes("Was it claimed?", born)
	switch {
	case l.Status == ax.StatusDispatched:
		e.work(l.InstanceRow, e.life(l.InstanceRow))
	case !l.Status.Final():
		e.waits(l.InstanceRow)
	default:
		e.ended(l)
	}
	e.settle(Answer{Code: NoRecord, Text: e.life(l.InstanceRow)}) // every case above has settled it
	e.inHindsight(l)
}

// inHindsight tells what people did to an instance when it had ended. It adds to
// the answer, whichever that is.
func (e *explainer) inHindsight(l ax.Life) {
	if t, ok := cause(l, ax.CauseMark); ok && l.Verdict != ax.VerdictNone {
		what := fmt.Sprintf("by %s at %s: %s", t.Actor, e.at(t.AtMs), line(t.Detail))
		e.yes("Was it marked?", what)
		e.Answer.Text += fmt.Sprintf(" It was marked %s.", what)
	}
	if n := len(l.RetriedBy); n > 0 {
		last := fmt.Sprintf("as instance %d", l.RetriedBy[n-1])
		e.yes("Was it retried by hand?", last)
		e.Answer.Text += fmt.Sprintf(" It was retried %s; axctl why %d tells how that went.", last, l.RetriedBy[n-1])
	}
}

// cause returns the last entry of a life line with a cause.
func cause(l ax.Life, causes ...ax.Cause) (ax.Transition, bool) {
	for _, t := range slices.Backward(l.Transitions) {
		if slices.Contains(causes, t.Cause) {
			return t, true
		}
	}
	return ax.Transition{}, false
}

// ended tells how an instance ended.
func (e *explainer) ended(l ax.Life) {
	life := e.life(l.InstanceRow)
	look := fmt.Sprintf("axctl instance %d tells its life", l.ID)
	logs := fmt.Sprintf("axctl logs %d shows what it printed", l.ID)
	again := fmt.Sprintf("axctl retry %d runs it again", l.ID)
	if l.HandedMs != 0 {
		e.yes("Was it started?", "attempt %d, handed to %s at %s", l.Attempt, l.Host, e.at(l.HandedMs))
	}
	if l.Status == ax.StatusSuccess {
		e.yes("Did it succeed?", life)
		e.settle(e.success(l))
		return
	}
	a := Answer{Remedy: look}
	tries := "in its only attempt"
	if l.Attempt > 1 {
		tries = fmt.Sprintf("in attempt %d, the last", l.Attempt)
	}
	switch {
	case l.Status == ax.StatusSkipped:
		e.no("Was it started?", life, e.left(l))
		return
	case l.Status == ax.StatusCancelled && l.CancelBy == ax.CancelByOverlap:
		a.Code, a.Text = CancelledForNew, fmt.Sprintf("Instance %d was cancelled at %s since a newer firing took its place (overlap = \"replace\")%s.", l.ID, e.at(l.EndedMs), e.newer(l))
		a.Remedy = "overlap = \"queue\" lets it end"
	case l.Status == ax.StatusCancelled:
		a.Code, a.Text = Cancelled, fmt.Sprintf("Instance %d was cancelled by %s at %s.", l.ID, cmp.Or(l.CancelBy, "somebody"), e.at(l.EndedMs))
	case l.ErrorClass == ax.ClassLost:
		a.Code = Lost
		a.Text = fmt.Sprintf("Instance %d was lost %s: %s.", l.ID, tries, line(cmp.Or(l.Error, "its executor or axd was gone")))
		if t, ok := cause(l, ax.CauseLost); ok && t.Detail != "" && t.Detail != l.Error {
			a.Text = fmt.Sprintf("Instance %d was lost %s: %s; %s.", l.ID, tries, line(cmp.Or(l.Error, "its executor or axd was gone")), line(t.Detail))
		}
	case l.Status == ax.StatusTimeout:
		v := e.versionNamed(l.Version)
		a.Code, a.Text = TimedOut, fmt.Sprintf("Instance %d took longer than its timeout of %s %s and was stopped at %s.", l.ID, v.spec.Timeout, tries, e.at(l.EndedMs))
		a.Remedy = logs + "; timeout gives it more; " + again
	default:
		class := ""
		if l.ErrorClass != "" && l.ErrorClass != ax.ClassFailed {
			class = " (" + string(l.ErrorClass) + ")"
		}
		a.Code, a.Text = Failed, fmt.Sprintf("Instance %d failed%s %s at %s: %s.", l.ID, class, tries, e.at(l.EndedMs), line(cmp.Or(l.Error, "it gave no error")))
		a.Remedy = logs + "; " + again
	}
	e.no("Did it succeed?", life, a)
}

// success tells what ended well, and whether it came late.
func (e *explainer) success(l ax.Life) Answer {
	ran := fmt.Sprintf("instance %d ran from %s for %s and ended in success", l.ID, e.at(cmp.Or(l.StartedMs, l.HandedMs)),
		ax.Duration(l.EndedMs-cmp.Or(l.StartedMs, l.HandedMs, l.EndedMs)).Rough())
	if l.Attempt > 1 {
		ran += fmt.Sprintf(", in attempt %d", l.Attempt)
	}
	if late := l.ClaimedMs - l.DueMs; l.Kind == ax.InstanceSchedule && late > LateMs {
		return Answer{
			Code:   SucceededLate,
			Text:   fmt.Sprintf("It fired, but was claimed %s late, at %s: %s; %s.", ax.Duration(late).Rough(), e.at(l.ClaimedMs), e.downAt(), ran),
			Remedy: "misfire.policy = \"skip\" leaves out what is late",
		}
	}
	return Answer{Code: Succeeded, Text: fmt.Sprintf("It fired: %s.", ran)}
}

// left tells why an instance ended without having been started.
func (e *explainer) left(l ax.Life) Answer {
	v := e.versionNamed(l.Version)
	a := Answer{Remedy: "axctl trigger " + e.address() + " -due WHEN runs it by hand"}
	by := func() string {
		i := slices.IndexFunc(e.Versions, func(v ax.VersionRow) bool { return v.Revision.AtMs <= l.EndedMs })
		return e.by(e.Versions[max(i, 0)])
	}
	switch l.Reason {
	case ax.ReasonOverlap:
		a.Code = SkippedOverlap
		a.Text = fmt.Sprintf("Instance %d was skipped since the task was at its concurrency of %d (overlap = %q)%s.",
			l.ID, v.spec.Concurrency, v.spec.Overlap, e.inTheWay(l, l.ClaimedMs))
		a.Remedy = "overlap or concurrency change the rule; " + a.Remedy
	case ax.ReasonReplaced:
		a.Code = SkippedReplaced
		a.Text = fmt.Sprintf("Instance %d waited for its turn and a newer firing took its place at %s (overlap = %q)%s.", l.ID, e.at(l.EndedMs), v.spec.Overlap, e.newer(l))
		a.Remedy = "overlap = \"allow\" keeps all of them; " + a.Remedy
	case ax.ReasonStartWithin:
		a.Code, a.Text = SkippedTooLate, e.tooLate(l, v)
		a.Remedy = fmt.Sprintf("a longer start_within lets it wait; axctl retry %d runs it", l.ID)
	case ax.ReasonDeleted:
		a.Code, a.Text = DeletedThen, fmt.Sprintf("Instance %d still waited when the task was deleted by %s.", l.ID, by())
	case ax.ReasonDisabled:
		a.Code, a.Text = DisabledThen, fmt.Sprintf("Instance %d still waited when the task was disabled by %s.", l.ID, by())
	default:
		a.Code, a.Text = SkippedOtherwise, fmt.Sprintf("Instance %d was skipped (%s) at %s.", l.ID, l.Reason, e.at(l.EndedMs))
	}
	return a
}

// tooLate tells why an instance was not started in time.
func (e *explainer) tooLate(l ax.Life, v version) string {
	if t, ok := cause(l, ax.CauseStartWithin); ok && t.From == "" {
		return fmt.Sprintf("Instance %d was claimed %s after it was due, at %s, which is beyond start_within = %q of version %d: %s.",
			l.ID, ax.Duration(l.ClaimedMs-l.DueMs).Rough(), e.at(l.ClaimedMs), v.spec.StartWithin, l.Version, e.downAt())
	}
	text := fmt.Sprintf("Instance %d waited and was not started before start_within = %q of version %d was over, so it was skipped at %s",
		l.ID, v.spec.StartWithin, l.Version, e.at(l.EndedMs))
	if h := e.Object.Row.Hold; h != nil && h.SinceMs <= l.EndedMs {
		return text + fmt.Sprintf(": the task is %s.", e.hold(*h))
	}
	return text + e.inTheWay(l, l.EndedMs) + "."
}

// inTheWay tells the instances that were live at an instant at which another
// one of the task could not be.
func (e *explainer) inTheWay(l ax.Life, atMs int64) string {
	var live []ax.InstanceRow
	for _, in := range e.Around {
		over := cmp.Or(in.StoppedMs, in.EndedMs)
		if in.ID != l.ID && in.Status != ax.StatusSkipped && in.ClaimedMs <= atMs && (over == 0 || over > atMs) {
			live = append(live, in)
		}
	}
	if len(live) == 0 {
		return ""
	}
	return ": " + e.lives(live)
}

// newer names the firing that took an instance's place.
func (e *explainer) newer(l ax.Life) string {
	at := l.EndedMs
	if t, ok := cause(l, ax.CauseReplaced); ok {
		at = t.AtMs
	}
	for _, in := range e.After {
		if in.ClaimedMs == at && in.Kind == ax.InstanceSchedule {
			return fmt.Sprintf(": instance %d, due %s", in.ID, e.at(in.DueMs))
		}
	}
	return ""
}
