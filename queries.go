package ax

import (
	"context"
	"encoding/json"
	"iter"
)

// Queries is all that is read for people. Every answer is one snapshot. It has
// more than six methods because it has one kind of consumer, which shows them.
type Queries interface {
	Info(ctx context.Context) (StoreInfo, error)
	// Objects returns objects, deleted ones too, by stack, kind and name.
	Objects(ctx context.Context, f ObjectFilter) ([]Object, error)
	// Versions returns an object's versions, newest first.
	Versions(ctx context.Context, objectID int64) ([]VersionRow, error)
	// Instances returns instances, newest due first.
	Instances(ctx context.Context, f InstanceFilter) ([]InstanceRow, error)
	// Instance returns one whole life; ErrNotFound for an unknown id.
	Instance(ctx context.Context, id int64) (Life, error)
	// Stretches returns a task's skipped stretches, newest first.
	Stretches(ctx context.Context, taskID int64, limit int) ([]SkippedStretch, error)
	// Hosts returns all hosts that ever joined.
	Hosts(ctx context.Context) ([]Host, error)
	// Offers returns what the hosts that told it offer, by host.
	Offers(ctx context.Context) ([]HostOffer, error)
	// Counts returns how many instances are open, by status.
	Counts(ctx context.Context) (map[Status]int64, error)
}

// StoreInfo identifies a store.
type StoreInfo struct {
	URL           string
	ID            string
	Incarnation   string
	SchemaVersion int
	MinReader     int
	Serial        int64
	CreatedMs     int64
	TZData        string // of the axd or axctl that wrote last
	Clock         ClockMark
}

// VersionRow is one version of an object with the revision that wrote it.
type VersionRow struct {
	VersionKey
	Hash       string
	Deleted    bool
	Definition json.RawMessage
	Revision   Revision
}

// ObjectFilter selects objects. Zero fields select all.
type ObjectFilter struct {
	Stack string
	Kind  ObjectKind
	Name  string // whole, as in refresh["eu"]
	IDs   []int64
}

// InstanceFilter selects instances. Zero fields select all.
type InstanceFilter struct {
	TaskID  int64
	Status  []Status
	Kinds   []InstanceKind
	SinceMs int64 // due at or after
	Before  *Ref  // only those that come after this one in the order: the next page
	Held    bool  // only those whose attempt holds a place: handed over, and not gone
	Limit   int   // 0: 100
}

// InstanceRow is an instance with the names of what it belongs to.
type InstanceRow struct {
	Instance
	Stack string
	Task  string // address
	// Unkillable names the processes that hold its place though they were killed,
	// "" none are known.
	Unkillable string
	// LastError is how the attempt before failed, while a retry is pending.
	LastError string
	// PausedMs is set while the attempt that runs stands still, at PausedBy's
	// wish.
	PausedMs int64
	PausedBy string
}

// Life is all that is known of an instance.
type Life struct {
	InstanceRow
	Attempts    []Attempt
	Transitions []Transition
	Progress    *Progress    // what it said last, of any attempt; nil nothing
	Signal      *SignalState // what was asked of its attempt; nil nothing
	RetriedBy   []int64      // the instances that people's retries of it made, oldest first
}

// Auditor shows a store's rows as they are, for store/check.
type Auditor interface {
	// Audit calls read with one snapshot, which is gone when read returns.
	Audit(ctx context.Context, read func(Records) error) error
}

// Records is a snapshot of a store, row by row, without holding it in memory.
// A sequence ends at its first error. It has a method a kind of row, which are
// more than six.
type Records interface {
	// Objects are in order of id.
	Objects() iter.Seq2[Object, error]
	// Versions are in order of object and version.
	Versions() iter.Seq2[VersionRow, error]
	// Instances are in order of id.
	Instances() iter.Seq2[Instance, error]
	// Attempts are in order of instance and attempt.
	Attempts() iter.Seq2[Attempt, error]
	// Transitions are in order of instance, then as they were written.
	Transitions() iter.Seq2[Transition, error]
	// Slots are all that accounts for scheduled slots, in order of task and
	// first slot.
	Slots() iter.Seq2[SlotRecord, error]
	// Unindexed are keys on which the index of tasks' histories and the ledger
	// do not agree; none where there is no such index.
	Unindexed() iter.Seq2[IndexFault, error]
	// Backfills are in order of id.
	Backfills() iter.Seq2[Backfill, error]
}

// IndexFault is a key that only one of the two has, the index of histories or
// the ledger.
type IndexFault struct {
	Ref          // without ID when it is not in the ledger
	Missing bool // in the index, and else in the ledger
}

// SlotRecord is a scheduled instance (FromMs and ToMs are its due instant) or
// a skipped stretch.
type SlotRecord struct {
	TaskID  int64
	FromMs  int64
	ToMs    int64
	Version int
	Stretch bool
}
