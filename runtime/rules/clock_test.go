package rules_test

import (
	"testing"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
	"pgregory.net/rapid"
)

const (
	sec  = int64(1000)
	hour = 3600 * sec
)

// clocks are those of a machine in a test.
type clocks struct {
	wall, elapsed int64
	kernel        string
	synced        bool
}

func (c *clocks) pass(ms int64) { c.wall += ms; c.elapsed += ms }

func (c *clocks) reading() rules.Reading {
	return rules.Reading{ClockMark: ax.ClockMark{WallMs: c.wall, ElapsedMs: c.elapsed, Kernel: c.kernel}, Synced: c.synced}
}

func TestStartClock(t *testing.T) {
	t.Parallel()
	const wall, up = 1_800_000_000_000, 5 * hour
	mark := ax.ClockMark{WallMs: wall, ElapsedMs: up, Kernel: "k1"}
	tests := []struct {
		name string
		mark ax.ClockMark
		now  clocks
		step int64
	}{
		{"no mark", ax.ClockMark{}, clocks{wall: 0, elapsed: 1}, 0},
		{"the same kernel, later", mark, clocks{wall + hour, up + hour, "k1", false}, 0},
		{"slept meanwhile", mark, clocks{wall + 90*hour, up + 90*hour, "k1", false}, 0},
		{"set forward meanwhile", mark, clocks{wall + 3*hour, up + hour, "k1", false}, 2 * hour},
		{"set back meanwhile", mark, clocks{wall + hour, up + 3*hour, "k1", false}, -2 * hour},
		{"set back, and later all the same", mark, clocks{wall + 20*sec, up + 40*sec, "k1", false}, -20 * sec},
		{"drift", mark, clocks{wall + hour + 9*sec, up + hour, "k1", false}, 0},
		{"another kernel, later", mark, clocks{wall + 1000*hour, 1, "k2", false}, 0},
		{"another kernel, before", mark, clocks{wall - hour, 1, "k2", false}, -hour},
		{"another kernel, in 1970", mark, clocks{5 * sec, 1, "k2", true}, 5*sec - wall},
		{"another kernel, little before", mark, clocks{wall - 9*sec, 1, "k2", false}, 0},
		{"unknown kernels", ax.ClockMark{WallMs: wall, ElapsedMs: up}, clocks{wall + 3*hour, 1, "", false}, 0},
		{"the name of a kernel that began anew", mark, clocks{wall + hour, 1, "k1", false}, 0},
	}
	for _, c := range tests {
		clock, news := rules.StartClock(c.mark, c.now.reading())
		if step := rules.ClockStep(c.mark, c.now.reading().ClockMark); step != c.step {
			t.Errorf("%s: a step of %d", c.name, step)
		}
		if clock.Doubted() != (c.step != 0) || (news == rules.ClockStepped) != (c.step != 0) {
			t.Errorf("%s: doubted %t, %q", c.name, clock.Doubted(), news)
		}
	}
}

// look is what happens, and what the clock must say then.
type look struct {
	set    int64 // the clock is set by it
	pass   int64 // then so much time passes, by both clocks
	synced bool
	want   rules.ClockNews
	byMs   int64
}

func TestClockLook(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		looks []look
	}{
		{"nothing", []look{{pass: sec}, {pass: 5 * sec}, {pass: hour}}},
		{"slow and fast", []look{{set: 9 * sec, pass: sec}, {set: -9 * sec, pass: sec}, {set: 10 * sec, pass: sec}, {set: 10 * sec, pass: sec}}},
		{"forward, confirmed by time", []look{
			{set: hour, pass: sec, want: rules.ClockStepped, byMs: hour},
			{pass: 59 * sec, byMs: hour},
			{pass: sec, want: rules.ClockConfirmed, byMs: hour},
			{pass: sec},
		}},
		{"back, confirmed by the kernel at the second look", []look{
			{set: -hour, pass: sec, synced: true, want: rules.ClockStepped, byMs: -hour},
			{pass: sec, synced: true, byMs: -hour},
			{pass: sec, synced: true, want: rules.ClockConfirmed, byMs: -hour},
		}},
		{"the kernel changes its mind", []look{
			{set: hour, pass: sec, want: rules.ClockStepped, byMs: hour},
			{pass: sec, synced: true, byMs: hour},
			{pass: sec, byMs: hour},
			{pass: sec, synced: true, byMs: hour},
			{pass: sec, synced: true, want: rules.ClockConfirmed, byMs: hour},
		}},
		{"forward and back before it is confirmed", []look{
			{set: 2 * hour, pass: sec, want: rules.ClockStepped, byMs: 2 * hour},
			{pass: 50 * sec, byMs: 2 * hour},
			{set: -2 * hour, pass: sec, want: rules.ClockReturned},
		}},
		{"forward, confirmed, and back to what was believed before", []look{
			{set: 2 * hour, pass: sec, want: rules.ClockStepped, byMs: 2 * hour},
			{pass: 60 * sec, want: rules.ClockConfirmed, byMs: 2 * hour},
			{pass: 10 * hour},
			{set: -2*hour + 3*sec, pass: sec, want: rules.ClockConfirmed, byMs: -2*hour + 3*sec},
			{set: 2 * hour, pass: sec, want: rules.ClockConfirmed, byMs: 2 * hour},
		}},
		{"another step begins the wait anew", []look{
			{set: hour, pass: sec, want: rules.ClockStepped, byMs: hour},
			{pass: 50 * sec, byMs: hour},
			{set: hour, pass: sec, want: rules.ClockStepped, byMs: hour},
			{pass: 50 * sec, byMs: 2 * hour},
			{pass: 10 * sec, want: rules.ClockConfirmed, byMs: 2 * hour},
		}},
		{"no doubt is for ever", []look{
			{set: hour, pass: sec, want: rules.ClockStepped, byMs: hour},
			{set: hour, pass: 59 * sec, want: rules.ClockStepped, byMs: hour},
			{set: hour, pass: 59 * sec, want: rules.ClockStepped, byMs: hour},
			{set: hour, pass: 59 * sec, want: rules.ClockStepped, byMs: hour},
			{set: hour, pass: 59 * sec, want: rules.ClockStepped, byMs: hour},
			{set: hour, pass: 59 * sec, want: rules.ClockStepped, byMs: hour},
			{set: hour, pass: 59 * sec, want: rules.ClockConfirmed, byMs: 7 * hour},
		}},
	}
	for _, c := range tests {
		m := clocks{wall: 1_800_000_000_000, elapsed: hour, kernel: "k"}
		clock, _ := rules.StartClock(ax.ClockMark{}, m.reading())
		for i, l := range c.looks {
			m.wall += l.set
			m.pass(l.pass)
			m.synced = l.synced
			news, by, all := clock.Look(m.reading())
			if news != rules.ClockStepped {
				by = all
			}
			if news != l.want || (news != rules.ClockSteady && by != l.byMs) {
				t.Errorf("%s: look %d: %q by %d, want %q by %d", c.name, i+1, news, by, l.want, l.byMs)
			}
		}
	}
}

// Whatever is done to the clock: it is believed again 60 s after it was set last,
// five minutes after it was set first, and until then only when it is back or
// the kernel speaks for it.
func TestClockIsBelievedAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := clocks{wall: 1_800_000_000_000, elapsed: hour, kernel: "k"}
		clock, _ := rules.StartClock(ax.ClockMark{}, m.reading())
		var began, set int64
		offsets := map[int64]bool{m.wall - m.elapsed: true}
		for range rapid.IntRange(1, 80).Draw(t, "looks") {
			m.synced = rapid.Bool().Draw(t, "synced")
			by := rapid.SampledFrom([]int64{0, 0, 0, 0, 1, -1, 7}).Draw(t, "hours") * hour
			m.wall += by
			m.pass(rapid.Int64Range(0, 30*sec).Draw(t, "ms"))
			was := clock.Doubted()
			news, step, _ := clock.Look(m.reading())
			if (step != 0) != (by != 0) {
				t.Fatalf("a step of %d, told as %d", by, step)
			}
			if by != 0 {
				if set = m.elapsed; !was {
					began = m.elapsed
				}
			}
			back := offsets[m.wall-m.elapsed]
			switch doubted := clock.Doubted(); {
			case doubted && (m.elapsed-set >= rules.Persistence || m.elapsed-began >= rules.MaxDoubt):
				t.Fatalf("doubted %d ms after it was set", m.elapsed-set)
			case by != 0 && !doubted && !back && m.elapsed-began < rules.MaxDoubt:
				t.Fatal("believed at once")
			case doubted && news != rules.ClockSteady && news != rules.ClockStepped:
				t.Fatalf("%q, and doubted", news)
			case !doubted:
				offsets[m.wall-m.elapsed] = true
			}
		}
	})
}
