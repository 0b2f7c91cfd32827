package ax

import (
	"context"
	"strconv"
	"strings"
)

// BackfillMode says which slots of its range a backfill makes instances for. A
// slot that has an open instance is left to it by every mode.
type BackfillMode string

// The modes. What became of a slot is said by all instances due at it, whatever
// made them, a verdict in the place of the status: see rules.StateOf.
const (
	BackfillMissing BackfillMode = "missing" // those that nothing ran for: no instance, or only skipped ones
	BackfillFailed  BackfillMode = "failed"  // those whose last run ended without success
	BackfillAll     BackfillMode = "all"
)

// BackfillModes lists all modes.
var BackfillModes = []BackfillMode{BackfillMissing, BackfillFailed, BackfillAll}

// BackfillState is how far a backfill is. Its values are stored and printed.
type BackfillState string

// The states. The last two are final.
const (
	BackfillRunning   BackfillState = "running"
	BackfillPaused    BackfillState = "paused" // makes nothing more until someone resumes it
	BackfillDone      BackfillState = "done"   // every slot is decided and every instance has ended
	BackfillCancelled BackfillState = "cancelled"
)

// Final reports whether s never changes again.
func (s BackfillState) Final() bool { return s == BackfillDone || s == BackfillCancelled }

// MaxBackfillParallel bounds BackfillRequest.Parallel.
const MaxBackfillParallel = 100

// BackfillRequest asks to run slots that have passed. Which slots they are and
// what runs is fixed by the version, so that what somebody looked at and
// confirmed is what happens, whatever is applied meanwhile.
type BackfillRequest struct {
	TaskID   int64
	Version  int   // the task's current one
	FromMs   int64 // the first instant of the range
	ToMs     int64 // the first instant after it
	Mode     BackfillMode
	Parallel int   // most open instances of it at once, 1 to MaxBackfillParallel
	Slots    int64 // how many the range has; -1 not counted
	Who      string
	AtMs     int64 // when it was asked for
}

// Backfill is a backfill with its progress.
type Backfill struct {
	ID int64
	BackfillRequest
	State      BackfillState
	PositionMs int64  // every slot before it is decided
	Made       int64  // instances made
	Passed     int64  // slots decided on without making one
	By         string // who paused, resumed or cancelled it last; "" nobody
	ByMs       int64
	Reason     Reason // of a cancel that no person asked for: deleted
	EndedMs    int64
}

// BackfillSlotKey returns the slot key of a backfill's instance for a slot.
func BackfillSlotKey(id, dueMs int64) string {
	return BackfillSlotPrefix(id) + strconv.FormatInt(dueMs, 10)
}

// BackfillSlotPrefix returns what the slot keys of all instances of a backfill
// begin with.
func BackfillSlotPrefix(id int64) string { return backfillPrefix + strconv.FormatInt(id, 10) + ":" }

const backfillPrefix = "b:"

// BackfillID returns the id of the backfill that made the instance, 0 when none
// did.
func (r Ref) BackfillID() int64 {
	key, ok := strings.CutPrefix(r.SlotKey, backfillPrefix)
	of, _, cut := strings.Cut(key, ":")
	id, err := strconv.ParseInt(of, 10, 64)
	if !ok || !cut || err != nil {
		return 0
	}
	return id
}

// BackfillOperations is what people do to backfills, and see of them.
type BackfillOperations interface {
	// StartBackfill writes a running backfill at the start of its range. The
	// instances come later, by Fills. ErrNotFound for an unknown or deleted task,
	// ErrStale when the version is not the current one, ErrConflict when a
	// backfill of the task that has not ended overlaps the range.
	StartBackfill(ctx context.Context, r BackfillRequest) (Backfill, error)
	// MoveBackfill pauses, resumes or cancels one: cancelling ends its waiting
	// instances as cancelled, and lets those that run go on. ErrNotFound for an
	// unknown id, ErrConflict when it has ended or is in that state already.
	MoveBackfill(ctx context.Context, m BackfillMove) (Backfill, error)
	// Backfills returns backfills, newest first.
	Backfills(ctx context.Context, f BackfillFilter) ([]Backfill, error)
	// Tries returns the instances of a task that are due at one of these
	// instants, in order of due and id.
	Tries(ctx context.Context, taskID int64, dues []int64) ([]Try, error)
}

// BackfillMove takes a backfill to running, paused or cancelled.
type BackfillMove struct {
	ID    int64
	To    BackfillState
	Who   string
	NowMs int64
}

// BackfillFilter selects backfills. Zero fields select all.
type BackfillFilter struct {
	ID     int64
	TaskID int64
	States []BackfillState
	Limit  int // 0: 1000
}

// Try is an instance as one of the tries of a slot.
type Try struct {
	Ref
	Status  Status
	Verdict Verdict
}

// Fills is what makes the instances of backfills, a few at a time.
type Fills interface {
	Specs
	// Backfills is BackfillOperations.Backfills.
	Backfills(ctx context.Context, f BackfillFilter) ([]Backfill, error)
	// Fill goes on with a running backfill, in one transaction: it decides on
	// the slots one after the other and makes instances while it has fewer open
	// ones than its parallel, or its task's concurrency, where that is less.
	// When all slots are decided and no instance is open it is done. A backfill
	// that is not running or not at ExpectPositionMs is Lost, and nothing is
	// written.
	Fill(ctx context.Context, f Fill) (Filled, error)
}

// MaxFillSlots bounds Fill.Slots, and with it how long a Fill holds the writer.
const MaxFillSlots = 200

// Fill is one step of a backfill.
type Fill struct {
	BackfillID       int64
	ExpectPositionMs int64
	Slots            []int64 // the next ones from there on, at most MaxFillSlots
	Last             bool    // no slot of the range comes after them
	NowMs            int64
}

// Filled is what became of a Fill.
type Filled struct {
	Lost       bool
	Made       []Ref // waiting instances of this kind, in due order
	PositionMs int64
	Open       int // instances of the backfill that have not ended, or whose processes are not gone
	State      BackfillState
	MaxActive  int // of the task, with Overlap what Waiting needs
	Overlap    Overlap
}
