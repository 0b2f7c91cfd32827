package wheel

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func byDue(a, b Entry) int {
	return cmp.Or(cmp.Compare(a.DueMs, b.DueMs), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind))
}

// model is what a wheel should be: a list.
type model struct {
	entries map[Handle]Entry
}

// advance removes and returns what is due, in order.
func (m *model) advance(nowMs int64) []Entry {
	var due []Entry
	for h, e := range m.entries {
		if e.DueMs <= nowMs {
			due = append(due, e)
			delete(m.entries, h)
		}
	}
	slices.SortFunc(due, byDue)
	return due
}

func (m *model) first() (Entry, bool) {
	var first *Entry
	for _, e := range m.entries {
		if first == nil || byDue(e, *first) < 0 {
			first = &e
		}
	}
	if first == nil {
		return Entry{}, false
	}
	return *first, true
}

// delay draws delays of every size, with many at the edges of slots and levels.
func delay(tickMs int64) *rapid.Generator[int64] {
	return rapid.Custom(func(t *rapid.T) int64 {
		ticks := rapid.SampledFrom([]int64{
			0, 1, 63, 64, 65, 3*64 + 7, 64*64 - 1, 64 * 64, 64*64 + 1, 64 * 64 * 64, 30 * 86_400_000 / tickMs,
		}).Draw(t, "ticks")
		return ticks*tickMs + rapid.Int64Range(-2*tickMs, 2*tickMs).Draw(t, "ms")
	})
}

// TestAgainstModel holds all laws at once: exactly once, never early, in due
// order, exact cancelling of fired and pending entries, clocks that jump both
// ways, and a Next that neither sleeps past anything nor spins.
func TestAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tickMs := rapid.SampledFrom([]int64{1, 7, 1000}).Draw(t, "tick")
		now := rapid.SampledFrom([]int64{0, -5_000, 1_790_000_000_123}).Draw(t, "now")
		w := New(time.Duration(tickMs)*time.Millisecond, now)
		m := model{entries: map[Handle]Entry{}}
		var handles []Handle // also of entries that are gone
		id := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				id++
				e := Entry{Kind: rapid.Byte().Draw(t, "kind"), ID: id % 5, DueMs: now + delay(tickMs).Draw(t, "delay")}
				h := w.Add(e)
				if _, taken := m.entries[h]; taken {
					t.Fatalf("handle %v is in use", h)
				}
				m.entries[h] = e
				handles = append(handles, h)
			},
			"cancel": func(t *rapid.T) {
				if len(handles) == 0 {
					return // nothing was added yet
				}
				h := rapid.SampledFrom(handles).Draw(t, "handle")
				_, there := m.entries[h]
				if got := w.Cancel(h); got != there {
					t.Fatalf("cancel says %t, want %t", got, there)
				}
				delete(m.entries, h)
			},
			"advance": func(t *rapid.T) {
				now += delay(tickMs).Draw(t, "step")
				advance(t, w, &m, now)
			},
			"back": func(t *rapid.T) {
				now -= delay(tickMs).Draw(t, "step")
				advance(t, w, &m, now)
			},
			"sleep": func(t *rapid.T) {
				// As the engine does: to Next, until something comes out.
				first, ok := m.first()
				next, some := w.Next()
				if some != ok {
					t.Fatalf("next says %t, want %t", some, ok)
				}
				for wakes := 0; ok && now < first.DueMs; wakes++ {
					if wakes > levels {
						t.Fatalf("still asleep at %d, due is %d", now, first.DueMs)
					}
					if next > first.DueMs {
						t.Fatalf("next %d sleeps past %d", next, first.DueMs)
					}
					now = max(now, next)
					advance(t, w, &m, now)
					next, _ = w.Next()
				}
			},
			"": func(t *rapid.T) {
				if w.Len() != len(m.entries) {
					t.Fatalf("len %d, want %d", w.Len(), len(m.entries))
				}
			},
		})
	})
}

func advance(t *rapid.T, w *Wheel, m *model, nowMs int64) {
	got, want := w.Advance(nowMs, nil), m.advance(nowMs)
	if !slices.Equal(got, want) {
		t.Fatalf("advance to %d gives %v, want %v", nowMs, got, want)
	}
}

func TestAnyDelay(t *testing.T) {
	t.Parallel()
	const tick, start = int64(1000), int64(1_790_000_000_000)
	for _, ticks := range []int64{1, 63, 64, 65, 3*64 + 7, 30 * 86_400} {
		w := New(time.Second, start)
		due := start + ticks*tick
		w.Add(Entry{ID: ticks, DueMs: due})
		for now := start; now < due; now += tick {
			if out := w.Advance(now, nil); len(out) > 0 {
				t.Fatalf("%d ticks: early by %d ms", ticks, due-now)
			}
		}
		if out := w.Advance(due-1, nil); len(out) > 0 {
			t.Fatalf("%d ticks: early by a millisecond", ticks)
		}
		if out := w.Advance(due, nil); len(out) != 1 || w.Len() != 0 {
			t.Fatalf("%d ticks: %v came out when due", ticks, out)
		}
	}
}

func TestExtremeInstants(t *testing.T) {
	t.Parallel()
	for _, now := range []int64{math.MinInt64, 0, math.MaxInt64} {
		w := New(7*time.Millisecond, now)
		w.Add(Entry{ID: 3, DueMs: math.MaxInt64})
		w.Add(Entry{ID: 2, DueMs: 0})
		w.Add(Entry{ID: 1, DueMs: math.MinInt64})
		out := w.Advance(math.MaxInt64, nil)
		if len(out) != 3 || !slices.IsSortedFunc(out, byDue) {
			t.Errorf("from %d: %v", now, out)
		}
	}
}

// TestPauseLeavesNoLag holds that the position comes from the clock and not
// from a count of ticks: after a pause of 7.5 s the next timer is on time.
func TestPauseLeavesNoLag(t *testing.T) {
	t.Parallel()
	w := New(time.Second, 0)
	for id := range int64(20) {
		w.Add(Entry{ID: id, DueMs: 500 + id*1000})
	}
	w.Advance(2_000, nil)
	if out := w.Advance(9_500, nil); len(out) != 8 || out[0].ID != 2 || out[7].ID != 9 {
		t.Fatalf("after the pause: %v", out)
	}
	if next, ok := w.Next(); !ok || next != 10_000 {
		t.Fatalf("next wake at %d (%t), want the slot at 10000", next, ok)
	}
	if out := w.Advance(10_000, nil); len(out) != 0 {
		t.Fatalf("early: %v", out)
	}
	if next, ok := w.Next(); !ok || next != 10_500 {
		t.Fatalf("next wake at %d (%t), want 10500 to the millisecond", next, ok)
	}
	if out := w.Advance(10_500, nil); len(out) != 1 || out[0].ID != 10 {
		t.Fatalf("at 10500: %v", out)
	}
}

// TestCancelAndAddAgain is a task that is rescheduled shortly before it fires:
// the old entry never comes out, and no memory is left behind.
func TestCancelAndAddAgain(t *testing.T) {
	t.Parallel()
	for _, before := range []int64{1, 5, 59} {
		w := New(time.Second, 0)
		due := int64(120_000)
		h := w.Add(Entry{ID: 1, DueMs: due})
		w.Advance(due-before*1000, nil)
		if !w.Cancel(h) || w.Cancel(h) {
			t.Fatalf("%d s before: cancel is not exact", before)
		}
		w.Add(Entry{ID: 2, DueMs: due + 1})
		if w.Cancel(h) {
			t.Fatal("a stale handle took out its successor")
		}
		if out := w.Advance(due, nil); len(out) != 0 {
			t.Fatalf("%d s before: %v came out", before, out)
		}
		if out := w.Advance(due+1, nil); len(out) != 1 || out[0].ID != 2 {
			t.Fatalf("%d s before: %v came out", before, out)
		}
	}
	w := New(time.Second, 0)
	if w.Cancel(Handle{}) {
		t.Error("the zero handle names something")
	}
}

// TestCancelInCurrentTick takes entries out of the middle of the heap, each
// order of sixteen instants being as likely as the next.
func TestCancelInCurrentTick(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := New(time.Second, 0)
		m := model{entries: map[Handle]Entry{}}
		dues := rapid.SliceOfN(rapid.Int64Range(0, 999), 1, 32).Draw(t, "dues")
		for id, due := range dues {
			e := Entry{ID: int64(id), DueMs: due}
			h := w.Add(e)
			m.entries[h] = e
			if rapid.IntRange(0, 3).Draw(t, "cancel") == 0 {
				h = rapid.SampledFrom(slices.SortedFunc(maps.Keys(m.entries), byNode)).Draw(t, "handle")
				delete(m.entries, h)
				w.Cancel(h)
			}
		}
		for now := int64(-1); now < 1000; now += 7 {
			advance(t, w, &m, now)
		}
		advance(t, w, &m, 1000)
	})
}

func byNode(a, b Handle) int { return cmp.Compare(a.node, b.node) }

func TestNoGrowthInSteadyState(t *testing.T) {
	t.Parallel()
	w := New(time.Second, 0)
	now, random := int64(0), rand.New(rand.NewPCG(1, 2))
	out := make([]Entry, 0, 4096)
	fill := func() {
		for id := range int64(1000) {
			h := w.Add(Entry{ID: id, DueMs: now + random.Int64N(300_000)})
			if id%3 == 0 {
				w.Cancel(h)
			}
		}
		now += 300_000
		out = w.Advance(now, out[:0])
	}
	for range 20 {
		fill()
	}
	nodes := len(w.nodes)
	for range 50 {
		fill()
	}
	if len(w.nodes) != nodes || w.Len() != 0 {
		t.Errorf("%d nodes after %d, %d left", len(w.nodes), nodes, w.Len())
	}
}

// The benchmarks run with 100,000 timers within five minutes, as the engine
// has them with as many tasks.
func full(b *testing.B) (*Wheel, []Handle, *rand.Rand) {
	b.ReportAllocs()
	w, random := New(time.Second, 0), rand.New(rand.NewPCG(1, 2))
	handles := make([]Handle, 100_000)
	for id := range handles {
		handles[id] = w.Add(Entry{ID: int64(id), DueMs: random.Int64N(300_000)})
	}
	return w, handles, random
}

// BenchmarkCancelAdd reschedules a random timer.
func BenchmarkCancelAdd(b *testing.B) {
	w, handles, random := full(b)
	for b.Loop() {
		i := random.IntN(len(handles))
		w.Cancel(handles[i])
		handles[i] = w.Add(Entry{ID: int64(i), DueMs: random.Int64N(300_000)})
	}
}

// BenchmarkExpire lets a timer come out and adds it again.
func BenchmarkExpire(b *testing.B) {
	w, _, random := full(b)
	now, fired := int64(0), 0
	var out []Entry
	for b.Loop() {
		if fired--; fired >= 0 {
			continue // one loop a timer
		}
		for fired < 0 {
			now += 100
			out = w.Advance(now, out[:0])
			fired += len(out)
		}
		for _, e := range out {
			e.DueMs = now + random.Int64N(300_000)
			w.Add(e)
		}
	}
}
