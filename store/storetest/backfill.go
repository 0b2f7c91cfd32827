package storetest

import (
	"sync"

	"pgregory.net/rapid"

	"github.com/axctl/ax"
)

// backfill starts one over slots [from, to) of the minutes after start.
func (f *fixture) backfill(o ax.Object, from, to int64, edit func(*ax.BackfillRequest)) ax.Backfill {
	f.Helper()
	r := ax.BackfillRequest{
		TaskID: o.ID, Version: f.object(o.Name).Version, FromMs: start + from*minute, ToMs: start + to*minute,
		Mode: ax.BackfillMissing, Parallel: 1, Slots: to - from, Who: "bob", AtMs: f.nowMs,
	}
	if edit != nil {
		edit(&r)
	}
	b, err := f.StartBackfill(f.ctx, r)
	f.ok(err)
	return b
}

// fill goes on with a backfill over the slots that are left, as the runtime
// does.
func (f *fixture) fill(id int64) ax.Filled {
	f.Helper()
	filled, err := f.Fill(f.ctx, step(f.backfillNow(id), f.nowMs, ax.MaxFillSlots))
	f.ok(err)
	return filled
}

// step is the next step of a backfill of a minutely task.
func step(b ax.Backfill, nowMs int64, most int) ax.Fill {
	s := ax.Fill{BackfillID: b.ID, ExpectPositionMs: b.PositionMs, NowMs: nowMs, Last: true}
	for at := (b.PositionMs + minute - 1) / minute * minute; at < b.ToMs; at += minute {
		if len(s.Slots) == most {
			s.Last = false
			break
		}
		s.Slots = append(s.Slots, at)
	}
	return s
}

func (f *fixture) backfillNow(id int64) ax.Backfill {
	f.Helper()
	all, err := f.Backfills(f.ctx, ax.BackfillFilter{ID: id})
	f.ok(err)
	equal(f, "backfills of an id", len(all), 1)
	return all[0]
}

func (f *fixture) wantBackfill(id int64, want ax.BackfillState, position, made, passed int64) {
	f.Helper()
	b := f.backfillNow(id)
	equal(f, "state", b.State, want)
	equal(f, "position", (b.PositionMs-start+minute-1)/minute, position)
	equal(f, "made", b.Made, made)
	equal(f, "passed", b.Passed, passed)
}

// succeed runs an instance to its end.
func (f *fixture) succeed(r ax.Ref) {
	f.Helper()
	f.handOver(r, 1)
	f.finish(f.ending(r, 1, ax.StatusSuccess))
}

// Instances are made one after the other, each once, in due order, and the
// backfill is done when the last has ended.
func testBackfill(f *fixture) {
	a := f.task("a", func(s *ax.TaskSpec) { s.Concurrency = 2 })
	row := f.object("a").Row
	b := f.backfill(a, -5, 0, nil)
	alike(f, "backfill", b, ax.Backfill{
		ID: b.ID, State: ax.BackfillRunning, PositionMs: start - 5*minute,
		BackfillRequest: ax.BackfillRequest{
			TaskID: a.ID, Version: 1, FromMs: start - 5*minute, ToMs: start, Mode: ax.BackfillMissing, Parallel: 1, Slots: 5, Who: "bob", AtMs: f.nowMs,
		},
	})
	alike(f, "what is stored", f.backfillNow(b.ID), b)
	first := step(b, f.nowMs, 2)
	filled, err := f.Fill(f.ctx, first)
	f.ok(err)
	ref := ax.Ref{ID: filled.Made[0].ID, DueMs: start - 5*minute, TaskID: a.ID, SlotKey: ax.BackfillSlotKey(b.ID, start-5*minute)}
	alike(f, "filled", filled, ax.Filled{
		Made: []ax.Ref{ref}, PositionMs: start - 5*minute + 1, Open: 1, State: ax.BackfillRunning, MaxActive: 2, Overlap: ax.OverlapQueue,
	})
	equal(f, "backfill of the key", ref.BackfillID(), b.ID)
	l := f.wantStatus(ref.ID, ax.StatusPending)
	alike(f, "instance", l.Instance, ax.Instance{
		Ref: ref, Version: 1, Kind: ax.InstanceBackfill, Status: ax.StatusPending, Attempt: 1, NotBeforeMs: f.nowMs, ClaimedMs: f.nowMs,
	})
	alike(f, "life line", l.Transitions, []ax.Transition{{
		InstanceID: ref.ID, AtMs: f.nowMs, Attempt: 1, To: ax.StatusPending, Actor: "bob", Cause: ax.CauseBackfill, Detail: "backfill 1",
	}})
	f.wantRow(a, 0, 1)
	again, err := f.Fill(f.ctx, first)
	f.ok(err)
	equal(f, "the same step again", again.Lost, true)
	equal(f, "while one is open", len(f.fill(b.ID).Made), 0)
	f.wantBackfill(b.ID, ax.BackfillRunning, -4, 1, 0)

	// Also in spite of a hold, which stays, as does the schedule.
	f.ok(f.Hold(f.ctx, a.ID, ax.Hold{Kind: ax.HoldPaused, Who: "ann", SinceMs: f.nowMs}))
	f.succeed(ref)
	for i := int64(-4); i < 0; i++ {
		filled := f.fill(b.ID)
		equal(f, "due", filled.Made[0].DueMs, start+i*minute)
		equal(f, "nothing while it waits", len(f.fill(b.ID).Made), 0)
		f.succeed(filled.Made[0])
	}
	f.wantBackfill(b.ID, ax.BackfillRunning, 0, 5, 0)
	f.nowMs++
	equal(f, "state", f.fill(b.ID).State, ax.BackfillDone)
	f.wantBackfill(b.ID, ax.BackfillDone, 0, 5, 0)
	equal(f, "end", f.backfillNow(b.ID).EndedMs, f.nowMs)
	equal(f, "next_fire_time", f.object("a").Row.NextMs, row.NextMs)
	filled, err = f.Fill(f.ctx, step(f.backfillNow(b.ID), f.nowMs, 1))
	f.ok(err)
	equal(f, "a step of what is done", filled.Lost, true)

	rows, err := f.Instances(f.ctx, ax.InstanceFilter{Kinds: []ax.InstanceKind{ax.InstanceBackfill}})
	f.ok(err)
	equal(f, "of this kind", len(rows), 5)
	rows, err = f.Instances(f.ctx, ax.InstanceFilter{Kinds: []ax.InstanceKind{ax.InstanceSchedule, ax.InstanceManual}})
	f.ok(err)
	equal(f, "of other kinds", len(rows), 0)

	// More at once, up to what the task lets run.
	b = f.backfill(a, -20, -10, func(r *ax.BackfillRequest) { r.Parallel = 7 })
	equal(f, "made at once", len(f.fill(b.ID).Made), 2)
	f.wantRow(a, 0, 2)
}

// One step of a backfill at a time, whoever asks.
func testBackfillSteps(f *fixture) {
	var group sync.WaitGroup
	c := f.backfill(f.task("c", nil), -20, -10, nil)
	made := make([]ax.Filled, 8)
	errs := make([]error, len(made))
	for i := range made {
		group.Go(func() { made[i], errs[i] = f.Fill(f.ctx, step(c, f.nowMs, 5)) })
	}
	group.Wait()
	won := 0
	for i := range made {
		f.ok(errs[i])
		if !made[i].Lost {
			won++
		}
	}
	equal(f, "steps that won", won, 1)
}

// What became of a slot decides, whatever made its instances.
func testBackfillModes(f *fixture) {
	a := f.task("a", func(s *ax.TaskSpec) { s.Overlap = ax.OverlapAllow })
	end := func(status ax.Status) func(ax.Ref) { return func(r ax.Ref) { f.finish(f.ending(r, 1, status)) } }
	mark := func(status ax.Status, v ax.Verdict) func(ax.Ref) {
		return func(r ax.Ref) {
			f.finish(f.ending(r, 1, status))
			f.ok(f.Mark(f.ctx, ax.Mark{InstanceID: r.ID, Verdict: v, Reason: "r", NowMs: f.nowMs, Who: "bob"}))
		}
	}
	again := func(status ax.Status) func(ax.Ref) {
		return func(r ax.Ref) {
			f.finish(f.ending(r, 1, ax.StatusFailed))
			re, err := f.Retry(f.ctx, ax.Retry{InstanceID: r.ID, NowMs: f.nowMs, Who: "bob"})
			f.ok(err)
			if status != ax.StatusPending {
				f.handOver(re, 1)
				f.finish(f.ending(re, 1, status))
			}
		}
	}
	slots := []struct {
		what                 string
		end                  func(ax.Ref)
		missing, failed, all bool
	}{
		{"success", end(ax.StatusSuccess), false, false, true},
		{"failed", end(ax.StatusFailed), false, true, true},
		{"timeout", end(ax.StatusTimeout), false, true, true},
		{"cancelled", end(ax.StatusCancelled), false, true, true},
		{"failed, marked success", mark(ax.StatusFailed, ax.VerdictSuccess), false, false, true},
		{"success, marked skipped", mark(ax.StatusSuccess, ax.VerdictSkipped), true, false, true},
		{"failed, retried with success", again(ax.StatusSuccess), false, false, true},
		{"failed, retried and failed", again(ax.StatusTimeout), false, true, true},
		{"failed, being retried", again(ax.StatusPending), false, false, false},
		{"running", func(ax.Ref) {}, false, false, false},
		{"skipped", nil, true, false, true},
		{"never claimed", nil, true, false, true},
	}
	for _, s := range slots[:len(slots)-2] {
		s.end(f.fire(a, func(fi *ax.Firing) { fi.Overlap = ax.OverlapAllow }).Ref)
	}
	// Skipped by overlap: one that runs is in the way.
	f.fire(a, func(fi *ax.Firing) { fi.Overlap = ax.OverlapSkip })
	skipped := f.object("a").Row.LastSlotMs
	tries, err := f.Tries(f.ctx, a.ID, []int64{start + 7*minute, skipped})
	f.ok(err)
	equal(f, "tries", len(tries), 3)
	equal(f, "the first", tries[0].Status, ax.StatusFailed)
	equal(f, "its retry", tries[1].Status, ax.StatusSuccess)
	equal(f, "the slot that found no place", tries[2].Status, ax.StatusSkipped)
	wider := spec()
	wider.Concurrency = 100
	f.apply(f.update(f.object("a"), wider))
	n := int64(len(slots))
	f.nowMs = start + (n+1)*minute
	for _, mode := range ax.BackfillModes {
		var want []int64
		for i, s := range slots {
			wanted := map[ax.BackfillMode]bool{ax.BackfillMissing: s.missing, ax.BackfillFailed: s.failed, ax.BackfillAll: s.all}
			if wanted[mode] {
				want = append(want, start+int64(i+1)*minute)
			}
		}
		b := f.backfill(a, 1, n+1, func(r *ax.BackfillRequest) { r.Mode, r.Parallel = mode, ax.MaxBackfillParallel })
		var got []int64
		for range n {
			for _, ref := range f.fill(b.ID).Made {
				got = append(got, ref.DueMs)
				// Skipped again, so that the next mode finds what this one found.
				f.handOver(ref, 1)
				f.finish(f.ending(ref, 1, ax.StatusSuccess))
				f.ok(f.Mark(f.ctx, ax.Mark{InstanceID: ref.ID, Verdict: ax.VerdictSkipped, Reason: "r", NowMs: f.nowMs, Who: "bob"}))
			}
		}
		alike(f, string(mode), got, want)
		f.wantBackfill(b.ID, ax.BackfillDone, n+1, int64(len(want)), n-int64(len(want)))
	}
}

func testBackfillMoves(f *fixture) {
	a := f.task("a", func(s *ax.TaskSpec) { s.Concurrency = 2 })
	_, err := f.StartBackfill(f.ctx, ax.BackfillRequest{TaskID: 99, Version: 1, Mode: ax.BackfillAll, Parallel: 1})
	f.fails(err, ax.ErrNotFound)
	_, err = f.StartBackfill(f.ctx, ax.BackfillRequest{TaskID: a.ID, Version: 2, Mode: ax.BackfillAll, Parallel: 1})
	f.fails(err, ax.ErrStale)
	b := f.backfill(a, -10, 0, func(r *ax.BackfillRequest) { r.Parallel = 2 })
	for name, r := range map[string][2]int64{"the same": {-10, 0}, "its first slot": {-20, -9}, "its last": {-1, 1}, "within": {-5, -4}} {
		_, err = f.StartBackfill(f.ctx, ax.BackfillRequest{TaskID: a.ID, Version: 1, FromMs: start + r[0]*minute, ToMs: start + r[1]*minute, Parallel: 1})
		if f.fails(err, ax.ErrConflict); f.Failed() {
			f.Log(name)
		}
	}
	f.backfill(a, -20, -10, nil) // beside it is another one
	move := func(id int64, to ax.BackfillState) (ax.Backfill, error) {
		return f.MoveBackfill(f.ctx, ax.BackfillMove{ID: id, To: to, Who: "eve", NowMs: f.nowMs})
	}
	_, err = move(99, ax.BackfillPaused)
	f.fails(err, ax.ErrNotFound)
	_, err = move(b.ID, ax.BackfillRunning)
	f.fails(err, ax.ErrConflict)

	made := f.fill(b.ID).Made
	f.handOver(made[0], 1)
	moved, err := move(b.ID, ax.BackfillPaused)
	f.ok(err)
	alike(f, "paused", moved, f.backfillNow(b.ID))
	equal(f, "who", moved.By, "eve")
	equal(f, "made while paused", f.fill(b.ID).Lost, true)
	_, err = move(b.ID, ax.BackfillRunning)
	f.ok(err)
	equal(f, "made after it", f.fill(b.ID).Open, 2)
	moved, err = move(b.ID, ax.BackfillCancelled)
	f.ok(err)
	equal(f, "end", moved.EndedMs, f.nowMs)
	f.wantStatus(made[0].ID, ax.StatusDispatched)
	equal(f, "by", f.wantStatus(made[1].ID, ax.StatusCancelled).CancelBy, "eve")
	equal(f, "life line", f.causes(made[1].ID), "backfill cancel")
	f.wantRow(a, 1, 0)
	_, err = move(b.ID, ax.BackfillRunning)
	f.fails(err, ax.ErrConflict)
	f.finish(f.ending(made[0], 1, ax.StatusSuccess))

	// A new version changes nothing of one that is under way; a deletion ends it.
	c := f.backfill(a, -10, 0, nil)
	changed := spec()
	changed.Timeout *= 2
	changed.Enabled = false
	f.apply(f.update(f.object("a"), changed))
	ref := f.fill(c.ID).Made[0]
	equal(f, "version", f.wantStatus(ref.ID, ax.StatusPending).Version, 1)
	f.apply(f.remove(f.object("a")))
	f.wantStatus(ref.ID, ax.StatusSkipped)
	now := f.backfillNow(c.ID)
	equal(f, "state", now.State, ax.BackfillCancelled)
	equal(f, "reason", now.Reason, ax.ReasonDeleted)
	equal(f, "by", now.By, "ann")
	f.apply(f.create("a", spec()))
	equal(f, "made of what is revived", f.fill(c.ID).Lost, true)
	all, err := f.Backfills(f.ctx, ax.BackfillFilter{TaskID: a.ID, States: []ax.BackfillState{ax.BackfillRunning, ax.BackfillPaused}})
	f.ok(err)
	equal(f, "under way", len(all), 0)
	all, err = f.Backfills(f.ctx, ax.BackfillFilter{States: []ax.BackfillState{ax.BackfillCancelled}, Limit: 2})
	f.ok(err)
	equal(f, "cancelled", len(all), 2)
	equal(f, "the newest", all[0].ID, c.ID)
}

// Whatever the policy, what a backfill has open costs the schedule no slot.
func testBackfillOverlap(f *fixture) {
	for _, policy := range ax.Overlaps {
		a := f.task(string(policy), func(s *ax.TaskSpec) { s.Overlap = policy })
		b := f.backfill(a, -10, -5, func(r *ax.BackfillRequest) { r.Parallel = 3 })
		running := f.fill(b.ID).Made[0]
		f.handOver(running, 1)
		byPolicy := func(fi *ax.Firing) { fi.Overlap = policy }
		first := f.fire(a, byPolicy)
		equal(f, string(policy)+": the slot", first.Status, ax.StatusPending)
		equal(f, string(policy)+": cancelled", first.Cancelled, 0)
		equal(f, string(policy)+": the backfill's", f.wantStatus(running.ID, ax.StatusDispatched).CancelBy, "")
		// Against the slot that waits the policy acts as ever.
		second := f.fire(a, byPolicy)
		want := map[ax.Overlap]ax.Status{ax.OverlapQueue: ax.StatusPending, ax.OverlapSkip: ax.StatusSkipped}
		if w, ok := want[policy]; ok {
			equal(f, string(policy)+": the next slot", second.Status, w)
		}
		equal(f, string(policy)+": cancelled", second.Cancelled, 0)
		f.wantStatus(running.ID, ax.StatusDispatched)
		f.check()
		f.apply(f.remove(f.object(a.Name)))
		f.nowMs = max(f.nowMs, start)
	}
}

// Of what retention deleted nobody knows whether it ran, so only -all runs it.
func testBackfillPruned(f *fixture) {
	a := f.task("a", nil)
	for range 3 {
		f.finish(f.ending(f.fire(a, nil).Ref, 1, ax.StatusSuccess))
	}
	f.prune(start+2*minute+30_000, 1)
	f.nowMs += 5 * minute
	horizon := f.object("a").Row.CheckedFromMs
	equal(f, "deleted up to", horizon, start+2*minute)
	b := f.backfill(a, 0, 3, nil)
	equal(f, "made of what is forgotten", f.fill(b.ID).State, ax.BackfillDone)
	b = f.backfill(a, 0, 3, func(r *ax.BackfillRequest) { r.Mode = ax.BackfillAll })
	var made []int64
	for range 3 {
		for _, ref := range f.fill(b.ID).Made {
			made = append(made, ref.DueMs)
			f.succeed(ref)
		}
	}
	alike(f, "made of all", made, []int64{start, start + minute, start + 2*minute})
	f.fill(b.ID)
	// Its own instances are deleted in their turn, and are then as little known.
	f.nowMs += minute
	f.prune(f.nowMs, 0)
	f.check()
	c := f.backfill(a, 0, 3, nil)
	equal(f, "state", f.fill(c.ID).State, ax.BackfillDone)
	f.wantBackfill(c.ID, ax.BackfillDone, 3, 0, 3)
}

func (p *pair) backfill() {
	o, ok := p.object()
	if !ok {
		return
	}
	from := start + int64(p.number("from", -5, 5))*minute
	r := ax.BackfillRequest{
		TaskID: o.ID, Version: o.Version, FromMs: from, ToMs: from + int64(p.number("slots", 1, 5))*minute, Slots: int64(p.number("counted", -1, 9)),
		Mode: rapid.SampledFrom(ax.BackfillModes).Draw(p.T, "mode"), Parallel: p.number("parallel", 1, 3), Who: "ann", AtMs: p.nowMs,
	}
	if p.number("stale", 0, 9) == 0 {
		r.Version++
	}
	p.both("backfill", func(s Store) (any, error) { return s.StartBackfill(p.ctx, r) })
}

func (p *pair) fill() {
	all, err := p.model.Backfills(p.ctx, ax.BackfillFilter{})
	if err != nil {
		p.Fatal(err)
	}
	if len(all) == 0 {
		return
	}
	b := rapid.SampledFrom(all).Draw(p.T, "of")
	s := step(b, p.nowMs, p.number("most", 0, 4))
	if p.number("lost", 0, 9) == 0 {
		s.ExpectPositionMs--
	}
	p.both("tries", func(st Store) (any, error) { return st.Tries(p.ctx, b.TaskID, s.Slots) })
	p.both("fill", func(st Store) (any, error) { return st.Fill(p.ctx, s) })
}

func (p *pair) moveBackfill() {
	m := ax.BackfillMove{
		ID: int64(p.number("id", 1, 4)), Who: "bob", NowMs: p.nowMs,
		To: rapid.SampledFrom([]ax.BackfillState{ax.BackfillRunning, ax.BackfillPaused, ax.BackfillCancelled}).Draw(p.T, "to"),
	}
	p.both("move", func(s Store) (any, error) {
		b, err := s.MoveBackfill(p.ctx, m)
		if err != nil {
			b = ax.Backfill{}
		}
		return b, err
	})
	f := ax.BackfillFilter{TaskID: int64(p.number("task", 0, 3)), States: []ax.BackfillState{m.To}, Limit: p.number("limit", 0, 2)}
	p.both("backfills", func(s Store) (any, error) { return s.Backfills(p.ctx, f) })
}
