package dispatch

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/axctl/ax"
)

// signalAgain is when a signal that was not answered is passed on again: its
// executor may have been down.
const signalAgain = 5 * time.Second

// progressEvery is how often progress is written at most.
const progressEvery = time.Second

// pausing is what is known of the pauses of an attempt.
type pausing struct {
	sinceMs int64 // it stands still since; 0: it does not
	totalMs int64 // of the pauses before
	heard   bool  // its executor has said how it stands
	askedMs int64 // of the signal that was passed on last
	sentAt  time.Time
}

// deadlineMs is when a begun attempt must end, 0 when there is no such instant.
// A pause lets it stand still.
func (a *attempt) deadlineMs() int64 {
	if a.job.Timeout == 0 || a.startedMs == 0 {
		return 0
	}
	return a.startedMs + int64(a.job.Timeout) + a.pauses.totalMs
}

// signal passes on what people ask of running attempts, and learns from the
// rows which of them an earlier axd has paused.
func (d *Dispatcher) signal(states []ax.SignalState) {
	now := d.nowMs()
	var orders []ax.SignalOrder
	for _, st := range states {
		a := d.running[st.InstanceID]
		if a == nil || a.job.Attempt != st.Attempt {
			d.at[callCancels] = min(d.at[callCancels], now+suspectAgain.Milliseconds())
			continue
		}
		p := &a.pauses
		if st.PausedMs != 0 && !p.heard && p.sinceMs == 0 {
			p.sinceMs = st.PausedMs
		}
		if a.reported || st.Settled() || p.askedMs == st.AskedMs && time.Since(p.sentAt) < signalAgain {
			continue
		}
		p.askedMs, p.sentAt = st.AskedMs, time.Now()
		orders = append(orders, ax.SignalOrder{BatchNo: a.job.BatchNo, Signal: st.Signal})
	}
	if len(orders) > 0 {
		d.cfg.Executors.Signal(orders)
	}
}

// said takes what a running attempt says beside its end.
func (d *Dispatcher) said(r ax.Report) {
	a := d.attemptOf(r.BatchNo)
	if a == nil || a.reported {
		return
	}
	if p := r.Progress; p != nil {
		p.InstanceID, p.Attempt = a.ref.ID, a.job.Attempt
		d.progress[p.InstanceID] = *p
		return
	}
	now := d.nowMs()
	p := &a.pauses
	p.heard = true
	switch {
	case r.Error != "":
	case r.Signal == ax.SignalPause && p.sinceMs == 0:
		p.sinceMs = r.AtMs
	case r.Signal == ax.SignalResume && p.sinceMs != 0:
		p.totalMs += max(r.AtMs-p.sinceMs, 0)
		p.sinceMs = 0
		if at := a.deadlineMs(); at != 0 && a.cancelBy == "" {
			d.armOverdue(a, at)
		}
	}
	d.answers = append(d.answers, ax.SignalAnswer{
		InstanceID: a.ref.ID, Attempt: a.job.Attempt, Signal: r.Signal, Refused: ax.CleanText(r.Error, ax.MaxErrorBytes),
		AtMs: r.AtMs, DeadlineMs: a.deadlineMs(), NowMs: now,
	})
	d.at[callLive] = now
}

// tellLive writes what running attempts say.
func (d *Dispatcher) tellLive(ctx context.Context) {
	d.at[callLive] = d.nowMs() + progressEvery.Milliseconds()
	answers, progress := d.answers, slices.Collect(maps.Values(d.progress))
	d.answers = nil
	clear(d.progress)
	d.beside(callLive, func() func() {
		var err error
		if len(answers) > 0 {
			err = d.cfg.Cancels.Signalled(ctx, answers)
		}
		if perr := d.cfg.Cancels.Progressed(ctx, progress); err == nil && perr != nil {
			d.cfg.Log.Debug("progress is not written; newer follows", "error", perr)
		}
		return func() {
			if d.fault(ctx, callLive, err) {
				d.answers = append(answers, d.answers...)
			}
		}
	})
}
