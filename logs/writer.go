package logs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// SegmentBytes is the size at which a segment is closed and the next begun.
const SegmentBytes = 64 << 20

// Writer appends chunks to the current segment. It is safe for concurrent use.
// Only one process may write below a folder: axd holds the folder's lock.
type Writer struct {
	root string

	mu    sync.Mutex // guards all below: one writer at a time, whole records
	f     *os.File
	seg   segment
	size  int64
	index index
	seq   int64
	buf   []byte
}

// NewWriter makes a writer for the data folder dir, and closes segments that
// an earlier process left open. The folder for logs is made when it is missing
// (mode 0700).
func NewWriter(dir string) (*Writer, error) {
	root := filepath.Join(dir, "logs")
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("make log folder: %w", err)
	}
	segs, err := segments(root)
	if err != nil {
		return nil, err
	}
	w := &Writer{root: root}
	for _, s := range segs {
		w.seq = max(w.seq, s.seq)
		if s.closed() {
			continue
		}
		ix, err := scanIndex(s.path)
		if err != nil {
			return nil, err
		}
		// Without its index a segment is read as one that is still written. So a
		// full disk keeps nobody from starting; the next start closes it.
		if err := ix.write(s.indexPath()); err != nil && !errors.Is(err, syscall.ENOSPC) {
			return nil, err
		}
	}
	return w, nil
}

// Append writes chunks in order. When it returns an error, none or some of
// them were kept; the writer goes on with a new segment at the next call, so a
// full disk costs output and nothing else.
func (w *Writer) Append(chunks []Chunk) error {
	if len(chunks) == 0 {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.f != nil && w.size >= SegmentBytes {
		if err := w.closeSegment(); err != nil {
			return err
		}
	}
	if w.f == nil {
		if err := w.openSegment(chunks[0].AtMs); err != nil {
			return err
		}
	}
	w.buf = w.buf[:0]
	at := w.size
	for _, c := range chunks {
		for first := true; first || len(c.Data) > 0; first = false {
			part := c
			part.Data = c.Data[:min(len(c.Data), MaxChunk)]
			c.Data = c.Data[len(part.Data):]
			before := len(w.buf)
			w.buf = appendRecord(w.buf, part)
			w.index.add(c.Instance, at+int64(before), at+int64(len(w.buf)))
		}
	}
	n, err := w.f.Write(w.buf)
	w.size += int64(n)
	if err != nil {
		// What follows a torn record cannot be read, so this segment ends here.
		_ = w.closeSegment()
		return fmt.Errorf("write log: %w", err)
	}
	return nil
}

// Close closes the current segment. The writer may be used again.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.f == nil {
		return nil
	}
	return w.closeSegment()
}

func (w *Writer) openSegment(startMs int64) error {
	w.seq++
	path := segmentPath(w.root, startMs, w.seq)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make log folder: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("make log segment: %w", err)
	}
	w.f, w.seg, w.size, w.index = f, segment{path, startMs, w.seq}, 0, index{}
	return nil
}

func (w *Writer) closeSegment() error {
	err := w.f.Close()
	w.f = nil
	if ierr := w.index.write(w.seg.indexPath()); err == nil {
		err = ierr
	}
	return err
}
