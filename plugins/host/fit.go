package host

import (
	"encoding/json"
	"sync"

	"github.com/axctl/ax/plugins"
)

// verdicts remembers which bodies a schema accepts: the same few are asked for
// with each firing. Large bodies, and more than a host has tasks, are judged
// each time anew.
type verdicts struct {
	mu     sync.RWMutex
	bodies map[string]bool
}

// Bounds of what is remembered.
const (
	maxVerdicts    = 20_000
	maxVerdictBody = 4 << 10
)

func newVerdicts() *verdicts { return &verdicts{bodies: map[string]bool{}} }

func (v *verdicts) accepts(s plugins.Schema, body json.RawMessage) bool {
	v.mu.RLock()
	ok, known := v.bodies[string(body)]
	v.mu.RUnlock()
	if known {
		return ok
	}
	ok = s.Accepts(body) == nil
	if len(body) <= maxVerdictBody {
		v.mu.Lock()
		if len(v.bodies) >= maxVerdicts {
			clear(v.bodies)
		}
		v.bodies[string(body)] = ok
		v.mu.Unlock()
	}
	return ok
}
