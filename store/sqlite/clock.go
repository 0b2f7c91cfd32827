package sqlite

import (
	"context"

	"github.com/axctl/ax"
)

// ClockMark implements ax.Clocks.
func (s *Store) ClockMark(ctx context.Context) (m ax.ClockMark, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.query(ctx, func(r *row) error { m = scanClockMark(r); return nil },
			`SELECT `+clockColumns+` FROM meta`)
	})
	return m, err
}

const clockColumns = `clock_ms, clock_elapsed_ms, clock_kernel, clock_former_ms`

func scanClockMark(r *row) ax.ClockMark {
	return ax.ClockMark{WallMs: r.int64(), ElapsedMs: r.int64(), Kernel: r.text(), FormerMs: r.int64()}
}

// KeepClock implements ax.Clocks.
func (s *Store) KeepClock(ctx context.Context, m ax.ClockMark) error {
	return s.write(ctx, 1, func(t *tx) error {
		_, err := t.exec(`UPDATE meta SET clock_ms = ?, clock_elapsed_ms = ?, clock_kernel = ?, clock_former_ms = ?`,
			null(m.WallMs), null(m.ElapsedMs), text(m.Kernel), null(m.FormerMs))
		return err
	})
}
