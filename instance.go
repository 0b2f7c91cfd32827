package ax

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Status is the state of an instance. Its values are stored and printed.
type Status string

// The statuses. The last five are final: they are written once and never
// change. See Transitions for who may move an instance from one to another.
const (
	StatusPending    Status = "pending"    // to be started at not_before
	StatusDispatched Status = "dispatched" // given to a host
	StatusSuccess    Status = "success"
	StatusFailed     Status = "failed"
	StatusTimeout    Status = "timeout"
	StatusSkipped    Status = "skipped"
	StatusCancelled  Status = "cancelled"
)

// Statuses lists all statuses, open ones first.
var Statuses = []Status{
	StatusPending, StatusDispatched,
	StatusSuccess, StatusFailed, StatusTimeout, StatusSkipped, StatusCancelled,
}

// Final reports whether s never changes again. Of a word that is no status,
// which a damaged store may have, that cannot be said; doctor tells it.
func (s Status) Final() bool {
	switch s {
	case StatusSuccess, StatusFailed, StatusTimeout, StatusSkipped, StatusCancelled:
		return true
	default:
		return false
	}
}

// InstanceKind says what made an instance.
type InstanceKind string

// The kinds built so far; event and graph are designed and join them here.
const (
	InstanceSchedule InstanceKind = "schedule"
	InstanceManual   InstanceKind = "manual"
	InstanceBackfill InstanceKind = "backfill"
)

// InstanceKinds lists all kinds.
var InstanceKinds = []InstanceKind{InstanceSchedule, InstanceManual, InstanceBackfill}

// ByPerson reports whether a person started instances of this kind: they start
// in spite of a hold or enabled = false.
func (k InstanceKind) ByPerson() bool { return k == InstanceManual || k == InstanceBackfill }

// SlotPrefixes returns what the slot keys of instances of this kind begin with.
func (k InstanceKind) SlotPrefixes() []string {
	switch k {
	case InstanceSchedule:
		return []string{schedulePrefix}
	case InstanceManual:
		return []string{manualPrefix, retryPrefix}
	case InstanceBackfill:
		return []string{backfillPrefix}
	default:
		return nil
	}
}

// Reason explains a status that is no outcome of the handler's work, and a
// skipped stretch.
type Reason string

// The reasons.
const (
	ReasonNone        Reason = ""
	ReasonOverlap     Reason = "overlap"      // the task was at its concurrency
	ReasonReplaced    Reason = "replaced"     // a newer firing took its place
	ReasonMisfire     Reason = "misfire"      // missed in an outage, and the policy did not run it
	ReasonHeld        Reason = "held"         // the task was paused or frozen
	ReasonDisabled    Reason = "disabled"     // enabled = false
	ReasonDeleted     Reason = "deleted"      // its definition was deleted
	ReasonStartWithin Reason = "start_within" // it was not started in time
)

// Ref names one instance: its id, and the ledger key it is stored under. The
// key never changes, so a Ref read once is good for ever.
type Ref struct {
	ID      int64
	DueMs   int64 // the slot's nominal instant, ms since epoch UTC
	TaskID  int64
	SlotKey string
}

// ScheduleSlotKey returns the slot key of the scheduled slot due at dueMs.
func ScheduleSlotKey(dueMs int64) string { return schedulePrefix + strconv.FormatInt(dueMs, 10) }

// ManualSlotKey returns the slot key of a manual start; uid is a fresh UUID.
func ManualSlotKey(uid string) string { return manualPrefix + uid }

// RetrySlotKey returns the slot key of the n-th retry, from 1, that people asked
// for of an instance.
func RetrySlotKey(instance int64, n int) string {
	return RetrySlotPrefix(instance) + strconv.Itoa(n)
}

// RetrySlotPrefix returns what the slot keys of all retries of an instance
// begin with.
func RetrySlotPrefix(instance int64) string {
	return retryPrefix + strconv.FormatInt(instance, 10) + ":"
}

const (
	schedulePrefix = "s:"
	manualPrefix   = "m:"
	retryPrefix    = "r:"
)

// ByPerson reports whether a person started the instance, by trigger, retry or
// backfill.
func (r Ref) ByPerson() bool {
	return strings.HasPrefix(r.SlotKey, manualPrefix) || strings.HasPrefix(r.SlotKey, retryPrefix) || strings.HasPrefix(r.SlotKey, backfillPrefix)
}

// RetryOf returns the id of the instance that this one is a person's retry of,
// 0 when it is none.
func (r Ref) RetryOf() int64 {
	key, ok := strings.CutPrefix(r.SlotKey, retryPrefix)
	of, _, cut := strings.Cut(key, ":")
	id, err := strconv.ParseInt(of, 10, 64)
	if !ok || !cut || err != nil {
		return 0
	}
	return id
}

// Verdict is what a person says of an ended instance, beside its status.
type Verdict string

// The verdicts.
const (
	VerdictNone    Verdict = ""
	VerdictSuccess Verdict = "success" // as good as a success
	VerdictSkipped Verdict = "skipped" // not worth a success
)

// Verdicts lists all verdicts that people can give.
var Verdicts = []Verdict{VerdictSuccess, VerdictSkipped}

// Instance is one execution's row, from birth to final state, and as wide as
// that. Instants are ms since epoch UTC; 0 means "not yet".
type Instance struct {
	Ref
	Version     int // of the definition it was born with and keeps
	Kind        InstanceKind
	Status      Status
	Reason      Reason
	Attempt     int // from 1
	Host        string
	Boot        string // the boot id of the axd that handed it over
	Executor    string
	CancelBy    string // who asked to cancel it; "" nobody
	NotBeforeMs int64
	// The six instants of the happy path.
	ClaimedMs  int64
	AssignedMs int64
	HandedMs   int64
	StartedMs  int64
	EndedMs    int64
	StoppedMs  int64 // its processes verified gone; frees its place
	DeadlineMs int64
	ErrorClass ErrorClass
	Error      string // valid UTF-8, at most MaxErrorBytes
	Outputs    json.RawMessage
	// OutputBytes is what the attempt printed, OutputDropped what of it was
	// not kept.
	OutputBytes   int64
	OutputDropped int64
	// Verdict is a person's, on an ended instance; the life line tells who,
	// when and why.
	Verdict Verdict
}

// MaxErrorBytes bounds an instance's error text; MaxOutputsBytes its outputs.
const (
	MaxErrorBytes   = 4 << 10
	MaxOutputsBytes = 64 << 10
)

// Prunable reports whether retention may delete it by its age: it ended at or
// before endedByMs, and its processes are gone.
func (in Instance) Prunable(endedByMs int64) bool {
	return in.EndedMs != 0 && in.EndedMs <= endedByMs && (in.HandedMs == 0 || in.StoppedMs != 0)
}

// BatchNo returns the number that a dispatch of this attempt carries. It is a
// pure function of row and attempt, so whoever dispatches again after a crash
// sends the same number and the executor can recognise it.
func BatchNo(incarnation string, instance int64, attempt int) string {
	return fmt.Sprintf("%s-%d-%d", incarnation, instance, attempt)
}

// ParseBatchNo takes a batch number apart; ok is false when it is none.
func ParseBatchNo(s string) (incarnation string, instance int64, attempt int, ok bool) {
	parts := strings.Split(s, "-")
	if len(parts) != 3 {
		return "", 0, 0, false
	}
	instance, err1 := strconv.ParseInt(parts[1], 10, 64)
	attempt, err2 := strconv.Atoi(parts[2])
	return parts[0], instance, attempt, err1 == nil && err2 == nil
}

// Attempt is an ended attempt that was followed by another one. The last
// attempt of an instance is told by the instance itself.
type Attempt struct {
	InstanceID int64
	Attempt    int
	Host       string
	Executor   string
	Status     Status // failed, timeout
	ErrorClass ErrorClass
	Error      string
	HandedMs   int64
	StartedMs  int64
	EndedMs    int64
	StoppedMs  int64
}

// Transition is one entry of an instance's life line beyond the happy path.
type Transition struct {
	InstanceID int64
	AtMs       int64
	Attempt    int
	From, To   Status // equal when only something was noted
	Actor      string // claim, dispatch, apply, a person
	Cause      Cause
	Detail     string
}

// Cause names what a Transition is about.
type Cause string

// The causes of transitions.
const (
	CauseRetry       Cause = "retry"        // an attempt ended, another follows
	CauseLost        Cause = "lost"         // its executor or axd was gone
	CauseTimeout     Cause = "timeout"      // its deadline passed
	CauseCancel      Cause = "cancel"       // cancel was asked for
	CauseCancelLate  Cause = "cancel_late"  // cancel came too late: it had ended
	CauseReplaced    Cause = "replaced"     // a newer firing took its place
	CauseOverlap     Cause = "overlap"      // born skipped, or skipped while waiting
	CauseLateResult  Cause = "late_result"  // a report for an attempt already declared ended
	CauseStartWithin Cause = "start_within" // it was not started in time
	CauseDeleted     Cause = "deleted"      // the definition was deleted
	CauseDisabled    Cause = "disabled"     // the definition was disabled
	CauseUnkillable  Cause = "unkillable"   // its processes do not end though they were killed
	CauseStopped     Cause = "stopped"      // its processes were gone later than its end
	CauseTrigger     Cause = "trigger"      // a person started it
	CauseRetryOf     Cause = "retry_of"     // a person started it, to do an ended instance's work again
	CauseFrozen      Cause = "frozen"       // its failure has frozen the task
	CauseBackfill    Cause = "backfill"     // a person's backfill made it
	CauseMark        Cause = "mark"         // a person gave a verdict
	CausePause       Cause = "pause"        // a person asked for a pause, and what came of it
	CauseResume      Cause = "resume"       // a person asked it to go on, and what came of it
	CauseNotAccepted Cause = "not_accepted" // the executor refused the job
)

// SkippedStretch is a stretch of slots that were not run and have no row of
// their own: all slots of the version's schedule in [FromMs, ToMs].
type SkippedStretch struct {
	TaskID  int64
	FromMs  int64 // first slot, inclusive
	ToMs    int64 // last slot, inclusive
	Slots   int   // how many; -1 when over 1,000: counted when shown
	Reason  Reason
	Version int
}

// CancelByOverlap is Instance.CancelBy when overlap = replace asked, and no
// person.
const CancelByOverlap = "overlap: replace"

// FrozenBy is Hold.Who when freeze_after froze a task, and no person.
const FrozenBy = "freeze_after"

// MaxCountedSlots is the most slots a stretch counts when it is written.
const MaxCountedSlots = 1000
