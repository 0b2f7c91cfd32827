package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/axctl/ax/cmd/axd/daemon"
	"github.com/axctl/ax/runtime"
	"github.com/axctl/ax/store"
	"github.com/axctl/ax/store/check"
)

const (
	soakPeriod = 4 * time.Second // of each task
	// A segment of output goes when all of it is too old, some 90 s after it was
	// full, and retention sweeps each minute: after this, at 2,000 firings a
	// second, one has gone and everything has been at its largest once.
	soakRetain     = 30 * time.Second
	soakRetainLast = 5
	soakWarm       = 330 * time.Second
)

// soaking counts starts as they are told.
type soaking struct {
	started, late, worst atomic.Int64
}

func (s *soaking) event(e runtime.Event) {
	if e.Kind != runtime.EventStarted {
		return
	}
	ms := e.StartedMs - e.DueMs
	s.started.Add(1)
	if ms > 1000 {
		s.late.Add(1)
	}
	for worst := s.worst.Load(); ms > worst && !s.worst.CompareAndSwap(worst, ms); worst = s.worst.Load() {
	}
}

// sample is the state at one instant.
type sample struct {
	at            time.Duration
	db, wal, logs int64
	rss           int64
	started       int64
}

func (s sample) disk() int64 { return s.db + s.wal + s.logs }

// benchSoak fires b.firings instances at b.rate a second, each with a line of
// output, with a retention that keeps half a minute, and fails when the disk or
// the memory they take goes on growing, when more than one in 10,000 starts over
// a second late, or when the store is not sound at the end.
func benchSoak(ctx context.Context, b *bench) error {
	length := time.Duration(float64(b.firings) / float64(b.rate) * float64(time.Second))
	if length < soakWarm+time.Minute {
		return fmt.Errorf("%d firings at %d a second take %s: at least %s are needed to see what grows", b.firings, b.rate, round(length), soakWarm+time.Minute)
	}
	path := b.path("soak.db")
	tasks := int(float64(b.rate) * soakPeriod.Seconds())
	st, err := stockOf(ctx, path, tasks, "talk", spaced(soakPeriod, tasks))
	if err != nil {
		return err
	}
	if err := st.Close(); err != nil {
		return err
	}
	var seen soaking
	w, err := workAs(ctx, path, "talk", 4096, func(c *daemon.Config) {
		c.Retain, c.RetainLast, c.OnEvent = soakRetain, soakRetainLast, seen.event
	})
	if err != nil {
		return err
	}
	var samples []sample
	begin := time.Now()
	for told := time.Duration(0); int(seen.started.Load()) < b.firings; {
		if err := sleep(ctx, time.Second); err != nil {
			return errors.Join(err, w.stop())
		}
		s, err := look(path, time.Since(begin), &seen)
		if err != nil {
			return errors.Join(err, w.stop())
		}
		samples = append(samples, s)
		if s.at-told >= 15*time.Second {
			told = s.at
			fmt.Printf("  %4.0fs  %8d started  store %4d MB  log of writes %3d MB  output %4d MB  memory %4d MB\n",
				s.at.Seconds(), s.started, s.db>>20, s.wal>>20, s.logs>>20, s.rss>>20)
		}
		if s.at > 2*length+time.Minute {
			return errors.Join(fmt.Errorf("%d of %d have started after %s", s.started, b.firings, round(s.at)), w.stop())
		}
	}
	holds := w.d.Store().Holds()
	if err := w.stop(); err != nil {
		return err
	}
	for _, h := range holds {
		if h.Count > 0 {
			fmt.Printf("  %s held the writer at most %s, %d times in all\n", h.Kind, round(h.Longest), h.Count)
		}
	}
	return errors.Join(judge(samples, &seen), sound(ctx, path))
}

// judge compares what was taken when all was at its largest once with what is
// taken later.
func judge(samples []sample, seen *soaking) error {
	warm := slices.IndexFunc(samples, func(s sample) bool { return s.at >= soakWarm })
	if warm < 0 {
		return errors.New("it was over before retention had worked")
	}
	var errs []error
	compare := func(what string, of func(sample) int64, slack int64) {
		var before, after int64
		for i, s := range samples {
			if i < warm {
				before = max(before, of(s))
			} else {
				after = max(after, of(s))
			}
		}
		fmt.Printf("  %s: at most %d MB in the first %s, %d MB after; slope after %+.1f MB a minute\n",
			what, before>>20, soakWarm, after>>20, slope(samples[warm:], of)/(1<<20))
		if after > before+before/5+slack {
			errs = append(errs, fmt.Errorf("%s grows", what))
		}
	}
	compare("disk", sample.disk, 80<<20) // a segment of output is 64 MB
	compare("memory", func(s sample) int64 { return s.rss }, 16<<20)
	started, late := seen.started.Load(), seen.late.Load()
	share := 100 * (1 - float64(late)/float64(started))
	fmt.Printf("  %d started, %.4f %% within 1 s of due (target 99.99 %%), the latest after %s\n",
		started, share, time.Duration(seen.worst.Load())*time.Millisecond)
	if late*10_000 > started {
		errs = append(errs, fmt.Errorf("%d of %d started over 1 s late", late, started))
	}
	return errors.Join(errs...)
}

// slope returns by how much a figure rises in a minute, by least squares.
func slope(samples []sample, of func(sample) int64) float64 {
	var n, sx, sy, sxx, sxy float64
	for _, s := range samples {
		x, y := s.at.Minutes(), float64(of(s))
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	if n < 2 {
		return 0
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

// look takes one sample.
func look(path string, at time.Duration, seen *soaking) (sample, error) {
	s := sample{at: at, started: seen.started.Load()}
	for suffix, size := range map[string]*int64{"": &s.db, "-wal": &s.wal} {
		if info, err := os.Stat(path + suffix); err == nil {
			*size = info.Size()
		}
	}
	err := filepath.WalkDir(path+".data", func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it was removed meanwhile
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			s.logs += info.Size()
		}
		return nil
	})
	if err != nil {
		return s, err
	}
	_, s.rss, err = family(os.Getpid())
	return s, err
}

// sound checks the invariants of a store that nobody works on.
func sound(ctx context.Context, path string) error {
	st, err := store.Open(ctx, "sqlite:"+path, store.Options{ReadOnly: true, Now: time.Now, Log: quiet()})
	if err != nil {
		return err
	}
	defer st.Close()
	found, err := check.Check(ctx, st, time.Now())
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range found {
		errs = append(errs, errors.New(f.String()))
	}
	fmt.Printf("  invariants: %d findings\n", len(found))
	return errors.Join(errs[:min(len(errs), 10)]...)
}
