package dispatch

import (
	"context"
	"maps"
	"slices"

	"github.com/axctl/ax"
	"github.com/axctl/ax/failpoint"
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
		d.touch(id)
	}
	for _, a := range d.running {
		if a.startedMs == 0 && !a.reported && !a.quiet && now-a.handedMs > handoverWithin.Milliseconds() {
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
		return func() {
			if d.fault(ctx, callCancels, err) {
				return
			}
			d.cancel(intents)
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
		detail := "asked for by " + c.By
		if c.Replaced {
			detail = "a newer firing takes its place"
		}
		orders = append(orders, ax.CancelOrder{BatchNo: a.job.BatchNo, Class: ax.ClassCancelled, Detail: detail})
		d.armOverdue(a, now)
	}
	if len(orders) > 0 {
		failpoint.Hit(failpoint.Order)
		d.cfg.Executors.Cancel(orders)
		failpoint.Hit(failpoint.Ordered)
	}
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

// Recover settles what an earlier boot of this host left, under its name or a
// former one: attempts whose end is in the journal get it, the others are lost,
// since their executors end with axd: what is left of them is killed first. It
// is called before Run and before anything is claimed.
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
	d.clearLeft(rows)
	failpoint.Hit(failpoint.RecoverClear)
	ends := lastWords(d.cfg.Left)
	now := d.nowMs()
	for len(rows) > 0 {
		n := min(len(rows), maxBatch)
		var batch []ending
		for _, row := range rows[:n] {
			r, ok := ends[ax.BatchNo(d.cfg.Incarnation, row.ID, row.Attempt)]
			if !ok {
				r = ax.Report{Kind: ax.ReportLost, Error: "axd ended while it ran"}
			}
			batch = append(batch, ending{Ending: d.inherit(row, clean(r, now), now)})
		}
		for i, got := range d.write(ctx, batch) {
			if got == nil {
				d.stuck = append(d.stuck, batch[i])
				continue
			}
			d.tellInherited(rows[i], batch[i].Ending, *got)
		}
		rows = rows[n:]
		failpoint.Hit(failpoint.RecoverEnd)
	}
	if err := ctx.Err(); err != nil || len(d.stuck) > 0 {
		return err // the journal may be needed again
	}
	failpoint.Hit(failpoint.RecoverReset)
	return d.cfg.Journal.Reset()
}

// clearLeft makes sure that nothing of the rows' attempts runs any more, so that
// none is at work when its next one begins.
func (d *Dispatcher) clearLeft(rows []ax.Instance) {
	if len(rows) == 0 {
		return
	}
	batchNos := make([]string, len(rows))
	for i, row := range rows {
		batchNos[i] = ax.BatchNo(d.cfg.Incarnation, row.ID, row.Attempt)
	}
	if left := d.cfg.Executors.ClearLeft(batchNos); left > 0 {
		d.cfg.Log.Error("processes that an earlier axd left could not be killed", "processes", left)
	}
}

// inherit says what is to be written for a row of an earlier boot.
func (d *Dispatcher) inherit(row ax.Instance, r ax.Report, now int64) ax.Ending {
	if row.Status.Final() {
		return stopped(row.Ref, row.Attempt, now, now)
	}
	if r.StoppedMs == 0 {
		r.StoppedMs = now
	}
	s := subject{ref: row.Ref, attempt: row.Attempt, startedMs: row.StartedMs, cancelBy: row.CancelBy}
	if v := d.versions[ax.VersionKey{ObjectID: row.TaskID, Version: row.Version}]; v != nil {
		s.spec = &v.Spec
	}
	e, _ := conclude(s, r, now)
	return e
}

func (d *Dispatcher) tellInherited(row ax.Instance, e ax.Ending, got ax.Ended) {
	v := d.versions[ax.VersionKey{ObjectID: row.TaskID, Version: row.Version}]
	if e.Status == "" || got.Late || v == nil {
		return
	}
	if got.Status != ax.StatusPending {
		e.Status = got.Status
	}
	d.tellEnded(d.job(ax.Handover{Ref: row.Ref, Attempt: row.Attempt}, v), e)
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

// lastWords returns the end of each attempt in a journal: the first end that was
// reported, stopped when anything said so.
func lastWords(rs []ax.Report) map[string]ax.Report {
	ends := map[string]ax.Report{}
	stops := map[string]int64{}
	for _, r := range rs {
		if r.StoppedMs != 0 && stops[r.BatchNo] == 0 {
			stops[r.BatchNo] = r.StoppedMs
		}
		if _, ok := ends[r.BatchNo]; !ok && r.Kind != ax.ReportStopped {
			ends[r.BatchNo] = r
		}
	}
	for b, r := range ends {
		r.StoppedMs = stops[b]
		ends[b] = r
	}
	return ends
}
