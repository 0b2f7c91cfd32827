package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
	"github.com/axctl/ax/runtime/wheel"
)

// startBy returns the instant from which on an item is not started any more, 0
// when there is none or its definition is yet to be read.
func (d *Dispatcher) startBy(i *item) int64 {
	if i.version == nil {
		i.version, _ = d.version(i.key())
	}
	if i.version == nil {
		return 0
	}
	return rules.StartBy(i.version.Spec.StartWithin, i.Kind, i.Attempt, i.DueMs, i.NotBeforeMs)
}

// armLapse sets the timer of an item that is not to be started late, or lets it
// lapse if it is too late. One that is being handed over is left: it lapses if
// it comes back.
func (d *Dispatcher) armLapse(i *item, nowMs int64) {
	by := d.startBy(i)
	if by == 0 || i.stage != stageWaiting && i.stage != stageQueued {
		return
	}
	d.wheel.Cancel(i.lapse)
	switch {
	case by > nowMs:
		i.lapse = d.wheel.Add(wheel.Entry{Kind: kindLapse, ID: i.ID, DueMs: by})
	default:
		d.lapse(i)
	}
}

// lapseDue acts on the timer of an item.
func (d *Dispatcher) lapseDue(i *item, nowMs int64) {
	if i.stage == stageLapsing { // the store refused it
		d.lapsing = append(d.lapsing, i)
		return
	}
	d.armLapse(i, nowMs)
}

// armLapses arms the items whose definitions have been read.
func (d *Dispatcher) armLapses(vs []ax.TaskVersion) {
	limited := map[ax.VersionKey]bool{}
	for _, v := range vs {
		if v.Spec.StartWithin > 0 {
			limited[v.VersionKey] = true
		}
	}
	if len(limited) == 0 {
		return
	}
	now := d.nowMs()
	for _, i := range d.items {
		if limited[i.key()] {
			d.armLapse(i, now)
		}
	}
}

// lapse takes an item out of the turns of its task; the store is told with the
// next call.
func (d *Dispatcher) lapse(i *item) {
	d.leave(i, stageLapsing)
	d.lapsing = append(d.lapsing, i)
}

// lapseHanding lets those lapse that waited too long for a handover under way.
func (d *Dispatcher) lapseHanding() {
	now := d.nowMs()
	d.handing = slices.DeleteFunc(d.handing, func(i *item) bool {
		by := d.startBy(i)
		if by == 0 || by > now {
			return false
		}
		d.places.release(i.pool())
		d.lapse(i)
		return true
	})
}

// tellLapses ends what was not started in time.
func (d *Dispatcher) tellLapses(ctx context.Context) {
	batch := d.lapsing
	d.lapsing = nil
	if len(batch) > maxBatch {
		batch, d.lapsing = batch[:maxBatch:maxBatch], batch[maxBatch:]
	}
	now := d.nowMs()
	ls := make([]ax.Lapse, len(batch))
	for n, i := range batch {
		ls[n] = ax.Lapse{Ref: i.Ref, NowMs: now, Detail: d.lapseDetail(i)}
	}
	d.beside(callLapse, func() func() {
		answers := apart(ctx, ls, d.cfg.Store.Lapse, func(l ax.Lapse, err error) {
			d.cfg.Log.Error("an instance that was not started in time cannot be skipped; it is tried again in a minute", "instance", l.ID, "error", err)
		})
		return func() { d.lapsed(batch, answers) }
	})
}

func (d *Dispatcher) lapseDetail(i *item) string {
	_, zone := zoneOf(&i.version.Spec)
	return fmt.Sprintf("not started before %s (start_within = %q)", ax.FormatInstant(d.startBy(i), zone), i.version.Spec.StartWithin)
}

// lapsed acts on what the store answered.
func (d *Dispatcher) lapsed(batch []*item, answers []*bool) {
	now := d.nowMs()
	skipped, first := 0, ""
	for n, i := range batch {
		switch done := answers[n]; {
		case i.stage == stageDropped: // a sweep saw it gone
		case done == nil:
			i.lapse = d.wheel.Add(wheel.Entry{Kind: kindLapse, ID: i.ID, DueMs: now + parkFor.Milliseconds()})
			continue
		default:
			d.drop(i)
		}
		if answers[n] == nil || !*answers[n] {
			continue
		}
		d.metrics.lapsed.Inc()
		skipped++
		first = cmp.Or(first, ax.Address(ax.KindTask, i.version.Name))
		if d.cfg.OnSkipped != nil {
			d.cfg.OnSkipped(i.version, i.Ref, ax.ReasonStartWithin, 1)
		}
	}
	if skipped > 0 {
		d.cfg.Log.Warn("instances were not started within start_within and are skipped", "instances", skipped, "task", first)
	}
}
