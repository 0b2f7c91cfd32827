package storetest

import (
	"errors"
	"fmt"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
	"pgregory.net/rapid"
)

// claim fires some of what is due, slot by slot or as a backlog, and sometimes
// with what is no longer so.
func (p *pair) claim() {
	due, err := p.model.DueTasks(p.ctx, p.nowMs, ax.DueCursor{}, 10)
	if err != nil {
		p.Fatal(err)
	}
	var firings []ax.Firing
	for _, d := range due {
		f := ax.Firing{
			TaskID: d.TaskID, Version: d.Version, ExpectNextMs: d.NextMs, ExpectLockVersion: d.LockVersion, NowMs: p.nowMs,
			Overlap: rapid.SampledFrom(ax.Overlaps).Draw(p.T, "overlap"),
		}
		if p.flag("backlog") {
			m := p.misfire()
			s := rules.Settle(p.times, m.Policy, m.Max, d.NextMs, p.nowMs)
			f.NextMs, f.LastSlotMs = s.NextMs, s.LastMs
			for _, at := range s.Starts {
				f.Starts = append(f.Starts, ax.FiringStart{DueMs: at, CatchUp: true})
			}
			if s.Skipped != nil {
				f.Skipped = []ax.SkippedStretch{{
					TaskID: d.TaskID, FromMs: s.Skipped.FromMs, ToMs: s.Skipped.ToMs, Slots: s.Skipped.Slots, Reason: ax.ReasonMisfire, Version: d.Version,
				}}
			}
		} else {
			st := ax.FiringStart{DueMs: d.NextMs}
			switch p.number("start", 0, 4) {
			case 0:
				st.Skip = ax.ReasonStartWithin
			case 1, 2:
				h := p.handover(ax.Ref{}, 0)
				st.Place = &h
			}
			f.LastSlotMs, f.Starts = d.NextMs, []ax.FiringStart{st}
			f.NextMs, _ = p.times.Next(d.NextMs)
		}
		if p.number("lost", 0, 9) == 0 {
			f.ExpectLockVersion--
		}
		firings = append(firings, f)
	}
	p.both("claim", func(s Store) (any, error) { return s.Claim(p.ctx, firings) })
}

func (p *pair) handover(r ax.Ref, attempt int) ax.Handover {
	return ax.Handover{Ref: r, Attempt: attempt, Host: "h1", Boot: "b1", Executor: "e1", AtMs: p.nowMs, DeadlineMs: p.nowMs + minute}
}

func (p *pair) dispatch() {
	in, ok := p.instance()
	if !ok {
		return
	}
	hs := []ax.Handover{p.handover(in.Ref, in.Attempt), p.handover(in.Ref, in.Attempt+1)}
	p.both("dispatch", func(s Store) (any, error) { return s.Dispatch(p.ctx, hs) })
}

func (p *pair) lapse() {
	in, ok := p.instance()
	if !ok {
		return
	}
	ls := []ax.Lapse{{Ref: in.Ref, NowMs: p.nowMs, Detail: "too late"}}
	p.both("lapse", func(s Store) (any, error) { return s.Lapse(p.ctx, ls) })
}

func (p *pair) started() {
	in, ok := p.instance()
	if !ok {
		return
	}
	st := []ax.Started{{Ref: in.Ref, Attempt: in.Attempt, StartedMs: p.nowMs, DeadlineMs: p.nowMs + minute}}
	p.both("started", func(s Store) (any, error) { return nil, s.Started(p.ctx, st) })
}

// finish reports anything of any attempt.
func (p *pair) finish() {
	in, ok := p.instance()
	if !ok {
		return
	}
	e := ax.Ending{
		Ref: in.Ref, Attempt: max(1, in.Attempt-p.number("older", 0, 1)), EndedMs: p.nowMs, NowMs: p.nowMs, NotBeforeMs: p.nowMs + minute,
		RetryStatus: ax.StatusFailed, Error: "no",
		ErrorClass: rapid.SampledFrom([]ax.ErrorClass{ax.ClassFailed, ax.ClassFailed, ax.ClassResource}).Draw(p.T, "class"),
		Status: rapid.SampledFrom([]ax.Status{
			"", ax.StatusPending, ax.StatusSuccess, ax.StatusFailed, ax.StatusTimeout, ax.StatusCancelled,
		}).Draw(p.T, "status"),
		Cause: rapid.SampledFrom([]ax.Cause{"", ax.CauseLost, ax.CauseTimeout}).Draw(p.T, "cause"),
	}
	if p.flag("stopped") || e.Status == ax.StatusPending {
		e.StoppedMs = p.nowMs
	}
	p.both("finish", func(s Store) (any, error) { return s.Finish(p.ctx, []ax.Ending{e}) })
}

func (p *pair) trigger() {
	o, ok := p.object()
	if !ok {
		return
	}
	p.uid++
	t := ax.Trigger{ObjectID: o.ID, UID: fmt.Sprint(p.uid), DueMs: p.nowMs, NowMs: p.nowMs, Who: "ann"}
	t.Key = rapid.SampledFrom([]string{"", "", "k1", "k2"}).Draw(p.T, "key")
	p.both("trigger", func(s Store) (any, error) { return s.Trigger(p.ctx, t) })
}

func (p *pair) retry() {
	r := ax.Retry{InstanceID: int64(p.number("id", 1, 20)), WithCurrent: p.flag("current"), NowMs: p.nowMs, Who: "ann"}
	p.both("retry", func(s Store) (any, error) { return s.Retry(p.ctx, r) })
	p.both("life", func(s Store) (any, error) { return s.Instance(p.ctx, r.InstanceID) })
}

func (p *pair) mark() {
	m := ax.Mark{
		InstanceID: int64(p.number("id", 1, 20)), Verdict: rapid.SampledFrom(ax.Verdicts).Draw(p.T, "verdict"),
		Reason: "seen", NowMs: p.nowMs, Who: "ann",
	}
	p.both("mark", func(s Store) (any, error) { return nil, s.Mark(p.ctx, m) })
}

func (p *pair) cancel() {
	id := int64(p.number("id", 1, 20))
	p.both("cancel", func(s Store) (any, error) {
		status, err := s.Cancel(p.ctx, id, "ann", p.nowMs)
		return status, err
	})
}

func (p *pair) hold() {
	o, ok := p.object()
	if !ok {
		return
	}
	h := ax.Hold{Kind: rapid.SampledFrom([]ax.HoldKind{ax.HoldPaused, ax.HoldFrozen}).Draw(p.T, "kind"), Who: "ann", SinceMs: p.nowMs, Reason: "why"}
	if p.flag("ends") {
		h.UntilMs = p.nowMs + int64(p.number("for", 1, int(3*minute)))
	}
	p.both("hold", func(s Store) (any, error) { return nil, s.Hold(p.ctx, o.ID, h) })
}

func (p *pair) resume() {
	o, ok := p.object()
	if !ok {
		return
	}
	tt := rules.Resume(p.times, p.misfire(), o.Version, o.ID, o.Row, "", ax.ReasonHeld, p.nowMs)
	if p.number("moved", 0, 4) == 0 {
		tt.ExpectLockVersion++
	}
	p.both("resume", func(s Store) (any, error) { return nil, s.Resume(p.ctx, o.ID, tt, p.nowMs) })
}

func (p *pair) host() {
	h := ax.Host{Name: rapid.SampledFrom([]string{"h1", "h2"}).Draw(p.T, "name"), Boot: fmt.Sprint(p.number("boot", 1, 2)), StartedMs: p.nowMs}
	if p.flag("join") {
		p.both("join", func(s Store) (any, error) { return nil, s.Join(p.ctx, h) })
	} else {
		p.both("leave", func(s Store) (any, error) { return nil, s.Leave(p.ctx, h.Name, h.Boot, p.nowMs) })
	}
}

func (p *pair) prune() {
	q := ax.PruneQuery{EndedByMs: p.nowMs - int64(p.number("age", 0, int(5*minute))), KeepLast: p.number("keep", 0, 4)}
	q.KeysByMs = p.nowMs - int64(p.number("age of keys", 0, int(5*minute)))
	p.both("prune", func(s Store) (any, error) {
		var sum ax.Pruned
		err := s.Prune(p.ctx, q, func(n ax.Pruned) error { sum = sum.Plus(n); return nil })
		return sum, err
	})
}

// index brings the index of histories up to date, or a part of it.
func (p *pair) index() {
	enough := errors.New("enough")
	steps := p.number("steps", 0, 3)
	err := p.real.IndexHistory(p.ctx, func() error {
		if steps--; steps < 0 {
			return enough
		}
		return nil
	})
	if err != nil && !errors.Is(err, enough) {
		p.Fatal(err)
	}
}

// list asks for a page of instances.
func (p *pair) list() {
	f := ax.InstanceFilter{Limit: p.number("limit", 1, 5), Status: rapid.SliceOfN(rapid.SampledFrom(ax.Statuses), 0, 3).Draw(p.T, "status")}
	if o, ok := p.object(); ok && p.flag("of a task") {
		f.TaskID = o.ID
	}
	if in, ok := p.instance(); ok && p.flag("before") {
		f.Before = &in.Ref
	}
	if in, ok := p.instance(); ok && p.flag("since") {
		f.SinceMs = in.DueMs
	}
	p.both("list", func(s Store) (any, error) { return s.Instances(p.ctx, f) })
}
