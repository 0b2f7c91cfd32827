package main

import (
	"context"
	"fmt"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store"
)

// How the tasks live that the upgrade drill watches beside its long one. The one
// that stands still has less time than it is paused for, and the silent one is
// given up within its heartbeat.
const (
	stillRuns    = 4 * time.Second
	stillTimeout = 6 * time.Second
	heartbeat    = 4 * time.Second
)

// liveTasks are what must outlive axd as it was: one that is paused, one that
// gives signs of life, and one that gives none.
func (s *stage) liveTasks() string {
	text := ""
	for _, t := range []struct{ name, attributes, runs, lines string }{
		{"still", fmt.Sprintf("timeout = %q", stillTimeout), stillRuns.String(), "40"},
		{"beats", fmt.Sprintf("heartbeat = %q", heartbeat), upgradeRuns.String(), "100"},
		{"silent", fmt.Sprintf("heartbeat = %q\n  idempotent = false", heartbeat), "10m", "0"},
	} {
		text += fmt.Sprintf(`
task %q {
  %s
  handler "shell" { command = [%q, %q, %q, %q] }
}
`, t.name, t.attributes, s.ledger, s.ledgerPath(), t.runs, t.lines)
	}
	return text
}

// live is the instances of one round.
type live struct{ still, beats, silent string }

// beginLive begins them, and pauses the one that is to stand still.
func (s *stage) beginLive(ctx context.Context) (l live, err error) {
	for name, id := range map[string]*string{"still": &l.still, "beats": &l.beats, "silent": &l.silent} {
		if *id, err = s.trigger(ctx, name); err != nil {
			return l, err
		}
	}
	if err := s.awaitRow(ctx, l.still, "run", func(r ax.Life) bool { return r.StartedMs != 0 }); err != nil {
		return l, err
	}
	_, err = s.run(ctx, "signal", l.still, "pause")
	return l, err
}

// checkLive looks at them after all ends of axd: the paused one stands still and
// goes on when it is told to, the silent one is lost, the other has done its work.
func (s *stage) checkLive(ctx context.Context, l live) error {
	if err := s.awaitRow(ctx, l.still, "be paused", func(r ax.Life) bool { return r.Signal != nil && r.Signal.PausedMs != 0 }); err != nil {
		return err
	}
	if err := s.standsStill(ctx, l.still); err != nil {
		return err
	}
	if _, err := s.run(ctx, "signal", l.still, "resume"); err != nil {
		return err
	}
	for id, want := range map[string]func(ax.Life) bool{
		l.still:  func(r ax.Life) bool { return r.Status == ax.StatusSuccess && r.Attempt == 1 },
		l.beats:  func(r ax.Life) bool { return r.Status == ax.StatusSuccess && r.Attempt == 1 },
		l.silent: func(r ax.Life) bool { return r.Status == ax.StatusFailed && r.ErrorClass == ax.ClassLost },
	} {
		if err := s.awaitRow(ctx, id, "end as it should", want); err != nil {
			return err
		}
	}
	return nil
}

// standsStill looks at what an attempt prints, ten lines a second when it runs,
// which tells the same whether a signal or the kernel's freezer holds it.
func (s *stage) standsStill(ctx context.Context, id string) error {
	before, err := s.run(ctx, "logs", id)
	if err != nil {
		return err
	}
	if err := sleep(ctx, time.Second); err != nil {
		return err
	}
	after, err := s.run(ctx, "logs", id)
	if err == nil && after != before {
		err = fmt.Errorf("instance %s is told to be paused and goes on: it printed\n%s, and a second later\n%s", id, before, after)
	}
	return err
}

// awaitRow waits until an instance is as it should be.
func (s *stage) awaitRow(ctx context.Context, id, what string, is func(ax.Life) bool) error {
	st, err := store.Open(ctx, "sqlite:"+s.storePath(), store.Options{ReadOnly: true, Now: time.Now})
	if err != nil {
		return err
	}
	defer st.Close()
	var n int64
	if _, err := fmt.Sscan(id, &n); err != nil {
		return err
	}
	for deadline := time.Now().Add(2 * upgradeRuns); ; {
		l, err := st.Instance(ctx, n)
		switch {
		case err != nil:
			return err
		case is(l):
			return nil
		case time.Now().After(deadline) || l.Status.Final():
			return fmt.Errorf("instance %d does not %s: %s in attempt %d, %s %q, signals %+v", n, what, l.Status, l.Attempt, l.ErrorClass, l.Error, l.Signal)
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}
