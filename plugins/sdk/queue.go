package sdk

import (
	"context"
	"sync"

	pb "github.com/axctl/ax/plugins/proto"
)

// Bounds of the chunks that wait to be sent, in bytes: beyond the first,
// writers wait; beyond the second, tails of ended attempts are dropped.
const (
	queueFull  = 1 << 20
	queueBurst = 16 << 20
)

// chunkQueue holds output of all attempts on its way to the host. The host
// grants credit for what it will take.
type chunkQueue struct {
	wake func() // tells the session's writer that there is something to send

	mu     sync.Mutex // guards the fields below
	chunks []*pb.Chunk
	size   int
	credit int64
	room   chan struct{} // closed, and made anew, when chunks were taken
}

func newChunkQueue(wake func()) *chunkQueue {
	return &chunkQueue{wake: wake, room: make(chan struct{})}
}

// put appends a copy of c, waiting for room. It returns false when ctx ended
// first.
func (q *chunkQueue) put(ctx context.Context, c *pb.Chunk) bool {
	for {
		q.mu.Lock()
		if q.size < queueFull {
			q.append(c)
			q.mu.Unlock()
			q.wake()
			return true
		}
		room := q.room
		q.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return false
		}
	}
}

// push appends a copy of c without waiting.
func (q *chunkQueue) push(c *pb.Chunk) {
	q.mu.Lock()
	q.append(c)
	q.mu.Unlock()
	q.wake()
}

// append joins small pieces of one stream into one chunk. Called with mu held.
func (q *chunkQueue) append(c *pb.Chunk) {
	if n := len(q.chunks); n > 0 && c.Stream != pb.Stream_STREAM_NOTE {
		last := q.chunks[n-1]
		if last.BatchNo == c.BatchNo && last.Stream == c.Stream && len(last.Data)+len(c.Data) <= maxChunk {
			last.Data = append(last.Data, c.Data...)
			q.size += len(c.Data)
			return
		}
	}
	c.Data = append([]byte(nil), c.Data...)
	q.chunks = append(q.chunks, c)
	q.size += c.Cost()
}

// roomy reports whether a tail can still be pushed.
func (q *chunkQueue) roomy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.size < queueBurst
}

// grant adds credit; open sets it, for a new session.
func (q *chunkQueue) grant(n uint64) {
	q.mu.Lock()
	q.credit += int64(n)
	q.mu.Unlock()
	q.wake()
}

func (q *chunkQueue) open(window uint64) {
	q.mu.Lock()
	q.credit = int64(window)
	q.mu.Unlock()
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
	q.size -= size
	close(q.room)
	q.room = make(chan struct{})
	return taken
}
