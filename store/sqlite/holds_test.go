package sqlite

import (
	"errors"
	"testing"
	"time"

	"github.com/axctl/ax"
)

// A pace goes down at once when a transaction takes long, never below what must
// go on, and up again slowly.
func TestPace(t *testing.T) {
	t.Parallel()
	p := newPace(500)
	if p.rows > 100 {
		t.Errorf("it begins with %d rows", p.rows)
	}
	for range 10 {
		p.took(time.Millisecond)
	}
	if p.rows != 500 {
		t.Errorf("after quick ones it is %d", p.rows)
	}
	p.took(holdAtMost - time.Millisecond)
	if p.rows != 500 {
		t.Errorf("after one that was right it is %d", p.rows)
	}
	p.took(holdAtMost + time.Millisecond)
	if p.rows != 250 {
		t.Errorf("after a slow one it is %d", p.rows)
	}
	for range 10 {
		p.took(time.Second)
	}
	if p.rows != leastRows {
		t.Errorf("after many slow ones it is %d", p.rows)
	}
}

// Each transaction is told by its kind and its time, what failed too, and
// background work is in none with others.
func TestHolds(t *testing.T) {
	t.Parallel()
	clock := time.Unix(0, 0)
	s := newStore(t, Options{Now: func() time.Time { return clock }})
	before := s.Holds()
	for i, kind := range []string{kindPrune, kindPrune, kindIndex} {
		took := time.Duration(i+1) * time.Second
		failed := errors.New("no")
		held, err := s.background(t.Context(), kind, func(*tx) error {
			clock = clock.Add(took)
			return failed
		})
		if held != took || !errors.Is(err, failed) {
			t.Errorf("held for %s, %v", held, err)
		}
	}
	want := []ax.WriterHold{
		before[0], before[1],
		{Kind: kindPrune, Count: 2, Sum: 3 * time.Second, Longest: 2 * time.Second},
		{Kind: kindIndex, Count: 1, Sum: 3 * time.Second, Longest: 3 * time.Second},
	}
	for i, h := range s.Holds() {
		if h != want[i] {
			t.Errorf("%+v, want %+v", h, want[i])
		}
	}
}
