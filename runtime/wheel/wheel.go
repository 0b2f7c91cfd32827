// Package wheel is a hierarchical timing wheel (Varghese and Lauck, 1987). It
// owns nothing but entries and their order: it reads no clock, starts nothing
// and calls nobody. What is due comes out of [Wheel.Advance], and only its
// owner knows what that means.
//
// Laws, whatever the delays and however the clock jumps: each entry comes out
// exactly once, never before its due instant, in due order; a cancelled one
// never does.
//
// # Implementation
//
// Time is counted in ticks, written in base 64. An entry lies at the level of
// the highest digit in which its tick differs from the wheel's position, in the
// slot of that digit; so no delay is too long, and every occupied slot lies
// ahead. When the position reaches a slot, its entries go down to lower levels.
// Those of the position's own tick lie in a heap, ordered to the millisecond.
// A bitmap a level finds the next occupied slot without walking.
package wheel

import (
	"cmp"
	"math/bits"
	"time"
)

// Entry is one timer. Kind and ID are the owner's.
type Entry struct {
	Kind  uint8
	ID    int64
	DueMs int64 // ms since the epoch
}

// Handle names an added entry for Cancel. The zero Handle names none. It stays
// safe after the entry is gone: it names nothing then.
type Handle struct {
	node, generation uint32
}

// Wheel holds entries until they are due. One goroutine owns it.
type Wheel struct {
	tickMs   int64
	position uint64 // the tick that the heap holds; it never goes back

	slots    [levels][slotsPerLevel]uint32 // first node, 0 none
	occupied [levels]uint64                // bit s: slots[level][s] is not empty
	heap     []uint32                      // nodes of the position's tick and before

	nodes      []node // nodes[0] is unused
	free       uint32 // first free node, 0 none
	generation uint32 // of the last entry added
	live       int
}

// A uint64 has eleven digits in base 64.
const (
	digitBits     = 6
	slotsPerLevel = 1 << digitBits
	levels        = (64 + digitBits - 1) / digitBits
)

// node is an entry and its place, 32 bytes.
type node struct {
	due, id    int64
	next, prev uint32 // neighbours in the slot; next is the index when in the heap
	generation uint32 // 0: free
	place      uint16 // level*64 + slot, or inHeap
	kind       uint8
}

const inHeap = levels * slotsPerLevel

// New returns an empty wheel at nowMs. The tick is the width of the finest
// slot, at least a millisecond; it says how often the owner of a busy wheel
// wakes, not how exact firings are. New panics on a shorter one.
func New(tick time.Duration, nowMs int64) *Wheel {
	if tick < time.Millisecond {
		panic("wheel: tick is shorter than a millisecond")
	}
	w := &Wheel{tickMs: tick.Milliseconds(), nodes: make([]node, 1)}
	w.position = w.tickOf(nowMs)
	return w
}

// Add adds an entry. One that is due already comes out of the next Advance.
// It allocates only while the wheel grows beyond its largest size so far.
func (w *Wheel) Add(e Entry) Handle {
	i := w.free
	if i != 0 {
		w.free = w.nodes[i].next
	} else {
		w.nodes = append(w.nodes, node{})
		i = uint32(len(w.nodes) - 1)
	}
	if w.generation++; w.generation == 0 {
		w.generation = 1
	}
	w.nodes[i] = node{due: e.DueMs, id: e.ID, kind: e.Kind, generation: w.generation}
	w.live++
	w.place(i)
	return Handle{node: i, generation: w.generation}
}

// Cancel takes an entry out and reports whether it was still there.
func (w *Wheel) Cancel(h Handle) bool {
	if h.generation == 0 || w.nodes[h.node].generation != h.generation {
		return false
	}
	if n := &w.nodes[h.node]; n.place == inHeap {
		w.heapRemove(int(n.next))
	} else {
		w.unlink(n)
	}
	w.release(h.node)
	return true
}

// Advance appends to out what is due at nowMs, in due order (ties by ID, then
// Kind), and returns it. The clock may jump: after a jump ahead all that came
// due comes out at once; after a jump back nothing comes out twice, and what
// is added meanwhile waits for its own due instant.
func (w *Wheel) Advance(nowMs int64, out []Entry) []Entry {
	out = w.drain(nowMs, out)
	target := w.tickOf(nowMs)
	for {
		start, level, slot, ok := w.nextSlot()
		if !ok || start > target {
			break
		}
		w.position = start
		w.cascade(level, slot)
		out = w.drain(nowMs, out)
	}
	w.position = max(w.position, target)
	return out
}

// Next returns the earliest instant at which Advance may have something to do:
// the due instant of the first entry when it lies in the current tick, else
// the start of the next occupied slot, which is not after the first due one.
// It is false for an empty wheel.
func (w *Wheel) Next() (ms int64, ok bool) {
	if len(w.heap) > 0 {
		return w.nodes[w.heap[0]].due, true
	}
	start, _, _, ok := w.nextSlot()
	if !ok {
		return 0, false
	}
	return w.startMs(start), true
}

// Len returns the number of entries.
func (w *Wheel) Len() int { return w.live }

// tickOf numbers ticks from the smallest int64 on, so that ticks order as
// their instants do.
func (w *Wheel) tickOf(ms int64) uint64 {
	tick := ms / w.tickMs
	if ms%w.tickMs < 0 {
		tick--
	}
	return uint64(tick) ^ 1<<63
}

func (w *Wheel) startMs(tick uint64) int64 { return int64(tick^1<<63) * w.tickMs }

// place links a node into the slot of its tick, or the heap when the position
// is there or beyond.
func (w *Wheel) place(i uint32) {
	n := &w.nodes[i]
	tick := w.tickOf(n.due)
	if tick <= w.position {
		w.heapPush(i)
		return
	}
	level := (bits.Len64(tick^w.position) - 1) / digitBits
	slot := tick >> (level * digitBits) % slotsPerLevel
	head := w.slots[level][slot]
	n.next, n.prev, n.place = head, 0, uint16(level*slotsPerLevel)+uint16(slot)
	if head != 0 {
		w.nodes[head].prev = i
	}
	w.slots[level][slot] = i
	w.occupied[level] |= 1 << slot
}

func (w *Wheel) unlink(n *node) {
	level, slot := n.place/slotsPerLevel, n.place%slotsPerLevel
	if n.next != 0 {
		w.nodes[n.next].prev = n.prev
	}
	if n.prev != 0 {
		w.nodes[n.prev].next = n.next
		return
	}
	if w.slots[level][slot] = n.next; n.next == 0 {
		w.occupied[level] &^= 1 << slot
	}
}

func (w *Wheel) release(i uint32) {
	w.nodes[i] = node{next: w.free}
	w.free = i
	w.live--
}

// nextSlot finds the first occupied slot: slots of lower levels come before
// those of higher ones, and none lies behind the position.
func (w *Wheel) nextSlot() (start uint64, level int, slot uint64, ok bool) {
	for level, occupied := range w.occupied {
		if occupied == 0 {
			continue
		}
		slot := uint64(bits.TrailingZeros64(occupied))
		shift := level * digitBits
		above := w.position >> shift >> digitBits << digitBits
		return (above | slot) << shift, level, slot, true
	}
	return 0, 0, 0, false
}

// cascade places the entries of a slot that the position has reached anew.
func (w *Wheel) cascade(level int, slot uint64) {
	i := w.slots[level][slot]
	w.slots[level][slot] = 0
	w.occupied[level] &^= 1 << slot
	for i != 0 {
		next := w.nodes[i].next
		w.place(i)
		i = next
	}
}

// drain takes what is due from the heap.
func (w *Wheel) drain(nowMs int64, out []Entry) []Entry {
	for len(w.heap) > 0 {
		i := w.heap[0]
		n := &w.nodes[i]
		if n.due > nowMs {
			break
		}
		out = append(out, Entry{Kind: n.kind, ID: n.id, DueMs: n.due})
		w.heapRemove(0)
		w.release(i)
	}
	return out
}

func (w *Wheel) before(a, b uint32) bool {
	x, y := &w.nodes[a], &w.nodes[b]
	return cmp.Or(cmp.Compare(x.due, y.due), cmp.Compare(x.id, y.id), cmp.Compare(x.kind, y.kind)) < 0
}

func (w *Wheel) heapPush(i uint32) {
	w.nodes[i].place = inHeap
	w.heap = append(w.heap, i)
	w.heapSet(len(w.heap)-1, i)
	w.heapUp(len(w.heap) - 1)
}

func (w *Wheel) heapRemove(at int) {
	last := len(w.heap) - 1
	moved := w.heap[last]
	w.heap = w.heap[:last]
	if at == last {
		return
	}
	w.heapSet(at, moved)
	w.heapDown(at)
	w.heapUp(at)
}

func (w *Wheel) heapSet(at int, i uint32) {
	w.heap[at] = i
	w.nodes[i].next = uint32(at)
}

func (w *Wheel) heapUp(at int) {
	i := w.heap[at]
	for at > 0 {
		parent := (at - 1) / 2
		if !w.before(i, w.heap[parent]) {
			break
		}
		w.heapSet(at, w.heap[parent])
		at = parent
	}
	w.heapSet(at, i)
}

func (w *Wheel) heapDown(at int) {
	i := w.heap[at]
	for {
		child := 2*at + 1
		if child >= len(w.heap) {
			break
		}
		if right := child + 1; right < len(w.heap) && w.before(w.heap[right], w.heap[child]) {
			child = right
		}
		if !w.before(w.heap[child], i) {
			break
		}
		w.heapSet(at, w.heap[child])
		at = child
	}
	w.heapSet(at, i)
}
