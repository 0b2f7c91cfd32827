package ax

import "context"

// Rewinds is what claim needs to mend tasks whose row is ahead of their
// schedule, as a clock that was ahead leaves them.
type Rewinds interface {
	// ScheduledTasks returns tasks that are not deleted, held and disabled
	// ones too, with an id above afterID, in order of their ids, at most limit.
	ScheduledTasks(ctx context.Context, afterID int64, limit int) ([]ScheduledTask, error)
	// Rewind sets next_fire_time and last_slot of tasks back, all in one
	// transaction, and says of each whether it did: a row that is not as
	// expected is left alone. Of the task's skipped stretches it takes back
	// what lies after NowMs, and its waiting instances that are due after NowMs
	// may start at once. Instances stay: their slots are used.
	Rewind(ctx context.Context, rs []Rewind) ([]bool, error)
}

// ScheduledTask is a task with what tells whether its row is ahead.
type ScheduledTask struct {
	DueTask
	Enabled     bool
	Fingerprint string // of the schedule that NextMs was computed from
}

// Rewind moves one task back.
type Rewind struct {
	TaskID            int64
	ExpectNextMs      int64
	ExpectLockVersion int64
	NextMs            int64 // 0: none
	LastSlotMs        int64 // at or before NowMs; 0: none
	NowMs             int64
}
