// Package sqlite is the embedded store: one SQLite file in WAL mode, every
// commit on disk before it is told (synchronous=FULL).
//
// One connection writes, with group commit (writer.go); a few others read,
// each call in one snapshot. The driver's connections are used raw, with
// prepared statements row by row: on the hot path that is faster than both
// database/sql and statements of many rows. Other processes use the same file
// at the same time; whoever holds the lock is waited for.
//
// The file is never opened but by SQLite: closing another descriptor of it
// would drop SQLite's locks.
package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"sync"
	"time"

	"modernc.org/sqlite"

	"github.com/axctl/ax"
)

// Options says how to open a store. The zero value opens one that is there.
type Options struct {
	// Create makes the store if there is none.
	Create bool
	// ReadOnly refuses every write.
	ReadOnly bool
	// BusyTimeout is how long a write waits for another process before it is
	// ErrBusy; 0 waits as long as its context lives.
	BusyTimeout time.Duration
	Now         func() time.Time // default time.Now
	Log         *slog.Logger     // default: nowhere
}

const (
	// walPages is the size of the write-ahead log, in pages of 4 kB, at which the
	// commit that reaches it copies it into the database, which can take 100 ms.
	// While axd runs, Checkpoint is there first.
	walPages = 16_000
	// walBytes is what its file is cut to after that, when it had grown beyond
	// while a long read kept it from being copied.
	walBytes = 64 << 20
	// writerCache is the writer's page cache in kB, which holds the rows of
	// some 500,000 tasks.
	writerCache = 64 << 10
	readerCache = 8 << 10
	// readers is how many calls read at once.
	readers = 4
	// readerPatience is how long a reader waits, in ms, while another process
	// recovers or removes the write-ahead log; nothing else blocks a reader.
	readerPatience = 30_000
)

// Store is a store in one SQLite file. It is safe for concurrent use.
type Store struct {
	path   string
	info   fs.FileInfo // of the file that was opened
	wal    fs.FileInfo // of its write-ahead log; nil when the store is only read
	now    func() time.Time
	log    *slog.Logger
	made   bool // by this Open
	reads  bool // read only
	writer *writer
	free   chan *conn // one element a reader; nil is one not opened yet
	closed sync.Once
	// historyLeast is how many ids history takes at once at least.
	historyLeast int64
	version      int64 // PRAGMA data_version as last seen; under the writer's token
}

var (
	_ ax.Definitions        = (*Store)(nil)
	_ ax.Operations         = (*Store)(nil)
	_ ax.Claims             = (*Store)(nil)
	_ ax.Fills              = (*Store)(nil)
	_ ax.BackfillOperations = (*Store)(nil)
	_ ax.Dispatches         = (*Store)(nil)
	_ ax.CancelIntents      = (*Store)(nil)
	_ ax.Watcher            = (*Store)(nil)
	_ ax.Hosts              = (*Store)(nil)
	_ ax.Plugins            = (*Store)(nil)
	_ ax.Retention          = (*Store)(nil)
	_ ax.Upkeep             = (*Store)(nil)
	_ ax.Queries            = (*Store)(nil)
	_ ax.Auditor            = (*Store)(nil)
)

// Open opens the store in the file at path. ErrNoStore: there is none;
// ErrTooNew: a newer ax made it; ErrDenied: it is not ours to use. Close
// releases it.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	s := &Store{now: o.Now, log: o.Log, reads: o.ReadOnly, historyLeast: defaultHistoryLeast, free: make(chan *conn, readers)}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if s.path, s.made, err = locate(path, o); err != nil {
		return nil, err
	}
	// Both settings are the process's; they are the same for every store.
	// Where the kernel lacks them SQLite's defaults are as safe.
	_, _ = sqlite.OFDLocking(true)
	_, _ = sqlite.Fdatasync(true)
	for range readers {
		s.free <- nil
	}
	if err := s.open(ctx, o); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, o Options) error {
	info, err := os.Stat(s.path)
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	s.info = info
	if o.BusyTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.BusyTimeout, fmt.Errorf("%w for %v", ax.ErrBusy, o.BusyTimeout))
		defer cancel()
	}
	s.writer = &writer{
		path: s.path, intact: s.intact, busy: o.BusyTimeout, patience: defaultPatience, now: s.now, log: s.log,
		open: s.openWriter, token: make(chan struct{}, 1),
	}
	if s.reads {
		s.undo()
	}
	// A store that another process makes, recovers or closes is locked for a
	// moment.
	err = s.writer.retry(ctx, func() (err error) {
		s.writer.conn, err = s.openWriter()
		return err
	})
	if err != nil {
		return s.explainOpen(err)
	}
	if err := s.migrate(ctx, o); err != nil {
		return err
	}
	if err := s.renew(ctx); err != nil {
		return err
	}
	if _, err := s.Changed(ctx); err != nil || s.reads {
		return err
	}
	if s.wal, err = os.Stat(s.path + "-wal"); err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	return nil
}

func (s *Store) openWriter() (*conn, error) {
	return openConn(s.dsn("synchronous(FULL)", fmt.Sprintf("wal_autocheckpoint(%d)", walPages),
		fmt.Sprintf("cache_size(-%d)", writerCache), fmt.Sprintf("journal_size_limit(%d)", walBytes), "busy_timeout(0)"))
}

// undo takes back what a process that was killed while it made the store has
// left, which a connection that only reads may not. Where this cannot be done
// either, opening tells why.
func (s *Store) undo() {
	if _, err := os.Stat(s.path + "-journal"); err != nil {
		return
	}
	c, err := openConn(s.address("rw", "busy_timeout(0)"))
	if err != nil {
		return
	}
	_ = c.query(context.Background(), func(*row) error { return nil }, `SELECT count(*) FROM sqlite_schema`)
	_ = c.close()
}

// dsn returns the address of a connection of this store with these pragmas.
func (s *Store) dsn(pragmas ...string) string {
	if s.reads {
		return s.address("ro", pragmas...)
	}
	return s.address("rw", pragmas...)
}

func (s *Store) address(mode string, pragmas ...string) string {
	q := url.Values{"mode": {mode}, "_txlock": {"immediate"}, "_dqs": {"0"}, "_pragma": pragmas}
	return (&url.URL{Scheme: "file", Path: s.path, RawQuery: q.Encode()}).String()
}

// Close waits for calls under way and releases the store. Calls after it wait
// until their context ends.
func (s *Store) Close() error {
	var err error
	s.closed.Do(func() { err = s.close() })
	return err
}

func (s *Store) close() error {
	var first error
	for range readers {
		if c := <-s.free; c != nil {
			first = cmp.Or(first, c.close())
		}
	}
	if s.writer != nil && s.writer.conn != nil {
		s.writer.token <- struct{}{}
		first = cmp.Or(first, s.writer.conn.close())
	}
	if first != nil {
		return fmt.Errorf("close store: %w", first)
	}
	return nil
}

// Path returns the absolute path of the store's file.
func (s *Store) Path() string { return s.path }

// Made reports whether Open made the store.
func (s *Store) Made() bool { return s.made }

// intact tells whether the store's file and its log are still those that were
// opened: SQLite would go on writing into files that nobody can find any more.
// The log stays as long as a connection is open, and the writer's always is.
func (s *Store) intact() error {
	info, err := os.Stat(s.path)
	if err != nil || !os.SameFile(info, s.info) {
		return errGone
	}
	if s.wal == nil {
		return nil
	}
	if info, err = os.Stat(s.path + "-wal"); err != nil || !os.SameFile(info, s.wal) {
		return errLogGone
	}
	return nil
}

// write runs op as one transaction, see writer.do.
func (s *Store) write(ctx context.Context, rows int, op func(*tx) error) error {
	if s.reads {
		return fmt.Errorf("%w: store %s is open for reading only", ax.ErrDenied, s.path)
	}
	return s.explain(s.writer.do(ctx, rows, op))
}

// writeAs is write for a kind of work of holdKinds.
func (s *Store) writeAs(ctx context.Context, kind string, rows int, op func(*tx) error) (held time.Duration, err error) {
	if s.reads {
		return 0, s.write(ctx, rows, op)
	}
	held, err = s.writer.doAs(ctx, kind, rows, op)
	return held, s.explain(err)
}

// background runs op as one transaction alone, for work that can wait: firings
// are not put into it.
func (s *Store) background(ctx context.Context, kind string, op func(*tx) error) (held time.Duration, err error) {
	return s.writeAs(ctx, kind, maxBatch, op)
}

// read runs use on a reading connection, all in one snapshot.
func (s *Store) read(ctx context.Context, use func(*conn) error) error {
	return s.beside(ctx, func(c *conn) error { return snapshot(c, use) })
}

// beside runs use on a connection other than the writer's.
func (s *Store) beside(ctx context.Context, use func(*conn) error) error {
	var c *conn
	select {
	case c = <-s.free:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { s.free <- c }()
	err := s.intact()
	if err == nil && c == nil {
		c, err = openConn(s.dsn("query_only(1)", fmt.Sprintf("busy_timeout(%d)", readerPatience),
			fmt.Sprintf("cache_size(-%d)", readerCache)))
	}
	if err == nil {
		err = use(c)
	}
	if c != nil && code(err) != 0 { // start afresh after a fault of SQLite's
		_ = c.close()
		c = nil
	}
	return s.explain(err)
}

func snapshot(c *conn, use func(*conn) error) error {
	if _, err := c.exec(context.Background(), `BEGIN`); err != nil {
		return err
	}
	err := use(c)
	_, end := c.exec(context.Background(), `ROLLBACK`)
	return cmp.Or(err, end)
}

// Changed reports whether another process has committed since the last call.
// It asks on the writer's own connection between its transactions, where only
// other processes' commits show.
func (s *Store) Changed(ctx context.Context) (bool, error) {
	if err := s.intact(); err != nil {
		return false, s.explain(err)
	}
	changed := false
	err := s.writer.alone(ctx, func(c *conn) error {
		return c.query(context.Background(), func(r *row) error {
			v := r.int64()
			changed, s.version = v != s.version, v
			return nil
		}, `PRAGMA data_version`)
	})
	return changed, s.explain(err)
}
