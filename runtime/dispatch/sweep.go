package dispatch

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/failpoint"
	"github.com/axctl/ax/runtime/rules"
)

// sweep reads all pending instances that may start within the horizon, so that
// each has somebody who starts it, and forgets those that are pending no more.
func (d *Dispatcher) sweep(ctx context.Context) {
	now := d.nowMs()
	d.at[callSweep] = now + d.cfg.Scan.Milliseconds()
	d.sweeps++
	number := d.sweeps
	until := now + d.cfg.Horizon.Milliseconds()
	d.beside(callSweep, func() func() {
		rows, err := d.cfg.Store.Pending(ctx, ax.PendingQuery{UntilMs: until, Limit: maxWaiting})
		return func() {
			if d.fault(ctx, callSweep, err) {
				return
			}
			d.swept(number, rows)
		}
	})
}

func (d *Dispatcher) swept(number int, rows []ax.Waiting) {
	now := d.nowMs()
	for _, w := range rows {
		d.add(w, now)
	}
	whole := len(rows) < maxWaiting
	for _, i := range d.items {
		if whole && i.sweep < number && i.stage != stageHanding {
			d.drop(i)
		}
	}
	for id, t := range d.tasks {
		t.blocked = false
		if t.unread <= number {
			t.unread = 0
		}
		d.touch(id)
	}
	for _, a := range d.running {
		if a.startedMs == 0 && !a.reported && !a.quiet && now-a.handedMs > ax.HandoverWithin.Milliseconds() {
			a.quiet = true
			d.cfg.Log.Warn("an attempt was handed over long ago and has not begun",
				"task", a.job.Task, "instance", a.ref.ID, "batch_no", a.job.BatchNo)
		}
	}
}

// readCancels reads the cancel intents on running attempts and passes them on.
func (d *Dispatcher) readCancels(ctx context.Context) {
	d.at[callCancels] = d.nowMs() + d.cfg.Scan.Milliseconds()
	d.beside(callCancels, func() func() {
		intents, err := d.cfg.Cancels.Cancels(ctx, d.cfg.Host)
		var states []ax.SignalState
		if err == nil {
			states, err = d.cfg.Cancels.SignalStates(ctx, d.cfg.Host)
		}
		return func() {
			if d.fault(ctx, callCancels, err) {
				return
			}
			d.cancel(intents)
			d.signal(states)
		}
	})
}

func (d *Dispatcher) cancel(intents []ax.CancelIntent) {
	now := d.nowMs()
	var orders []ax.CancelOrder
	for _, c := range intents {
		a := d.running[c.ID]
		if a == nil || a.job.Attempt != c.Attempt {
			// Its row is known, it is not: it is on its way here, or gone.
			d.at[callCancels] = min(d.at[callCancels], now+suspectAgain.Milliseconds())
			continue
		}
		if a.cancelBy != "" || a.reported {
			continue
		}
		a.cancelBy = c.By
		orders = append(orders, cancelOrder(a, c.Replaced))
		d.armOverdue(a, now)
	}
	if len(orders) > 0 {
		failpoint.Hit(failpoint.Order)
		d.cfg.Executors.Cancel(orders)
		failpoint.Hit(failpoint.Ordered)
	}
}

// cancelOrder asks to stop an attempt that somebody, or the overlap rule, wants
// cancelled.
func cancelOrder(a *attempt, replaced bool) ax.CancelOrder {
	detail := "asked for by " + a.cancelBy
	if replaced {
		detail = "a newer firing takes its place"
	}
	return ax.CancelOrder{BatchNo: a.job.BatchNo, Class: ax.ClassCancelled, Detail: detail}
}

// reconcile compares the host's dispatched rows with the attempts in memory. A
// row that is not there was born in a transaction whose answer was lost, so it
// was never given to an executor, and is now. That it was never given is proved
// by two readings: it was unknown after the first, has not been taken since
// (take removes it from the suspects), and the second still shows it dispatched.
func (d *Dispatcher) reconcile(ctx context.Context) {
	d.at[callOpen] = d.nowMs() + reconcileEvery.Milliseconds()
	asked := maps.Clone(d.suspects)
	d.beside(callOpen, func() func() {
		rows, err := d.cfg.Store.Open(ctx, d.cfg.Host)
		return func() {
			if d.fault(ctx, callOpen, err) {
				return
			}
			d.reconciled(rows, asked)
		}
	})
	d.endings = append(d.endings, d.stuck...)
	d.stuck = nil
}

func (d *Dispatcher) reconciled(rows []ax.Instance, asked map[string]struct{}) {
	suspects := map[string]struct{}{}
	for _, row := range rows {
		if row.Status != ax.StatusDispatched || row.Boot != d.cfg.Boot || d.running[row.ID] != nil {
			continue
		}
		batchNo := ax.BatchNo(d.cfg.Incarnation, row.ID, row.Attempt)
		_, before := asked[batchNo]
		_, still := d.suspects[batchNo]
		v, absent := d.version(ax.VersionKey{ObjectID: row.TaskID, Version: row.Version})
		if absent {
			continue // told; the next boot settles it
		}
		if v == nil || !before || !still {
			suspects[batchNo] = struct{}{}
			continue
		}
		d.adopt(row, v)
	}
	d.suspects = suspects
	if len(suspects) > 0 {
		d.at[callOpen] = d.nowMs() + suspectAgain.Milliseconds()
	}
}

// adopt hands over an attempt that is dispatched in the store and was given to
// nobody.
func (d *Dispatcher) adopt(row ax.Instance, v *ax.TaskVersion) {
	d.cfg.Log.Warn("a dispatched instance was in nobody's hands and is started now",
		"task", ax.Address(ax.KindTask, v.Name), "instance", row.ID)
	if i := d.items[row.ID]; i != nil && i.stage != stageHanding {
		d.drop(i)
	}
	d.places.occupy(v.Spec.PoolName())
	d.take(ax.Handover{
		Ref: row.Ref, Attempt: row.Attempt, Host: row.Host, Boot: row.Boot, Executor: row.Executor,
		AtMs: row.HandedMs, DeadlineMs: row.DeadlineMs,
	}, row.Kind, v)
}

// Recover takes over what earlier boots of this host left, under its name or a
// former one. Executors outlive axd: an attempt goes on as one that runs, with
// what its row and the journal know of it, until the executors tell its end, or
// that it is lost. It is called before Run and before anything is claimed, and
// waits for no executor.
func (d *Dispatcher) Recover(ctx context.Context) error {
	var rows []ax.Instance
	for _, host := range append([]string{d.cfg.Host}, d.cfg.Former...) {
		open, err := d.cfg.Store.Open(ctx, host)
		if err != nil {
			return err
		}
		rows = append(rows, open...)
	}
	rows = slices.DeleteFunc(rows, func(r ax.Instance) bool { return r.Boot == d.cfg.Boot })
	if err := d.readVersionsOf(ctx, rows); err != nil {
		return err
	}
	failpoint.Hit(failpoint.RecoverRead)
	said := map[string][]ax.Report{}
	for _, r := range d.cfg.Left {
		said[r.BatchNo] = append(said[r.BatchNo], r)
	}
	now := d.nowMs()
	d.awakeSince = time.Now() // what was reported meanwhile has yet to be read
	jobs := make([]ax.Job, 0, len(rows))
	var orders []ax.CancelOrder
	for _, row := range rows {
		a := d.inherit(row, now)
		jobs = append(jobs, a.job)
		if a.cancelBy != "" && !a.told {
			orders = append(orders, cancelOrder(a, a.cancelBy == ax.CancelByOverlap))
		}
		for _, r := range said[a.job.BatchNo] {
			a.reported = a.reported || r.Kind != ax.ReportStopped
			a.kept = append(a.kept, r)
			d.kept++
			d.judge(a, clean(r, now), now)
		}
	}
	failpoint.Hit(failpoint.RecoverTaken)
	d.cfg.Executors.Recover(jobs)
	if len(orders) > 0 {
		d.cfg.Executors.Cancel(orders)
	}
	failpoint.Hit(failpoint.RecoverAsked)
	if d.kept > 0 {
		return nil
	}
	return d.cfg.Journal.Reset()
}

// inherit makes an attempt of a row that an earlier boot left.
func (d *Dispatcher) inherit(row ax.Instance, now int64) *attempt {
	v := d.versions[ax.VersionKey{ObjectID: row.TaskID, Version: row.Version}]
	h := ax.Handover{Ref: row.Ref, Attempt: row.Attempt, AtMs: row.HandedMs}
	a := &attempt{
		ref: row.Ref, kind: row.Kind, version: v, late: true, // its lateness is known, or of an axd that is gone
		handedMs: row.HandedMs, startedMs: row.StartedMs, cancelBy: row.CancelBy, quiet: true,
	}
	if v != nil {
		a.job = d.job(h, v)
		a.startBy = rules.StartBy(v.Spec.StartWithin, row.Kind, row.Attempt, row.DueMs, row.NotBeforeMs)
	} else { // told as absent; it cannot be tried again
		a.job = ax.Job{BatchNo: ax.BatchNo(d.cfg.Incarnation, row.ID, row.Attempt), InstanceID: row.ID, Attempt: row.Attempt, Handler: row.Executor}
	}
	a.job.Boot = row.Boot
	d.running[row.ID] = a
	d.task(row.TaskID).active++
	a.pool = a.job.Handler
	if v != nil {
		a.pool = v.Spec.PoolName()
	}
	d.places.occupy(a.pool)
	switch {
	case row.Status.Final():
		a.told, a.reported = true, true
		a.end = &ax.Report{BatchNo: a.job.BatchNo, Kind: ax.ReportEnded, Status: row.Status, StartedMs: row.StartedMs, EndedMs: row.EndedMs}
	case a.cancelBy != "":
		d.armOverdue(a, now)
	case a.startedMs != 0 && a.job.Timeout > 0:
		// The deadline in the row is later by the pauses before.
		a.pauses.totalMs = max(row.DeadlineMs-a.startedMs-int64(a.job.Timeout), 0)
		d.armOverdue(a, a.deadlineMs())
	}
	return a
}

// unbegun hands an attempt anew that an earlier boot wrote as handed over and
// that no executor has begun: it is the same one, and uses up no retry. What is
// not wanted any more ends instead.
func (d *Dispatcher) unbegun(a *attempt, now int64) {
	if a.reported || a.told {
		return
	}
	end := ax.Report{BatchNo: a.job.BatchNo, Kind: ax.ReportRefused, ErrorClass: ax.ClassPermanent, EndedMs: now}
	switch {
	case a.cancelBy != "":
		end.Kind, end.Status, end.StoppedMs = ax.ReportEnded, ax.StatusCancelled, now
		end.Error = "it was not begun"
	case a.version == nil:
		end.Error = "axd ended before it reached its executor, and its definition is not to be found"
	case a.startBy != 0 && now >= a.startBy:
		end.Error = "axd ended before it reached its executor, and it is too late to start it now (start_within)"
	default:
		d.cfg.Log.Warn("an attempt did not reach its executor before axd ended; it is handed over anew",
			"task", a.job.Task, "instance", a.ref.ID, "batch_no", a.job.BatchNo)
		a.handedMs, a.quiet = now, false
		d.jobs = append(d.jobs, a.job)
		return
	}
	a.reported = true
	d.reports = append(d.reports, clean(end, now))
}

func (d *Dispatcher) readVersionsOf(ctx context.Context, rows []ax.Instance) error {
	keys := map[ax.VersionKey]struct{}{}
	for _, r := range rows {
		keys[ax.VersionKey{ObjectID: r.TaskID, Version: r.Version}] = struct{}{}
	}
	for chunk := range slices.Chunk(slices.Collect(maps.Keys(keys)), maxBatch) {
		vs, err := d.cfg.Store.TaskVersions(ctx, chunk)
		if err != nil {
			return err
		}
		for i := range vs {
			d.learn(&vs[i])
		}
	}
	return nil
}
