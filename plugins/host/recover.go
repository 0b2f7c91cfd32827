package host

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/axctl/ax"
	pb "github.com/axctl/ax/plugins/proto"
)

// Recover implements ax.Executors.
func (h *Host) Recover(jobs []ax.Job) {
	now := h.nowMs()
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range jobs {
		job := wireJob(&jobs[i])
		e := h.entries[job.BatchNo]
		if e == nil {
			e = &entry{state: left, queuedMs: now}
			h.entries[job.BatchNo] = e
		}
		e.job, e.known, e.boot = job, true, jobs[i].Boot
	}
	if !h.asked {
		h.asked = true
		close(h.recover)
	}
}

// found enters what a process says that it has when its session begins.
func (h *Host) found(l *link, in *pb.Inventory) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, batchNos := range [][]string{in.Running, in.Ended} {
		for _, b := range batchNos {
			if e := h.entries[b]; e == nil || e.state == left {
				h.has(l, b)
			}
		}
	}
}

// has notes that a process has a job that an earlier host gave it. Called with
// mu held.
func (h *Host) has(l *link, batchNo string) *entry {
	e := h.entries[batchNo]
	if e == nil {
		e = &entry{job: &pb.Job{BatchNo: batchNo}, queuedMs: h.nowMs()}
		h.entries[batchNo] = e
	}
	e.give(l)
	if e.cancel != nil {
		l.cancel(e.cancel)
		e.cancel = nil
	}
	return e
}

// ended takes in what a process has left that ended while no host was there.
func (h *Host) ended(ctx context.Context, x *executor, r record) {
	p := &process{x: x, rec: r, done: make(chan struct{}), closed: make(chan struct{})}
	l := newLink(x, p)
	if r.Kernel == kernelBoot() {
		p.session = clearing{leader: r.PID, start: r.Start, dir: h.cfg.Dir, spared: h.living, kill: h.kill}
		h.clear(p)
	}
	if l.told = h.takeLastWords(l); !l.told {
		h.cfg.Log.Warn("executor ended while no axd was there, without a word of its attempts", "executor", x.cmd.Name, "stderr", p.stderrTail())
	}
	h.believe(l.told, "executor "+x.cmd.Name+" ended meanwhile, and left none")
	if held := holders(p.left, h.batches(p)); len(held) > 0 {
		h.gone(l, "ended while no axd was there", held)
		x.links.Go(func() { l.outwait(ctx, "ended while no axd was there") })
		return
	}
	h.gone(l, "ended while no axd was there", nil)
	h.forgetRecord(l)
}

// takeLastWords takes in what a process that is gone has left, and returns
// whether it has left a word: that names all that it began.
func (h *Host) takeLastWords(l *link) bool {
	up := l.proc.rec.lastWords()
	if up == nil {
		return false
	}
	h.printed(l, up.Chunks)
	h.reported(l, up.Reports)
	return true
}

// believe notes whether a process of an earlier host has named all that it began.
// When one has not, for the reason given, what nobody names may have been its.
func (h *Host) believe(all bool, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !all {
		h.doubts = append(h.doubts, why)
	}
}

// forgetRecord removes what the folder has of a process that is gone, as soon as
// all that it said is durable.
func (h *Host) forgetRecord(l *link) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l.dead = true
	l.dropRecord()
}

// dropRecord is called with Host.mu held.
func (l *link) dropRecord() {
	if l.dead && l.entries == 0 && l.unprinted == 0 {
		l.proc.rec.remove()
	}
}

// judgeLeft ends what is left of an earlier host when all of its executors that
// can be found were found: what nobody has is lost, once nothing of it runs; or
// it was never begun, where that is certain.
func (h *Host) judgeLeft(ctx context.Context, stale []string) {
	// Executors of which there is no record never got work.
	if left := (clearing{dir: h.cfg.Dir, executors: true, spared: h.living, kill: h.kill}).run(); len(left) > 0 {
		h.cfg.Log.Error("executors that never got work could not be killed", "processes", len(left))
	}
	for _, path := range stale {
		_ = os.RemoveAll(path)
	}
	select {
	case <-h.recover:
	case <-ctx.Done():
		return
	}
	batches := map[string]bool{}
	h.mu.Lock()
	for b, e := range h.entries {
		switch {
		case e.state == left:
			batches[b] = true
		case !e.known && e.state == sent:
			// No attempt of this store: it was restored, or has given it up.
			e.link.cancel(&pb.Cancel{BatchNo: b, Class: string(ax.ClassCancelled), Detail: "it is no attempt of this axd's store any more"})
		}
	}
	h.mu.Unlock()
	h.mu.Lock()
	all := slices.Clone(h.unclear)
	h.mu.Unlock()
	for told := false; len(batches) > 0; told = true {
		held := h.holders(append(all, clearing{batches: batches, dir: h.cfg.Dir, spared: h.living, kill: h.kill}), batches)
		h.judge(batches, held, told)
		if len(batches) == 0 || !pause(ctx, heldLook) {
			return
		}
	}
}

// judge ends those of the batches that nothing holds, and takes them out. Of the
// others it tells, unless it did, that their processes cannot be killed.
func (h *Host) judge(batches map[string]bool, held map[string]string, told bool) {
	var reports []ax.Report
	now := h.nowMs()
	h.mu.Lock()
	why := strings.Join(append([]string{"axd ended while it ran, and no executor that it left has a word of it"}, h.doubts...), "; ")
	for b := range batches {
		e := h.entries[b]
		what, stays := held[b]
		switch {
		case e == nil || e.state != left:
			delete(batches, b)
			continue
		case stays && told:
			continue
		case stays:
			reports = append(reports, unkillable(e, what))
			continue
		case h.boots[e.boot] && len(h.doubts) == 0:
			delete(h.entries, b)
			reports = append(reports, ax.Report{BatchNo: b, Kind: ax.ReportUnbegun})
		default:
			reports = append(reports, e.lose(why, now))
		}
		delete(batches, b)
	}
	h.mu.Unlock()
	h.outbox.put(reports...)
}

// How often processes are asked for what they have, and how soon again when one
// does not list what it was given.
const (
	inventoryEvery = 10 * time.Second
	inventoryAgain = time.Second
)

// reconcile asks all processes for inventories until ctx ends.
func (h *Host) reconcile(ctx context.Context) {
	ticker := time.NewTicker(inventoryAgain)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := time.Now()
		links := map[*link]bool{}
		h.mu.Lock()
		for _, e := range h.entries {
			if e.state != sent || links[e.link] {
				continue
			}
			l := e.link
			links[l] = true
			if since := now.Sub(l.asked); since >= inventoryEvery || len(l.missing) > 0 && since >= inventoryAgain {
				l.asked, l.down.inventory = now, true
				l.wakeUp()
			}
		}
		h.mu.Unlock()
	}
}

// asking notes what a process must list in the inventory that it is asked for.
// Called with Host.mu held.
func (l *link) asking() {
	l.must = map[string]bool{}
	for b, e := range l.x.host.entries {
		if e.link == l && e.state == sent {
			l.must[b] = true
		}
	}
}

// compare loses what two inventories in a row do not list.
func (h *Host) compare(l *link, in *pb.Inventory) {
	listed := map[string]bool{}
	for _, batchNos := range [][]string{in.Running, in.Ended} {
		for _, b := range batchNos {
			listed[b] = true
		}
	}
	var reports []ax.Report
	now := h.nowMs()
	h.mu.Lock()
	missing := map[string]bool{}
	for b := range l.must {
		e := h.entries[b]
		switch {
		case e == nil || e.link != l || e.state != sent || listed[b]:
		case l.missing[b]:
			reports = append(reports, e.lose("executor "+l.x.cmd.Name+" does not know it any more", now))
		default:
			missing[b] = true
		}
	}
	l.missing, l.must = missing, nil
	h.mu.Unlock()
	h.metrics.lost.WithLabelValues(l.x.cmd.Name).Add(float64(len(reports)))
	h.outbox.put(reports...)
}
