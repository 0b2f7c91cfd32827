package host

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// heldLook is how often processes that cannot be killed are looked at.
const heldLook = time.Second

// maxNamed bounds how many such processes are named.
const maxNamed = 8

// holders returns the batches whose processes cannot be killed, each with their
// names. A process without a mark, or with that of none of them, may be of any.
func holders(left []stat, batches map[string]bool) map[string]string {
	if len(left) == 0 {
		return nil
	}
	of := map[string][]stat{}
	for _, s := range left {
		if b, ok := variable(s.pid, "AX_BATCH_NO"); ok && batches[b] {
			of[b] = append(of[b], s)
			continue
		}
		for b := range batches {
			of[b] = append(of[b], s)
		}
	}
	held := map[string]string{}
	for b, ps := range of {
		var named []string
		for _, s := range ps[:min(len(ps), maxNamed)] {
			named = append(named, fmt.Sprintf("%d (%s)", s.pid, s.name))
		}
		if more := len(ps) - len(named); more > 0 {
			named = append(named, fmt.Sprintf("and %d more", more))
		}
		held[b] = strings.Join(named, ", ")
	}
	return held
}

// clear clears the session of a process that has exited, and notes what of it
// cannot be killed.
func (h *Host) clear(p *process) {
	if p.left = p.session.run(); len(p.left) > 0 {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.unclear = append(h.unclear, p.session)
	}
}

// holders clears what is left of earlier hosts, and returns which of the batches
// it cannot clear.
func (h *Host) holders(all []clearing, batches map[string]bool) map[string]string {
	var left []stat
	for _, c := range all {
		left = append(left, c.run()...)
	}
	return holders(left, batches)
}

// outwait frees the places of a process's attempts when what could not be killed
// is gone. It goes on being killed.
func (l *link) outwait(ctx context.Context, exit string) {
	h := l.x.host
	h.cfg.Log.Error("processes of an executor cannot be killed; their attempts keep their places", "executor", l.x.cmd.Name, "processes", len(l.proc.left))
	for pause(ctx, heldLook) {
		held := h.holders([]clearing{l.proc.session}, h.batches(l.proc))
		h.gone(l, exit, held)
		if len(held) == 0 {
			h.forgetRecord(l)
			return
		}
	}
}

// pause returns true after d, false when ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
