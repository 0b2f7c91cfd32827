// Package upkeep does what a store needs done in the background while axd runs,
// and tells how long anything has held its writer. It owns when and how fast;
// what there is to do is the store's.
package upkeep

import (
	"cmp"
	"context"
	"log/slog"
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
	cfg    Config
	putOff bool // the last look failed, and that was told
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
	timer := time.NewTimer(k.cfg.Every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		k.runOnce(ctx)
		timer.Reset(k.cfg.Every)
	}
}

// runOnce does what there is to do. A store that is away only puts it off.
func (k *Keeper) runOnce(ctx context.Context) {
	err := k.cfg.Store.IndexHistory(ctx, func() error { return pause(ctx, k.cfg.Pause) })
	switch {
	case ctx.Err() != nil:
	case err == nil:
		k.putOff = false
	case !k.putOff:
		k.putOff = true
		k.cfg.Log.Warn("history is not indexed for now; it is only read slower", "error", err)
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
