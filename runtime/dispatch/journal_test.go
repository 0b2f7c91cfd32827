package dispatch

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/axctl/ax"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var discard = slog.New(slog.DiscardHandler)

func report(n int) ax.Report {
	return ax.Report{
		BatchNo: fmt.Sprintf("inc-%d-1", n), Kind: ax.ReportEnded, Status: ax.StatusSuccess,
		EndedMs: int64(n), StoppedMs: int64(n), Outputs: []byte(`{"n":1}`),
	}
}

func openJournal(t *testing.T, path string) (*Journal, []ax.Report) {
	t.Helper()
	j, rs, err := OpenJournal(path, discard)
	if err != nil {
		t.Fatal(err)
	}
	return j, rs
}

func TestJournalKeepsWhatWasAppended(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "reports")
	j, rs := openJournal(t, path)
	if len(rs) != 0 {
		t.Fatalf("a new journal holds %v", rs)
	}
	var want []ax.Report
	for i := range 10 {
		batch := []ax.Report{report(2 * i), report(2*i + 1)}
		if err := j.Append(batch); err != nil {
			t.Fatal(err)
		}
		want = append(want, batch...)
	}
	size := j.Size()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, rs = openJournal(t, path)
	if !reflect.DeepEqual(rs, want) || j.Size() != size {
		t.Errorf("read %v, size %d, want size %d", rs, j.Size(), size)
	}
	if err := j.Reset(); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j, rs = openJournal(t, path); len(rs) != 0 || j.Size() != 0 {
		t.Errorf("after a reset: %v", rs)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// Whatever a crash leaves of the last record, the ones before it are read, and
// what is appended after it is too.
func TestJournalTornTail(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		path := filepath.Join(folder, "reports")
		if err := os.RemoveAll(path); err != nil {
			rt.Fatal(err)
		}
		n := rapid.IntRange(1, 5).Draw(rt, "records")
		j, _, err := OpenJournal(path, discard)
		if err != nil {
			rt.Fatal(err)
		}
		var before int64
		for i := range n {
			before = j.Size()
			if err := j.Append([]ax.Report{report(i)}); err != nil {
				rt.Fatal(err)
			}
		}
		b, err := os.ReadFile(path)
		if err != nil {
			rt.Fatal(err)
		}
		_ = j.Close()
		last := int(j.Size() - before)
		if cut := rapid.IntRange(0, last-1).Draw(rt, "left"); rapid.Bool().Draw(rt, "cut") {
			b = b[:int(before)+cut]
		} else {
			b[int(before)+cut] ^= 0x40
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			rt.Fatal(err)
		}
		j, rs, err := OpenJournal(path, discard)
		if err != nil || len(rs) != n-1 {
			rt.Fatalf("%d records, %v, want %d", len(rs), err, n-1)
		}
		if err := j.Append([]ax.Report{report(99)}); err != nil {
			rt.Fatal(err)
		}
		_ = j.Close()
		j, rs, err = OpenJournal(path, discard)
		if err != nil || len(rs) != n || rs[n-1].EndedMs != 99 {
			rt.Fatalf("after the tail: %v, %v", rs, err)
		}
		_ = j.Close()
	})
}

// What is damaged costs what it covers and nothing behind it, and is told once
// with what it cost.
func TestJournalDamagedInTheMiddle(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		path := filepath.Join(folder, "reports")
		var whole []byte
		ends := []int64{0}
		for i := range 10 {
			r := report(i)
			r.Error = strings.Repeat("{", rapid.SampledFrom([]int{0, 9, 100_000}).Draw(rt, "error"))
			var err error
			if whole, err = encode(whole, []ax.Report{r}); err != nil {
				rt.Fatal(err)
			}
			ends = append(ends, int64(len(whole)))
		}
		// Records first to last are hit, up to somewhere in the last one.
		first := rapid.IntRange(0, 8).Draw(rt, "first")
		last := rapid.IntRange(first, 8).Draw(rt, "last")
		from := int(rapid.Int64Range(ends[first], ends[first+1]-1).Draw(rt, "from"))
		to := int(rapid.Int64Range(max(ends[last], int64(from)), ends[last+1]-1).Draw(rt, "to"))
		noise := rapid.SampledFrom([]byte{0, 0xff, '{'}).Draw(rt, "noise")
		b := slices.Clone(whole)
		for i := from; i <= to; i++ {
			b[i] = noise
		}
		b[from], b[to] = ^whole[from], ^whole[to]
		if err := os.WriteFile(path, b, 0o600); err != nil {
			rt.Fatal(err)
		}
		var want []int64
		for i := range int64(10) {
			if i < int64(first) || i > int64(last) {
				want = append(want, i)
			}
		}
		var log bytes.Buffer
		j, rs, err := OpenJournal(path, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			rt.Fatal(err)
		}
		_ = j.Close()
		var got []int64
		for _, r := range rs {
			got = append(got, r.EndedMs)
		}
		if !slices.Equal(got, want) || j.Size() != int64(len(whole)) {
			rt.Errorf("read %v, want %v; size %d, want %d", got, want, j.Size(), len(whole))
		}
		lost := fmt.Sprintf("path=%s bytes=%d ", path, ends[last+1]-ends[first])
		if strings.Count(log.String(), "level=WARN") != 1 || !strings.Contains(log.String(), lost) {
			rt.Errorf("told %q, want %q", log.String(), lost)
		}
	})
}

func TestJournalShrinks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "reports")
	j, _ := openJournal(t, path)
	if err := j.Append([]ax.Report{report(1), report(2), report(3)}); err != nil {
		t.Fatal(err)
	}
	if err := j.Shrink(nil); err != nil || j.Size() == 0 {
		t.Errorf("a small journal was emptied: %d, %v", j.Size(), err)
	}
	if err := j.rewrite([]ax.Report{report(2)}); err != nil {
		t.Fatal(err)
	}
	if err := j.Append([]ax.Report{report(4)}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, rs := openJournal(t, path)
	if want := []ax.Report{report(2), report(4)}; !reflect.DeepEqual(rs, want) {
		t.Errorf("read %v", rs)
	}
	big := report(5)
	big.Error = strings.Repeat("x", 200<<10)
	for j.Size() < emptyAt {
		if err := j.Append([]ax.Report{big}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Shrink([]ax.Report{big}); err != nil || j.Size() < emptyAt {
		t.Errorf("a journal in use was emptied: %v", err)
	}
	if err := j.Shrink(nil); err != nil || j.Size() != 0 {
		t.Errorf("size %d, %v", j.Size(), err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// A record that cannot be written whole leaves no trace.
func TestJournalFailedAppend(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "reports")
	j, _ := openJournal(t, path)
	if err := j.Append([]ax.Report{report(1)}); err != nil {
		t.Fatal(err)
	}
	size := j.Size()
	bad := report(2)
	bad.Outputs = []byte("{")
	if err := j.Append([]ax.Report{bad}); err == nil || j.Size() != size {
		t.Errorf("size %d, want %d, error %v", j.Size(), size, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := j.Append([]ax.Report{report(3)}); err == nil || j.Size() != size {
		t.Errorf("a closed journal took a report: %v", err)
	}
}

func TestJournalNeedsItsFolder(t *testing.T) {
	t.Parallel()
	_, _, err := OpenJournal(filepath.Join(t.TempDir(), "none", "reports"), discard)
	if hint, ok := err.(*ax.HintError); !ok || hint.Hint == "" {
		t.Errorf("got %v", err)
	}
}
