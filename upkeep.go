package ax

import (
	"context"
	"time"
)

// Upkeep is what a store needs done in the background, and how it fares.
type Upkeep interface {
	// IndexHistory brings up to date what lists a task's instances without
	// reading those of all others. It is a matter of speed alone: what is not
	// indexed yet is listed too. It works in short transactions, calls step
	// after each, and ends with step's error. Several may run at once.
	IndexHistory(ctx context.Context, step func() error) error
	// Checkpoint brings what was committed from a log that commits share to where
	// it stays, when there is enough of it, so that no commit has to. It is a
	// matter of speed alone. A store without such a log has nothing to do.
	Checkpoint(ctx context.Context) error
	// Holds tells how long transactions have held the writer since the store was
	// opened, by kind; none where a store has no one writer.
	Holds() []WriterHold
}

// WriterHold is how long transactions of one kind have held the writer. One with
// work of several kinds counts for each.
type WriterHold struct {
	Kind    string // work, apply, prune, index
	Count   int64
	Sum     time.Duration
	Longest time.Duration
}
