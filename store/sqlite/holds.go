package sqlite

import (
	"sync"
	"time"

	"github.com/axctl/ax"
)

// The kinds of work that are accounted for by themselves, see ax.WriterHold.
const (
	kindWork  = "work" // firings, and all that people and handlers wait for
	kindApply = "apply"
	kindPrune = "prune"
	kindIndex = "index"
)

var holdKinds = []string{kindWork, kindApply, kindPrune, kindIndex}

// holds counts transactions by kind.
type holds struct {
	mu     sync.Mutex
	byKind map[string]*ax.WriterHold
}

// add counts one transaction, once for each kind that is in it.
func (h *holds) add(batch []*write, held time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := ""
	for _, b := range batch {
		if b.kind == last {
			continue
		}
		last = b.kind
		if h.byKind == nil {
			h.byKind = map[string]*ax.WriterHold{}
		}
		k := h.byKind[b.kind]
		if k == nil {
			k = &ax.WriterHold{Kind: b.kind}
			h.byKind[b.kind] = k
		}
		k.Count++
		k.Sum += held
		k.Longest = max(k.Longest, held)
	}
}

// Holds implements ax.Upkeep.
func (s *Store) Holds() []ax.WriterHold {
	s.writer.holds.mu.Lock()
	defer s.writer.holds.mu.Unlock()
	all := make([]ax.WriterHold, 0, len(holdKinds))
	for _, kind := range holdKinds {
		h := ax.WriterHold{Kind: kind}
		if k := s.writer.holds.byKind[kind]; k != nil {
			h = *k
		}
		all = append(all, h)
	}
	return all
}

const (
	// holdAtMost is how long a transaction of background work is meant to hold
	// the writer: well under the 50 ms that it may, since one commit can take a
	// multiple of the one before.
	holdAtMost = 20 * time.Millisecond
	// leastRows is what a transaction of background work may always do.
	leastRows = 20
)

// pace sizes the transactions of some background work by how long they took.
type pace struct{ rows, most int }

// newPace begins small: nothing is known of the disk.
func newPace(most int) *pace { return &pace{min(most, 5*leastRows), most} }

// took makes the next one fit.
func (p *pace) took(held time.Duration) {
	switch {
	case held > holdAtMost:
		p.rows = max(p.rows/2, leastRows)
	case held < holdAtMost/2:
		p.rows = min(p.rows+p.rows/2, p.most)
	}
}
