package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/failpoint"
)

// call is a kind of slow call that is made beside the dispatcher's goroutine.
type call int

const (
	callJournal  call = iota // reports to the journal
	callFinish               // endings to the store
	callHandover             // pending to dispatched
	callLapse                // pending to skipped
	callLive                 // what running attempts say, to the store
	callStarted              // begun attempts to the store
	callVersions             // definitions from the store
	callSweep                // pending instances from the store
	callCancels              // cancel intents from the store
	callOpen                 // dispatched instances from the store
	callCount
)

func (c call) String() string {
	return [callCount]string{"journal", "finish", "dispatch", "lapse", "live", "started", "versions", "pending", "cancels", "open"}[c]
}

// step does all that can be done now, begins the calls that have work, and
// returns how long nothing else is to be done.
func (d *Dispatcher) step(ctx context.Context) time.Duration {
	now := d.nowMs()
	if now < d.lastMs-1000 {
		d.at = [callCount]int64{} // the clock went back
	}
	d.lastMs = now
	d.noteStall()
	d.due = d.wheel.Advance(now, d.due[:0])
	for _, e := range d.due {
		switch e.Kind {
		case kindNotBefore:
			if i := d.items[e.ID]; i != nil {
				d.touch(i.TaskID)
			}
		case kindOverdue:
			if a := d.running[e.ID]; a != nil {
				d.overdue(a, now)
			}
		case kindLapse:
			if i := d.items[e.ID]; i != nil {
				d.lapseDue(i, now)
			}
		}
	}
	d.tryMisfits(now)
	d.takeTurns(now)
	if len(d.jobs) > 0 {
		failpoint.Hit(failpoint.Hand)
		d.cfg.Executors.Dispatch(d.jobs)
		d.jobs = nil
	}
	d.begin(ctx, now)
	d.stats.running.Store(int64(len(d.running)))
	d.stats.waiting.Store(int64(len(d.items)))
	return d.untilNext(now)
}

// stalledAfter is how much later than it should a step must come for this
// process to count as stopped meanwhile.
const stalledAfter = 2 * time.Second

// noteStall notes when this process goes on after it was stopped or starved:
// what was reported meanwhile has yet to be read.
func (d *Dispatcher) noteStall() {
	now := time.Now()
	if !d.lastStep.IsZero() && now.Sub(d.lastStep) > d.cfg.Scan+stalledAfter {
		d.awakeSince = now
	}
	d.lastStep = now
}

// begin starts the calls that have work and are not under way.
func (d *Dispatcher) begin(ctx context.Context, now int64) {
	if d.draining {
		d.abandonHanding()
	}
	for _, c := range []struct {
		call  call
		begin func(context.Context)
	}{
		{callJournal, d.journal},
		{callFinish, d.finish},
		{callHandover, d.handover},
		{callLapse, d.tellLapses},
		{callLive, d.tellLive},
		{callStarted, d.flush},
		{callVersions, d.readVersions},
		{callSweep, d.sweep},
		{callCancels, d.readCancels},
		{callOpen, d.reconcile},
	} {
		if !d.busy[c.call] && d.hasWork(c.call, now) {
			c.begin(ctx)
		}
	}
}

func (d *Dispatcher) hasWork(c call, now int64) bool {
	switch c {
	case callJournal:
		return len(d.reports) > 0
	case callFinish:
		return len(d.endings) > 0
	case callHandover:
		return len(d.handing) > 0
	case callLapse:
		return len(d.lapsing) > 0
	case callLive:
		return len(d.progress)+len(d.answers) > 0 && d.at[c] <= now
	case callStarted:
		return len(d.begun) > 0 && d.at[c] <= now
	case callVersions:
		return len(d.missing) > 0 && d.at[c] <= now
	default:
		return d.at[c] <= now
	}
}

// untilNext returns how long to sleep when nothing comes: until the next timer,
// flush, sweep or reconciliation, and not long while an executor is awaited:
// nothing tells when it is there.
func (d *Dispatcher) untilNext(now int64) time.Duration {
	next := now + d.cfg.Scan.Milliseconds()
	if ms, ok := d.wheel.Next(); ok {
		next = min(next, ms)
	}
	for _, c := range []call{callSweep, callCancels, callOpen} {
		if !d.busy[c] {
			next = min(next, d.at[c])
		}
	}
	if len(d.begun) > 0 && !d.busy[callStarted] {
		next = min(next, d.at[callStarted])
	}
	if len(d.misfits) > 0 {
		next = min(next, d.misfitsAt)
	}
	if len(d.progress)+len(d.answers) > 0 && !d.busy[callLive] {
		next = min(next, d.at[callLive])
	}
	if d.unoffered() {
		next = min(next, now+offerEvery.Milliseconds())
	}
	return time.Duration(max(next-now, 0)) * time.Millisecond
}

// beside runs work in its own goroutine and its answer in the dispatcher's.
func (d *Dispatcher) beside(c call, work func() (apply func())) {
	d.busy[c] = true
	d.wg.Go(func() {
		apply := work()
		d.done <- func() { // there is room for one of each kind
			d.busy[c] = false
			apply()
		}
	})
}

// journal makes the reports that wait durable, and gives space back.
func (d *Dispatcher) journal(context.Context) {
	reports := d.reports
	d.reports = nil
	var live []ax.Report
	shrink := d.kept == 0 || d.stats.journalBytes.Load() >= compactAt
	if shrink {
		for _, a := range d.running {
			live = append(live, a.kept...)
		}
	}
	d.beside(callJournal, func() func() {
		var shrinkErr error
		if shrink {
			shrinkErr = d.cfg.Journal.Shrink(live)
		}
		err := d.cfg.Journal.Append(reports)
		size := d.cfg.Journal.Size()
		return func() {
			d.stats.journalBytes.Store(size)
			d.journaled(err, shrinkErr)
			d.durable(reports)
		}
	})
}

// journaled tells once that the journal cannot be written, and once that it can
// again. Its reports go on to the store either way, and are acknowledged when
// they are there.
func (d *Dispatcher) journaled(errs ...error) {
	for _, err := range errs {
		if err != nil {
			if !d.journalBad {
				d.cfg.Log.Error("the report journal cannot be written; reports go straight to the store", "error", err)
			}
			d.journalBad = true
			return
		}
	}
	if d.journalBad {
		d.cfg.Log.Info("the report journal can be written again")
	}
	d.journalBad = false
}

func (d *Dispatcher) journalFull() bool { return d.stats.journalBytes.Load() >= MaxJournalBytes }

// finish writes the endings that wait.
func (d *Dispatcher) finish(ctx context.Context) {
	batch := d.endings
	d.endings = nil
	if len(batch) > maxBatch {
		batch, d.endings = batch[:maxBatch:maxBatch], batch[maxBatch:]
	}
	d.beside(callFinish, func() func() {
		answers := d.write(ctx, batch)
		return func() { d.written(batch, answers) }
	})
}

// write finishes a batch; the answer to an ending that is refused is nil.
func (d *Dispatcher) write(ctx context.Context, batch []ending) []*ax.Ended {
	es := make([]ax.Ending, len(batch))
	for i, w := range batch {
		es[i] = w.Ending
	}
	return apart(ctx, es, d.cfg.Store.Finish, func(e ax.Ending, err error) {
		d.cfg.Log.Error("an end cannot be written; it is tried again", "instance", e.ID, "attempt", e.Attempt, "error", err)
	})
}

// apart writes a batch in one call. When the store refuses it for no passing
// reason, its rows are written one by one, so that a bad one does not keep the
// others; the answer to one that is refused, which refused is told of, is nil.
func apart[T, A any](
	ctx context.Context, batch []T, write func(context.Context, []T) ([]A, error), refused func(T, error),
) []*A {
	answers := make([]*A, len(batch))
	got, err := write(ctx, batch)
	if err == nil {
		for i := range got {
			answers[i] = &got[i]
		}
		return answers
	}
	for i, row := range batch {
		if len(batch) > 1 {
			got, err = write(ctx, batch[i:i+1])
		}
		switch {
		case ctx.Err() != nil:
			return answers
		case err != nil:
			refused(row, err)
		default:
			answers[i] = &got[0]
		}
	}
	return answers
}

// handover makes the items that have a place dispatched.
func (d *Dispatcher) handover(ctx context.Context) {
	d.lapseHanding()
	batch := d.handing
	d.handing = nil
	if len(batch) == 0 {
		return
	}
	if len(batch) > maxBatch {
		batch, d.handing = batch[:maxBatch:maxBatch], batch[maxBatch:]
	}
	now := d.nowMs()
	hs := make([]ax.Handover, len(batch))
	for n, i := range batch {
		hs[n] = ax.Handover{
			Ref: i.Ref, Attempt: i.Attempt, Host: d.cfg.Host, Boot: d.cfg.Boot, Executor: i.handler(),
			AtMs: now, DeadlineMs: now + ax.HandoverWithin.Milliseconds(),
		}
	}
	d.beside(callHandover, func() func() {
		results := apart(ctx, hs, d.cfg.Store.Dispatch, func(h ax.Handover, err error) {
			d.cfg.Log.Error("an instance cannot be handed over; it is tried again in a minute", "instance", h.ID, "error", err)
		})
		return func() { d.handedOver(batch, hs, results) }
	})
}

// parkFor is how long an instance waits whose handover the store refuses.
const parkFor = time.Minute

func (d *Dispatcher) handedOver(batch []*item, hs []ax.Handover, results []*ax.HandoverResult) {
	now := d.nowMs()
	for n, i := range batch {
		switch result := results[n]; {
		case result == nil:
			d.places.release(i.pool())
			d.putBack(i)
			d.park(i, now)
			d.touch(i.TaskID)
			d.at[callOpen] = now // it may have been written all the same
		case *result == ax.HandedOver:
			d.drop(i)
			d.take(hs[n], i.Kind, i.version).late = i.late
		case *result == ax.HandoverBlocked:
			d.places.release(i.pool())
			d.putBack(i)
			d.task(i.TaskID).blocked = true
		case *result == ax.HandoverHeld:
			i.Held = true
			d.places.release(i.pool())
			d.putBack(i)
			d.touch(i.TaskID)
		case *result == ax.HandoverGone:
			d.places.release(i.pool())
			d.drop(i)
			// Either it was cancelled, or an earlier try was written and its
			// answer lost.
			d.at[callOpen] = now
		default:
			panic("unknown handover result " + string(*result))
		}
	}
}

// abandonHanding puts back what is not yet on its way: a drain starts nothing.
func (d *Dispatcher) abandonHanding() {
	for _, i := range d.handing {
		d.places.release(i.pool())
		d.putBack(i)
	}
	d.handing = nil
}

// flush writes the attempts that have begun and still run, and arms their
// second line of defence; work that ended before costs neither.
func (d *Dispatcher) flush(ctx context.Context) {
	now := d.nowMs()
	d.at[callStarted] = now + flushEvery.Milliseconds()
	var ss []ax.Started
	var begun []*attempt // of ss
	for _, a := range d.begun {
		if a.reported || d.running[a.ref.ID] != a {
			continue
		}
		s := ax.Started{Ref: a.ref, Attempt: a.job.Attempt, StartedMs: a.startedMs}
		if a.job.Timeout > 0 {
			s.DeadlineMs = a.deadlineMs()
			if a.overdueAt.IsZero() && a.pauses.sinceMs == 0 { // no cancel, and no earlier flush, has armed it
				d.armOverdue(a, s.DeadlineMs)
			}
		}
		ss, begun = append(ss, s), append(begun, a)
	}
	d.begun = nil
	if len(ss) == 0 {
		return
	}
	d.beside(callStarted, func() func() {
		var fault error
		written := apart(ctx, ss, d.writeStarts, func(s ax.Started, err error) {
			fault = fmt.Errorf("start of instance %d: %w", s.ID, err)
		})
		return func() {
			for n, a := range begun {
				if written[n] == nil {
					d.begun = append(d.begun, a)
				}
			}
			d.fault(ctx, callStarted, fault)
		}
	})
}

func (d *Dispatcher) writeStarts(ctx context.Context, ss []ax.Started) ([]struct{}, error) {
	return make([]struct{}, len(ss)), d.cfg.Store.Started(ctx, ss)
}

// maxVersions bounds the definitions kept in memory.
const maxVersions = 20_000

// learn keeps a definition for the instances that wait.
func (d *Dispatcher) learn(v *ax.TaskVersion) {
	if len(d.versions) >= maxVersions {
		clear(d.versions)
	}
	d.versions[v.VersionKey] = v
}

// version returns a definition, or nil: then it is read, unless that has shown
// that it is not there, which is for good.
func (d *Dispatcher) version(k ax.VersionKey) (v *ax.TaskVersion, absent bool) {
	if v = d.versions[k]; v != nil {
		return v, false
	}
	if _, absent = d.absent[k]; !absent {
		d.missing[k] = struct{}{}
	}
	return nil, absent
}

// readVersions reads the definitions that waiting instances need.
func (d *Dispatcher) readVersions(ctx context.Context) {
	keys := make([]ax.VersionKey, 0, len(d.missing))
	for k := range d.missing {
		keys = append(keys, k)
		if len(keys) == maxBatch {
			break
		}
	}
	d.beside(callVersions, func() func() {
		vs, err := d.cfg.Store.TaskVersions(ctx, keys)
		return func() {
			if d.fault(ctx, callVersions, err) {
				return
			}
			for i := range vs {
				d.learn(&vs[i])
				d.touch(vs[i].ObjectID)
			}
			d.armLapses(vs)
			for _, k := range keys {
				delete(d.missing, k)
				if d.versions[k] == nil {
					d.absent[k] = struct{}{}
					d.cfg.Log.Error("an instance's definition is not in the store, or cannot be read", "task", k.ObjectID, "version", k.Version)
				}
			}
		}
	})
}

// fault reports whether a call has failed, and tells so once until it succeeds.
func (d *Dispatcher) fault(ctx context.Context, c call, err error) bool {
	if err != nil && ctx.Err() == nil && !d.faulty[c] {
		d.cfg.Log.Error("the store does not answer what is asked; it is tried again", "call", c.String(), "error", err)
	}
	if d.faulty[c] = err != nil; d.faulty[c] {
		d.at[c] = d.nowMs() + d.cfg.Scan.Milliseconds()
	}
	return err != nil
}
