package host

import (
	"fmt"

	"github.com/axctl/ax"
	pb "github.com/axctl/ax/plugins/proto"
)

// entry is what the host remembers of a job.
type entry struct {
	job      *pb.Job
	executor *executor
	link     *link // the process that has it, from state sent on
	state    state
	queuedMs int64
	known    bool       // dispatch knows it; else only a process does
	boot     string     // that handed it over, where that was an earlier one
	cancel   *pb.Cancel // while it is left
	end      ax.Report  // the end that was reported, from state ended on
	acked    bool       // that end is durable; stopped is still to come
}

type state int

const (
	waiting state = iota // in its executor's queue
	left                 // of an earlier host: no process has said that it has it
	sent                 // given to a process
	ended                // its end was reported, its processes may be there
	over                 // gone, and told so
)

// give notes that a process has the job. Called with mu held.
func (e *entry) give(l *link) {
	e.link, e.executor, e.state = l, l.x, sent
	l.entries++
}

// handOverLimit is how long a job waits for an executor that is down, in ms.
const handOverLimit = 30_000

// Dispatch implements ax.Executors.
func (h *Host) Dispatch(jobs []ax.Job) {
	var reports []ax.Report
	now := h.nowMs()
	h.mu.Lock()
	for i := range jobs {
		job := wireJob(&jobs[i])
		if e, ok := h.entries[job.BatchNo]; ok {
			e.known = true
			switch {
			case e.job.Hash != job.Hash:
				reports = append(reports, refusal(job.BatchNo, ax.ClassPermanent, "batch number was given before with another job", now))
			case e.state == sent:
				e.link.down.jobs = append(e.link.down.jobs, job)
				e.link.wakeUp()
			case e.state > sent:
				reports = append(reports, e.end)
			}
			continue
		}
		e := &entry{job: job, queuedMs: now, known: true}
		h.entries[job.BatchNo] = e
		e.executor = h.handlers[jobs[i].Handler]
		switch {
		case e.executor == nil:
			class, why := h.unknown(job.Handler)
			reports = append(reports, e.refuse(class, why, now))
		case e.executor.quarantined != "":
			reports = append(reports, e.refuse(ax.ClassTransient, e.executor.quarantineText(), now))
		default:
			e.executor.jobs = append(e.executor.jobs, job)
			e.executor.wakeUp()
		}
	}
	h.mu.Unlock()
	h.outbox.put(reports...)
}

// Cancel implements ax.Executors.
func (h *Host) Cancel(orders []ax.CancelOrder) {
	var reports []ax.Report
	now := h.nowMs()
	h.mu.Lock()
	for _, o := range orders {
		e, ok := h.entries[o.BatchNo]
		if !ok {
			continue
		}
		switch e.state {
		case waiting:
			status := ax.StatusCancelled
			if o.Class == ax.ClassTimeout {
				status = ax.StatusTimeout
			}
			e.state = over
			e.end = ax.Report{
				BatchNo: o.BatchNo, Kind: ax.ReportEnded, Executor: e.executor.cmd.Name, Status: status,
				ErrorClass: o.Class, Error: o.Detail, EndedMs: now, StoppedMs: now,
			}
			reports = append(reports, e.end)
		case left:
			e.cancel = wireCancel(o)
		case sent:
			e.link.cancel(wireCancel(o))
		case ended, over:
		}
	}
	h.mu.Unlock()
	h.outbox.put(reports...)
}

// Acknowledge implements ax.Executors.
func (h *Host) Acknowledge(batchNos []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, batchNo := range batchNos {
		e, ok := h.entries[batchNo]
		if !ok || e.state < ended {
			continue
		}
		if e.link != nil {
			e.link.down.acks = append(e.link.down.acks, batchNo)
			e.link.wakeUp()
		}
		e.acked = true
		h.forget(e)
	}
}

// forget drops an entry that is over and acknowledged. Called with mu held.
func (h *Host) forget(e *entry) {
	if e.state != over || !e.acked {
		return
	}
	delete(h.entries, e.job.BatchNo)
	if l := e.link; l != nil {
		l.entries--
		l.checkIdle()
		l.dropRecord()
	}
}

func wireCancel(o ax.CancelOrder) *pb.Cancel {
	return &pb.Cancel{BatchNo: o.BatchNo, Class: string(o.Class), Detail: o.Detail}
}

func (l *link) cancel(c *pb.Cancel) {
	l.down.cancels = append(l.down.cancels, c)
	l.wakeUp()
}

// unknown says why nobody takes a job of the handler. Called with mu held.
func (h *Host) unknown(handler string) (class ax.ErrorClass, why string) {
	for _, x := range h.executors {
		if !x.settled {
			return ax.ClassTransient, fmt.Sprintf("no executor offers handler %q yet", handler)
		}
	}
	if h.former[handler] {
		return ax.ClassTransient, fmt.Sprintf("the plugin that offered handler %q was taken away", handler)
	}
	for _, x := range h.executors {
		if !x.known {
			return ax.ClassTransient, fmt.Sprintf("no executor offers handler %q, and executor %s does not start", handler, x.cmd.Name)
		}
	}
	return ax.ClassPermanent, fmt.Sprintf("no executor on this host offers handler %q", handler)
}

// refuse ends a job that was never begun. Called with mu held.
func (e *entry) refuse(class ax.ErrorClass, why string, now int64) ax.Report {
	e.state = over
	e.end = refusal(e.job.BatchNo, class, why, now)
	return e.end
}

func refusal(batchNo string, class ax.ErrorClass, why string, now int64) ax.Report {
	return ax.Report{
		BatchNo: batchNo, Kind: ax.ReportRefused, Status: ax.StatusFailed,
		ErrorClass: class, Error: why, EndedMs: now, StoppedMs: now,
	}
}

// reported enters what an executor says and passes it on.
func (h *Host) reported(l *link, rs []*pb.Report) {
	reports := make([]ax.Report, 0, len(rs))
	h.mu.Lock()
	for _, r := range rs {
		report, ok := readReport(r, l.x.cmd.Name)
		if !ok {
			continue
		}
		e, ok := h.entries[r.BatchNo]
		if !ok || e.state == left {
			e = h.has(l, r.BatchNo)
		}
		if !e.enter(report) {
			continue
		}
		h.forget(e)
		reports = append(reports, report)
	}
	h.mu.Unlock()
	h.outbox.put(reports...)
}

// enter moves the entry to what the report says; false when that is no news.
// Called with mu held.
func (e *entry) enter(r ax.Report) bool {
	switch {
	case e.state == over:
		return false
	case r.Kind == ax.ReportStarted, r.Kind == ax.ReportUnkillable:
	case r.Kind == ax.ReportStopped:
		e.state = over
		e.end.StoppedMs, e.end.OutputBytes, e.end.OutputDropped = r.StoppedMs, r.OutputBytes, r.OutputDropped
	default:
		e.end = r
		e.state = ended
		if r.StoppedMs != 0 || r.Kind == ax.ReportRefused {
			e.state = over
		}
	}
	return true
}

// gone ends all attempts of a process that is verified gone. Those of held have
// processes that cannot be killed: their places are not free.
func (h *Host) gone(l *link, exit string, held map[string]string) {
	var reports []ax.Report
	lost := 0
	now := h.nowMs()
	h.mu.Lock()
	for _, e := range h.entries {
		if e.link != l {
			continue
		}
		what, stays := held[e.job.BatchNo]
		switch {
		case stays && e.state == sent:
			reports = append(reports, e.cling("executor "+l.x.cmd.Name+" ended while it ran: "+exit, what, now)...)
			lost++
			continue
		case stays && e.state == ended:
			reports = append(reports, unkillable(e, what))
			continue
		}
		switch e.state {
		case sent:
			reports = append(reports, e.lose("executor "+l.x.cmd.Name+" ended while it ran: "+exit, now))
			lost++
		case ended:
			e.state = over
			e.end.StoppedMs = now
			reports = append(reports, ax.Report{
				BatchNo: e.job.BatchNo, Kind: ax.ReportStopped, Executor: l.x.cmd.Name, StartedMs: e.end.StartedMs,
				StoppedMs: now, OutputBytes: e.end.OutputBytes, OutputDropped: e.end.OutputDropped,
			})
			h.forget(e)
		case waiting, left, over:
		}
	}
	h.mu.Unlock()
	h.metrics.lost.WithLabelValues(l.x.cmd.Name).Add(float64(lost))
	h.outbox.put(reports...)
}

// lose ends a job of which no process has an end. Called with mu held.
func (e *entry) lose(why string, now int64) ax.Report {
	e.state = over
	e.end = ax.Report{
		BatchNo: e.job.BatchNo, Kind: ax.ReportLost, Status: ax.StatusFailed,
		ErrorClass: ax.ClassLost, Error: why, EndedMs: now, StoppedMs: now,
	}
	if e.executor != nil {
		e.end.Executor = e.executor.cmd.Name
	}
	return e.end
}

// cling ends a job of which no process has an end, and whose processes cannot be
// killed. Called with mu held.
func (e *entry) cling(why, what string, now int64) []ax.Report {
	e.lose(why, now)
	e.state = ended
	e.end.Kind, e.end.StoppedMs = ax.ReportEnded, 0
	return []ax.Report{e.end, unkillable(e, what)}
}

func unkillable(e *entry, what string) ax.Report {
	return ax.Report{BatchNo: e.job.BatchNo, Kind: ax.ReportUnkillable, Executor: e.end.Executor, Error: what}
}

// refuseWaiting ends what has waited too long for an executor that does not
// start; all that waits, when it is quarantined, which why says.
func (h *Host) refuseWaiting(x *executor, why string) {
	var reports []ax.Report
	now := h.nowMs()
	h.mu.Lock()
	h.quarantine(x, why)
	for _, e := range h.entries {
		switch {
		case e.executor != x || e.state != waiting:
		case why != "":
			reports = append(reports, e.refuse(ax.ClassTransient, x.quarantineText(), now))
		case now-e.queuedMs > handOverLimit:
			reports = append(reports, e.refuse(ax.ClassTransient, "executor "+x.cmd.Name+" does not start", now))
		}
	}
	h.mu.Unlock()
	h.outbox.put(reports...)
}

// quarantine notes why an executor is not started for now; "" ends it. Called
// with mu held.
func (h *Host) quarantine(x *executor, why string) {
	value := 0.0
	switch {
	case why == "":
		x.quarantinedMs = 0
	case x.quarantined == "":
		x.quarantinedMs = h.nowMs()
		value = 1
	default:
		value = 1
	}
	x.quarantined = why
	h.metrics.quarantined.WithLabelValues(x.cmd.Name).Set(value)
}

// quarantineText says of a job that it was never begun. Called with mu held.
func (x *executor) quarantineText() string {
	return "executor " + x.cmd.Name + " is quarantined after a crash loop: " + x.quarantined
}

// batches returns the batch numbers that may have processes under p.
func (h *Host) batches(p *process) map[string]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	set := map[string]bool{}
	for batchNo, e := range h.entries {
		if e.link != nil && e.link.proc == p {
			set[batchNo] = true
		}
	}
	return set
}

func wireJob(j *ax.Job) *pb.Job {
	return &pb.Job{
		BatchNo: j.BatchNo, Hash: j.Hash(), Instance: j.InstanceID, Attempt: int32(j.Attempt),
		Stack: j.Stack, Task: j.Task, Handler: j.Handler, Body: j.Body,
		DueMs: j.DueMs, Timezone: j.Timezone, TimeoutMs: int64(j.Timeout), KillAfterMs: int64(j.KillAfter),
		HeartbeatMs: int64(j.Heartbeat), IdempotencyKey: j.IdempotencyKey, UtcOffsetS: int32(j.UTCOffset),
	}
}

func readReport(r *pb.Report, executor string) (ax.Report, bool) {
	out := ax.Report{
		BatchNo: r.BatchNo, Executor: executor, Status: ax.Status(r.Status),
		ErrorClass: ax.ErrorClass(r.Class), Error: r.Error,
		StartedMs: r.StartedMs, EndedMs: r.EndedMs, StoppedMs: r.StoppedMs,
		Outputs: r.Outputs, OutputBytes: r.OutputBytes, OutputDropped: r.OutputDropped,
		ExitCode: int(r.ExitCode), HTTPStatus: int(r.HttpStatus),
	}
	switch r.Kind {
	case pb.Kind_KIND_STARTED:
		out.Kind = ax.ReportStarted
	case pb.Kind_KIND_ENDED:
		out.Kind = ax.ReportEnded
		if out.ErrorClass == ax.ClassLost {
			out.Kind = ax.ReportLost // it was stopped, whatever it was at
		}
	case pb.Kind_KIND_STOPPED:
		out.Kind = ax.ReportStopped
	case pb.Kind_KIND_UNKILLABLE:
		out.Kind = ax.ReportUnkillable
	case pb.Kind_KIND_REFUSED:
		out.Kind = ax.ReportRefused
		out.Status, out.StoppedMs = ax.StatusFailed, r.EndedMs
	default:
		return ax.Report{}, false // of a newer protocol
	}
	return out, true
}
