package planner

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/axctl/ax"
)

// StaleObject is something a plan has read that has moved since.
type StaleObject struct {
	Address string // "" for the store as a whole
	Read    int    // the version the plan read, 0: it was not there
	Found   int    // the version now, 0: it is not there
	Who     string // who wrote that
	AtMs    int64
	Detail  string
}

// Err returns o as the error that apply ends with. It is an ax.ErrStale.
func (o StaleObject) Err() error {
	if o.Address == "" {
		return fmt.Errorf("%w: %s", ax.ErrStale, o.Detail)
	}
	return &ax.StaleError{Address: o.Address, Read: o.Read, Found: o.Found, Who: o.Who, AtMs: o.AtMs}
}

// Stale returns what of p's read set has moved, by address; none when p may be
// applied. The read set is the stack, of which every apply raises the serial: a
// plan that has been applied is stale, and so is one for another store. Claims,
// holds and passing time make no plan stale.
func Stale(p *Plan, stored ax.StackState) []StaleObject {
	switch {
	case stored.StoreID != p.StoreID && p.StoreID == "":
		return []StaleObject{{Detail: "the plan was made when there was no store; now there is one"}}
	case stored.StoreID != p.StoreID:
		return []StaleObject{{Detail: fmt.Sprintf("the plan was made from store %q, this is store %q", p.StoreID, stored.StoreID)}}
	case stored.Stack != p.Stack:
		return []StaleObject{{Detail: fmt.Sprintf("the plan is for stack %q, not for %q", p.Stack, stored.Stack)}}
	}
	objects := newState(stored).objects
	var moved []StaleObject
	for address, obj := range objects {
		read, found := p.Read[address], obj.Version
		if obj.Deleted {
			found = 0
		}
		if read != found {
			moved = append(moved, StaleObject{
				Address: address, Read: read, Found: found, Who: obj.WrittenBy, AtMs: obj.WrittenMs,
				Detail: movement(read, found),
			})
		}
	}
	for address, read := range p.Read {
		if _, there := objects[address]; !there {
			moved = append(moved, StaleObject{Address: address, Read: read, Detail: movement(read, 0)})
		}
	}
	if len(moved) == 0 && stored.Serial != p.BaseSerial {
		moved = append(moved, StaleObject{
			Detail: fmt.Sprintf("stack %q is at serial %d, the plan read serial %d", p.Stack, stored.Serial, p.BaseSerial),
		})
	}
	slices.SortFunc(moved, func(a, b StaleObject) int { return cmp.Compare(a.Address, b.Address) })
	return moved
}

func movement(read, found int) string {
	switch {
	case read == 0:
		return fmt.Sprintf("was made (v%d) after the plan", found)
	case found == 0:
		return fmt.Sprintf("was deleted after the plan, which read v%d", read)
	default:
		return fmt.Sprintf("is v%d, the plan read v%d", found, read)
	}
}

// Shift is a planned effect that time has moved: a next fire that the change
// computes, and that has passed since.
type Shift struct {
	Address  string
	Before   string // the next fire the plan tells
	BeforeMs int64
	After    string // the next fire as of now
	AfterMs  int64
}

// Refresh tells the same changes as of nowMs and the rows as they are now, and
// which next fires are no longer those of p. It is an ax.ErrStale when p's read
// set has moved.
func (p *Plan) Refresh(stored ax.StackState, o Options, nowMs int64) (*Plan, []Shift, error) {
	steps, err := p.steps(stored, nowMs)
	if err != nil {
		return nil, nil, err
	}
	fresh := *p
	fresh.MadeAt, fresh.MadeAtMs = instant(nowMs, time.UTC), nowMs
	fresh.Changes = slices.Clone(p.Changes)
	fresh.Read = maps.Clone(p.Read)
	now := newState(stored)
	var shifts []Shift
	for i, s := range steps {
		c := &fresh.Changes[i]
		was := c.Effects
		c.Effects = s.effects(s.timetable(), now, o.next())
		if c.Effects.Moved && was.NextFireAfterMs != c.Effects.NextFireAfterMs {
			shifts = append(shifts, Shift{
				Address: c.Address, Before: was.NextFireAfter, BeforeMs: was.NextFireAfterMs,
				After: c.Effects.NextFireAfter, AfterMs: c.Effects.NextFireAfterMs,
			})
		}
	}
	return &fresh, shifts, nil
}

// ChangeSet computes what apply writes, from the rows as read now: only what
// time makes stale is computed anew. rev brings who, host, origin of the code
// and message; the rest of it is filled in. It is an ax.ErrStale when p's read
// set has moved.
func (p *Plan) ChangeSet(stored ax.StackState, applyID string, rev ax.Revision, nowMs int64) (ax.ChangeSet, error) {
	steps, err := p.steps(stored, nowMs)
	if err != nil {
		return ax.ChangeSet{}, err
	}
	rev.ApplyID, rev.Stack, rev.Serial, rev.AtMs = applyID, p.Stack, stored.Serial+1, nowMs
	rev.Origin, rev.PlanHash, rev.ConfigHash = p.Origin, p.PlanHash, p.ConfigHash
	rev.Added, rev.Changed, rev.Deleted = p.Counts.Added, p.Counts.Changed, p.Counts.Deleted
	cs := ax.ChangeSet{
		ApplyID: applyID, StoreID: stored.StoreID, Stack: p.Stack, BaseSerial: stored.Serial,
		NowMs: nowMs, Revision: rev, Changes: make([]ax.Change, len(steps)),
	}
	for i, s := range steps {
		c := p.Changes[i]
		task := s.change()
		cs.Changes[i] = ax.Change{
			Action: c.Action, Kind: c.Kind, Name: c.Name, ObjectID: s.obj.ID, BaseVersion: c.FromVersion,
			Definition: c.Definition, Hash: c.Hash, Task: task,
		}
		if task == nil {
			continue
		}
		if t := task.Timetable; t != nil {
			cs.ValidUntilMs = soonest(cs.ValidUntilMs, t.NextMs, first(s.old.times, nowMs))
		}
	}
	return cs, nil
}

// soonest returns the earliest of instants, of which 0 is none. A change is valid
// until the first slot after its now: one of the new version would have passed,
// one of the old version would be accounted for by nobody.
func soonest(instants ...int64) int64 {
	var min int64
	for _, ms := range instants {
		if ms != 0 && (min == 0 || ms < min) {
			min = ms
		}
	}
	return min
}

// steps makes the step of each change, as of nowMs.
func (p *Plan) steps(stored ax.StackState, nowMs int64) ([]*step, error) {
	if moved := Stale(p, stored); len(moved) > 0 {
		return nil, moved[0].Err()
	}
	objects := newState(stored).objects
	steps := make([]*step, len(p.Changes))
	for i := range p.Changes {
		c := &p.Changes[i]
		spec, err := c.task()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Address, err)
		}
		if steps[i], err = newStep(c, objects[c.Address], spec, nowMs); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Address, err)
		}
	}
	return steps, nil
}

// task returns the new definition's task, nil on delete and of another kind. A
// definition with more than this program knows was planned by a newer one, which
// must apply it.
func (c *PlannedChange) task() (*ax.TaskSpec, error) {
	if c.spec != nil || c.Action == ax.ActionDelete {
		return c.spec, nil
	}
	dec := json.NewDecoder(bytes.NewReader(c.Definition))
	dec.DisallowUnknownFields()
	var task *ax.TaskSpec
	var spec any = &ax.PluginSpec{}
	if c.Kind == ax.KindTask {
		task = &ax.TaskSpec{}
		spec = task
	}
	if err := dec.Decode(spec); err != nil {
		return nil, again(fmt.Errorf("decode definition: %w", err))
	}
	return task, nil
}

// change returns what the step does to the task's row, nil of what is no task.
// The limits of a deleted task stay what they were.
func (s *step) change() *ax.TaskChange {
	if s.kind != ax.KindTask {
		return nil
	}
	of := s.next
	if s.action == ax.ActionDelete {
		of = s.old
	}
	return &ax.TaskChange{
		Enabled: s.next.spec.Enabled, MaxActive: of.spec.Concurrency, Overlap: of.spec.Overlap, FreezeAfter: of.spec.FreezeAfter,
		Timetable: s.timetable(), SkipPending: s.skipPending(),
	}
}
