package check

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"math"

	"github.com/axctl/ax"
	"github.com/axctl/ax/schedule"
)

// definition is what one version of a task has to say about slots.
type definition struct {
	effectiveMs int64
	deleted     bool
	concurrency int
	schedule    *schedule.Schedule // nil when it cannot be read
}

// versions checks each object's versions, and with them that no slot of theirs
// is missing: two streams in the order of objects.
func (c *checker) versions(r ax.Records) error {
	slots := newGroups(r.Slots(), func(s ax.SlotRecord) int64 { return s.TaskID })
	defer slots.stop()
	var id int64
	var known []definition
	finish := func() error {
		if id == 0 {
			return nil
		}
		c.versionsDone(id, known)
		if c.tasks[id].kind != ax.KindTask {
			return nil // nothing of it is due
		}
		if err := c.slots(c.tasks[id], known, slots.each(id)); err != nil {
			return fmt.Errorf("slots: %w", err)
		}
		return nil
	}
	for v, err := range r.Versions() {
		if err != nil {
			return fmt.Errorf("versions: %w", err)
		}
		if v.ObjectID != id {
			if err := finish(); err != nil {
				return err
			}
			id, known = v.ObjectID, nil
		}
		t := c.tasks[id]
		if t == nil {
			c.find(2, report, fmt.Sprintf("object %d", id), "version %d is of no object", v.Version)
			id = 0
			continue
		}
		known = append(known, c.version(t, v, len(known)+1))
	}
	if err := finish(); err != nil {
		return err
	}
	for _, t := range c.tasks {
		if t.used != nil {
			c.find(2, report, t.address, "it has no version")
		}
	}
	return nil
}

// version checks one version; number is the one it should have.
func (c *checker) version(t *task, v ax.VersionRow, number int) definition {
	d := definition{effectiveMs: v.Revision.AtMs, deleted: v.Deleted}
	if v.Version != number {
		c.find(2, report, t.address, "version %d is missing", number)
	}
	if v.Revision.Stack != t.stack {
		c.find(11, report, t.address, "version %d was written by an apply of stack %s, and the object is of stack %s", v.Version, v.Revision.Stack, t.stack)
	}
	if v.Deleted {
		return d
	}
	if sum := sha256.Sum256(v.Definition); hex.EncodeToString(sum[:]) != v.Hash {
		c.find(2, report, t.address, "version %d has been changed: its content does not have its hash", v.Version)
	}
	if t.kind != ax.KindTask {
		return d
	}
	var spec ax.TaskSpec
	if err := json.Unmarshal(v.Definition, &spec); err != nil {
		c.find(2, report, t.address, "version %d cannot be read: %v", v.Version, err)
		return d
	}
	d.concurrency = spec.Concurrency
	untimed := c.untimed[v.VersionKey]
	if spec.Timeout != 0 {
		for _, id := range untimed {
			c.find(4, report, fmt.Sprintf("instance %d", id), "it is dispatched and has no deadline, and its timeout is %s", spec.Timeout)
		}
	}
	var err error
	if d.schedule, err = schedule.Compile(spec.Schedules); err != nil {
		d.schedule = nil
		c.find(6, "apply a schedule that this version of ax knows", t.address, "the schedule of version %d cannot be read: %v", v.Version, err)
	}
	return d
}

// versionsDone checks what needs all versions of an object.
func (c *checker) versionsDone(id int64, known []definition) {
	t := c.tasks[id]
	if len(known) != t.version {
		c.find(2, report, t.address, "it is at version %d, and %d versions are stored", t.version, len(known))
	}
	for v, instance := range t.used {
		if v < 1 || v > len(known) || known[v-1].deleted {
			c.find(2, report, fmt.Sprintf("instance %d", instance), "version %d of %s does not exist", v, t.address)
		}
	}
	t.used = nil
	most := 0
	for i, d := range known {
		// In force until the next one; a clock that was set may tell it later.
		if i == len(known)-1 || known[i+1].effectiveMs+clockSlack >= t.activeFrom {
			most = max(most, d.concurrency)
		}
	}
	if t.active > most && most > 0 {
		c.find(3, stop, t.address, "%d attempts are handed over and not stopped, and no version of that time lets more than %d", t.active, most)
	}
}

// clockSlack is by how much the clock of an apply may differ from a claim's.
const clockSlack = 24 * 3600 * 1000

// slots checks that the records, in due order, account for every slot once.
func (c *checker) slots(t *task, known []definition, records iter.Seq2[ax.SlotRecord, error]) error {
	last := ax.SlotRecord{ToMs: known[0].effectiveMs, Version: 1}
	checked := sameZones(t, known)
	first := true
	for r, err := range records {
		if err != nil {
			return err
		}
		if !first && r.FromMs <= last.ToMs {
			law, what := 6, "by two records"
			if r.FromMs == last.FromMs && !r.Stretch && !last.Stretch {
				law, what = 1, "by two instances"
			}
			c.find(law, report, t.address, "slot %s is accounted for %s", instant(r.FromMs), what)
		}
		if checked && r.Version <= len(known) {
			c.gap(t, known, last, min(r.FromMs, t.reached()), r.Version)
		}
		if r.ToMs >= last.ToMs || first {
			last = r
		}
		first = false
	}
	if t.deleted || !t.row.Enabled || !checked {
		return nil
	}
	end := t.row.NextMs
	if end == 0 {
		end = c.nowMs + 1
	}
	c.gap(t, known, last, end, len(known))
	return nil
}

// reached returns up to where slots must be accounted for. A record after that
// was made while the clock was ahead; the slots before it are still to come.
func (t *task) reached() int64 {
	switch {
	case t.row.NextMs != 0:
		return t.row.NextMs
	case t.row.LastSlotMs != 0:
		return t.row.LastSlotMs + 1
	}
	return math.MaxInt64
}

// gap finds the first slot after the record last and before endMs that the
// version then in force had, up to version to.
func (c *checker) gap(t *task, known []definition, last ax.SlotRecord, endMs int64, to int) {
	for v := last.Version; v >= 1 && v <= to; v++ {
		d := known[v-1]
		if d.deleted || d.schedule == nil {
			continue
		}
		if v < to && endMs <= known[to-1].effectiveMs {
			continue // the clock was ahead when version to was applied: it is in force already
		}
		after, until := max(last.ToMs, t.row.CheckedFromMs), endMs
		if v > last.Version {
			after = max(after, d.effectiveMs)
		}
		if v < to {
			until = min(until, known[v].effectiveMs+1)
		}
		if slot, ok := d.schedule.Next(after); ok && slot < until {
			c.find(6, backfill, t.address, "slot %s of version %d has neither an instance nor a skipped stretch", instant(slot), v)
			return
		}
	}
}

// sameZones reports whether this program computes the slots as the one that
// wrote them: other zone data makes other slots, which are no fault.
func sameZones(t *task, known []definition) bool {
	current := known[len(known)-1]
	return t.row.Fingerprint == "" || current.deleted || current.schedule == nil || current.schedule.Fingerprint() == t.row.Fingerprint
}
