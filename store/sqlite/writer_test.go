package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/axctl/ax"
)

func newStore(t *testing.T, o Options) *Store {
	t.Helper()
	o.Create = true
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "ax.db"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// hosts returns how many hosts joined, which is what these tests write.
func hosts(t *testing.T, s *Store) int {
	t.Helper()
	hs, err := s.Hosts(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return len(hs)
}

func join(ctx context.Context, s *Store, name string) error {
	return s.Join(ctx, ax.Host{Name: name, Boot: "b", StartedMs: 1})
}

// lock takes SQLite's write lock as another process does.
func lock(t *testing.T, s *Store) (unlock func()) {
	t.Helper()
	c, err := openConn(s.dsn("busy_timeout(10000)"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.exec(context.Background(), `BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	unlock = func() { once.Do(func() { _ = c.close() }) }
	t.Cleanup(unlock)
	return unlock
}

// queued waits until so many writes wait.
func queued(t *testing.T, s *Store, n int) {
	t.Helper()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for {
		s.writer.mu.Lock()
		have := len(s.writer.queue)
		s.writer.mu.Unlock()
		if have == n {
			return
		}
		select {
		case <-poll.C:
		case <-t.Context().Done():
			t.Fatalf("%d writes wait, want %d", have, n)
		}
	}
}

// What waits while another process holds the lock is one commit afterwards.
func TestGroupCommit(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	commits := &counter{statement: prepared(t, s, `COMMIT`)}
	s.writer.conn.stmts[`COMMIT`] = commits
	unlock := lock(t, s)
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			if err := join(t.Context(), s, fmt.Sprint("h", i)); err != nil {
				t.Error(err)
			}
		})
	}
	queued(t, s, 20)
	unlock()
	group.Wait()
	if commits.calls != 1 || hosts(t, s) != 20 {
		t.Errorf("%d hosts in %d commits", hosts(t, s), commits.calls)
	}
}

func TestBatchIsBounded(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	commits := &counter{statement: prepared(t, s, `COMMIT`)}
	s.writer.conn.stmts[`COMMIT`] = commits
	unlock := lock(t, s)
	var group sync.WaitGroup
	for range 5 {
		group.Go(func() {
			err := s.write(t.Context(), maxBatch/2, func(t *tx) error { return nil })
			if err != nil {
				t.Error(err)
			}
		})
	}
	queued(t, s, 5)
	unlock()
	group.Wait()
	if commits.calls != 3 {
		t.Errorf("5 halves of a batch took %d commits", commits.calls)
	}
}

func TestBusyEnds(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	s.writer.busy = 30 * time.Millisecond
	lock(t, s)
	err := join(t.Context(), s, "h1")
	var hint *ax.HintError
	if !errors.Is(err, ax.ErrBusy) || !errors.As(err, &hint) || !strings.Contains(err.Error(), "30ms") {
		t.Fatalf("error is %v", err)
	}
	if want := fmt.Sprintf("process %d", os.Getpid()); !strings.Contains(hint.Hint, want) {
		t.Errorf("hint %q does not name %s", hint.Hint, want)
	}
	if n := hosts(t, s); n != 0 {
		t.Errorf("%d hosts after a write that was given up", n)
	}
}

func TestBusyIsWaitedForAndTold(t *testing.T) {
	t.Parallel()
	told := make(chan string, 1)
	s := newStore(t, Options{Log: slog.New(slog.NewTextHandler(lines(told), nil))})
	s.writer.patience = time.Millisecond
	unlock := lock(t, s)
	done := make(chan error, 1)
	go func() { done <- join(t.Context(), s, "h1") }()
	select {
	case line := <-told:
		if !strings.Contains(line, "locked by another process") || !strings.Contains(line, fmt.Sprintf("process %d", os.Getpid())) {
			t.Errorf("the log says %s", line)
		}
	case err := <-done:
		t.Fatalf("the write ended with %v", err)
	}
	unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if hosts(t, s) != 1 {
		t.Error("the write that waited is not there")
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	unlock := lock(t, s)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	done := make(chan error, 2)
	for i := range 2 {
		go func() { done <- join(ctx, s, fmt.Sprint("h", i)) }()
	}
	queued(t, s, 2)
	cancel(stop)
	for range 2 {
		if err := <-done; !errors.Is(err, stop) {
			t.Errorf("error is %v", err)
		}
	}
	unlock()
	if hosts(t, s) != 0 {
		t.Error("a write that was given up is there")
	}
}

// A COMMIT that fails is an error to all that were in it, and leaves nothing.
func TestCommitFails(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	s.writer.conn.stmts[`COMMIT`] = failing{}
	err := join(t.Context(), s, "h1")
	if !errors.Is(err, ax.ErrUnavailable) || !errors.Is(err, errCommit) {
		t.Errorf("error is %v", err)
	}
	delete(s.writer.conn.stmts, `COMMIT`)
	if hosts(t, s) != 0 {
		t.Error("a failed commit is there")
	}
	if err := join(t.Context(), s, "h2"); err != nil || hosts(t, s) != 1 {
		t.Errorf("the next write: %v", err)
	}
}

// A commit whose answer is lost is told as failed, and asking again does no
// harm.
func TestCommitAnswerLost(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	now := time.Now().UnixMilli()
	s.writer.conn.stmts[`COMMIT`] = lost{prepared(t, s, `COMMIT`)}
	cs := ax.ChangeSet{ApplyID: "one", Stack: "main", NowMs: now, Changes: []ax.Change{{
		Action: ax.ActionCreate, Kind: ax.KindTask, Name: "a", Definition: []byte(`{}`), Hash: "h",
		Task: &ax.TaskChange{Enabled: true, MaxActive: 1, Overlap: ax.OverlapQueue},
	}}}
	if _, err := s.Apply(t.Context(), cs); !errors.Is(err, ax.ErrUnavailable) {
		t.Errorf("error is %v", err)
	}
	delete(s.writer.conn.stmts, `COMMIT`)
	r, err := s.Revision(t.Context(), "one")
	if err != nil || r.Serial != 1 {
		t.Errorf("the apply finds %+v, %v", r, err)
	}
	again, err := s.Apply(t.Context(), cs)
	if err != nil || again.Serial != 1 {
		t.Errorf("the apply sent again gives %+v, %v", again, err)
	}
}

// A full disk fails writes and nothing else, and they go on when it has space.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	limit := func(pages int64) {
		err := s.writer.alone(t.Context(), func(c *conn) error {
			_, err := c.exec(context.Background(), fmt.Sprintf(`PRAGMA max_page_count = %d`, pages))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	limit(1) // becomes what the store has
	var full error
	n := 0
	for ; full == nil && n < 1000; n++ {
		full = s.Join(t.Context(), ax.Host{Name: fmt.Sprint("h", n), DataDir: strings.Repeat("x", 4000)})
	}
	var hint *ax.HintError
	if !errors.Is(full, ax.ErrUnavailable) || !errors.As(full, &hint) || !strings.Contains(hint.Hint, "free space") {
		t.Fatalf("a full disk gives %v", full)
	}
	if got := hosts(t, s); got != n-1 {
		t.Errorf("%d hosts, %d were written", got, n-1)
	}
	limit(1 << 20)
	if err := join(t.Context(), s, "h"); err != nil {
		t.Errorf("with space again: %v", err)
	}
	err := s.read(t.Context(), func(c *conn) error {
		return c.query(t.Context(), func(r *row) error {
			if verdict := r.text(); verdict != "ok" {
				t.Errorf("integrity check: %s", verdict)
			}
			return nil
		}, `PRAGMA integrity_check`)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A store that becomes read-only is told as that, and is written to again as
// soon as it can be.
func TestReadOnlyAndBack(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	err := s.writer.alone(t.Context(), func(c *conn) error {
		_, err := c.exec(context.Background(), `PRAGMA query_only = 1`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = join(t.Context(), s, "h1")
	var hint *ax.HintError
	if !errors.Is(err, ax.ErrUnavailable) || !errors.As(err, &hint) || !strings.Contains(hint.Hint, "writable, or remount") {
		t.Fatalf("a store that is read-only gives %v", err)
	}
	if err := join(t.Context(), s, "h2"); err != nil || hosts(t, s) != 1 {
		t.Errorf("writable again: %v, %d hosts", err, hosts(t, s))
	}
}

// After a fault of the disk the connection is opened anew.
func TestBrokenConnectionIsMended(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	err := s.write(t.Context(), 1, func(t *tx) error {
		_, err := t.exec(`no SQL`)
		return err
	})
	if err == nil {
		t.Fatal("no error of bad SQL")
	}
	before := s.writer.conn
	if err := join(t.Context(), s, "h1"); err != nil || hosts(t, s) != 1 {
		t.Fatal(err)
	}
	if s.writer.conn == before {
		t.Error("the connection is the old one")
	}
}

// A panic in a transaction ends the program with its text: who closes the store
// on the way does not wait for what will never end.
func TestPanicDoesNotHang(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(*Store) error{
		"writing": func(s *Store) error { return s.write(t.Context(), 1, func(*tx) error { panic("odd") }) },
		"after a write": func(s *Store) error {
			return s.write(t.Context(), 1, func(tx *tx) error {
				if _, err := tx.exec(`INSERT INTO host (name, boot, pid, started_ms) VALUES ('h9', 'b', 1, 1)`); err != nil {
					return err
				}
				panic("odd")
			})
		},
		"reading": func(s *Store) error { return s.read(t.Context(), func(*conn) error { panic("odd") }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Open(t.Context(), filepath.Join(t.TempDir(), "ax.db"), Options{Create: true})
			if err != nil {
				t.Fatal(err)
			}
			func() {
				defer func() {
					if p := recover(); p != "odd" {
						t.Errorf("panic is %v", p)
					}
				}()
				defer s.Close()
				_ = use(s)
			}()
			again, err := Open(t.Context(), s.Path(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if err := join(t.Context(), again, "h1"); err != nil || hosts(t, again) != 1 {
				t.Errorf("afterwards: %v, %d hosts", err, hosts(t, again))
			}
		})
	}
}

// Every commit is on disk before it is told.
func TestWriterIsDurable(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	for pragma, want := range map[string]int64{"synchronous": 2, "wal_autocheckpoint": walPages, "busy_timeout": 0} {
		var got int64
		err := s.writer.alone(t.Context(), func(c *conn) error {
			return c.query(context.Background(), func(r *row) error { got = r.int64(); return nil }, `PRAGMA `+pragma)
		})
		if err != nil || got != want {
			t.Errorf("%s is %d (%v), want %d", pragma, got, err, want)
		}
	}
}

func prepared(t *testing.T, s *Store, sql string) statement {
	t.Helper()
	st, err := s.writer.conn.statement(sql)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// counter counts how often a statement runs.
type counter struct {
	statement
	calls int
}

func (c *counter) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	c.calls++
	return c.statement.ExecContext(ctx, args)
}

// failing is a statement that fails.
type failing struct{ statement }

func (failing) ExecContext(context.Context, []driver.NamedValue) (driver.Result, error) {
	return nil, errors.New("the disk is gone")
}

// lost is a statement that is done and whose answer is lost.
type lost struct{ statement }

func (l lost) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if _, err := l.statement.ExecContext(ctx, args); err != nil {
		return nil, err
	}
	return nil, errors.New("the answer is lost")
}

// lines sends each line that is written.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	select {
	case l <- string(bytes.TrimSpace(b)):
	default:
	}
	return len(b), nil
}

// A used slot is impossible by compare-and-set; should it ever be, only its
// own firing is lost.
func TestUsedSlotIsLost(t *testing.T) {
	t.Parallel()
	s := newStore(t, Options{})
	now := time.Now().UnixMilli()
	cs := ax.ChangeSet{ApplyID: "one", Stack: "main", NowMs: now}
	for _, name := range []string{"a", "b"} {
		cs.Changes = append(cs.Changes, ax.Change{
			Action: ax.ActionCreate, Kind: ax.KindTask, Name: name, Definition: []byte(`{}`), Hash: "h",
			Task: &ax.TaskChange{Enabled: true, MaxActive: 1, Overlap: ax.OverlapQueue, Timetable: &ax.Timetable{NextMs: now + 1000}},
		})
	}
	if _, err := s.Apply(t.Context(), cs); err != nil {
		t.Fatal(err)
	}
	err := s.write(t.Context(), 1, func(t *tx) error {
		ref := slotRef(1, now+1000)
		return insertWaiting(t, &ref, waitingRow{1, ax.InstanceSchedule, now, now})
	})
	if err != nil {
		t.Fatal(err)
	}
	var firings []ax.Firing
	for id := range int64(2) {
		firings = append(firings, ax.Firing{
			TaskID: id + 1, Version: 1, ExpectNextMs: now + 1000, ExpectLockVersion: 1, NextMs: now + 2000, LastSlotMs: now + 1000,
			NowMs: now + 1000, Overlap: ax.OverlapQueue, Starts: []ax.FiringStart{{DueMs: now + 1000}},
		})
	}
	claimed, err := s.Claim(t.Context(), firings)
	if err != nil || !claimed[0].Lost || claimed[1].Lost {
		t.Errorf("claims are %+v, %v", claimed, err)
	}
}
