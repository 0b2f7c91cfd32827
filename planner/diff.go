package planner

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/axctl/ax"
)

// Diff compares desired with stored. nowMs is the instant (ms since epoch UTC)
// that all effects are for. It fails when the two are not of one stack, an
// address is declared twice, or a schedule does not compile; config has refused
// all of these before.
func Diff(desired ax.Configuration, stored ax.StackState, o Options, nowMs int64) (*Plan, error) {
	if stored.Stack != "" && stored.Stack != desired.Stack {
		return nil, fmt.Errorf("configuration is of stack %q, the state of stack %q", desired.Stack, stored.Stack)
	}
	p := &Plan{
		FormatVersion: FormatVersion,
		StoreID:       stored.StoreID, Stack: desired.Stack, BaseSerial: stored.Serial,
		Origin: desired.Origin, BaseOrigin: stored.Origin, ConfigHash: desired.Hash,
		MadeAt: instant(nowMs, time.UTC), MadeAtMs: nowMs,
		Changes: []PlannedChange{}, Held: []HeldObject{}, Read: map[string]int{},
	}
	d := differ{state: newState(stored), nowMs: nowMs, nextN: o.next()}
	declared := map[string]bool{}
	for _, def := range desired.Definitions {
		if o.Destroy {
			break
		}
		address := def.Address()
		if declared[address] {
			return nil, fmt.Errorf("%s is declared twice", address)
		}
		declared[address] = true
		if err := d.compare(p, def, address); err != nil {
			return nil, fmt.Errorf("%s: %w", address, err)
		}
	}
	for _, obj := range stored.Objects {
		if obj.Deleted {
			continue
		}
		address := obj.Address()
		p.Read[address] = obj.Version
		if !declared[address] {
			c := PlannedChange{
				Action: ax.ActionDelete, Address: address, Kind: obj.Kind, Name: obj.Name,
				FromVersion: obj.Version, ToVersion: obj.Version + 1,
			}
			if err := d.add(p, c, obj); err != nil {
				return nil, fmt.Errorf("%s: %w", address, err)
			}
		}
		if obj.Row.Hold != nil {
			p.Held = append(p.Held, heldObject(address, obj))
		}
	}
	slices.SortFunc(p.Changes, func(a, b PlannedChange) int { return cmp.Compare(a.Address, b.Address) })
	slices.SortFunc(p.Held, func(a, b HeldObject) int { return cmp.Compare(a.Address, b.Address) })
	p.Renames = renames(p.Changes, stored)
	p.PlanHash = planHash(p)
	return p, nil
}

// differ is one comparison under way.
type differ struct {
	state state
	nowMs int64
	nextN int
}

// compare adds what it takes to make the stack's object as def says.
func (d *differ) compare(p *Plan, def ax.Definition, address string) error {
	body, hash := def.Canonical()
	obj, there := d.state.objects[address]
	c := PlannedChange{
		Action: ax.ActionCreate, Address: address, Kind: def.Kind, Name: def.Name, Source: def.Source.String(),
		ToVersion: obj.Version + 1, Definition: body, Hash: hash, spec: def.Task,
	}
	if there && !obj.Deleted {
		c.Action, c.FromVersion = ax.ActionUpdate, obj.Version
		if hash == obj.Hash {
			ok, err := settled(def.Task, obj.Row)
			if err != nil {
				return err
			}
			if ok {
				p.Counts.Unchanged++
				return nil
			}
			c.ToVersion = obj.Version // only its row is set right
		}
	}
	return d.add(p, c, obj)
}

// settled reports whether an unchanged task's row is as its schedule has it; of
// what is no task (nil) there is none. No JSON is decoded to find out.
func settled(spec *ax.TaskSpec, row ax.TaskRow) (bool, error) {
	if spec == nil {
		return true, nil
	}
	times, err := compile(spec.Schedules)
	if err != nil {
		return false, err
	}
	switch {
	case row.Enabled != spec.Enabled:
		return false, nil
	case !row.Enabled && row.NextMs == 0:
		return true, nil // the zone's new rules show when it is enabled
	}
	return row.Fingerprint == times.Fingerprint() && agrees(times, row), nil
}

// add completes a change with its differences and effects, and counts it.
func (d *differ) add(p *Plan, c PlannedChange, obj ax.Object) error {
	s, err := newStep(&c, obj, c.spec, d.nowMs)
	if err != nil {
		return err
	}
	switch c.Action {
	case ax.ActionCreate:
		p.Counts.Added++
		c.Attributes, err = Attributes(nil, c.Definition)
	case ax.ActionUpdate:
		p.Counts.Changed++
		c.Attributes, err = Attributes(obj.Definition, c.Definition)
	case ax.ActionDelete:
		p.Counts.Deleted++
	default:
		panic("unknown action " + string(c.Action))
	}
	if err != nil {
		return err
	}
	c.Effects = s.effects(s.timetable(), d.state, d.nextN)
	p.Changes = append(p.Changes, c)
	return nil
}

// state is a StackState, indexed.
type state struct {
	objects  map[string]ax.Object
	inFlight map[int64][]ax.InFlight
	cut      bool // more instances are open than inFlight has
}

func newState(s ax.StackState) state {
	ix := state{objects: make(map[string]ax.Object, len(s.Objects)), inFlight: map[int64][]ax.InFlight{}}
	ix.cut = len(s.InFlight) >= ax.MaxInFlight
	for _, o := range s.Objects {
		ix.objects[o.Address()] = o
	}
	for _, f := range s.InFlight {
		ix.inFlight[f.ObjectID] = append(ix.inFlight[f.ObjectID], f)
	}
	return ix
}

func heldObject(address string, obj ax.Object) HeldObject {
	zone := time.UTC
	var spec ax.TaskSpec
	if json.Unmarshal(obj.Definition, &spec) == nil {
		if times, err := compile(spec.Schedules); err == nil {
			zone = times.Location()
		}
	}
	h := obj.Row.Hold
	return HeldObject{
		Address: address, Kind: h.Kind, Who: h.Who, Reason: h.Reason,
		Since: instant(h.SinceMs, zone), SinceMs: h.SinceMs,
		Until: instant(h.UntilMs, zone), UntilMs: h.UntilMs,
	}
}

// renames pairs deletes and creates of equal definitions, each at most once.
func renames(changes []PlannedChange, stored ax.StackState) []Rename {
	hashes := map[string]string{}
	for _, o := range stored.Objects {
		if !o.Deleted {
			hashes[o.Address()] = o.Hash
		}
	}
	gone := map[string][]string{} // by kind and hash, addresses in order
	for _, c := range changes {
		if c.Action == ax.ActionDelete {
			key := string(c.Kind) + hashes[c.Address]
			gone[key] = append(gone[key], c.Address)
		}
	}
	var rs []Rename
	for _, c := range changes {
		key := string(c.Kind) + c.Hash
		if c.Action != ax.ActionCreate || len(gone[key]) == 0 {
			continue
		}
		rs = append(rs, Rename{From: gone[key][0], To: c.Address})
		gone[key] = gone[key][1:]
	}
	return rs
}

func planHash(p *Plan) string {
	h := sha256.New()
	write := func(s string) { _, _ = io.WriteString(h, s+"\x00") } // a hash takes all
	write(p.Stack)
	for _, c := range p.Changes {
		write(string(c.Action))
		write(c.Address)
		write(c.Hash)
	}
	return hex.EncodeToString(h.Sum(nil))
}
