package ax

import "context"

// Clocks keeps what the clocks of the host that claims said when they were
// last believed, so that an axd that starts can tell a clock that went wrong
// while none ran.
type Clocks interface {
	// ClockMark returns the last reading; the zero ClockMark when there is none.
	ClockMark(ctx context.Context) (ClockMark, error)
	// KeepClock replaces it.
	KeepClock(ctx context.Context, m ClockMark) error
}

// ClockMark is a reading of two clocks at one instant.
type ClockMark struct {
	WallMs int64 // of the clock that people and time servers set
	// ElapsedMs is of a clock that nobody sets and that goes on while the machine
	// sleeps. It begins anew with Kernel, and says nothing beside one of another.
	ElapsedMs int64
	Kernel    string // names one start of the kernel; "" unknown
	// FormerMs is WallMs - ElapsedMs as it was believed before the wall clock
	// was set last; 0 unknown.
	FormerMs int64
}
