package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"modernc.org/sqlite"
)

// conn is a raw driver connection with its prepared statements. The driver
// keeps a statement compiled between uses, so a text is parsed once a
// connection. A conn is used by one goroutine at a time.
type conn struct {
	raw   driver.Conn
	stmts map[string]statement
	args  []driver.NamedValue // reused by each call
}

type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

func openConn(dsn string) (*conn, error) {
	raw, err := new(sqlite.Driver).Open(dsn)
	if err != nil {
		return nil, err
	}
	return &conn{raw: raw, stmts: map[string]statement{}}, nil
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.raw.Close())...)
}

func (c *conn) statement(sql string) (statement, error) {
	if s, ok := c.stmts[sql]; ok {
		return s, nil
	}
	prepared, err := c.raw.Prepare(sql)
	if err != nil {
		return nil, err
	}
	s, ok := prepared.(statement)
	if !ok {
		return nil, fmt.Errorf("the driver's statement is a %T", prepared)
	}
	c.stmts[sql] = s
	return s, nil
}

// bind makes the driver's arguments; "" and typed words go through text().
func (c *conn) bind(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		switch v := a.(type) {
		case int:
			a = int64(v)
		case nil, int64, string, bool, []byte:
		default:
			panic(fmt.Sprintf("argument %d is a %T", i+1, a))
		}
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.args
}

// exec runs a statement. A context that can end costs a goroutine a call, so
// writers pass context.Background().
func (c *conn) exec(ctx context.Context, sql string, args ...any) (driver.Result, error) {
	s, err := c.statement(sql)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(ctx, c.bind(args))
}

// query runs a statement and calls scan for each row. The row is valid until
// scan returns.
func (c *conn) query(ctx context.Context, scan func(*row) error, sql string, args ...any) error {
	s, err := c.statement(sql)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(ctx, c.bind(args))
	if err != nil {
		return err
	}
	defer rows.Close()
	r := row{values: make([]driver.Value, len(rows.Columns()))}
	for {
		if err := rows.Next(r.values); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		r.at = 0
		if err := scan(&r); err != nil {
			return err
		}
	}
}

// reader returns query for one context, as tx.query is for a transaction.
func (c *conn) reader(ctx context.Context) func(scan func(*row) error, sql string, args ...any) error {
	return func(scan func(*row) error, sql string, args ...any) error { return c.query(ctx, scan, sql, args...) }
}

// row reads the columns of one result row from left to right. NULL reads as
// the zero value.
type row struct {
	values []driver.Value
	at     int
}

func (r *row) next() driver.Value {
	r.at++
	return r.values[r.at-1]
}

func (r *row) int64() int64 {
	v, _ := r.next().(int64)
	return v
}

func (r *row) int() int   { return int(r.int64()) }
func (r *row) flag() bool { return r.int64() != 0 }

func (r *row) text() string {
	v, _ := r.next().(string)
	return v
}

// null stores a zero instant or number as NULL.
func null(v int64) any {
	if v == 0 {
		return nil
	}
	return v
}

// text stores a word as it is, and "" as NULL.
func text[T ~string](s T) any {
	if s == "" {
		return nil
	}
	return string(s)
}
