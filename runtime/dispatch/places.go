package dispatch

import (
	"maps"
	"sync"
)

// places counts the attempts that run on this host, by pool.
type places struct {
	size func(pool string) int // safe for concurrent use
	// mu guards pools: claim reserves while the dispatcher frees.
	mu    sync.Mutex
	pools map[string]*pool
}

// pool is a named number of places.
type pool struct {
	size   int
	used   int
	queued int // live instances that wait for a place here
}

func newPlaces(size func(pool string) int) *places {
	return &places{size: size, pools: map[string]*pool{}}
}

// reserve takes a place of a pool if there is one. A newcomer does not get it while live instances queue for one, so that those
// are not overtaken for ever.
func (p *places) reserve(name string, newcomer bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	pl := p.pool(name)
	if pl.used >= pl.size || newcomer && pl.queued > 0 {
		return false
	}
	pl.used++
	return true
}

// occupy takes a place even where there is none: the attempt is there already.
func (p *places) occupy(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pool(name).used++
}

func (p *places) release(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pl := p.pool(name)
	if pl.used == 0 {
		panic("place of pool " + name + " released twice")
	}
	pl.used--
}

// queue adds n to the live instances that wait for a place.
func (p *places) queue(name string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pool(name).queued += n
}

// pool returns a pool by its name. One that nobody made is there all the same,
// without places, until a handler of that name comes.
func (p *places) pool(name string) *pool {
	pl := p.pools[name]
	if pl == nil {
		pl = &pool{}
		p.pools[name] = pl
	}
	if pl.size == 0 {
		pl.size = p.size(name)
	}
	return pl
}

// Places returns how many attempts of a pool run at once: what pools says, else
// 64 for the pools of the built-in shell and http, which mostly wait, and
// 2·CPU+2 for that of any other handler, which is code. No other pool has any.
func Places(pools map[string]int, cpus int) func(pool string, handler bool) int {
	return func(pool string, handler bool) int {
		n, ok := pools[pool]
		switch {
		case ok:
			return n
		case pool == "shell" || pool == "http":
			return 64
		case handler:
			return 2*cpus + 2
		default:
			return 0
		}
	}
}

// Pools returns the pools of a host, by name: those that were given and those of
// its handlers.
func Pools(given map[string]int, handlers []string, cpus int) map[string]int {
	size := Places(given, cpus)
	all := map[string]int{}
	maps.Copy(all, given)
	for _, name := range handlers {
		all[name] = size(name, true)
	}
	return all
}
