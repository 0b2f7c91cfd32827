package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// Reader reads the logs of a data folder. It holds nothing open between calls
// and is safe for concurrent use, also beside a Writer of another process.
type Reader struct{ root string }

// NewReader makes a reader for the data folder dir. The folder need not exist.
func NewReader(dir string) *Reader { return &Reader{root: filepath.Join(dir, "logs")} }

// Query selects the output of one instance.
type Query struct {
	Instance int64
	Attempt  int // 0: all attempts
}

// pollInterval is how often Follow looks for new output.
const pollInterval = 100 * time.Millisecond

// Read calls visit for each chunk the query selects, in order, and returns
// visit's first error. Output that is being written meanwhile may be missing.
func (r *Reader) Read(q Query, visit func(Chunk) error) error {
	_, err := r.read(q, position{}, visit)
	return err
}

// Attempt names an attempt.
type Attempt struct {
	Instance int64
	Number   int
}

// Last returns the highest number (Chunk.Seq) among the chunks of each attempt
// that has any. An attempt's chunks are in the log in their order, so the newest
// segment that has one tells; each segment is looked at once for all attempts.
func (r *Reader) Last(of []Attempt) (map[Attempt]uint64, error) {
	segs, err := segments(r.root)
	if err != nil {
		return nil, err
	}
	last := map[Attempt]uint64{}
	for _, s := range slices.Backward(segs) {
		of = slices.DeleteFunc(slices.Clone(of), func(a Attempt) bool { return last[a] != 0 })
		if len(of) == 0 {
			break
		}
		ids := make([]int64, len(of))
		for i, a := range of {
			ids[i] = a.Instance
		}
		slices.Sort(ids)
		found := map[Attempt]uint64{}
		_, err := s.read(ids, 0, func(c Chunk) error {
			a := Attempt{c.Instance, c.Attempt}
			found[a] = max(found[a], c.Seq)
			return nil
		})
		if err != nil {
			return nil, err
		}
		for _, a := range of {
			last[a] = found[a]
		}
	}
	maps.DeleteFunc(last, func(_ Attempt, seq uint64) bool { return seq == 0 })
	return last, nil
}

// Follow is Read that goes on: it calls visit for what there is, then for what
// comes, until ended (asked before each look) has returned true and all that
// was there then is read, or ctx ends (it returns ctx's error then).
func (r *Reader) Follow(ctx context.Context, q Query, ended func() (bool, error), visit func(Chunk) error) error {
	var at position
	for {
		last, err := ended()
		if err != nil {
			return err
		}
		if at, err = r.read(q, at, visit); err != nil {
			return err
		}
		if last {
			return nil
		}
		timer := time.NewTimer(pollInterval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}

// position is how far a reading has come: a segment and an offset in it.
type position struct {
	seq    int64
	offset int64
}

func (r *Reader) read(q Query, at position, visit func(Chunk) error) (position, error) {
	segs, err := segments(r.root)
	if err != nil {
		return at, err
	}
	for _, s := range segs {
		if s.seq < at.seq {
			continue
		}
		if s.seq > at.seq {
			at = position{seq: s.seq}
		}
		at.offset, err = s.read([]int64{q.Instance}, at.offset, func(c Chunk) error {
			if q.Attempt != 0 && c.Attempt != q.Attempt {
				return nil
			}
			return visit(c)
		})
		if err != nil {
			return at, err
		}
	}
	return at, nil
}

// read reads what one segment has of some instances, sorted, from an offset on,
// and returns where it stopped.
func (s segment) read(ids []int64, from int64, visit func(Chunk) error) (int64, error) {
	to := int64(-1)
	switch e, err := find(s.indexPath(), ids); {
	case err == nil && e == extent{}:
		return from, nil
	case err == nil:
		from, to = max(from, e.from), e.to
	case !errors.Is(err, os.ErrNotExist):
		return from, fmt.Errorf("read log index: %w", err)
	}
	f, err := openRegular(s.path)
	if errors.Is(err, os.ErrNotExist) {
		return from, nil // removed as old, after the folder was listed
	}
	if err != nil {
		return from, err
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return from, fmt.Errorf("read log segment: %w", err)
	}
	b := bufio.NewReaderSize(f, 256<<10)
	for to < 0 || from < to {
		c, n, err := readRecord(b)
		if errors.Is(err, io.EOF) || errors.Is(err, errTorn) {
			return from, nil
		}
		if err != nil {
			return from, fmt.Errorf("read log segment: %w", err)
		}
		from += n
		if _, ok := slices.BinarySearch(ids, c.Instance); ok {
			if err := visit(c); err != nil {
				return from, err
			}
		}
	}
	return from, nil
}

// openRegular opens a file that must be a regular one and no link: what stands
// in the log folder may have been put there by a handler.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open log file: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("no regular file")
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open log file %s: %w", path, err)
	}
	return f, nil
}
