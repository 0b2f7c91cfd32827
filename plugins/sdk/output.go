package sdk

import (
	"context"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"

	pb "github.com/axctl/ax/plugins/proto"
)

// Caps of an attempt's output that is kept: its first and its last bytes.
const (
	DefaultOutputHead = 4 << 20
	DefaultOutputTail = 1 << 20
)

// maxChunk is the most bytes of one chunk.
const maxChunk = 32 << 10

// output is what one attempt prints. Bytes within the head go to the host as
// they come; later ones wait in the tail, where the newest push out the
// oldest, until the attempt is over. So its memory is bounded by the tail.
type output struct {
	queue *chunkQueue
	job   *pb.Job
	now   func() int64

	// mu guards the fields below and is held over a wait for room in the
	// queue, so that pieces of both streams keep their order of arrival.
	mu     sync.Mutex
	ctx    context.Context // of the attempt: when it ends nobody waits for room
	head   int             // bytes of the head that are left
	tail   tail
	closed bool
	seq    uint64 // of the last chunk

	bytes, dropped atomic.Int64 // written with mu held, read without
	signs          atomic.Bool  // a sign of life since the last look
	writing        atomic.Int32 // writes under way, which may wait for the host
}

// stream is the writer of one of an attempt's streams.
type stream struct {
	out *output
	id  pb.Stream
}

func (s stream) Write(p []byte) (int, error) { return s.out.write(s.id, p) }

func (o *output) write(id pb.Stream, p []byte) (int, error) {
	o.writing.Add(1)
	defer o.writing.Add(-1)
	o.signs.Store(true)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return 0, fs.ErrClosed
	}
	n := len(p)
	o.bytes.Add(int64(n))
	at := o.now()
	for len(p) > 0 {
		if o.head == 0 {
			o.dropped.Add(o.tail.add(id, at, p))
			return n, nil
		}
		k := min(len(p), maxChunk, o.head)
		o.head -= k
		joined, ok := o.queue.put(o.ctx, o.chunk(id, at, p[:k]))
		if !ok {
			o.dropped.Add(int64(k))
		}
		o.count(joined || !ok)
		p = p[k:]
	}
	return n, nil
}

// note adds a remark. It counts as no output and is not capped.
func (o *output) note(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.push(pb.Stream_STREAM_NOTE, o.now(), []byte(clean(text, maxChunk)))
	}
}

// close sends the tail, with a mark of what is missing before it. The
// attempt's ctx must have ended.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	pieces := o.tail.take()
	if !o.queue.roomy() {
		for _, p := range pieces {
			o.dropped.Add(int64(len(p.data)))
		}
		pieces = nil
	}
	if n := o.dropped.Load(); n > 0 {
		mark := fmt.Sprintf("… %d bytes dropped …", n)
		o.push(pb.Stream_STREAM_NOTE, o.now(), []byte(mark))
	}
	for _, p := range pieces {
		o.push(p.id, p.at, p.data)
	}
}

func (o *output) push(id pb.Stream, at int64, data []byte) {
	o.count(o.queue.push(o.chunk(id, at, data)))
}

// count gives the next chunk its number, unless there was none.
func (o *output) count(none bool) {
	if !none {
		o.seq++
	}
}

func (o *output) chunk(id pb.Stream, at int64, data []byte) *pb.Chunk {
	return &pb.Chunk{
		BatchNo: o.job.BatchNo, Instance: o.job.Instance, Attempt: o.job.Attempt,
		Stream: id, AtMs: at, Data: data, Seq: o.seq + 1,
	}
}

// maxPieces bounds a tail in which the streams take turns every few bytes.
const maxPieces = 4096

// tail keeps the last max bytes of both streams together, fewer when they are
// in more than maxPieces pieces.
type tail struct {
	max    int
	size   int
	pieces []piece
}

type piece struct {
	id   pb.Stream
	at   int64
	data []byte
}

// add appends p and returns how many of the oldest bytes fell out.
func (t *tail) add(id pb.Stream, at int64, p []byte) (dropped int64) {
	if over := len(p) - t.max; over > 0 {
		dropped, p = int64(over), p[over:]
	}
	for len(p) > 0 {
		n := len(t.pieces)
		if n == 0 || t.pieces[n-1].id != id || len(t.pieces[n-1].data) == maxChunk {
			t.pieces = append(t.pieces, piece{id: id, at: at})
			n++
		}
		last := &t.pieces[n-1]
		k := min(len(p), maxChunk-len(last.data))
		last.data = append(last.data, p[:k]...)
		t.size += k
		p = p[k:]
	}
	for t.size > t.max || len(t.pieces) > maxPieces {
		first := &t.pieces[0]
		k := len(first.data)
		if len(t.pieces) <= maxPieces {
			k = min(k, t.size-t.max)
		}
		first.data = first.data[k:]
		t.size -= k
		dropped += int64(k)
		if len(first.data) == 0 {
			t.pieces = t.pieces[1:]
		}
	}
	return dropped
}

func (t *tail) take() []piece {
	pieces := t.pieces
	t.pieces, t.size = nil, 0
	return pieces
}
