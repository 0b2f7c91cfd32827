package logs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const day = 24 * time.Hour / time.Millisecond

// segmentsOfDays writes a closed segment for each of n days.
func segmentsOfDays(t *testing.T, w *Writer, n int64) {
	t.Helper()
	for i := range n {
		write(t, w, Chunk{Instance: i + 1, Attempt: 1, Stream: Stdout, AtMs: t0 + i*int64(day), Data: []byte("text")})
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func prune(t *testing.T, w *Writer, beforeMs int64) int64 {
	t.Helper()
	n, err := w.Prune(beforeMs)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// What is wholly older goes, with its folder; the rest is read as before.
func TestPrune(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWriter(t, dir)
	if n := prune(t, w, t0); n != 0 {
		t.Errorf("%d bytes of nothing were removed", n)
	}
	segmentsOfDays(t, w, 5)
	if n := prune(t, w, t0+2*int64(day)); n == 0 {
		t.Error("nothing was removed")
	}
	for id, want := range []string{"", "text", "text", "text", "text"} {
		if got := readAll(t, dir, Query{Instance: int64(id) + 1}); string(got) != want {
			t.Errorf("instance %d: %q, want %q", id+1, got, want)
		}
	}
	days, err := os.ReadDir(filepath.Join(dir, "logs"))
	if err != nil || len(days) != 4 {
		t.Errorf("%d folders are left, %v", len(days), err)
	}
	prune(t, w, t0+99*int64(day))
	onlySegment(t, dir) // the newest stays
	write(t, w, Chunk{Instance: 9, Attempt: 1, Stream: Stdout, AtMs: t0 + 50*int64(day), Data: []byte("new")})
	prune(t, w, t0+99*int64(day)) // and one that is being written
	write(t, w, Chunk{Instance: 9, Attempt: 1, Stream: Stdout, AtMs: t0 + 50*int64(day), Data: []byte("er")})
	if got := readAll(t, dir, Query{Instance: 9}); string(got) != "newer" {
		t.Errorf("read %q", got)
	}
}

// A Prune that was killed between the two files of a segment is made up for.
func TestPruneCutShort(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWriter(t, dir)
	segmentsOfDays(t, w, 2)
	segs, err := segments(filepath.Join(dir, "logs"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(segs[0].indexPath()); err != nil {
		t.Fatal(err)
	}
	prune(t, w, t0+2*int64(day))
	if _, err := os.Stat(segs[0].path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the segment is still there: %v", err)
	}
}

// What a handler put there stays, and nothing is removed through a link.
func TestPruneLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWriter(t, dir)
	segmentsOfDays(t, w, 3)
	root, elsewhere := filepath.Join(dir, "logs"), t.TempDir()
	first := filepath.Base(segmentPath(root, t0, 1))
	for _, path := range []string{
		filepath.Join(root, "20251130", "notes.txt"),
		filepath.Join(root, "20251130", "1-1.seg"),
		filepath.Join(root, "other", first),
		filepath.Join(elsewhere, first),
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(elsewhere, filepath.Join(root, "20200101")); err != nil {
		t.Fatal(err)
	}
	prune(t, w, t0+99*int64(day))
	for _, path := range []string{
		filepath.Join(root, "20251130", "notes.txt"), filepath.Join(root, "20251130", "1-1.seg"),
		filepath.Join(root, "other", first), filepath.Join(elsewhere, first),
	} {
		if text, err := os.ReadFile(path); err != nil || string(text) != "mine" {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	if _, err := os.Stat(segmentPath(root, t0, 1)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ours is still there: %v", err)
	}
}
