package sdk

import (
	"context"
	"sync"

	pb "github.com/axctl/ax/plugins/proto"
)

// Bounds of the chunks that wait to be sent, in bytes: beyond the first,
// writers wait; beyond the second they wait while no host is there, and tails
// of ended attempts are dropped.
const (
	queueFull  = 1 << 20
	queueBurst = 16 << 20
)

// chunkQueue holds output of all attempts on its way to the log. The host
// grants credit for what is there; what was sent and is not credited goes to
// the next session again.
type chunkQueue struct {
	wake func() // tells the session's writer that there is something to send

	mu     sync.Mutex // guards the fields below
	chunks []*pb.Chunk
	size   int         // of chunks
	sent   []*pb.Chunk // and not credited; at most the window and one message
	credit int64       // what may be sent
	given  int64       // credit that the oldest of sent has to its cost
	away   bool        // there is no session
	room   chan struct{}
}

func newChunkQueue(wake func()) *chunkQueue {
	return &chunkQueue{wake: wake, away: true, room: make(chan struct{})}
}

// put appends a copy of c, waiting for room; joined when it became part of the
// chunk before it. It returns false when ctx ended first.
func (q *chunkQueue) put(ctx context.Context, c *pb.Chunk) (joined, ok bool) {
	for {
		q.mu.Lock()
		if q.size < queueFull || q.away && q.size < queueBurst {
			joined = q.append(c)
			q.mu.Unlock()
			q.wake()
			return joined, true
		}
		room := q.room
		q.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return false, false
		}
	}
}

// push appends a copy of c without waiting.
func (q *chunkQueue) push(c *pb.Chunk) (joined bool) {
	q.mu.Lock()
	joined = q.append(c)
	q.mu.Unlock()
	q.wake()
	return joined
}

// append joins small pieces of one stream into one chunk, unless it was sent
// before: the log knows that one as it was. Called with mu held.
func (q *chunkQueue) append(c *pb.Chunk) (joined bool) {
	if n := len(q.chunks); n > 0 && c.Stream != pb.Stream_STREAM_NOTE {
		last := q.chunks[n-1]
		if last.BatchNo == c.BatchNo && last.Stream == c.Stream && !last.Again && len(last.Data)+len(c.Data) <= maxChunk {
			last.Data = append(last.Data, c.Data...)
			q.size += len(c.Data)
			return true
		}
	}
	c.Data = append([]byte(nil), c.Data...)
	q.chunks = append(q.chunks, c)
	q.size += c.Cost()
	return false
}

// roomy reports whether a tail can still be pushed.
func (q *chunkQueue) roomy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.size < queueBurst
}

// grant takes credit: so much of what was sent is in the log.
func (q *chunkQueue) grant(n uint64) {
	q.mu.Lock()
	q.credit += int64(n)
	q.given += int64(n)
	k := 0
	for k < len(q.sent) && q.given >= int64(q.sent[k].Cost()) {
		q.given -= int64(q.sent[k].Cost())
		q.sent[k] = nil
		k++
	}
	if q.sent = q.sent[k:]; len(q.sent) == 0 {
		q.sent, q.given = nil, 0
	}
	q.mu.Unlock()
	q.wake()
}

// open begins a session: what is not known to be in the log is sent again.
func (q *chunkQueue) open(window uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.credit, q.given, q.away = int64(window), 0, false
	for _, c := range q.sent {
		q.size += c.Cost()
	}
	q.chunks = append(again(q.sent), q.chunks...)
	q.sent = nil
}

// again copies chunks that were sent: the session before may be at them yet.
func again(sent []*pb.Chunk) []*pb.Chunk {
	cs := make([]*pb.Chunk, len(sent))
	for i, c := range sent {
		cs[i] = &pb.Chunk{
			BatchNo: c.BatchNo, Instance: c.Instance, Attempt: c.Attempt, Stream: c.Stream, AtMs: c.AtMs, Data: c.Data,
			Seq: c.Seq, Again: true,
		}
	}
	return cs
}

// leave ends a session: until the next one there is more room.
func (q *chunkQueue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.away = true
	q.makeRoom()
}

// left returns all that is not known to be in the log.
func (q *chunkQueue) left() []*pb.Chunk {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append(again(q.sent), q.chunks...)
}

// empty reports whether all is in the log.
func (q *chunkQueue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.sent)+len(q.chunks) == 0
}

// take removes chunks of up to max bytes, as far as credit goes.
func (q *chunkQueue) take(max int) []*pb.Chunk {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size := 0, 0
	for n < len(q.chunks) && size < max && q.credit > 0 {
		k := q.chunks[n].Cost()
		q.credit -= int64(k)
		size += k
		n++
	}
	if n == 0 {
		return nil
	}
	taken := q.chunks[:n:n]
	q.chunks = q.chunks[n:]
	if len(q.chunks) == 0 {
		q.chunks = nil
	}
	q.sent = append(q.sent, taken...)
	q.size -= size
	q.makeRoom()
	return taken
}

// makeRoom wakes those that wait for room. Called with mu held.
func (q *chunkQueue) makeRoom() {
	close(q.room)
	q.room = make(chan struct{})
}
