package sdk

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	pb "github.com/axctl/ax/plugins/proto"
	"pgregory.net/rapid"
)

func newOutput(q *chunkQueue, head, tailMax int) *output {
	o := &output{queue: q, job: &pb.Job{BatchNo: "i-1-1"}, now: func() int64 { return 1 }, head: head}
	o.ctx = context.Background()
	o.tail.max = tailMax
	return o
}

// Whatever is written in whatever pieces: the first and the last bytes come
// out in order, the rest is counted, and no chunk is too large.
func TestOutputKeepsHeadAndTail(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := newChunkQueue(func() {})
		q.open(1 << 40)
		head := rapid.IntRange(0, 100_000).Draw(t, "head")
		tailMax := rapid.IntRange(0, 80_000).Draw(t, "tail")
		o := newOutput(q, head, tailMax)
		var written []byte
		var of []pb.Stream // stream of each byte
		for i, n := range rapid.SliceOfN(rapid.IntRange(0, 70_000), 0, 12).Draw(t, "sizes") {
			id := rapid.SampledFrom([]pb.Stream{pb.Stream_STREAM_STDOUT, pb.Stream_STREAM_STDERR}).Draw(t, "stream")
			p := make([]byte, n)
			for k := range p {
				p[k] = byte(k*7 + i)
			}
			if got, err := o.write(id, p); got != n || err != nil {
				t.Fatalf("write: %d %v", got, err)
			}
			written = append(written, p...)
			for range p {
				of = append(of, id)
			}
			clear(p) // the writer's own again
		}
		o.close()
		kept := min(len(written), head) + min(max(0, len(written)-head), tailMax)
		dropped := len(written) - kept
		if o.bytes.Load() != int64(len(written)) || o.dropped.Load() != int64(dropped) {
			t.Fatalf("counted %d and %d of %d and %d", o.bytes.Load(), o.dropped.Load(), len(written), dropped)
		}
		at, notes := 0, 0
		for _, c := range q.take(1 << 40) {
			if c.Stream == pb.Stream_STREAM_NOTE {
				notes++
				at += dropped
				continue
			}
			if len(c.Data) == 0 || len(c.Data) > maxChunk || !bytes.Equal(c.Data, written[at:at+len(c.Data)]) {
				t.Fatalf("chunk of %d bytes at %d", len(c.Data), at)
			}
			for k := range c.Data {
				if of[at+k] != c.Stream {
					t.Fatalf("byte %d is of stream %v", at+k, c.Stream)
				}
			}
			at += len(c.Data)
		}
		if at != len(written) || (notes == 1) != (dropped > 0) {
			t.Fatalf("%d of %d bytes accounted for, %d notes", at, len(written), notes)
		}
	})
}

// Writers wait for the host's credit and for nothing else, and are let go when
// the attempt's context ends.
func TestOutputWaitsForCredit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newChunkQueue(func() {})
		q.open(64 << 10)
		o := newOutput(q, 100<<20, 0)
		ctx, cancel := context.WithCancel(context.Background())
		o.ctx = ctx
		wrote := 0
		go func() {
			for range 100 {
				n, _ := o.write(pb.Stream_STREAM_STDOUT, make([]byte, 64<<10))
				wrote += n
			}
		}()
		synctest.Wait()
		if q.size < queueFull || q.size > queueFull+maxChunk+pb.ChunkEnvelope {
			t.Errorf("%d bytes wait", q.size)
		}
		got := 0
		for {
			chunks := q.take(1 << 30)
			if chunks == nil {
				break
			}
			for _, c := range chunks {
				got += c.Cost()
			}
			synctest.Wait()
		}
		if got < 64<<10 || got > 64<<10+maxChunk+pb.ChunkEnvelope {
			t.Errorf("%d bytes were sent with credit for 64 KiB", got)
		}
		cancel()
		synctest.Wait()
		if wrote != 100*64<<10 || o.dropped.Load() == 0 {
			t.Errorf("wrote %d, dropped %d", wrote, o.dropped.Load())
		}
		o.close()
		if _, err := o.write(pb.Stream_STREAM_STDOUT, []byte("x")); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("a write after the end: %v", err)
		}
	})
}

// Endless output in small pieces takes no more memory than the tail.
func TestTailIsBounded(t *testing.T) {
	t.Parallel()
	tl := tail{max: 100_000}
	for i := range 400_000 {
		tl.add(pb.Stream(1+i%2), 1, []byte{1, 2, 3})
		if tl.size > tl.max || len(tl.pieces) > maxPieces {
			t.Fatalf("%d bytes in %d pieces", tl.size, len(tl.pieces))
		}
	}
	if tl.size != 3*maxPieces {
		t.Errorf("%d bytes", tl.size)
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	if got := clean("a\x00b\xff\xfec", 100); got != "a\uFFFDb\uFFFDc" {
		t.Errorf("%q", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		max := rapid.IntRange(10, 100).Draw(t, "max")
		got := clean(s, max)
		if len(got) > max || !utf8.ValidString(got) || strings.Contains(got, "\x00") {
			t.Fatalf("%q became %q", s, got)
		}
		if len(s) <= max && utf8.ValidString(s) && !strings.Contains(s, "\x00") && got != s {
			t.Fatalf("%q became %q", s, got)
		}
	})
}
