// Package check holds the invariants of a store: what is true of its rows
// after every commit, whatever crashed in between. Tests run it after each use
// of a store, axctl doctor on request, drills after each fault.
//
// It reads one snapshot as streams, so its memory grows with tasks and not
// with instances. The numbers of the invariants are those of
// docs/invariants.md, which gives SQL for some of them.
package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/axctl/ax"
)

// Finding is one violation of an invariant.
type Finding struct {
	Invariant int    // its number in docs/invariants.md
	Subject   string // task.NAME or instance ID
	Problem   string // what is wrong
	Remedy    string // what to do
}

func (f Finding) String() string {
	return fmt.Sprintf("%s: %s (invariant %d); %s", f.Subject, f.Problem, f.Invariant, f.Remedy)
}

// MaxFindings is how many findings Check returns at most.
const MaxFindings = 1000

// What to do about a finding.
const (
	report       = "this is a fault of ax or of the disk: keep a copy of the store and report it"
	restartMends = "start axd again, which counts anew; if it stays, keep a copy of the store and report it"
	stop         = "see with axctl instances -status=dispatched which run, and cancel what should not; keep a copy of the store and report it"
	release      = "end the hold with axctl resume, or hold it again with axctl pause; keep a copy of the store and report it"
	reindex      = "nothing is lost, a list is wrong: run DELETE FROM history; UPDATE meta SET history_to = NULL; with sqlite3, and axd makes it anew"
	backfill     = "run what is missing with axctl backfill, keep a copy of the store and report it"
)

// Check reads the whole store and returns what is wrong with it, nothing when
// all invariants hold. An error means that the store could not be read.
func Check(ctx context.Context, store ax.Auditor, now time.Time) ([]Finding, error) {
	c := &checker{nowMs: now.UnixMilli(), tasks: map[int64]*task{}, retried: map[int64][]ax.Ref{}, untimed: map[ax.VersionKey][]int64{}, backfills: map[int64]*progress{}}
	err := store.Audit(ctx, func(r ax.Records) error {
		for _, step := range []func(ax.Records) error{c.readObjects, c.readBackfills, c.instances, c.retries, c.versions, c.counters, c.index, c.backfillCounts} {
			if err := step(r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("check store: %w", err)
	}
	slices.SortStableFunc(c.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Invariant, b.Invariant), cmp.Compare(a.Subject, b.Subject))
	})
	return c.findings, nil
}

// checker collects findings and what later steps need of earlier ones.
type checker struct {
	nowMs     int64
	tasks     map[int64]*task
	untimed   map[ax.VersionKey][]int64 // dispatched instances without a deadline, by version
	retried   map[int64][]ax.Ref        // people's retries, by what they are of
	backfills map[int64]*progress
	findings  []Finding
}

// task is an object with what its instances add up to.
type task struct {
	address string
	kind    ax.ObjectKind
	stack   string
	version int
	deleted bool
	row     ax.TaskRow
	active  int
	waiting int
	// activeFrom is since when the oldest active attempt is.
	activeFrom int64
	first      int64         // its oldest instance
	used       map[int]int64 // version → an instance of it
}

func (c *checker) find(invariant int, remedy, subject, problem string, args ...any) {
	if len(c.findings) < MaxFindings {
		c.findings = append(c.findings, Finding{invariant, subject, fmt.Sprintf(problem, args...), remedy})
	}
}

func (c *checker) readObjects(r ax.Records) error {
	for o, err := range r.Objects() {
		if err != nil {
			return fmt.Errorf("objects: %w", err)
		}
		t := &task{address: o.Address(), kind: o.Kind, stack: o.Stack, version: o.Version, deleted: o.Deleted, row: o.Row, used: map[int]int64{}}
		c.tasks[o.ID] = t
		switch {
		case o.Row.NextMs != 0 && o.Row.NextMs <= o.Row.LastSlotMs:
			c.find(6, report, t.address, "next_fire_time %s is not after last_slot %s", instant(o.Row.NextMs), instant(o.Row.LastSlotMs))
		case o.Row.Hold != nil && o.Row.Hold.Who == "":
			c.find(8, release, t.address, "it is held (%s), and who did it is not recorded", o.Row.Hold.Kind)
		case o.Deleted && o.Row.NextMs != 0:
			c.find(6, report, t.address, "it is deleted and has next_fire_time %s", instant(o.Row.NextMs))
		}
	}
	return nil
}

// counters compares the hot rows with what the instances add up to.
func (c *checker) counters(ax.Records) error {
	for _, t := range c.tasks {
		if t.active != t.row.Active {
			c.find(3, restartMends, t.address, "active is %d, and %d attempts are handed over and not stopped", t.row.Active, t.active)
		}
		if t.waiting != t.row.Waiting {
			c.find(3, restartMends, t.address, "waiting is %d, and %d instances are pending", t.row.Waiting, t.waiting)
		}
	}
	return nil
}

// index compares the index of histories with the ledger.
func (c *checker) index(r ax.Records) error {
	for f, err := range r.Unindexed() {
		if err != nil {
			return fmt.Errorf("index of histories: %w", err)
		}
		if f.Missing {
			c.find(12, reindex, fmt.Sprintf("instance %d", f.ID), "the history of its task does not list it")
		} else {
			c.find(12, reindex, fmt.Sprintf("task %d", f.TaskID), "its history lists %s due %s, which does not exist", f.SlotKey, instant(f.DueMs))
		}
	}
	return nil
}

func instant(ms int64) string { return ax.FormatInstant(ms, time.UTC) }
