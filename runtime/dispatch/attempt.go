package dispatch

import (
	"fmt"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/failpoint"
	"github.com/axctl/ax/runtime/wheel"
	"github.com/axctl/ax/schedule"
)

// attempt is one attempt that was handed to an executor and is not gone: all
// that is known of it, in one place.
type attempt struct {
	ref       ax.Ref
	job       ax.Job
	kind      ax.InstanceKind
	late      bool            // it was a backlog
	version   *ax.TaskVersion // nil: it is not to be found
	pool      string          // whose place it holds
	handedMs  int64
	startBy   int64 // of one that was taken over: when it is not to begin any more, 0 never
	startedMs int64
	stoppedMs int64
	cancelBy  string // who asked to cancel it; "" nobody
	reported  bool   // an end came, though it may not be in the journal yet
	end       *ax.Report
	told      bool // the ending that ends it is on its way to the store
	gone      bool // so is the one that frees its place
	kept      []ax.Report
	timer     wheel.Handle // kindOverdue
	overdueAt time.Time    // when it is overdue, by the monotonic clock
	quiet     bool         // told that it has not begun
	stuck     bool         // told that its processes cannot be killed
	pauses    pausing
}

// ending is what goes to the store about an attempt; attempt is nil for a late
// report of one that is gone.
type ending struct {
	ax.Ending
	attempt *attempt
}

// take makes an attempt of a dispatched row, whose place is taken, and gives it
// to the executors.
func (d *Dispatcher) take(h ax.Handover, kind ax.InstanceKind, v *ax.TaskVersion) *attempt {
	a := &attempt{ref: h.Ref, job: d.job(h, v), kind: kind, version: v, pool: v.Spec.PoolName(), handedMs: h.AtMs}
	delete(d.suspects, a.job.BatchNo)
	d.running[h.ID] = a
	d.task(h.TaskID).active++
	d.jobs = append(d.jobs, a.job)
	d.metrics.handed.Inc()
	return a
}

func (d *Dispatcher) job(h ax.Handover, v *ax.TaskVersion) ax.Job {
	zone, location := zoneOf(&v.Spec)
	_, offset := time.UnixMilli(h.DueMs).In(location).Zone()
	return ax.Job{
		BatchNo:    ax.BatchNo(d.cfg.Incarnation, h.ID, h.Attempt),
		InstanceID: h.ID, Attempt: h.Attempt,
		Stack: v.Stack, Task: ax.Address(ax.KindTask, v.Name),
		Handler: v.Spec.Handler.Name, Body: v.Spec.Handler.Body,
		DueMs: h.DueMs, Timezone: zone, UTCOffset: offset,
		Timeout: v.Spec.Timeout, KillAfter: v.Spec.KillAfter, Heartbeat: v.Spec.Heartbeat,
		IdempotencyKey: fmt.Sprintf("%s-%d", d.cfg.Incarnation, h.ID),
	}
}

// zoneOf returns the zone of a task's instants: that of its first schedule, UTC
// without one.
func zoneOf(spec *ax.TaskSpec) (string, *time.Location) {
	if len(spec.Schedules) > 0 {
		name := spec.Schedules[0].Timezone
		if zone, err := schedule.Zone(name); err == nil { // the version was compiled, so there is no error
			return name, zone
		}
	}
	return "UTC", time.UTC
}

// receive takes reports from the executors: begins are noted, all else goes to
// the journal first.
func (d *Dispatcher) receive(rs []ax.Report) {
	now := d.nowMs()
	for _, r := range rs {
		if r.Kind == ax.ReportProgress || r.Kind == ax.ReportSignal {
			d.said(r)
			continue
		}
		a := d.attemptOf(r.BatchNo)
		if r.Kind == ax.ReportUnbegun {
			if a != nil {
				d.unbegun(a, now)
			}
			continue
		}
		r = clean(r, now)
		switch {
		case a == nil:
			d.stranger(r, now)
		case r.Kind == ax.ReportStarted:
			d.started(a, r, now)
		case r.Kind == ax.ReportUnkillable:
			d.holds(a, r.Error, now)
		default:
			a.reported = true
			if r.StartedMs == 0 {
				r.StartedMs = a.startedMs // so that the journal has it
			}
			d.reports = append(d.reports, r)
		}
	}
}

func (d *Dispatcher) attemptOf(batchNo string) *attempt {
	_, id, _, _ := ax.ParseBatchNo(batchNo)
	if a := d.running[id]; a != nil && a.job.BatchNo == batchNo {
		return a
	}
	return nil
}

// started notes that an attempt has begun. Once its end has come, however the
// two were ordered on their way, it says nothing new.
func (d *Dispatcher) started(a *attempt, r ax.Report, now int64) {
	if a.startedMs != 0 || a.reported {
		return
	}
	a.startedMs = r.StartedMs
	if len(d.begun) == 0 {
		d.at[callStarted] = now + flushEvery.Milliseconds()
	}
	d.begun = append(d.begun, a)
	d.tellStarted(a)
}

func (d *Dispatcher) tellStarted(a *attempt) {
	d.stats.started.Add(1)
	d.metrics.started.Inc()
	if a.kind == ax.InstanceSchedule && a.job.Attempt == 1 && !a.late {
		d.metrics.lateness.Observe(float64(a.startedMs-a.ref.DueMs) / 1000)
	}
	if d.cfg.OnStarted != nil {
		d.cfg.OnStarted(a.job, ax.Started{Ref: a.ref, Attempt: a.job.Attempt, StartedMs: a.startedMs})
	}
}

// durable acts on reports that are in the journal.
func (d *Dispatcher) durable(rs []ax.Report) {
	now := d.nowMs()
	for _, r := range rs {
		a := d.attemptOf(r.BatchNo)
		if a == nil {
			d.stranger(r, now)
			continue
		}
		a.kept = append(a.kept, r)
		d.kept++
		d.judge(a, r, now)
	}
}

// judge adds a report to what is known of an attempt's end, and sends what that
// makes known to the store: first the end, then that its processes are gone, or
// both at once.
func (d *Dispatcher) judge(a *attempt, r ax.Report, now int64) {
	if a.stoppedMs == 0 {
		a.stoppedMs = r.StoppedMs
	}
	switch {
	case r.Kind == ax.ReportStopped:
		if a.end != nil && r.OutputBytes > a.end.OutputBytes {
			a.end.OutputBytes, a.end.OutputDropped = r.OutputBytes, r.OutputDropped
		}
	case a.end == nil:
		a.end = &r
		if a.startedMs == 0 && r.StartedMs != 0 {
			a.startedMs = r.StartedMs
			d.tellStarted(a)
		}
	case a.told && r.Kind == ax.ReportEnded && r.Status != a.end.Status:
		d.late(a.ref, a.job.Attempt, r, now)
	}
	switch {
	case a.end == nil || a.gone:
	case !a.told:
		end := *a.end
		end.StoppedMs = a.stoppedMs
		e, ready := conclude(d.subject(a), end, now)
		if !ready {
			d.armOverdue(a, now) // it is to be gone soon
			return
		}
		d.tell(a, e)
	case a.stoppedMs != 0:
		d.tell(a, stopped(a.ref, a.job.Attempt, a.stoppedMs, now))
	}
}

func (d *Dispatcher) subject(a *attempt) subject {
	s := subject{ref: a.ref, attempt: a.job.Attempt, startedMs: a.startedMs, cancelBy: a.cancelBy}
	if a.version != nil {
		s.spec = &a.version.Spec
	}
	return s
}

func (d *Dispatcher) tell(a *attempt, e ax.Ending) {
	a.told = true
	a.gone = e.StoppedMs != 0
	d.endings = append(d.endings, ending{e, a})
}

// late notes the report of an attempt whose end has been told already.
func (d *Dispatcher) late(ref ax.Ref, attempt int, r ax.Report, now int64) {
	d.endings = append(d.endings, ending{Ending: ax.Ending{
		Ref: ref, Attempt: attempt, Status: r.Status, StartedMs: r.StartedMs, EndedMs: r.EndedMs,
		ErrorClass: r.ErrorClass, Error: r.Error, Cause: ax.CauseLateResult, NowMs: now,
	}})
}

// stranger deals with a report of an attempt that is not at work here: the
// repetition of one that is written, or a late one. Either way the executor may
// forget it.
func (d *Dispatcher) stranger(r ax.Report, now int64) {
	if r.Kind == ax.ReportStarted || r.Kind == ax.ReportUnkillable {
		return
	}
	if g, ok := d.recent.get(r.BatchNo); ok && r.Kind == ax.ReportEnded && r.Status != g.status {
		d.late(g.ref, g.attempt, r, now)
	}
	d.cfg.Executors.Acknowledge([]string{r.BatchNo})
}

// overdue is the second line of defence: the executor, which ends attempts at
// their deadline, has said nothing long after. What cannot be stopped is ended
// for good, so that it does not hang; its place stays taken until its processes
// are gone.
func (d *Dispatcher) overdue(a *attempt, now int64) {
	if a.told || a.reported && a.end == nil {
		return
	}
	if a.pauses.sinceMs != 0 && a.cancelBy == "" && a.end == nil {
		return // its time stands still; the resumption arms it again
	}
	if left := max(time.Until(a.overdueAt), time.Until(d.awakeSince.Add(overdueGrace))); left > 0 {
		// The wall clock was set forward, so the executor's time is not over; or
		// this process was stopped, and the end that was reported is on its way.
		a.timer = d.wheel.Add(wheel.Entry{Kind: kindOverdue, ID: a.ref.ID, DueMs: now + max(left.Milliseconds(), 1)})
		return
	}
	class, status := ax.ClassTimeout, ax.StatusTimeout
	if a.cancelBy != "" {
		class, status = ax.ClassCancelled, ax.StatusCancelled
	}
	detail := "no end was reported long after it was due to be stopped"
	d.cfg.Executors.Cancel([]ax.CancelOrder{{BatchNo: a.job.BatchNo, Class: class, Detail: detail}})
	if a.end == nil {
		r := clean(ax.Report{BatchNo: a.job.BatchNo, Kind: ax.ReportEnded, Status: status, Error: detail, EndedMs: now}, now)
		a.end = &r
		a.reported = true
	}
	d.holds(a, detail, now)
	s := d.subject(a)
	s.spec = nil // no retry
	e, _ := conclude(s, *a.end, now)
	d.tell(a, e)
}

// holds tells that what an attempt began does not end though it was killed: it
// keeps its place until it does.
func (d *Dispatcher) holds(a *attempt, what string, now int64) {
	if a.stuck || a.gone {
		return
	}
	a.stuck = true
	d.stats.unkillable.Add(1)
	d.cfg.Log.Error("an attempt cannot be killed; it keeps its place until its processes are gone",
		"task", a.job.Task, "instance", a.ref.ID, "batch_no", a.job.BatchNo, "processes", what)
	d.endings = append(d.endings, ending{Ending: ax.Ending{
		Ref: a.ref, Attempt: a.job.Attempt, Cause: ax.CauseUnkillable, Detail: what, NowMs: now,
	}})
}

// armOverdue sets the second line of defence for an attempt that its executor
// should stop at stopMs.
func (d *Dispatcher) armOverdue(a *attempt, stopMs int64) {
	due := stopMs + int64(a.job.KillAfter) + overdueGrace.Milliseconds()
	d.wheel.Cancel(a.timer)
	a.timer = d.wheel.Add(wheel.Entry{Kind: kindOverdue, ID: a.ref.ID, DueMs: due})
	a.overdueAt = time.Now().Add(time.Duration(due-d.nowMs()) * time.Millisecond)
}

// written acts on what the store answered.
func (d *Dispatcher) written(batch []ending, answers []*ax.Ended) {
	now := d.nowMs()
	var acks []string
	for i, w := range batch {
		got := answers[i]
		switch {
		case got == nil:
			d.stuck = append(d.stuck, w)
		case w.attempt != nil:
			if d.settle(w, *got, now) {
				acks = append(acks, w.attempt.job.BatchNo)
			}
		}
	}
	if len(acks) > 0 {
		failpoint.Hit(failpoint.Acknowledge)
		d.cfg.Executors.Acknowledge(acks)
		failpoint.Hit(failpoint.Acknowledged)
	}
}

// settle acts on one ending that the store has; it returns true when the
// attempt is gone.
func (d *Dispatcher) settle(w ending, got ax.Ended, now int64) bool {
	a, e := w.attempt, w.Ending
	d.kept -= len(a.kept)
	a.kept = nil
	retry := e.Status == ax.StatusPending && got.Status == ax.StatusPending
	if e.Status != "" {
		if !retry {
			e.Status = got.Status
		}
		d.tellEnded(a.job, e)
		d.tellFrozen(a.job, e, got)
	}
	if e.StoppedMs == 0 {
		return false
	}
	d.free(a, a.end.Status)
	if retry {
		spec := &a.version.Spec
		d.add(ax.Waiting{
			Ref: a.ref, Version: a.version.Version, Kind: a.kind, Attempt: a.job.Attempt + 1,
			NotBeforeMs: e.NotBeforeMs, MaxActive: spec.Concurrency, Overlap: spec.Overlap,
		}, now)
	}
	return true
}

func (d *Dispatcher) tellEnded(job ax.Job, e ax.Ending) {
	d.stats.ended.Add(1)
	if e.ErrorClass == ax.ClassLost {
		d.stats.lost.Add(1)
	}
	status := e.Status
	if status == ax.StatusPending {
		status = e.RetryStatus
		d.metrics.retried.Inc()
	}
	d.metrics.ended.WithLabelValues(string(status), string(e.ErrorClass)).Inc()
	if d.cfg.OnEnded != nil {
		d.cfg.OnEnded(job, e)
	}
}

// tellFrozen tells an end that has frozen its task.
func (d *Dispatcher) tellFrozen(job ax.Job, e ax.Ending, got ax.Ended) {
	if got.FrozenAfter == 0 {
		return
	}
	d.metrics.frozen.Inc()
	d.cfg.Log.Warn("a task is frozen: it does not fire until someone unfreezes it", "stack", job.Stack, "task", job.Task,
		"failed_in_a_row", got.FrozenAfter, "instance", e.ID, "error", e.Error)
}

// free gives back what a gone attempt held.
func (d *Dispatcher) free(a *attempt, status ax.Status) {
	delete(d.running, a.ref.ID)
	if a.stuck {
		d.stats.unkillable.Add(-1)
		d.cfg.Log.Info("what could not be killed is gone, and its place is free", "task", a.job.Task, "instance", a.ref.ID)
	}
	d.wheel.Cancel(a.timer)
	d.places.release(a.pool)
	t := d.task(a.ref.TaskID)
	t.active--
	t.blocked = false
	d.touch(a.ref.TaskID)
	d.recent.put(a.job.BatchNo, goneAttempt{ref: a.ref, attempt: a.job.Attempt, status: status})
}

// recent remembers attempts that are gone, so that what is reported of them
// late can be noted. It is a hint: the oldest are forgotten.
type recent struct {
	gone map[string]goneAttempt
	ring []string
	next int
}

type goneAttempt struct {
	ref     ax.Ref
	attempt int
	status  ax.Status // as it was reported
}

const maxRecent = 4096

func newRecent() *recent {
	return &recent{gone: map[string]goneAttempt{}, ring: make([]string, maxRecent)}
}

func (r *recent) put(batchNo string, g goneAttempt) {
	delete(r.gone, r.ring[r.next])
	r.ring[r.next] = batchNo
	r.gone[batchNo] = g
	r.next = (r.next + 1) % maxRecent
}

func (r *recent) get(batchNo string) (goneAttempt, bool) {
	g, ok := r.gone[batchNo]
	return g, ok
}
