// Package retention keeps the size of a store and of its logs bounded: now and
// then it deletes what ended long ago. It owns when and how fast; what is old
// enough is the query's, and what deleting means is the store's.
//
// It is background work: one short transaction at a time, with a pause after
// each, and a store that is away only puts it off.
package retention

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/axctl/ax"
	"github.com/prometheus/client_golang/prometheus"
)

// The defaults of Config.
const (
	DefaultAge  = 30 * 24 * time.Hour
	DefaultLast = 1000
)

const (
	// DefaultPause between two steps lets some 20,000 rows a second go, which is
	// more than one store fires, and leaves two thirds of the writer's time to
	// firings.
	DefaultPause = 15 * time.Millisecond
	// A sweep reads the index of the whole ledger, so it comes round no more
	// often than is needed to stay within a twenty-fourth of the age.
	mostOften, mostRarely = time.Minute, time.Hour
)

// Logs are log files that can be pruned.
type Logs interface {
	// Prune removes what is older than beforeMs and tells how many bytes.
	Prune(beforeMs int64) (bytes int64, err error)
}

// Config is what a Pruner works with. Store is required.
type Config struct {
	Store ax.Retention
	Logs  Logs          // nil: none
	Age   time.Duration // how long after its end history is kept; DefaultAge
	Last  int           // how many of each task are kept whatever their age; DefaultLast
	Pause time.Duration // after each transaction; DefaultPause
	// Wait says that the clock is not to be believed: nothing is deleted by it.
	// nil: always believed.
	Wait func() bool

	Now        func() time.Time // time.Now
	Log        *slog.Logger     // discards
	Registerer prometheus.Registerer
}

// Pruner deletes what is old. Make it with New and let it work with Run.
type Pruner struct {
	cfg     Config
	metrics metrics
	putOff  bool // the last sweep failed, and that was told
}

// New makes a Pruner and starts nothing.
func New(cfg Config) *Pruner {
	cfg.Age = cmp.Or(cfg.Age, DefaultAge)
	cfg.Last = cmp.Or(cfg.Last, DefaultLast)
	cfg.Pause = cmp.Or(cfg.Pause, DefaultPause)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Pruner{cfg: cfg, metrics: newMetrics(cfg.Registerer)}
}

// Run sweeps a minute after it is called and then now and then, until ctx ends;
// then it returns nil.
func (p *Pruner) Run(ctx context.Context) error {
	timer := time.NewTimer(mostOften)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if p.cfg.Wait != nil && p.cfg.Wait() {
			timer.Reset(mostOften)
			continue
		}
		p.runOnce(ctx)
		timer.Reset(min(max(p.cfg.Age/24, mostOften), mostRarely))
	}
}

// runOnce makes one sweep.
func (p *Pruner) runOnce(ctx context.Context) {
	began := p.cfg.Now()
	beforeMs := began.Add(-p.cfg.Age).UnixMilli()
	var sum ax.Pruned
	q := ax.PruneQuery{EndedByMs: beforeMs, KeepLast: p.cfg.Last, KeysByMs: began.UnixMilli() - ax.TriggerKeyMs}
	err := p.cfg.Store.Prune(ctx, q, func(n ax.Pruned) error {
		sum = sum.Plus(n)
		p.metrics.rows.Add(float64(n.Rows()))
		return pause(ctx, p.cfg.Pause)
	})
	var bytes int64
	if err == nil && p.cfg.Logs != nil {
		bytes, err = p.cfg.Logs.Prune(beforeMs)
	}
	p.metrics.bytes.Add(float64(bytes))
	if sum.Rows() > 0 || bytes > 0 {
		p.cfg.Log.Info("old history deleted", "instances", sum.Instances, "attempts", sum.Attempts,
			"transitions", sum.Transitions, "stretches", sum.Stretches, "trigger_keys", sum.Keys, "log_bytes", bytes,
			"ended_before", ax.FormatInstant(beforeMs, time.UTC), "took", p.cfg.Now().Sub(began))
	}
	switch {
	case ctx.Err() != nil:
	case err == nil:
		p.metrics.last.Set(float64(p.cfg.Now().UnixMilli()) / 1000)
		p.putOff = false
	case !p.putOff:
		p.putOff = true
		p.cfg.Log.Warn("old history is not deleted for now", "error", err)
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
