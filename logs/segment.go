package logs

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// segment is one file of records.
type segment struct {
	path    string
	startMs int64
	seq     int64
}

func (s segment) indexPath() string { return strings.TrimSuffix(s.path, ".seg") + ".idx" }

// closed reports whether no more will be written to it.
func (s segment) closed() bool {
	_, err := os.Lstat(s.indexPath())
	return err == nil
}

func segmentPath(root string, startMs, seq int64) string {
	day := time.UnixMilli(startMs).UTC().Format("20060102")
	return filepath.Join(root, day, fmt.Sprintf("%013d-%06d.seg", startMs, seq))
}

// segments lists all segments below root in the order they were written.
// Names that are not ours are passed over: a handler may have made them.
func segments(root string) ([]segment, error) {
	days, err := os.ReadDir(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list logs: %w", err)
	}
	var all []segment
	for _, day := range days {
		if !day.IsDir() {
			continue
		}
		files, err := os.ReadDir(filepath.Join(root, day.Name()))
		if err != nil {
			return nil, fmt.Errorf("list logs: %w", err)
		}
		for _, f := range files {
			name, ok := strings.CutSuffix(f.Name(), ".seg")
			start, seq, ok2 := strings.Cut(name, "-")
			ms, err1 := strconv.ParseInt(start, 10, 64)
			n, err2 := strconv.ParseInt(seq, 10, 64)
			if ok && ok2 && err1 == nil && err2 == nil && f.Type().IsRegular() {
				all = append(all, segment{filepath.Join(root, day.Name(), f.Name()), ms, n})
			}
		}
	}
	slices.SortFunc(all, func(a, b segment) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.startMs, b.startMs))
	})
	return all, nil
}

// extent is where an instance's records lie in a segment: [from, to).
type extent struct{ from, to int64 }

// index maps instances to extents.
type index map[int64]extent

func (ix index) add(instance, from, to int64) {
	e, ok := ix[instance]
	if !ok {
		e.from = from
	}
	e.to = to
	ix[instance] = e
}

// write stores the index beside the segment, whole or not at all.
func (ix index) write(path string) error {
	ids := make([]int64, 0, len(ix))
	for id := range ix {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	b := make([]byte, 0, 24*len(ids))
	for _, id := range ids {
		b = binary.BigEndian.AppendUint64(b, uint64(id))
		b = binary.BigEndian.AppendUint64(b, uint64(ix[id].from))
		b = binary.BigEndian.AppendUint64(b, uint64(ix[id].to))
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return fmt.Errorf("write log index: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write log index: %w", err)
	}
	return nil
}

// find looks an instance up in a stored index by binary search.
func find(path string, instance int64) (e extent, ok bool, err error) {
	f, err := openRegular(path)
	if err != nil {
		return extent{}, false, err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return extent{}, false, err
	}
	at := func(i, field int) int64 { return int64(binary.BigEndian.Uint64(b[24*i+8*field:])) }
	n := len(b) / 24
	lo, hi := 0, n
	for lo < hi {
		mid := (lo + hi) / 2
		if at(mid, 0) < instance {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == n || at(lo, 0) != instance {
		return extent{}, false, nil
	}
	return extent{at(lo, 1), at(lo, 2)}, true, nil
}

// scanIndex builds the index of a segment that has none.
func scanIndex(path string) (index, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ix := index{}
	r := bufio.NewReaderSize(f, 1<<20)
	for at := int64(0); ; {
		c, n, err := readRecord(r)
		if errors.Is(err, io.EOF) || errors.Is(err, errTorn) {
			return ix, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read log segment: %w", err)
		}
		ix.add(c.Instance, at, at+n)
		at += n
	}
}
