package dispatch

import "sync"

// places counts the attempts that run on this host, by handler.
type places struct {
	size func(handler string) int
	// mu guards pools: claim reserves while the dispatcher frees.
	mu    sync.Mutex
	pools map[string]*pool
}

type pool struct {
	size   int
	used   int
	queued int // live instances that wait for a place here
}

func newPlaces(size func(handler string) int) *places {
	return &places{size: size, pools: map[string]*pool{}}
}

// reserve takes a place if there is one. A newcomer does not get it while live
// instances queue for one, so that those are not overtaken for ever.
func (p *places) reserve(handler string, newcomer bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	pl := p.pool(handler)
	if pl.used >= pl.size || newcomer && pl.queued > 0 {
		return false
	}
	pl.used++
	return true
}

// occupy takes a place even where there is none: the attempt is there already.
func (p *places) occupy(handler string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pool(handler).used++
}

func (p *places) release(handler string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pl := p.pool(handler)
	if pl.used == 0 {
		panic("place of handler " + handler + " released twice")
	}
	pl.used--
}

// queue adds n to the live instances that wait for a place.
func (p *places) queue(handler string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pool(handler).queued += n
}

func (p *places) pool(handler string) *pool {
	pl := p.pools[handler]
	if pl == nil {
		pl = &pool{size: p.size(handler)}
		p.pools[handler] = pl
	}
	return pl
}

// Places returns how many attempts of a handler run at once: what pools says,
// else 64 for the built-in shell and http, which mostly wait, and 2·CPU+2 for
// code.
func Places(pools map[string]int, cpus int) func(handler string) int {
	return func(handler string) int {
		n, ok := pools[handler]
		switch {
		case ok:
			return n
		case handler == "shell" || handler == "http":
			return 64
		default:
			return 2*cpus + 2
		}
	}
}
