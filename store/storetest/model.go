package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
	"github.com/axctl/ax/schedule"
	"github.com/axctl/ax/store/check"
	"github.com/axctl/ax/store/memory"
)

// compareWithModel does random operations to the store and to the model in
// memory, and wants the same answers and the same rows after each.
func compareWithModel(t *testing.T, open Open) {
	minutely, err := schedule.Compile(spec().Schedules)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		p := &pair{T: rt, ctx: t.Context(), nowMs: start, times: minutely}
		now := func() time.Time { return time.UnixMilli(p.nowMs) }
		p.model, p.real = memory.New(now), open(t, now)
		defer p.real.Close()
		rt.Repeat(map[string]func(*rapid.T){
			"":         func(*rapid.T) { p.same() },
			"time":     p.drawn(p.pass),
			"apply":    p.drawn(p.change),
			"stale":    p.drawn(p.stale),
			"claim":    p.drawn(p.claim),
			"dispatch": p.drawn(p.dispatch),
			"lapse":    p.drawn(p.lapse),
			"started":  p.drawn(p.started),
			"finish":   p.drawn(p.finish),
			"trigger":  p.drawn(p.trigger),
			"retry":    p.drawn(p.retry),
			"mark":     p.drawn(p.mark),
			"backfill": p.drawn(p.backfill),
			"fill":     p.drawn(p.fill),
			"move":     p.drawn(p.moveBackfill),
			"cancel":   p.drawn(p.cancel),
			"hold":     p.drawn(p.hold),
			"resume":   p.drawn(p.resume),
			"host":     p.drawn(p.host),
			"prune":    p.drawn(p.prune),
			"index":    p.drawn(p.index),
			"list":     p.drawn(p.list),
		})
	})
}

// pair is a store and the model, with the same rows.
type pair struct {
	*rapid.T
	ctx         context.Context
	model, real Store
	nowMs       int64
	uid         int
	times       *schedule.Schedule
}

// drawn binds an action to the rapid.T of its step.
func (p *pair) drawn(act func()) func(*rapid.T) {
	return func(t *rapid.T) {
		p.T = t
		act()
	}
}

// both does one thing to both stores and wants the same answer.
func (p *pair) both(what string, do func(Store) (any, error)) {
	wantAnswer, wantErr := do(p.model)
	gotAnswer, gotErr := do(p.real)
	want, got := encode(p, wantAnswer), encode(p, gotAnswer)
	if kindOf(wantErr) != kindOf(gotErr) || want != got {
		p.Fatalf("%s:\nmodel: %v %s\nstore: %v %s", what, wantErr, want, gotErr, got)
	}
	p.Logf("%s: %v %s", what, gotErr, got)
}

func encode(p *pair, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		p.Fatal(err)
	}
	return string(b)
}

// kindOf returns the sentinel an error is, which both stores must agree on.
func kindOf(err error) error {
	for _, kind := range []error{ax.ErrNotFound, ax.ErrStale, ax.ErrMoved, ax.ErrConflict} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return err
}

// same compares all that can be observed, and checks the invariants.
func (p *pair) same() {
	want, got := p.rows(p.model), p.rows(p.real)
	for what, w := range want {
		if g := got[what]; g != w {
			p.Fatalf("%s:\nmodel: %s\nstore: %s", what, w, g)
		}
	}
	for _, s := range []Store{p.model, p.real} {
		findings, err := check.Check(p.ctx, s, time.UnixMilli(p.nowMs))
		if err != nil {
			p.Fatal(err)
		}
		for _, f := range findings {
			p.Fatalf("invariant: %s", f)
		}
	}
}

func (p *pair) rows(s Store) map[string]string {
	rows := map[string]string{}
	put := func(what string, v any, err error) {
		if err != nil {
			p.Fatalf("%s: %v", what, err)
		}
		rows[what] = encode(p, v)
	}
	st, err := s.ReadStack(p.ctx, "main")
	st.StoreID = ""
	put("stack", st, err)
	err = s.Audit(p.ctx, func(r ax.Records) error {
		put("objects", collect(p, r.Objects()), nil)
		put("versions", collect(p, r.Versions()), nil)
		put("instances", collect(p, r.Instances()), nil)
		put("attempts", collect(p, r.Attempts()), nil)
		put("transitions", collect(p, r.Transitions()), nil)
		put("slots", collect(p, r.Slots()), nil)
		put("backfills", collect(p, r.Backfills()), nil)
		return nil
	})
	if err != nil {
		p.Fatal(err)
	}
	due, err := s.DueTasks(p.ctx, p.nowMs+minute, ax.DueCursor{}, 100)
	put("due tasks", due, err)
	pending, err := s.Pending(p.ctx, ax.PendingQuery{UntilMs: p.nowMs + minute, Limit: 1000})
	put("pending", pending, err)
	open, err := s.Open(p.ctx, "h1")
	put("open", open, err)
	intents, err := s.Cancels(p.ctx, "h1")
	put("intents", intents, err)
	held, err := s.EndingHolds(p.ctx, p.nowMs)
	put("ending holds", held, err)
	hosts, err := s.Hosts(p.ctx)
	put("hosts", hosts, err)
	counts, err := s.Counts(p.ctx)
	put("counts", counts, err)
	return rows
}

func collect[T any](p *pair, rows iter.Seq2[T, error]) []T {
	var all []T
	for row, err := range rows {
		if err != nil {
			p.Fatal(err)
		}
		all = append(all, row)
	}
	return all
}

func (p *pair) number(name string, from, to int) int { return rapid.IntRange(from, to).Draw(p.T, name) }

func (p *pair) flag(name string) bool { return rapid.Bool().Draw(p.T, name) }

func (p *pair) pass() { p.nowMs += int64(p.number("ms", 1, int(3*minute))) }

// objects are those of the model, which are those of the store.
func (p *pair) objects() []ax.Object {
	st, err := p.model.ReadStack(p.ctx, "main")
	if err != nil {
		p.Fatal(err)
	}
	return st.Objects
}

// object draws one, if there are any.
func (p *pair) object() (ax.Object, bool) {
	objects := p.objects()
	if len(objects) == 0 {
		return ax.Object{}, false
	}
	return rapid.SampledFrom(objects).Draw(p.T, "object"), true
}

// instance draws one, if there are any.
func (p *pair) instance() (ax.Instance, bool) {
	rows, err := p.model.Instances(p.ctx, ax.InstanceFilter{Limit: 1000})
	if err != nil {
		p.Fatal(err)
	}
	if len(rows) == 0 {
		return ax.Instance{}, false
	}
	return rows[p.number("instance", 0, len(rows)-1)].Instance, true
}

// change applies one change to one of a few names, with what planner would
// make of its timetable.
func (p *pair) change() {
	p.apply(p.draw(), func(*ax.ChangeSet) {})
}

// stale applies a change that was computed from something else.
func (p *pair) stale() {
	change, fault := p.draw(), p.number("fault", 0, 4)
	p.apply(change, func(cs *ax.ChangeSet) {
		switch c := &cs.Changes[0]; fault {
		case 0:
			cs.BaseSerial++
		case 1:
			c.BaseVersion++
		case 2:
			c.ObjectID++
		case 3:
			cs.StoreID = "elsewhere"
		case 4:
			cs.ValidUntilMs = p.nowMs
		}
	})
}

func (p *pair) apply(c ax.Change, edit func(*ax.ChangeSet)) {
	p.uid++
	p.both("apply", func(s Store) (any, error) {
		st, err := s.ReadStack(p.ctx, "main")
		if err != nil {
			return nil, err
		}
		cs := ax.ChangeSet{
			ApplyID: fmt.Sprint("apply-", p.uid), StoreID: st.StoreID, Stack: "main", BaseSerial: st.Serial, NowMs: p.nowMs,
			Revision: ax.Revision{Who: "ann", Origin: "/etc/ax"}, Changes: []ax.Change{c},
		}
		edit(&cs)
		applied, err := s.Apply(p.ctx, cs)
		applied.StoreMade = false // only the first apply's, which a failed one may precede
		return applied, err
	})
}

func (p *pair) draw() ax.Change {
	name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(p.T, "name")
	want := spec()
	want.Enabled = p.flag("enabled")
	want.Concurrency = p.number("concurrency", 1, 3)
	want.FreezeAfter = p.number("freeze_after", 0, 2)
	want.Overlap = rapid.SampledFrom(ax.Overlaps).Draw(p.T, "overlap")
	body, hash := ax.Definition{Kind: ax.KindTask, Name: name, Task: want}.Canonical()
	c := ax.Change{
		Action: ax.ActionCreate, Kind: ax.KindTask, Name: name, Definition: body, Hash: hash,
		Task: &ax.TaskChange{Enabled: want.Enabled, MaxActive: want.Concurrency, Overlap: want.Overlap, FreezeAfter: want.FreezeAfter},
	}
	var old ax.Object
	for _, o := range p.objects() {
		if o.Name == name {
			old = o
		}
	}
	c.ObjectID = old.ID
	row := old.Row
	if old.ID == 0 || old.Deleted {
		c.Task.Timetable = p.timetable(row, want.Enabled)
		return c
	}
	c.BaseVersion, c.Action = old.Version, ax.ActionUpdate
	switch deleted := p.number("delete", 0, 4) == 0; {
	case deleted:
		c.Action, c.Definition, c.Hash = ax.ActionDelete, nil, ""
		c.Task.SkipPending, c.Task.Timetable = ax.ReasonDeleted, p.settled(old, ax.ReasonDeleted)
	case row.Enabled && !want.Enabled:
		c.Task.SkipPending, c.Task.Timetable = ax.ReasonDisabled, p.settled(old, ax.ReasonDisabled)
	case !row.Enabled && want.Enabled:
		tt := rules.Resume(p.times, p.misfire(), old.Version, old.ID, row, "", ax.ReasonDisabled, p.nowMs)
		c.Task.Timetable = &tt
	}
	return c
}

func (p *pair) misfire() ax.MisfireSpec {
	return ax.MisfireSpec{
		Policy: rapid.SampledFrom(ax.MisfirePolicies).Draw(p.T, "policy"), Max: p.number("max", 1, 3),
		OnResume: rapid.SampledFrom(ax.MisfirePolicies).Draw(p.T, "on_resume"),
	}
}

// timetable is that of a new task.
func (p *pair) timetable(row ax.TaskRow, enabled bool) *ax.Timetable {
	tt := &ax.Timetable{LastSlotMs: p.last()}
	if next, ok := p.times.Next(max(p.nowMs, row.LastSlotMs)); ok && enabled {
		tt.NextMs = next
	}
	return tt
}

func (p *pair) last() int64 {
	last, _ := p.times.Prev(p.nowMs + 1)
	return last
}

// settled ends a version: what is due and not claimed becomes a stretch.
func (p *pair) settled(o ax.Object, why ax.Reason) *ax.Timetable {
	tt := &ax.Timetable{
		ExpectNextMs: o.Row.NextMs, ExpectLockVersion: o.Row.LockVersion, Settled: true, LastSlotMs: max(o.Row.LastSlotMs, p.last()),
	}
	b := rules.Backlog{
		TaskID: o.ID, Version: o.Version, FirstMs: rules.FirstUnclaimed(p.times, o.Row), EndMs: p.nowMs, Policy: ax.MisfireSkip, Reason: why,
	}
	if b.FirstMs <= p.nowMs {
		b.Account(p.times, o.Row.LastSlotMs, tt)
		tt.LastSlotMs = max(tt.LastSlotMs, p.last())
	}
	tt.NextMs = 0
	return tt
}
