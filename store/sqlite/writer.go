package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/failpoint"
)

const (
	// maxBatch is how many rows one transaction takes from the queue.
	maxBatch = 1000
	// pollEvery is how often a held lock is tried. SQLite's own schedule goes
	// up to 100 ms, and would never meet the gaps of a busy writer.
	pollEvery = time.Millisecond
	// After turn of writing without a gap, the lock is left alone for gap, so
	// that another process that polls gets its turn.
	turn = 100 * time.Millisecond
	gap  = 3 * time.Millisecond
	// defaultPatience is writer.patience of an opened store.
	defaultPatience = 5 * time.Second
)

// errCommit is returned when COMMIT failed: the disk may hold it or not.
var errCommit = errors.New("commit failed")

// writer is the one way to change the store. Callers queue what they want to
// write; whoever gets the token takes all that waits into one transaction and
// tells each what became of it. So there is no window and no goroutine: alone,
// a call commits at once, and under load a commit takes what came while the
// last one was written.
//
// The queue is taken only after BEGIN, so whoever waits for a lock that
// another process holds can still give up, and then nothing was written.
type writer struct {
	conn   *conn
	broken bool // conn met a fault of the disk or the file: open it anew
	open   func() (*conn, error)
	path   string
	intact func() error // the file is still the one that was opened
	busy   time.Duration
	// patience is how long a lock is waited for before the log hears of it.
	patience time.Duration
	now      func() time.Time
	log      *slog.Logger

	token chan struct{} // capacity 1: who holds it may use conn, broken and the fields below
	ended time.Time     // when the last transaction ended
	began time.Time     // when the current stretch of writing without a gap began

	mu    sync.Mutex // guards queue
	queue []*write

	holds holds
}

// write is one caller's change. op may run twice, so it sets all it returns.
type write struct {
	ctx  context.Context
	kind string // of holdKinds
	rows int
	op   func(*tx) error
	err  error
	held time.Duration // how long its transaction held the writer
	done chan struct{} // closed when err and held are final
}

// tx is what an op writes through.
type tx struct {
	conn   *conn
	wrote  bool  // since it was last cleared
	nextID int64 // of the next instance; 0 not read yet
	taken  bool  // nextID has moved
}

// exec runs a statement in the transaction and returns how many rows it
// changed.
func (t *tx) exec(sql string, args ...any) (int64, error) {
	n, _, err := t.insert(sql, args...)
	return n, err
}

// insert is exec for a table whose rows get their id from SQLite.
func (t *tx) insert(sql string, args ...any) (n, id int64, err error) {
	failpoint.Hit(failpoint.Statement)
	t.wrote = true
	r, err := t.conn.exec(context.Background(), sql, args...)
	if err != nil {
		return 0, 0, err
	}
	if n, err = r.RowsAffected(); err != nil {
		return 0, 0, err
	}
	id, err = r.LastInsertId()
	return n, id, err
}

// query reads in the transaction.
func (t *tx) query(scan func(*row) error, sql string, args ...any) error {
	return t.conn.query(context.Background(), scan, sql, args...)
}

// takeID returns the next instance id. Ids rise with time over all processes,
// because they are taken from the row of meta under the write lock.
func (t *tx) takeID() (int64, error) {
	if t.nextID == 0 {
		err := t.query(func(r *row) error { t.nextID = r.int64(); return nil }, `SELECT next_instance_id FROM meta`)
		if err != nil {
			return 0, err
		}
	}
	t.nextID++
	t.taken = true
	return t.nextID - 1, nil
}

// do writes op, which changes about so many rows, in a transaction together
// with what others want to write. When ctx ends first nothing was written. An
// error of COMMIT leaves open whether it was: its callers are those whose call
// can be repeated without harm.
func (w *writer) do(ctx context.Context, rows int, op func(*tx) error) error {
	_, err := w.doAs(ctx, kindWork, rows, op)
	return err
}

// doAs is do for a kind of work that is accounted for by itself, and tells how
// long its transaction held the writer.
func (w *writer) doAs(ctx context.Context, kind string, rows int, op func(*tx) error) (held time.Duration, err error) {
	if w.busy > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, w.busy, fmt.Errorf("%w for %v", ax.ErrBusy, w.busy))
		defer cancel()
	}
	mine := &write{ctx: ctx, kind: kind, rows: rows, op: op, done: make(chan struct{})}
	w.mu.Lock()
	w.queue = append(w.queue, mine)
	w.mu.Unlock()
	for {
		select {
		case <-mine.done:
			return mine.held, mine.err
		case w.token <- struct{}{}:
			w.lead(mine)
		case <-ctx.Done():
			if w.withdraw(mine) {
				return 0, context.Cause(ctx)
			}
			<-mine.done
			return mine.held, mine.err
		}
	}
}

// alone runs use on the writer's connection between transactions.
func (w *writer) alone(ctx context.Context, use func(*conn) error) error {
	select {
	case w.token <- struct{}{}:
		defer func() { <-w.token }()
		if err := w.mend(); err != nil {
			return err
		}
		err := w.retry(ctx, func() error { return use(w.conn) })
		w.suspect(err)
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// lead commits what waits, mine for one, unless another has, and gives the
// token back.
func (w *writer) lead(mine *write) {
	defer func() { <-w.token }()
	select {
	case <-mine.done:
		return
	default:
	}
	w.yield(mine.ctx)
	if err := w.begin(mine.ctx); err != nil {
		if w.withdraw(mine) {
			mine.finish(err)
		}
		return
	}
	batch := w.take()
	began := w.now()
	whole := false
	defer func() {
		if !whole { // a panic: whoever closes the store on its way is not to wait for it
			w.rollback()
		}
	}()
	err := w.run(batch)
	whole = true
	held := w.now().Sub(began)
	for _, b := range batch {
		b.held = held
	}
	w.holds.add(batch, held)
	var failed *opError
	switch {
	case errors.As(err, &failed) && len(batch) > 1:
		for _, b := range batch {
			b.finish(w.one(b))
		}
	case failed != nil:
		batch[0].finish(failed.err)
	default:
		for _, b := range batch {
			b.finish(cmp.Or(b.err, err))
		}
	}
	w.ended = w.now()
}

// suspect has the connection opened anew after an error that is one of the
// disk or the file.
func (w *writer) suspect(err error) {
	switch code(err) {
	case 0, codeBusy, codeLocked, codeFull, codeConstraint:
	default:
		w.broken = true
	}
}

// mend opens the connection anew if it must be.
func (w *writer) mend() error {
	if err := w.intact(); err != nil || !w.broken {
		return err
	}
	c, err := w.open()
	if err != nil {
		return err
	}
	_ = w.conn.close()
	w.conn, w.broken = c, false
	return nil
}

// opError is an error of an op that had written, as opposed to one of COMMIT.
type opError struct{ err error }

func (e *opError) Error() string { return e.err.Error() }
func (e *opError) Unwrap() error { return e.err }

// run runs a begun batch and commits it. An op that fails before it wrote has
// its error in err and disturbs nobody; one that fails later fails the batch.
func (w *writer) run(batch []*write) error {
	t := &tx{conn: w.conn}
	for _, b := range batch {
		t.wrote = false
		if b.err = context.Cause(b.ctx); b.err != nil {
			continue
		}
		b.err = b.op(t)
		if b.err != nil && (t.wrote || code(b.err) != 0) {
			w.suspect(b.err)
			w.rollback()
			return &opError{b.err}
		}
	}
	if t.taken {
		if _, err := t.exec(`UPDATE meta SET next_instance_id = ?`, t.nextID); err != nil {
			w.rollback()
			return fmt.Errorf("take instance ids: %w", err)
		}
	}
	if _, err := w.conn.exec(context.Background(), `COMMIT`); err != nil {
		w.suspect(err)
		w.rollback()
		return fmt.Errorf("%w: %w", errCommit, err)
	}
	return nil
}

// one runs a single write in a transaction of its own.
func (w *writer) one(b *write) error {
	if err := w.begin(b.ctx); err != nil {
		return err
	}
	err := w.run([]*write{b})
	var failed *opError
	if errors.As(err, &failed) {
		return failed.err
	}
	return cmp.Or(err, b.err)
}

// rollback ends the transaction; an error means that SQLite has done so.
func (w *writer) rollback() { _, _ = w.conn.exec(context.Background(), `ROLLBACK`) }

// begin takes SQLite's write lock, however long another process holds it.
func (w *writer) begin(ctx context.Context) error {
	if err := w.mend(); err != nil {
		return err
	}
	err := w.retry(ctx, func() error {
		_, err := w.conn.exec(context.Background(), `BEGIN IMMEDIATE`)
		return err
	})
	w.suspect(err)
	return err
}

// retry calls try until it is not busy any more or ctx ends.
func (w *writer) retry(ctx context.Context, try func() error) error {
	err := try()
	if !isBusy(err) {
		return err
	}
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	warn := time.NewTimer(w.patience)
	defer warn.Stop()
	for isBusy(err) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-warn.C:
			w.log.Warn("store is locked by another process; waiting", "path", w.path, "holder", lockHolder(w.path))
		case <-poll.C:
			err = try()
		}
	}
	return err
}

// yield leaves the lock alone for a moment after a long stretch of writing.
func (w *writer) yield(ctx context.Context) {
	now := w.now()
	switch {
	case now.Sub(w.ended) >= gap || w.began.IsZero():
		w.began = now
	case now.Sub(w.began) >= turn:
		pause := time.NewTimer(gap)
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		w.began = w.now()
	}
}

// take removes from the queue what fits one transaction.
func (w *writer) take() []*write {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, rows := 0, 0
	for n < len(w.queue) && (n == 0 || rows+w.queue[n].rows <= maxBatch) {
		rows += w.queue[n].rows
		n++
	}
	batch := slices.Clone(w.queue[:n])
	w.queue = slices.Delete(w.queue, 0, n)
	return batch
}

// withdraw takes a write back that no transaction has taken.
func (w *writer) withdraw(mine *write) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.queue, mine)
	if i < 0 {
		return false
	}
	w.queue = slices.Delete(w.queue, i, i+1)
	return true
}

func (b *write) finish(err error) {
	b.err = err
	close(b.done)
}
