package runtime_test

import (
	"context"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store/storetest"
)

// bug is a fault of design that is planted to see whether the simulation finds
// it; the zero bug is none.
type bug struct {
	store  func(storetest.Store) storetest.Store // as axd uses it
	forget bool                                  // the journal does not outlive axd
	// gullible executors do what an axd had said, when the next one has begun.
	gullible bool
}

// A simulation that finds nothing proves something only if it finds what is
// there.
func TestPlantedBugs(t *testing.T) {
	for name, c := range map[string]struct {
		bug  bug
		says string // of the finding that tells this bug
	}{
		"advance before insert": {
			bug{store: func(s storetest.Store) storetest.Store { return advancing{s} }},
			"has neither an instance nor a skipped stretch",
		},
		"late report accepted": {
			bug{store: func(s storetest.Store) storetest.Store { return &credulous{Store: s, last: map[int64]ax.Status{}} }},
			"its life line ends with",
		},
		"place freed before the stop": {
			bug{store: func(s storetest.Store) storetest.Store { return hasty{s} }},
			"more than its concurrency",
		},
		"no epoch check": {bug{gullible: true}, "was begun after it had been given up"},
		"no journal":     {bug{forget: true}, "was reported as success, and the store says"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= mostSeeds; seed++ {
				for _, f := range explore(t, seed, c.bug).found {
					if strings.Contains(f, c.says) {
						t.Logf("found by seed %d of %d: %s", seed, mostSeeds, f)
						return
					}
				}
			}
			t.Errorf("not found in %d seeds", mostSeeds)
		})
	}
}

// advancing moves next_fire_time in one transaction and writes the instances in
// the next.
type advancing struct{ storetest.Store }

func (a advancing) Claim(ctx context.Context, fs []ax.Firing) ([]ax.Claimed, error) {
	moves := make([]ax.Firing, len(fs))
	for i, f := range fs {
		moves[i] = f
		if f.NextMs != 0 { // else there is no second compare
			moves[i].Starts = nil
		}
	}
	claimed, err := a.Store.Claim(ctx, moves)
	if err != nil {
		return nil, err
	}
	var inserts []ax.Firing
	var at []int
	for i, f := range fs {
		if !claimed[i].Lost && f.NextMs != 0 {
			f.ExpectNextMs, f.ExpectLockVersion, f.Skipped = f.NextMs, claimed[i].LockVersion, nil
			inserts, at = append(inserts, f), append(at, i)
		}
	}
	if len(inserts) == 0 {
		return claimed, nil
	}
	born, err := a.Store.Claim(ctx, inserts)
	for n, i := range at {
		if err == nil {
			claimed[i] = born[n]
		}
	}
	return claimed, err
}

// credulous believes each end that is reported of an attempt, not the first.
type credulous struct {
	storetest.Store
	mu   sync.Mutex // guards last
	last map[int64]ax.Status
}

func (c *credulous) Finish(ctx context.Context, es []ax.Ending) ([]ax.Ended, error) {
	ended, err := c.Store.Finish(ctx, es)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, e := range es {
		if ended[i].Late && ended[i].Status.Final() && e.Status.Final() {
			c.last[e.ID] = e.Status
			ended[i].Late, ended[i].Status = false, e.Status
		}
	}
	return ended, nil
}

func (c *credulous) Audit(ctx context.Context, read func(ax.Records) error) error {
	return c.Store.Audit(ctx, func(r ax.Records) error { return read(believed{r, c.last}) })
}

// believed shows the rows as credulous would have written them.
type believed struct {
	ax.Records
	last map[int64]ax.Status
}

func (b believed) Instances() iter.Seq2[ax.Instance, error] {
	return func(yield func(ax.Instance, error) bool) {
		for in, err := range b.Records.Instances() {
			if s, ok := b.last[in.ID]; ok {
				in.Status = s
			}
			if !yield(in, err) {
				return
			}
		}
	}
}

// hasty frees an attempt's place with its end, whether or not its processes are
// gone.
type hasty struct{ storetest.Store }

func (h hasty) Finish(ctx context.Context, es []ax.Ending) ([]ax.Ended, error) {
	hs := make([]ax.Ending, len(es))
	for i, e := range es {
		hs[i] = e
		if e.StoppedMs == 0 {
			hs[i].StoppedMs = e.EndedMs
		}
	}
	return h.Store.Finish(ctx, hs)
}
