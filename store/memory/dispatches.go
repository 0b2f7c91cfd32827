package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

// maxLateResults bounds the late_result notes of one instance.
const maxLateResults = 3

// Pending implements ax.Dispatches.
func (s *Store) Pending(_ context.Context, q ax.PendingQuery) ([]ax.Waiting, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ws []ax.Waiting
	for _, in := range s.instances {
		wanted := in.NotBeforeMs <= q.UntilMs
		if q.AfterID != 0 {
			wanted = in.ID > q.AfterID
		}
		if in.Status != ax.StatusPending || !wanted {
			continue
		}
		o := s.objects[in.TaskID]
		ws = append(ws, ax.Waiting{
			Ref: in.Ref, Version: in.Version, Kind: in.Kind, Attempt: in.Attempt, NotBeforeMs: in.NotBeforeMs,
			MaxActive: o.maxActive, Overlap: o.overlap, Held: o.Row.Hold != nil,
		})
	}
	slices.SortFunc(ws, func(a, b ax.Waiting) int {
		if q.AfterID != 0 {
			return cmp.Compare(a.ID, b.ID)
		}
		return cmp.Or(cmp.Compare(a.NotBeforeMs, b.NotBeforeMs), cmp.Compare(a.ID, b.ID))
	})
	return ws[:min(len(ws), q.Limit)], nil
}

// Dispatch implements ax.Dispatches.
func (s *Store) Dispatch(_ context.Context, hs []ax.Handover) ([]ax.HandoverResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	results := make([]ax.HandoverResult, len(hs))
	for i, h := range hs {
		results[i] = s.dispatch(h)
	}
	return results, nil
}

func (s *Store) dispatch(h ax.Handover) ax.HandoverResult {
	in := s.instanceAt(h.Ref)
	if in == nil || in.Status != ax.StatusPending || in.Attempt != h.Attempt {
		return ax.HandoverGone
	}
	row := &s.objects[in.TaskID].Row
	switch {
	case row.Hold != nil && !in.Kind.ByPerson():
		return ax.HandoverHeld
	case row.Active >= s.objects[in.TaskID].maxActive:
		return ax.HandoverBlocked
	}
	place(&in.Instance, h)
	in.Status = ax.StatusDispatched
	row.Active++
	row.Waiting--
	return ax.HandedOver
}

// place writes where an attempt is handed to.
func place(in *ax.Instance, h ax.Handover) {
	in.Host, in.Boot, in.Executor = h.Host, h.Boot, h.Executor
	in.AssignedMs, in.HandedMs, in.DeadlineMs = h.AtMs, h.AtMs, h.DeadlineMs
}

// Started implements ax.Dispatches.
func (s *Store) Started(_ context.Context, ss []ax.Started) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range ss {
		if in := s.instanceAt(st.Ref); in != nil && in.Status == ax.StatusDispatched && in.Attempt == st.Attempt {
			in.StartedMs, in.DeadlineMs = st.StartedMs, st.DeadlineMs
		}
	}
	return nil
}

// Finish implements ax.Dispatches.
func (s *Store) Finish(_ context.Context, es []ax.Ending) ([]ax.Ended, error) {
	for _, e := range es {
		if e.Status == ax.StatusPending && e.StoppedMs == 0 {
			return nil, fmt.Errorf("instance %d: a retry before its attempt has stopped", e.ID)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := make([]ax.Ended, len(es))
	for i, e := range es {
		ended[i] = s.finish(e)
	}
	return ended, nil
}

func (s *Store) finish(e ax.Ending) ax.Ended {
	in := s.instanceAt(e.Ref)
	if in == nil {
		return ax.Ended{Late: true}
	}
	current := in.Attempt == e.Attempt
	switch {
	case e.Status == "" && e.Cause == ax.CauseUnkillable:
		noted := slices.ContainsFunc(in.transitions, func(t ax.Transition) bool { return t.Cause == e.Cause && t.Attempt == e.Attempt })
		if current && in.HandedMs != 0 && in.StoppedMs == 0 && !noted {
			in.note(e.NowMs, in.Status, in.Status, "dispatch", e.Cause, e.Detail)
		}
		return ax.Ended{Status: in.Status}
	case e.Status == "":
		stopped := current && in.Status.Final() && s.stop(in, e.StoppedMs)
		if stopped && e.Cause != "" {
			in.note(e.NowMs, in.Status, in.Status, "dispatch", e.Cause, e.Detail)
		}
		return ax.Ended{Status: in.Status, Freed: stopped}
	case !current || in.Status != ax.StatusDispatched:
		if !current || in.Status != e.Status {
			in.noteLate(e)
		}
		freed := current && in.Status.Final() && s.stop(in, e.StoppedMs)
		return ax.Ended{Status: in.Status, Late: true, Freed: freed}
	case e.Status == ax.StatusPending:
		return s.retry(in, e)
	default:
		return s.end(in, e, e.Status, e.Cause)
	}
}

// noteLate keeps a report for an attempt that had ended, if there are not
// many already.
func (in *instance) noteLate(e ax.Ending) {
	n := 0
	for _, t := range in.transitions {
		if t.Cause == ax.CauseLateResult {
			n++
		}
	}
	if n < maxLateResults {
		in.note(e.NowMs, in.Status, in.Status, "dispatch", ax.CauseLateResult, ax.LateDetail(e))
	}
}

// stop sets stopped_ms if it was not set; only then the place is free.
func (s *Store) stop(in *instance, stoppedMs int64) bool {
	if stoppedMs == 0 || in.StoppedMs != 0 || in.HandedMs == 0 {
		return false
	}
	in.StoppedMs = stoppedMs
	s.objects[in.TaskID].Row.Active--
	return true
}

// retry makes room for the next attempt, unless a cancel intent, the end of
// the definition or its switch says that there is none.
func (s *Store) retry(in *instance, e ax.Ending) ax.Ended {
	o := s.objects[in.TaskID]
	switch {
	case in.CancelBy != "":
		e.ErrorClass, e.Detail = ax.ClassCancelled, ax.CancelDetail(in.CancelBy)
		return s.end(in, e, ax.StatusCancelled, ax.CauseCancel)
	case o.Deleted:
		return s.end(in, e, e.RetryStatus, ax.CauseDeleted)
	case !o.Row.Enabled && in.Kind == ax.InstanceSchedule:
		return s.end(in, e, e.RetryStatus, ax.CauseDisabled)
	}
	in.attempts = append(in.attempts, ax.Attempt{
		InstanceID: in.ID, Attempt: in.Attempt, Host: in.Host, Executor: in.Executor,
		Status: e.RetryStatus, ErrorClass: e.ErrorClass, Error: ax.CleanText(e.Error, ax.MaxErrorBytes),
		HandedMs: in.HandedMs, StartedMs: cmp.Or(e.StartedMs, in.StartedMs),
		EndedMs: cmp.Or(e.EndedMs, e.NowMs), StoppedMs: e.StoppedMs,
	})
	in.note(e.NowMs, ax.StatusDispatched, ax.StatusPending, "dispatch", cmp.Or(e.Cause, ax.CauseRetry), ax.RetryDetail(e))
	s.stop(in, e.StoppedMs)
	in.Status, in.Attempt, in.NotBeforeMs = ax.StatusPending, in.Attempt+1, e.NotBeforeMs
	in.Host, in.Boot, in.Executor = "", "", ""
	in.AssignedMs, in.HandedMs, in.StartedMs, in.EndedMs, in.StoppedMs, in.DeadlineMs = 0, 0, 0, 0, 0, 0
	o.Row.Waiting++
	return ax.Ended{Status: in.Status, Freed: true}
}

// end writes a final state, once, and counts it in the task's streak.
func (s *Store) end(in *instance, e ax.Ending, status ax.Status, cause ax.Cause) ax.Ended {
	in.Status = status
	in.StartedMs = cmp.Or(e.StartedMs, in.StartedMs)
	in.EndedMs = cmp.Or(e.EndedMs, e.NowMs)
	in.ErrorClass, in.Error = e.ErrorClass, ax.CleanText(e.Error, ax.MaxErrorBytes)
	in.Outputs, in.OutputBytes, in.OutputDropped = outputs(e.Outputs), e.OutputBytes, e.OutputDropped
	if cause != "" {
		in.note(e.NowMs, ax.StatusDispatched, status, "dispatch", cause, e.Detail)
	}
	if status == ax.StatusSuccess && in.CancelBy != "" {
		in.note(e.NowMs, status, status, "dispatch", ax.CauseCancelLate, "")
	}
	ended := ax.Ended{Status: status, Freed: s.stop(in, e.StoppedMs)}
	o := s.objects[in.TaskID]
	var freeze bool
	o.Row.FailureStreak, freeze = rules.Streak(o.Row.FailureStreak, o.freezeAfter, e.Ref, status, e.ErrorClass)
	if freeze && o.Row.Hold == nil && !o.Deleted {
		h, detail := ax.Freezing(e, o.Row.FailureStreak)
		in.note(e.NowMs, status, status, "dispatch", ax.CauseFrozen, detail)
		o.Row.Hold = &h
		o.Row.LockVersion++
		ended.FrozenAfter = o.Row.FailureStreak
	}
	return ended
}

// Open implements ax.Dispatches.
func (s *Store) Open(_ context.Context, host string) ([]ax.Instance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var open []ax.Instance
	for _, in := range s.byKey(func(in *instance) bool {
		return in.Host == host && in.HandedMs != 0 && in.StoppedMs == 0
	}) {
		open = append(open, in.Instance)
	}
	return open, nil
}

// Cancels implements ax.CancelIntents.
func (s *Store) Cancels(_ context.Context, host string) ([]ax.CancelIntent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var intents []ax.CancelIntent
	for _, in := range s.byKey(func(in *instance) bool {
		return in.Host == host && in.Status == ax.StatusDispatched && in.CancelBy != ""
	}) {
		intents = append(intents, ax.CancelIntent{
			Ref: in.Ref, Attempt: in.Attempt, By: in.CancelBy, Replaced: in.CancelBy == ax.CancelByOverlap,
		})
	}
	return intents, nil
}
