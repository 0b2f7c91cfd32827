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
	"sort"
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
	b := make([]byte, 0, entryBytes*len(ids))
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

// entryBytes is the size of one instance in a stored index.
const entryBytes = 24

// find returns the extent in which all records of the instances lie, by a stored
// index; an empty one when there are none. It reads a few entries for each.
func find(path string, ids []int64) (all extent, err error) {
	f, err := openRegular(path)
	if err != nil {
		return extent{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return extent{}, err
	}
	var b [entryBytes]byte
	read := func(i int) (id int64, e extent) {
		if _, rerr := f.ReadAt(b[:], int64(i)*entryBytes); rerr != nil {
			err = rerr
		}
		at := func(field int) int64 { return int64(binary.BigEndian.Uint64(b[8*field:])) }
		return at(0), extent{at(1), at(2)}
	}
	n := int(info.Size() / entryBytes)
	if n == 0 {
		return extent{}, nil
	}
	least, _ := read(0)
	most, _ := read(n - 1)
	for _, id := range ids {
		if id < least || id > most {
			continue
		}
		i := sort.Search(n, func(i int) bool { at, _ := read(i); return at >= id })
		if i == n {
			continue
		}
		at, e := read(i)
		switch {
		case at != id:
		case all == extent{}:
			all = e
		default:
			all = extent{min(all.from, e.from), max(all.to, e.to)}
		}
	}
	return all, err
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
