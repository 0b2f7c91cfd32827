// Package upkeep does what a store needs done in the background while axd runs,
// and tells how long anything has held its writer. It owns when and how fast;
// what there is to do is the store's.
package upkeep

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/axctl/ax"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	// DefaultEvery keeps what is read beside the index short: at 20,000 firings
	// a second it is 40,000 rows, some 10 ms of reading.
	DefaultEvery = 2 * time.Second
	// DefaultPause between two transactions, which aim at 20 ms each, leaves most
	// of the writer to firings also while millions of old rows are indexed.
	DefaultPause = 100 * time.Millisecond
	// checkpointEvery keeps the log so short that it is copied in little time: at
	// 10,000 firings a second it grows by some 10 MB meanwhile.
	checkpointEvery = 500 * time.Millisecond
)

// Config is what a Keeper works with. Store is required.
type Config struct {
	Store ax.Upkeep
	Every time.Duration // between two looks; DefaultEvery
	Pause time.Duration // after each transaction; DefaultPause

	Log        *slog.Logger // discards
	Registerer prometheus.Registerer
}

// Keeper looks after a store. Make it with New and let it work with Run.
type Keeper struct {
	cfg Config
	// The last try failed, and that was told.
	indexPutOff, checkpointPutOff bool
}

// New makes a Keeper and starts nothing.
func New(cfg Config) *Keeper {
	cfg.Every = cmp.Or(cfg.Every, DefaultEvery)
	cfg.Pause = cmp.Or(cfg.Pause, DefaultPause)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Registerer != nil {
		cfg.Registerer.MustRegister(holds{cfg.Store})
	}
	return &Keeper{cfg: cfg}
}

// Run looks after the store now and then until ctx ends; then it returns nil.
func (k *Keeper) Run(ctx context.Context) error {
	var checkpoints sync.WaitGroup
	checkpoints.Go(func() { repeat(ctx, checkpointEvery, k.checkpointOnce) })
	repeat(ctx, k.cfg.Every, k.indexOnce)
	checkpoints.Wait()
	return nil
}

// repeat calls once with a pause before each until ctx ends.
func repeat(ctx context.Context, every time.Duration, once func(context.Context)) {
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		once(ctx)
		timer.Reset(every)
	}
}

func (k *Keeper) indexOnce(ctx context.Context) {
	err := k.cfg.Store.IndexHistory(ctx, func() error { return pause(ctx, k.cfg.Pause) })
	k.tell(ctx, &k.indexPutOff, "history is not indexed for now; it is only read slower", err)
}

func (k *Keeper) checkpointOnce(ctx context.Context) {
	err := k.cfg.Store.Checkpoint(ctx)
	k.tell(ctx, &k.checkpointPutOff, "the store's log is not copied for now; commits do it, and take longer", err)
}

// tell logs the first of several failures. A store that is away only puts the
// work off.
func (k *Keeper) tell(ctx context.Context, putOff *bool, text string, err error) {
	switch {
	case ctx.Err() != nil:
	case err == nil:
		*putOff = false
	case !*putOff:
		*putOff = true
		k.cfg.Log.Warn(text, "error", err)
	}
}

// pause waits for d, or returns why ctx ended.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
