package planner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/axctl/ax"
	"github.com/axctl/ax/planner"
	"github.com/axctl/ax/store/check"
)

var names = []string{"a", "b", `c["eu"]`}

// drawTask draws any task that config could hand over.
func drawTask(t *rapid.T, name string) ax.Definition {
	edits := []func(*ax.TaskSpec){
		misfire(rapid.SampledFrom(ax.MisfirePolicies).Draw(t, "policy"), rapid.SampledFrom(ax.MisfirePolicies).Draw(t, "on_resume")),
		timeout(rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(t, "timeout")),
		func(s *ax.TaskSpec) {
			s.Enabled = rapid.SampledFrom([]bool{true, true, false}).Draw(t, "enabled")
			s.Misfire.Max = rapid.IntRange(1, 5).Draw(t, "max")
			s.Misfire.Grace = rapid.SampledFrom([]ax.Duration{0, 60_000, 7_200_000}).Draw(t, "grace")
		},
	}
	for range rapid.SampledFrom([]int{0, 1, 1, 1, 2}).Draw(t, "schedules") {
		edits = append(edits, rapid.SampledFrom([]func(*ax.TaskSpec){
			cron("*/20 * * * *", "UTC"), cron("0 2 * * *", "UTC"), cron("0 1 * * *", "UTC"),
			cron("30 2 * * *", "Europe/Berlin"), cron("15 1 * * 1-5", "America/Chicago"),
			every(7 * time.Minute), every(6 * time.Hour),
			func(s *ax.TaskSpec) {
				s.Schedules = append(s.Schedules, ax.ScheduleSpec{
					At: []string{"2026-03-28T04:00:00Z", "2026-03-30T04:00:00Z"}, Timezone: "UTC",
				})
			},
		}).Draw(t, "schedule"))
	}
	return task(name, edits...)
}

func drawDefinitions(t *rapid.T) []ax.Definition {
	var defs []ax.Definition
	for _, name := range names {
		if rapid.SampledFrom([]bool{true, true, false}).Draw(t, "declared") {
			defs = append(defs, drawTask(t, name))
		}
	}
	return defs
}

// reign is a definition in force from an apply (exclusive) to the next one that
// changed it (inclusive).
type reign struct {
	fromMs, toMs int64
	version      int
	spec         *ax.TaskSpec
}

// heirs returns r and those after it that go on with its schedule as if nothing
// had happened: its unclaimed slots are theirs.
func (r reign) heirs(t fataler, later []reign) []reign {
	heirs := []reign{r}
	for _, next := range later {
		same := compile(t, r.spec.Schedules...).Fingerprint() == compile(t, next.spec.Schedules...).Fingerprint()
		if !same || next.spec.Enabled != r.spec.Enabled || next.fromMs != heirs[len(heirs)-1].toMs {
			break
		}
		heirs = append(heirs, next)
	}
	return heirs
}

// history is what a test knows of what was applied.
type history map[string][]reign

func (h history) apply(p *planner.Plan, defs []ax.Definition, nowMs int64) {
	for _, c := range p.Changes {
		if rs := h[c.Name]; len(rs) > 0 && rs[len(rs)-1].toMs == 0 {
			rs[len(rs)-1].toMs = nowMs
		}
		for _, d := range defs {
			if d.Name == c.Name {
				h[c.Name] = append(h[c.Name], reign{fromMs: nowMs, version: c.ToVersion, spec: d.Task})
			}
		}
	}
}

// TestLaws applies one drawn configuration after another, with an axd that
// works at times, holds and resumes in between, and checks the laws at each.
func TestLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, "2026-03-27T22:30:00Z")
		past := history{}
		for range rapid.IntRange(2, 6).Draw(t, "applies") {
			defs := drawDefinitions(t)
			p := w.plan(defs...)
			checkOrderIsIrrelevant(t, w, p, defs)
			decoded := checkRoundTrip(t, p)
			if !p.Empty() {
				checkChangeSet(t, w, p, decoded)
				w.commit(decoded)
				checkStale(t, w, p)
			}
			past.apply(p, defs, w.nowMs)
			checkDeclared(t, w, defs)
			w.nowMs += rapid.SampledFrom([]int64{0, 1, 61_000, 3_600_000, 2 * 86_400_000}).Draw(t, "pass")
			if again := w.plan(defs...); !again.Empty() {
				t.Fatalf("Diff(x, x) is not empty: %s", text(again))
			}
			mingle(t, w, defs)
			if again := w.plan(defs...); !again.Empty() {
				t.Fatalf("what axd and people did shows as a change: %s", text(again))
			}
			checkLedger(t, w, past)
			checkInvariants(t, w)
		}
	})
}

// mingle lets axd claim, and people hold and resume.
func mingle(t *rapid.T, w *world, defs []ax.Definition) {
	for _, d := range defs {
		held := w.object(d.Name).Row.Hold != nil
		switch act := rapid.IntRange(0, 3).Draw(t, "act"); {
		case act == 0 && !held:
			w.hold(d.Name)
		case act == 1 && held:
			w.resume(d.Name)
		}
	}
	if rapid.Bool().Draw(t, "axd") {
		w.claim()
	}
}

// checkDeclared checks that the store has what was applied, and that each row
// follows from schedule and last slot, after now.
func checkDeclared(t *rapid.T, w *world, defs []ax.Definition) {
	live := map[string]bool{}
	for _, d := range defs {
		live[d.Name] = true
		body, hash := d.Canonical()
		o := w.object(d.Name)
		if o.Deleted || o.Hash != hash || string(o.Definition) != string(body) || o.Row.Enabled != d.Task.Enabled {
			t.Fatalf("%s is %+v, applied was %s", d.Name, o, body)
		}
		times := compile(t, d.Task.Schedules...)
		want := int64(0)
		if d.Task.Enabled {
			want, _ = times.Next(o.Row.LastSlotMs)
		}
		if o.Row.NextMs != want || o.Row.Fingerprint != times.Fingerprint() {
			t.Fatalf("%s goes on at %d after %d, want %d", d.Name, o.Row.NextMs, o.Row.LastSlotMs, want)
		}
	}
	for _, o := range w.state().Objects {
		if !live[o.Name] && (!o.Deleted || o.Row.NextMs != 0) {
			t.Fatalf("%s is still there: %+v", o.Name, o)
		}
	}
}

// checkLedger checks that no slot of a version in force vanished, none is
// accounted for twice, and none is made up.
func checkLedger(t *rapid.T, w *world, past history) {
	for name, reigns := range past {
		through := w.object(name).Row.LastSlotMs
		account := map[int64]int{} // slot → version
		note := func(slot int64, version int) {
			if _, twice := account[slot]; twice {
				t.Fatalf("%s: the slot %d is accounted for twice", name, slot)
			}
			account[slot] = version
		}
		for _, in := range w.instances(name) {
			note(in.DueMs, in.Version)
		}
		for _, sk := range w.stretches(name) {
			for _, r := range reigns {
				if r.version == sk.Version {
					for _, slot := range slotsOf(t, r.spec, sk.FromMs-1, sk.ToMs) {
						note(slot, sk.Version)
					}
				}
			}
		}
		slots := 0
		for i, r := range reigns {
			heirs := r.heirs(t, reigns[i+1:])
			open := heirs[len(heirs)-1].toMs == 0
			to := r.toMs
			if to == 0 {
				to = max(r.fromMs, through)
			}
			for _, slot := range slotsOf(t, r.spec, r.fromMs, to) {
				v, ok := account[slot]
				if !ok && open && slot > through {
					continue // nobody has claimed it yet
				}
				slots++
				if v < r.version || v > heirs[len(heirs)-1].version {
					t.Fatalf("%s: slot %d of v%d is accounted for as v%d (%v)", name, slot, r.version, v, ok)
				}
			}
		}
		if slots != len(account) {
			t.Fatalf("%s: %d slots were due, %d are accounted for", name, slots, len(account))
		}
	}
}

// checkInvariants asks the store's own check.
func checkInvariants(t *rapid.T, w *world) {
	findings, err := check.Check(context.Background(), w.store, time.UnixMilli(w.nowMs))
	if err != nil || len(findings) > 0 {
		t.Fatalf("the store's invariants do not hold: %v %+v", err, findings)
	}
}

// slotsOf returns the slots in (afterMs, toMs].
func slotsOf(t *rapid.T, spec *ax.TaskSpec, afterMs, toMs int64) []int64 {
	times := compile(t, spec.Schedules...)
	var slots []int64
	for at, ok := times.Next(afterMs); ok && at <= toMs; at, ok = times.Next(at) {
		slots = append(slots, at)
	}
	return slots
}

func checkOrderIsIrrelevant(t *rapid.T, w *world, p *planner.Plan, defs []ax.Definition) {
	state := w.state()
	slices.Reverse(state.Objects)
	other, err := planner.Diff(conf(rapid.Permutation(defs).Draw(t, "order")...), state, planner.Options{}, w.nowMs)
	if err != nil {
		t.Fatalf("diff: %v", err)
	}
	if text(other) != text(p) {
		t.Fatalf("another order gives another plan:\n%s\n%s", text(p), text(other))
	}
}

func checkRoundTrip(t *rapid.T, p *planner.Plan) *planner.Plan {
	data, err := planner.Encode(p)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	decoded, err := planner.Decode(data)
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	if text(decoded) != text(p) {
		t.Fatalf("a plan read again is another:\n%s\n%s", text(p), text(decoded))
	}
	return decoded
}

// checkChangeSet checks that a saved plan does what the one it was saved from
// does, and that nothing new starts in the past.
func checkChangeSet(t *rapid.T, w *world, p, decoded *planner.Plan) {
	cs, err := p.ChangeSet(w.state(), "x", ax.Revision{}, w.nowMs)
	if err != nil {
		t.Fatalf("change set: %v", err)
	}
	saved, err := decoded.ChangeSet(w.state(), "x", ax.Revision{}, w.nowMs)
	if err != nil {
		t.Fatalf("change set: %v", err)
	}
	if !reflect.DeepEqual(cs, saved) {
		t.Fatalf("a saved plan does something else:\n%+v\n%+v", cs, saved)
	}
	for _, c := range cs.Changes {
		tt := c.Task.Timetable
		if tt == nil || tt.NextMs == 0 {
			continue
		}
		if tt.NextMs <= w.nowMs || tt.NextMs < cs.ValidUntilMs {
			t.Fatalf("%s goes on at %d, now is %d, valid until %d", c.Name, tt.NextMs, w.nowMs, cs.ValidUntilMs)
		}
	}
}

func checkStale(t *rapid.T, w *world, p *planner.Plan) {
	if len(planner.Stale(p, w.state())) == 0 {
		t.Fatalf("an applied plan may be applied again: %s", text(p))
	}
}

func text(p *planner.Plan) string {
	b, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(b)
}
