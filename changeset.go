package ax

import "encoding/json"

// Action is what a change does to an object.
type Action string

// The actions built so far.
const (
	ActionCreate Action = "create"
	ActionUpdate Action = "update"
	ActionDelete Action = "delete"
)

// ChangeSet is everything one apply writes. It is computed before the
// transaction begins and is either written whole or not at all.
type ChangeSet struct {
	// ApplyID is random and made before the transaction, so that an apply
	// whose answer was lost can find itself (see Definitions.Revision).
	ApplyID string
	// StoreID is the store the change was computed from; "" for a new one.
	StoreID string
	Stack   string
	// BaseSerial is the stack's serial that was read.
	BaseSerial int64
	// NowMs is the instant all effects were computed for. ValidUntilMs is the
	// first slot after it of any timetable that moves, by its old rule or its new
	// one (0: none): a commit at or after it would lose the old rule's slot, or
	// write a moment that has passed, so it is refused with ErrMoved.
	NowMs        int64
	ValidUntilMs int64
	Revision     Revision
	Changes      []Change
}

// Revision says who applied what and from where: the row of an apply.
type Revision struct {
	ApplyID    string
	Stack      string
	Serial     int64 // of the stack after this apply
	AtMs       int64
	Who        string // user name
	Host       string
	Origin     string // absolute path of the configuration
	GitRemote  string
	GitCommit  string
	GitDirty   bool
	PlanHash   string
	ConfigHash string
	Message    string
	Added      int
	Changed    int
	Deleted    int
}

// Change is what an apply does to one object.
type Change struct {
	Action      Action
	Kind        ObjectKind
	Name        string
	ObjectID    int64 // 0 when the name was never there; a name made again keeps its id
	BaseVersion int   // the version that was read; 0 none, also for a deleted one made again
	// Definition is the new canonical JSON, nil for delete. Hash is its
	// content hash.
	Definition json.RawMessage
	Hash       string
	Task       *TaskChange // of a task, else nil
}

// TaskChange is what a change does to a task's hot row.
type TaskChange struct {
	Enabled     bool
	MaxActive   int
	Overlap     Overlap
	FreezeAfter int
	// Timetable is set when next_fire_time moves: the schedule changed, the
	// task was enabled or disabled, or it is new. Otherwise next_fire_time is
	// left exactly as it is.
	Timetable *Timetable
	// SkipPending is set when waiting scheduled instances end as SKIPPED with
	// this reason: disabled or deleted. On delete all waiting instances do.
	SkipPending Reason
}

// Timetable moves a task's next_fire_time, with all that is due to the slots
// in between. Expect* are the values it was computed from.
type Timetable struct {
	ExpectNextMs      int64 // 0: none
	ExpectLockVersion int64
	// Settled says that slots up to NowMs were due and not claimed, and that
	// Starts and Skipped account for them: then the row must be exactly as
	// expected, else ErrMoved. When it is false the row may have moved on, but
	// must have no slot due.
	Settled     bool
	NextMs      int64 // 0: none
	LastSlotMs  int64 // last_slot rises to it, and never falls; 0: leave as it is
	Fingerprint string
	Starts      []Start
	Skipped     []SkippedStretch
}

// Start makes one waiting instance of a task for a slot that has passed. It
// waits its turn under every overlap policy.
type Start struct {
	DueMs   int64
	Version int
}

// Applied is what an apply did.
type Applied struct {
	Serial    int64
	Revision  Revision
	StoreMade bool
}
