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
	state    state
	queuedMs int64
	end      ax.Report // the end that was reported, from state ended on
	acked    bool      // that end is durable; stopped is still to come
}

type state int

const (
	waiting state = iota // in its executor's queue
	sent                 // given to the executor's process
	ended                // its end was reported, its processes may be there
	over                 // gone, and told so
)

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
			switch {
			case e.job.Hash != job.Hash:
				reports = append(reports, refusal(job.BatchNo, ax.ClassPermanent, "batch number was given before with another job", now))
			case e.state == sent:
				e.executor.queue(job)
			case e.state != waiting:
				reports = append(reports, e.end)
			}
			continue
		}
		e := &entry{job: job, queuedMs: now}
		h.entries[job.BatchNo] = e
		if e.executor = h.handlers[jobs[i].Handler]; e.executor == nil {
			class, why := h.unknown(job.Handler)
			reports = append(reports, e.refuse(class, why, now))
			continue
		}
		e.executor.queue(e.job)
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
		case sent:
			e.executor.queueCancel(&pb.Cancel{BatchNo: o.BatchNo, Class: string(o.Class), Detail: o.Detail})
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
		if e.executor != nil {
			e.executor.queueAck(batchNo)
		}
		e.acked = true
		h.forget(e)
	}
}

// forget drops an entry that is over and acknowledged. Called with mu held.
func (h *Host) forget(e *entry) {
	if e.state == over && e.acked {
		delete(h.entries, e.job.BatchNo)
	}
}

// unknown says why nobody takes a job of the handler. Called with mu held.
func (h *Host) unknown(handler string) (class ax.ErrorClass, why string) {
	if h.settled < len(h.executors) {
		return ax.ClassTransient, fmt.Sprintf("no executor offers handler %q yet", handler)
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
func (h *Host) reported(x *executor, rs []*pb.Report) {
	reports := make([]ax.Report, 0, len(rs))
	h.mu.Lock()
	for _, r := range rs {
		report, ok := readReport(r, x.cmd.Name)
		if !ok {
			continue
		}
		if e, ok := h.entries[r.BatchNo]; ok {
			if !e.enter(report) {
				continue
			}
			h.forget(e)
		}
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
	case r.Kind == ax.ReportStarted:
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

// gone ends all attempts of an executor whose process is verified gone, and
// refuses what has waited too long for it.
func (h *Host) gone(x *executor) {
	var reports []ax.Report
	lost := 0
	now := h.nowMs()
	h.mu.Lock()
	for batchNo, e := range h.entries {
		if e.executor != x {
			continue
		}
		switch e.state {
		case waiting:
			if now-e.queuedMs > handOverLimit {
				reports = append(reports, e.refuse(ax.ClassTransient, "executor "+x.cmd.Name+" does not start", now))
			}
		case sent:
			e.state = over
			e.end = ax.Report{
				BatchNo: batchNo, Kind: ax.ReportLost, Executor: x.cmd.Name, Status: ax.StatusFailed,
				ErrorClass: ax.ClassLost, Error: "executor " + x.cmd.Name + " ended while it ran: " + x.exit, EndedMs: now, StoppedMs: now,
			}
			reports = append(reports, e.end)
			lost++
		case ended:
			e.state = over
			e.end.StoppedMs = now
			reports = append(reports, ax.Report{
				BatchNo: batchNo, Kind: ax.ReportStopped, Executor: x.cmd.Name, StartedMs: e.end.StartedMs,
				StoppedMs: now, OutputBytes: e.end.OutputBytes, OutputDropped: e.end.OutputDropped,
			})
			h.forget(e)
		case over:
		}
	}
	h.mu.Unlock()
	h.metrics.lost.WithLabelValues(x.cmd.Name).Add(float64(lost))
	h.outbox.put(reports...)
}

// batches returns the batch numbers that may have processes under x.
func (h *Host) batches(x *executor) map[string]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	set := map[string]bool{}
	for batchNo, e := range h.entries {
		if e.executor == x && e.state != waiting {
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
		IdempotencyKey: j.IdempotencyKey, UtcOffsetS: int32(j.UTCOffset),
	}
}

func readReport(r *pb.Report, executor string) (ax.Report, bool) {
	out := ax.Report{
		BatchNo: r.BatchNo, Executor: executor, Status: ax.Status(r.Status),
		ErrorClass: ax.ErrorClass(r.Class), Error: r.Error,
		StartedMs: r.StartedMs, EndedMs: r.EndedMs, StoppedMs: r.StoppedMs,
		Outputs: r.Outputs, OutputBytes: r.OutputBytes, OutputDropped: r.OutputDropped,
	}
	switch r.Kind {
	case pb.Kind_KIND_STARTED:
		out.Kind = ax.ReportStarted
	case pb.Kind_KIND_ENDED:
		out.Kind = ax.ReportEnded
	case pb.Kind_KIND_STOPPED:
		out.Kind = ax.ReportStopped
	case pb.Kind_KIND_REFUSED:
		out.Kind = ax.ReportRefused
		out.Status, out.StoppedMs = ax.StatusFailed, r.EndedMs
	default:
		return ax.Report{}, false // of a newer protocol
	}
	return out, true
}
