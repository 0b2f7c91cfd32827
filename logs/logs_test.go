package logs

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

const t0 = 1_764_514_800_000

func newWriter(t *testing.T, dir string) *Writer {
	t.Helper()
	w, err := NewWriter(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func write(t *testing.T, w *Writer, chunks ...Chunk) {
	t.Helper()
	if err := w.Append(chunks); err != nil {
		t.Fatal(err)
	}
}

func readAll(t *testing.T, dir string, q Query) []byte {
	t.Helper()
	var b []byte
	if err := NewReader(dir).Read(q, func(c Chunk) error { b = append(b, c.Data...); return nil }); err != nil {
		t.Fatal(err)
	}
	return b
}

func onlySegment(t *testing.T, dir string) segment {
	t.Helper()
	segs, err := segments(filepath.Join(dir, "logs"))
	if err != nil || len(segs) != 1 {
		t.Fatalf("segments: %v, %v; want one", segs, err)
	}
	return segs[0]
}

func TestReadsBackBytesOfOneInstance(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWriter(t, dir)
	binary := []byte("\x00\xff\xfe no newline \xed\xa0\x80")
	write(t, w,
		Chunk{Instance: 1, Attempt: 1, Stream: Stdout, AtMs: t0, Data: []byte("one ")},
		Chunk{Instance: 2, Attempt: 1, Stream: Stderr, AtMs: t0, Data: []byte("other")},
		Chunk{Instance: 1, Attempt: 2, Stream: Stderr, AtMs: t0 + 5, Data: binary})
	for name, tc := range map[string]struct {
		q    Query
		want string
	}{
		"all attempts": {Query{Instance: 1}, "one " + string(binary)},
		"one attempt":  {Query{Instance: 1, Attempt: 2}, string(binary)},
		"other":        {Query{Instance: 2}, "other"},
		"unknown":      {Query{Instance: 3}, ""},
	} {
		if got := readAll(t, dir, tc.q); string(got) != tc.want {
			t.Errorf("%s, open segment: %q, want %q", name, got, tc.want)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, dir, Query{Instance: 1}); string(got) != "one "+string(binary) {
		t.Errorf("closed segment: %q", got)
	}
}

func TestNoLogsAtAll(t *testing.T) {
	t.Parallel()
	if got := readAll(t, filepath.Join(t.TempDir(), "absent"), Query{Instance: 1}); got != nil {
		t.Errorf("read %q from nowhere", got)
	}
}

func TestRotatesAndFindsAcrossSegments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWriter(t, dir)
	block := bytes.Repeat([]byte("x"), MaxChunk+17) // is split into two records
	total := 0
	for i := range 70 {
		write(t, w, Chunk{Instance: 7, Attempt: 1, Stream: Stdout, AtMs: t0 + int64(i)*1000, Data: block}, Chunk{Instance: int64(100 + i), Attempt: 1, Stream: Stdout, AtMs: t0, Data: []byte{byte(i)}})
		total += len(block)
	}
	if got := readAll(t, dir, Query{Instance: 7}); len(got) != total {
		t.Errorf("read %d bytes over segments, want %d", len(got), total)
	}
	if got := readAll(t, dir, Query{Instance: 169}); !bytes.Equal(got, []byte{69}) {
		t.Errorf("instance of the last segment: %v", got)
	}
	segs, _ := segments(filepath.Join(dir, "logs"))
	if len(segs) != 2 || !segs[0].closed() || segs[1].closed() {
		t.Errorf("segments %v: want a closed one and an open one", segs)
	}
}

// A kill may cut the last record anywhere: what came before is read, and the
// next writer closes the segment and goes on in a new one.
func TestTornTail(t *testing.T) {
	t.Parallel()
	for cut := int64(1); cut < headerSize+4; cut++ {
		dir := t.TempDir()
		w := newWriter(t, dir)
		write(t, w, Chunk{Instance: 1, Attempt: 1, Stream: Stdout, AtMs: t0, Data: []byte("kept")}, Chunk{Instance: 1, Attempt: 1, Stream: Stdout, AtMs: t0, Data: []byte("torn")})
		s := onlySegment(t, dir)
		info, _ := os.Stat(s.path)
		if err := os.Truncate(s.path, info.Size()-cut); err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, dir, Query{Instance: 1}); string(got) != "kept" {
			t.Fatalf("cut %d: read %q", cut, got)
		}
		again := newWriter(t, dir)
		write(t, again, Chunk{Instance: 1, Attempt: 1, Stream: Stdout, AtMs: t0 + 1, Data: []byte(" on")})
		if got := readAll(t, dir, Query{Instance: 1}); string(got) != "kept on" {
			t.Fatalf("cut %d: after a restart read %q", cut, got)
		}
	}
}

func TestDamageIsNotReturnedAsOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWriter(t, dir)
	write(t, w, Chunk{Instance: 1, Attempt: 1, Stream: Stdout, AtMs: t0, Data: []byte("good")}, Chunk{Instance: 1, Attempt: 1, Stream: Stdout, AtMs: t0, Data: []byte("hurt")})
	s := onlySegment(t, dir)
	b, _ := os.ReadFile(s.path)
	b[len(b)-1] ^= 0x40
	if err := os.WriteFile(s.path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, dir, Query{Instance: 1}); string(got) != "good" {
		t.Errorf("read %q", got)
	}
}

// What a handler plants in the log folder is never followed.
func TestPlantedLinksAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	day := filepath.Join(dir, "logs", "20261130")
	if err := os.MkdirAll(day, 0o700); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, appendRecord(nil, Chunk{Instance: 1, Attempt: 1, Stream: Stdout, AtMs: t0, Data: []byte("secret")}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(day, "1764514800000-000001.seg")); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, dir, Query{Instance: 1}); len(got) != 0 {
		t.Errorf("read %q through a link", got)
	}
}

// A reader does not wait for ever on what stands in the place of an index.
func TestPlantedIndexIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWriter(t, dir)
	write(t, w, Chunk{Instance: 1, Attempt: 1, Stream: Stdout, AtMs: t0, Data: []byte("kept")})
	if err := syscall.Mkfifo(onlySegment(t, dir).indexPath(), 0o600); err != nil {
		t.Fatal(err)
	}
	err := NewReader(dir).Read(Query{Instance: 1}, func(Chunk) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("got %v", err)
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		w := newWriter(t, dir)
		write(t, w, Chunk{Instance: 1, Attempt: 1, Stream: Stdout, AtMs: t0, Data: []byte("a")})
		var ended atomic.Bool
		got := ""
		done := make(chan error, 1)
		go func() {
			done <- NewReader(dir).Follow(t.Context(), Query{Instance: 1},
				func() (bool, error) { return ended.Load(), nil },
				func(c Chunk) error { got += string(c.Data); return nil })
		}()
		synctest.Wait()
		write(t, w, Chunk{Instance: 1, Attempt: 1, Stream: Stdout, AtMs: t0, Data: []byte("b")}, Chunk{Instance: 2, Attempt: 1, Stream: Stdout, AtMs: t0, Data: []byte("x")})
		if err := w.Close(); err != nil { // the rest goes to another segment
			t.Fatal(err)
		}
		<-time.After(pollInterval) // the bubble's clock
		synctest.Wait()
		write(t, w, Chunk{Instance: 1, Attempt: 1, Stream: Stdout, AtMs: t0 + 1, Data: []byte("c")})
		ended.Store(true)
		if err := <-done; err != nil || got != "abc" {
			t.Errorf("followed %q, %v; want abc", got, err)
		}
	})
}

func TestFollowEndsWithItsContext(t *testing.T) {
	t.Parallel()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	err := NewReader(t.TempDir()).Follow(ctx, Query{Instance: 1},
		func() (bool, error) { return false, nil }, func(Chunk) error { return nil })
	if !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

// Whatever is written in whatever batches, with restarts in between, each
// instance reads back exactly its own bytes in order.
func TestAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		model := map[int64][]byte{}
		w, err := NewWriter(dir)
		if err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "op") {
			case 0: // killed and started again
				if w, err = NewWriter(dir); err != nil {
					rt.Fatal(err)
				}
			case 1:
				if err := w.Close(); err != nil {
					rt.Fatal(err)
				}
			default:
				var batch []Chunk
				for range rapid.IntRange(1, 5).Draw(rt, "batch") {
					id := rapid.Int64Range(1, 4).Draw(rt, "id")
					data := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(rt, "data")
					model[id] = append(model[id], data...)
					batch = append(batch, Chunk{Instance: id, Attempt: 1, Stream: Stdout, AtMs: t0, Data: data})
				}
				if err := w.Append(batch); err != nil {
					rt.Fatal(err)
				}
			}
		}
		for id, want := range model {
			var got []byte
			if err := NewReader(dir).Read(Query{Instance: id}, func(c Chunk) error { got = append(got, c.Data...); return nil }); err != nil {
				rt.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				rt.Fatalf("instance %d: read %q, want %q", id, got, want)
			}
		}
		_ = w.Close()
	})
}

// Output may come long after it was printed, behind what is newer: axd was down
// meanwhile.
func TestLateOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	chunk := func(instance, atMs int64, text string) Chunk {
		return Chunk{Instance: instance, Attempt: 1, Stream: Stdout, AtMs: atMs, Data: []byte(text)}
	}
	w := newWriter(t, dir)
	write(t, w, chunk(1, t0, "a"), chunk(2, t0+3_600_000, "new"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, w, chunk(3, t0+7_200_000, "newer"), chunk(1, t0+1, "b"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, w, chunk(1, t0+2, "c"))
	for instance, want := range map[int64]string{1: "abc", 2: "new", 3: "newer"} {
		if got := readAll(t, dir, Query{Instance: instance}); string(got) != want {
			t.Errorf("output of %d is %q, want %q", instance, got, want)
		}
	}
}

// The number of a chunk is kept, and the last one of each attempt is found over
// segments and behind what a kill cut short.
func TestLast(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWriter(t, dir)
	chunk := func(instance int64, attempt int, seq uint64) Chunk {
		return Chunk{Instance: instance, Attempt: attempt, Stream: Stderr, AtMs: t0, Data: []byte("x"), Seq: seq}
	}
	write(t, w, chunk(1, 1, 1), chunk(1, 1, 2), chunk(2, 1, 1), Chunk{Instance: 1, Attempt: 1, Stream: Note, AtMs: t0, Data: []byte("by ax")})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w = newWriter(t, dir)
	write(t, w, chunk(1, 2, 1), chunk(3, 1, 7), chunk(3, 1, 8))
	segs, err := segments(w.root)
	if err != nil || len(segs) != 2 {
		t.Fatal(segs, err)
	}
	info, err := os.Stat(segs[1].path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(segs[1].path, info.Size()-1); err != nil {
		t.Fatal(err)
	}
	r := NewReader(dir)
	want := map[Attempt]uint64{{1, 1}: 2, {1, 2}: 1, {2, 1}: 1, {3, 1}: 7}
	if got, err := r.Last([]Attempt{{1, 1}, {1, 2}, {2, 1}, {3, 1}, {4, 1}, {2, 2}}); !maps.Equal(got, want) || err != nil {
		t.Errorf("last numbers are %v %v, want %v", got, err, want)
	}
	for a, seq := range want {
		if got, err := r.Last([]Attempt{a}); len(got) != 1 || got[a] != seq || err != nil {
			t.Errorf("last of %v: %v %v, want %d", a, got, err, seq)
		}
	}
	var seqs []uint64
	if err := r.Read(Query{Instance: 1}, func(c Chunk) error { seqs = append(seqs, c.Seq); return nil }); err != nil || !slices.Equal(seqs, []uint64{1, 2, 0, 1}) {
		t.Errorf("numbers %v, %v", seqs, err)
	}
}
