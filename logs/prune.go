package logs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// slackMs widens an age, since chunks carry the instant of their arrival.
const slackMs = 60_000

// Prune removes the segments whose records are all older than beforeMs, and
// says how many bytes that were. The newest segment always stays. It removes
// what bears exactly a name of ours in a folder of a day, and follows no link.
func (w *Writer) Prune(beforeMs int64) (bytes int64, err error) {
	w.mu.Lock() // so that no segment is begun or closed meanwhile
	defer w.mu.Unlock()
	segs, err := segments(w.root)
	if err != nil {
		return 0, err
	}
	root, err := os.OpenRoot(w.root)
	if err != nil {
		return 0, fmt.Errorf("remove logs: %w", err)
	}
	defer root.Close()
	for i, s := range segs[:max(0, len(segs)-1)] {
		open := w.f != nil && s.path == w.seg.path
		if open || s.path != segmentPath(w.root, s.startMs, s.seq) || segs[i+1].startMs >= beforeMs-slackMs {
			continue
		}
		n, err := remove(root, w.root, s)
		if err != nil {
			return bytes, fmt.Errorf("remove logs: %w", err)
		}
		bytes += n
	}
	return bytes, nil
}

// remove takes the index first: a segment without one is closed again by the
// next axd and found by the next Prune, an index alone never would be.
func remove(root *os.Root, dir string, s segment) (bytes int64, err error) {
	for _, path := range []string{s.indexPath(), s.path} {
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return bytes, err
		}
		info, err := root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return bytes, err
		}
		if err := root.Remove(name); err != nil {
			return bytes, err
		}
		bytes += info.Size()
	}
	_ = root.Remove(time.UnixMilli(s.startMs).UTC().Format("20060102")) // where that was its last file
	return bytes, nil
}
