package ax

import "context"

// Lapses is what dispatch needs to end instances that were not started in time.
type Lapses interface {
	// Lapse takes pending instances that no attempt was made of to skipped
	// (start_within), all in one transaction, and says of each whether it did.
	// One that is pending no more is left alone, so a repetition does nothing.
	Lapse(ctx context.Context, ls []Lapse) ([]bool, error)
}

// Lapse ends one instance that was not started in time.
type Lapse struct {
	Ref
	Detail string // what its life line says
	NowMs  int64
}
