package rules

import "github.com/axctl/ax"

// What is believed of the clock, in milliseconds.
const (
	// MaxSlew is how far the wall clock may run from the other one between two
	// looks; what is more is a step.
	MaxSlew = 10_000
	// Persistence is how long a clock that was set must go on as it is to be
	// believed, where nothing else speaks for it.
	Persistence = 60_000
	// MaxDoubt ends a doubt that never ends, as under two time servers that
	// disagree: then late is better than never.
	MaxDoubt = 300_000
	// syncedLooks is how many looks in a row must find the kernel's clock
	// synchronised: a person's setting ends that, and a time server may take it
	// up again before it has looked.
	syncedLooks = 2
)

// Reading is one look at the clocks.
type Reading struct {
	ax.ClockMark
	Synced bool // the kernel says that a time server keeps the wall clock right
}

func offset(m ax.ClockMark) int64 { return m.WallMs - m.ElapsedMs }

// ClockNews is what a look at the clock has shown.
type ClockNews string

// The news.
const (
	ClockSteady    ClockNews = ""          // nothing
	ClockStepped   ClockNews = "stepped"   // it was set, and is not believed from here on
	ClockReturned  ClockNews = "returned"  // the doubt is over: it says again what was believed before
	ClockConfirmed ClockNews = "confirmed" // the doubt is over: it is believed as it is
)

// Clock says whether the wall clock can be believed. It compares it with a clock
// that nobody sets: when they disagree over a look, or since the last mark, the
// wall clock was set, and it takes a second witness to believe it again: the
// kernel's synchronisation, a return to what it said before, or time. Suspend is
// no step, since the other clock goes on meanwhile; nor is a clock that is slow
// or fast.
type Clock struct {
	last   ax.ClockMark
	doubt  bool
	began  int64 // of the doubt, as all below by the clock that nobody sets
	set    int64 // when the wall clock was set last
	synced int   // looks in a row
	// believed is the offset of the wall clock that was believed last, former
	// the one before that was set; nil where it is not known.
	believed, former *int64
}

// StartClock begins with the first look and the mark that was kept. A clock
// that is before a mark of another start of the kernel is not believed at once
// either; one that is after it may have stood still for any time.
func StartClock(mark ax.ClockMark, r Reading) (Clock, ClockNews) {
	c := Clock{last: r.ClockMark}
	now := offset(r.ClockMark)
	if sameKernel(mark, r.ClockMark) {
		before := offset(mark)
		c.believed = &before
		if mark.FormerMs != 0 {
			c.former = &mark.FormerMs
		}
	}
	if ClockStep(mark, r.ClockMark) == 0 {
		c.believed = &now
		return c, ClockSteady
	}
	c.doubtFrom(r.ElapsedMs)
	return c, ClockStepped
}

// ClockStep returns by how much the wall clock was set since the mark, as far
// as can be told: 0 when it was not. It is negative when it was set back.
func ClockStep(mark, now ax.ClockMark) int64 {
	step := min(now.WallMs-mark.WallMs, 0)
	if sameKernel(mark, now) {
		step = offset(now) - offset(mark)
	}
	if mark.WallMs == 0 || near(step, 0) {
		return 0
	}
	return step
}

func sameKernel(a, b ax.ClockMark) bool {
	return a.Kernel != "" && a.Kernel == b.Kernel && a.ElapsedMs <= b.ElapsedMs
}

func near(a, b int64) bool { return a-b <= MaxSlew && b-a <= MaxSlew }

func (c *Clock) doubtFrom(elapsed int64) {
	if !c.doubt {
		c.began = elapsed
	}
	c.doubt, c.set, c.synced = true, elapsed, 0
}

// Mark returns what is to be kept of the last look.
func (c *Clock) Mark() ax.ClockMark {
	m := c.last
	if c.former != nil {
		m.FormerMs = *c.former
	}
	return m
}

// Believed returns how far the wall clock that was believed last is ahead of the
// one that nobody sets; false when that is not known.
func (c *Clock) Believed() (offsetMs int64, ok bool) {
	if c.believed == nil {
		return 0, false
	}
	return *c.believed, true
}

// Instant returns the instant by what is believed of the clock: that of the wall
// clock, or, when that was set since, what it would say if it had not been.
func Instant(m ax.ClockMark, believedMs int64) int64 {
	if near(offset(m), believedMs) {
		return m.WallMs
	}
	return believedMs + m.ElapsedMs
}

// Doubted reports whether the clock is not believed now.
func (c *Clock) Doubted() bool { return c.doubt }

// Look takes a reading and returns what it shows, by how much the clock was set
// since the one before (0: it was not), and by how much since it was believed.
func (c *Clock) Look(r Reading) (news ClockNews, stepMs, allMs int64) {
	now := offset(r.ClockMark)
	step := now - offset(c.last)
	c.last = r.ClockMark
	set := !near(step, 0)
	switch {
	case set:
		stepMs = step
		c.doubtFrom(r.ElapsedMs)
	case !c.doubt:
		c.believed = &now
		return ClockSteady, 0, 0
	case r.Synced:
		c.synced++
	default:
		c.synced = 0
	}
	if c.believed != nil {
		allMs = now - *c.believed
	}
	switch {
	case c.believed != nil && near(allMs, 0):
		c.believed, c.doubt = &now, false
		return ClockReturned, stepMs, allMs
	case c.former != nil && near(now, *c.former), c.synced >= syncedLooks,
		r.ElapsedMs-c.set >= Persistence, r.ElapsedMs-c.began >= MaxDoubt:
		c.former, c.believed, c.doubt = c.believed, &now, false
		return ClockConfirmed, stepMs, allMs
	case set:
		return ClockStepped, stepMs, allMs
	}
	return ClockSteady, 0, allMs
}
