package ax

import (
	"context"
	"encoding/json"
)

// The ports, grouped by their consumer. Every driver of package store
// implements all of those that begin a transaction; one method is one
// transaction and one fact, and hot methods take batches. All are safe for
// concurrent use. Besides what each method names, all may return
// ErrUnavailable (try again later) and ErrBusy.

// Definitions is what plan and apply need.
type Definitions interface {
	// ReadStack returns everything a plan of the stack reads, from one
	// snapshot. A stack never applied is an empty state, not an error.
	ReadStack(ctx context.Context, stack string) (StackState, error)
	// Apply writes cs whole or not at all. It returns a StaleError (ErrStale)
	// when an object of the change is not at the version that was read, and
	// ErrMoved when time or a claim overtook it.
	Apply(ctx context.Context, cs ChangeSet) (Applied, error)
	// Revision returns the revision that the apply with this id wrote, or
	// ErrNotFound: how an apply whose answer was lost finds out.
	Revision(ctx context.Context, applyID string) (Revision, error)
}

// StackState is a stack as the store has it.
type StackState struct {
	StoreID string
	Stack   string
	Serial  int64
	Origin  string // of the last apply
	Objects []Object
	// InFlight are the open instances of the stack's objects, oldest first, at
	// most MaxInFlight of them.
	InFlight []InFlight
}

// MaxInFlight bounds StackState.InFlight.
const MaxInFlight = 10_000

// InFlight is an open instance as a plan sees it.
type InFlight struct {
	ID       int64
	ObjectID int64
	Version  int
	Kind     InstanceKind
	Status   Status
}

// Object is a definition's identity, its latest version and, for tasks, the
// hot row. Deleted objects are listed too: their names keep their ids.
type Object struct {
	ID         int64
	Kind       ObjectKind
	Stack      string
	Name       string
	Version    int
	Deleted    bool
	Hash       string
	Definition json.RawMessage // of the latest version that was no deletion
	WrittenBy  string
	WrittenMs  int64
	Row        TaskRow
}

// Address returns the object's address.
func (o Object) Address() string { return Address(o.Kind, o.Name) }

// TaskRow is the hot row of a task.
type TaskRow struct {
	Enabled     bool
	Hold        *Hold
	NextMs      int64 // next_fire_time; 0 none
	LastSlotMs  int64 // every slot up to it is accounted for or was never the task's; 0 none
	Fingerprint string
	Active      int
	Waiting     int
	LockVersion int64
	// FailureStreak is how many instances in a row finally failed, see
	// rules.Streak; the end of a freezing clears it.
	FailureStreak int
	// CheckedFromMs: what accounted for slots up to it may have been deleted by
	// retention; 0 nothing was.
	CheckedFromMs int64
}

// HoldKind says what sort of hold keeps a task from firing.
type HoldKind string

// The kinds of hold.
const (
	HoldPaused HoldKind = "paused" // a person said so
	HoldFrozen HoldKind = "frozen" // too many failures, or a person
)

// Hold is operational state on a task: it never comes from HCL and apply never
// changes it.
type Hold struct {
	Kind    HoldKind
	Who     string
	SinceMs int64
	UntilMs int64 // 0: until someone resumes it
	Reason  string
}

// Operations is what people do to running things.
type Operations interface {
	Signaller
	// Trigger makes one waiting manual instance of the task's current
	// version, enabled and held or not. ErrNotFound for an unknown or deleted
	// address. A key that the task was triggered with less than TriggerKeyMs
	// ago makes none and returns the first one's Ref, whose SlotKey is not that
	// of t.UID; it may have been deleted meanwhile.
	Trigger(ctx context.Context, t Trigger) (Ref, error)
	// Retry makes one waiting instance that does an ended one's work again, for
	// the same due instant and with all its attempts before it, and leaves the
	// ended one as it is. ErrNotFound for an unknown id or when its task is
	// deleted, ErrConflict when it has not ended.
	Retry(ctx context.Context, r Retry) (Ref, error)
	// Mark writes a verdict on an ended instance, or replaces the one it has;
	// its status stays. ErrNotFound for an unknown id, ErrConflict when it has
	// not ended.
	Mark(ctx context.Context, m Mark) error
	// Cancel ends a waiting instance as cancelled, or stores the intent on a
	// running one; the status returned is the one after the call. ErrConflict
	// when it has ended already, ErrNotFound for an unknown id.
	Cancel(ctx context.Context, id int64, who string, nowMs int64) (Status, error)
	// Hold puts a hold on a task, or replaces the one it has.
	Hold(ctx context.Context, objectID int64, h Hold) error
	// Resume ends a hold; the end of a freezing clears the row's FailureStreak.
	// tt accounts for the slots of the held stretch and is
	// computed from the row as read (ErrMoved when it moved). Resuming a task
	// that is not held is ErrConflict.
	Resume(ctx context.Context, objectID int64, tt Timetable, nowMs int64) error
}

// Trigger asks for a manual instance.
type Trigger struct {
	ObjectID int64
	UID      string // fresh UUID, for the slot key
	DueMs    int64  // nominal instant; usually now
	NowMs    int64
	Who      string
	Key      string // the caller's own name for this start, at most MaxTriggerKeyBytes; "" none
}

const (
	// TriggerKeyMs is how long a trigger's key is known.
	TriggerKeyMs = 30 * 24 * 3600 * 1000
	// MaxTriggerKeyBytes bounds a trigger's key.
	MaxTriggerKeyBytes = 256
)

// Retry asks to do an ended instance's work again.
type Retry struct {
	InstanceID  int64
	WithCurrent bool // by the task's current version; else by the one it had
	NowMs       int64
	Who         string
}

// Mark gives a verdict on an ended instance.
type Mark struct {
	InstanceID int64
	Verdict    Verdict
	Reason     string
	NowMs      int64
	Who        string
}

// Detail returns what the life line says of the verdict.
func (m Mark) Detail() string { return string(m.Verdict) + ": " + m.Reason }

// Specs reads immutable definition versions.
type Specs interface {
	// TaskVersions returns the versions asked for; one that does not exist, or
	// that this program cannot read, is missing from the answer and keeps none
	// of the others.
	TaskVersions(ctx context.Context, keys []VersionKey) ([]TaskVersion, error)
}

// VersionKey names one version of an object.
type VersionKey struct {
	ObjectID int64
	Version  int
}

// TaskVersion is one immutable version of a task.
type TaskVersion struct {
	VersionKey
	Stack string
	Name  string
	Spec  TaskSpec
}

// Claims is what turns due slots into instances.
type Claims interface {
	Specs
	Rewinds
	Clocks
	// DueTasks returns the tasks that can fire (enabled, not held, not
	// deleted) and whose next_fire_time is at or before untilMs, soonest
	// first, at most limit, starting after the cursor (zero: from the start).
	// There is no lower bound on lateness.
	DueTasks(ctx context.Context, untilMs int64, after DueCursor, limit int) ([]DueTask, error)
	// ReloadTasks returns the named tasks as they are now; those that cannot
	// fire are missing from the answer.
	ReloadTasks(ctx context.Context, ids []int64) ([]DueTask, error)
	// Claim accounts for due slots: per firing it compares and sets the task
	// row and writes instances and skipped stretches, all firings in one
	// transaction. A firing whose compare fails, or of which a slot has an
	// instance, is Lost and writes nothing.
	Claim(ctx context.Context, firings []Firing) ([]Claimed, error)
	// EndingHolds returns tasks whose hold ends at or before untilMs.
	EndingHolds(ctx context.Context, untilMs int64) ([]HeldTask, error)
	// Resume is Operations.Resume.
	Resume(ctx context.Context, objectID int64, tt Timetable, nowMs int64) error
}

// DueCursor is a position in the order of DueTasks.
type DueCursor struct {
	NextMs int64
	TaskID int64
}

// DueTask is a task as the wheel sees it.
type DueTask struct {
	TaskID      int64
	Version     int
	NextMs      int64
	LastSlotMs  int64
	LockVersion int64
}

// HeldTask is a task whose hold has an end.
type HeldTask struct {
	DueTask
	Enabled bool
	Hold    Hold
}

// Firing accounts for one or more due slots of one task, and moves its
// next_fire_time from ExpectNextMs to NextMs.
type Firing struct {
	TaskID            int64
	Version           int
	ExpectNextMs      int64
	ExpectLockVersion int64
	NextMs            int64 // 0: none
	LastSlotMs        int64 // the newest slot this firing accounts for
	NowMs             int64
	Overlap           Overlap
	Starts            []FiringStart
	Skipped           []SkippedStretch
}

// FiringStart is one slot that becomes an instance.
type FiringStart struct {
	DueMs int64
	// CatchUp starts always wait their turn; the others follow the overlap
	// rule, which runs on active and waiting under the row's lock.
	CatchUp bool
	// Skip is set where the slot is claimed too late to start: it is born
	// skipped for this reason, under every overlap policy.
	Skip Reason
	// Place is set when the host has reserved a place: where the overlap rule
	// lets the instance start, it is born dispatched.
	Place *Handover
}

// Handover says which host an attempt is handed to. The Ref of a FiringStart's
// Place is not set.
type Handover struct {
	Ref
	Attempt    int
	Host       string
	Boot       string
	Executor   string
	AtMs       int64
	DeadlineMs int64
}

// Claimed is what became of a Firing.
type Claimed struct {
	Lost        bool  // somebody else moved the row: reload the task
	LockVersion int64 // the row's new one
	Born        []Born
	// Ahead is set where one is born pending under an overlap policy that knows an
	// order: what waited before, at most MaxAhead, by due instant. What a resume
	// or a claim without an answer made is among it, which the host may not know.
	Ahead []int64
	// Used is set on a lost firing whose row was as expected: the slots among
	// its starts and in its stretches that have an instance already, in due
	// order. They run at no other time, so the firing must leave them out.
	Used []int64
}

// MaxAhead is the most instances that Claimed.Ahead names.
const MaxAhead = 100

// Born is a new instance. Status is dispatched, pending or skipped.
type Born struct {
	Ref
	Status Status
	Reason Reason
	// Replaced is the id of the waiting instance whose place it took, 0 none.
	Replaced int64
	// Cancelled is the id of the running instance on which a cancel intent was
	// written (overlap replace), 0 none.
	Cancelled int64
}

// Dispatches is what moves instances from pending to their end.
type Dispatches interface {
	Specs
	Lapses
	// Pending returns waiting instances, see PendingQuery.
	Pending(ctx context.Context, q PendingQuery) ([]Waiting, error)
	// Dispatch moves pending instances to dispatched; one answer each.
	Dispatch(ctx context.Context, hs []Handover) ([]HandoverResult, error)
	// Started records that attempts have begun and when they must end. An
	// attempt that is no longer dispatched is passed over.
	Started(ctx context.Context, ss []Started) error
	// Finish ends attempts; one answer each. It is idempotent: what was
	// already written is Late.
	Finish(ctx context.Context, es []Ending) ([]Ended, error)
	// Open returns the host's attempts that are dispatched or not yet stopped.
	Open(ctx context.Context, host string) ([]Instance, error)
}

// PendingQuery selects pending instances: those to start at or before UntilMs,
// by (not_before, id); or, when AfterID is set, all with a higher id.
type PendingQuery struct {
	UntilMs int64
	AfterID int64
	Limit   int
}

// Waiting is a pending instance as dispatch sees it.
type Waiting struct {
	Ref
	Version     int
	Kind        InstanceKind
	Attempt     int
	NotBeforeMs int64
	MaxActive   int
	Overlap     Overlap
	Held        bool // its task is held; only manual instances start
}

// HandoverResult is what became of a Handover.
type HandoverResult string

// The results of Dispatch.
const (
	HandedOver      HandoverResult = "handed"  // dispatched
	HandoverBlocked HandoverResult = "blocked" // the task is at its concurrency
	HandoverHeld    HandoverResult = "held"    // the task is held: stays pending
	HandoverGone    HandoverResult = "gone"    // no longer pending in this attempt
)

// Started says that an attempt has begun.
type Started struct {
	Ref
	Attempt    int
	StartedMs  int64
	DeadlineMs int64 // 0: no timeout
}

// Ending says how an attempt ended, or (Status empty) that the processes of an
// attempt that ended before are gone now, or (StoppedMs 0 too, Cause
// CauseUnkillable) that they cannot be killed, which is noted once an attempt. It
// is as wide as what it writes.
type Ending struct {
	Ref
	Attempt int
	// Status is success, failed, timeout or cancelled; pending asks for a
	// retry (StoppedMs must be set then); empty only sets StoppedMs.
	Status      Status
	NotBeforeMs int64  // with a retry
	RetryStatus Status // with a retry: what the ended attempt's row says, failed or timeout
	StartedMs   int64
	EndedMs     int64
	// StoppedMs frees the task's place; 0: its processes are not gone yet.
	StoppedMs     int64
	ErrorClass    ErrorClass
	Error         string
	Outputs       json.RawMessage
	OutputBytes   int64
	OutputDropped int64
	Cause         Cause // "" on the happy path; else a transition is written
	Detail        string
	Next          string // with a retry: what the transition says of the next attempt, if there is one
	NowMs         int64
}

// Ended is what became of an Ending.
type Ended struct {
	// Status is the instance's status after the call. A cancel intent turns
	// an asked-for retry into cancelled.
	Status Status
	// Late: the attempt had ended before; noted as late_result, nothing else.
	Late bool
	// Freed: this call set stopped_ms, so the task has a place again.
	Freed bool
	// FrozenAfter: this call has frozen the task (freeze_after), after so many
	// failed instances in a row; 0 it has not.
	FrozenAfter int
}

// CancelIntents tells dispatch about cancels that people stored.
type CancelIntents interface {
	Live
	// Cancels returns the host's running attempts with a cancel intent.
	Cancels(ctx context.Context, host string) ([]CancelIntent, error)
}

// CancelIntent is a stored wish to end a running attempt.
type CancelIntent struct {
	Ref
	Attempt int
	By      string
	// Replaced: the overlap rule asked, not a person.
	Replaced bool
}

// Watcher tells about commits of other processes.
type Watcher interface {
	// Changed reports whether another process has committed since the last
	// call. It may say true without cause, never false with one.
	Changed(ctx context.Context) (bool, error)
}

// Hosts is where an axd says that it is there.
type Hosts interface {
	// Join records the host under a fresh boot id, replacing its last one.
	Join(ctx context.Context, h Host) error
	// Leave records a clean stop.
	Leave(ctx context.Context, name, boot string, nowMs int64) error
}

// Retention deletes history that is old.
type Retention interface {
	// Prune deletes of each task the instances that ended at or before
	// q.EndedByMs, with their attempts and life lines, and likewise skipped
	// stretches; oldest first up to the first that must stay. What is open, and
	// the newest q.KeepLast of each, always stays. Keys of triggers go by their
	// own age. It works in transactions of at most about PruneStep rows, and
	// fewer where they take long, calls step after each, and ends with step's
	// error. Several may run at once.
	Prune(ctx context.Context, q PruneQuery, step func(Pruned) error) error
}

// PruneStep is about how many rows one transaction of Prune deletes at most.
const PruneStep = 500

// PruneQuery says what is old. The newest instances are those made last.
type PruneQuery struct {
	EndedByMs int64
	KeepLast  int   // instances, and skipped stretches, of each task
	KeysByMs  int64 // keys of triggers made at or before it go; 0: none
}

// Pruned counts deleted rows.
type Pruned struct {
	Instances   int64
	Attempts    int64
	Transitions int64
	Stretches   int64
	Keys        int64 // of triggers
}

// Plus returns the sum of both.
func (p Pruned) Plus(o Pruned) Pruned {
	return Pruned{p.Instances + o.Instances, p.Attempts + o.Attempts, p.Transitions + o.Transitions, p.Stretches + o.Stretches, p.Keys + o.Keys}
}

// Rows returns how many rows that is.
func (p Pruned) Rows() int64 { return p.Instances + p.Attempts + p.Transitions + p.Stretches + p.Keys }

// Host is a machine that runs axd.
type Host struct {
	Name      string
	Boot      string // random, new at each start of axd
	PID       int
	DataDir   string // absolute
	Listen    string // the address of its API, "" none
	Version   string
	TZData    string
	Handlers  []string
	Pools     map[string]int // places by name; nil: an older axd did not say
	StartedMs int64
	LeftMs    int64 // 0: it has not stopped cleanly
}
