package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/axctl/ax"
)

// Backup writes a copy of the store as it is now into a new file that only its
// owner reads, beside whatever works on the store, and returns its absolute
// path. A file that is there is refused. Its name is taken first and filled at
// the end by one rename, so a copy that was cut short leaves an empty file,
// which no ax takes for a store, and NAME.partial.
//
// The first opening of the copy for writing gives it a new incarnation, so that
// its batch numbers are never those of the original.
func (s *Store) Backup(ctx context.Context, path string) (_ string, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("back up store: %w", err)
	}
	partial := abs + ".partial"
	for i, name := range []string{abs, partial} {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			if i == 1 {
				_ = os.Remove(abs)
			}
			if errors.Is(err, fs.ErrExist) {
				err = ax.WithHint(fmt.Errorf("back up store: %s: %w", name, fs.ErrExist), "name a file that does not exist, or remove that one")
			}
			return "", err
		}
		_ = f.Close()
	}
	defer func() {
		if err != nil {
			_ = errors.Join(os.Remove(partial), os.Remove(abs))
		}
	}()
	if err := s.copyTo(ctx, partial); err != nil {
		if code(err) != 0 { // of either file: SQLite does not say which
			return "", ax.WithHint(fmt.Errorf("back up store %s to %s: %w", s.path, abs, err),
				"see that the disks of both are sound, and that %s has room for a copy", filepath.Dir(abs))
		}
		return "", s.explain(fmt.Errorf("back up store: %w", err))
	}
	if err := s.finishCopy(partial); err != nil {
		return "", fmt.Errorf("back up store to %s: %w", abs, err)
	}
	if err := os.Rename(partial, abs); err != nil {
		return "", fmt.Errorf("back up store: %w", err)
	}
	return abs, syncFile(filepath.Dir(abs))
}

// copyTo writes what a new snapshot shows, without free pages. It has a
// connection of its own, as VACUUM runs in no transaction.
func (s *Store) copyTo(ctx context.Context, path string) error {
	if err := s.intact(); err != nil {
		return err
	}
	c, err := openConn(s.address("ro", fmt.Sprintf("busy_timeout(%d)", readerPatience)))
	if err != nil {
		return err
	}
	_, err = c.exec(ctx, `VACUUM INTO ?`, path)
	return errors.Join(err, c.close())
}

// finishCopy marks the copy as one and puts it on the disk.
func (s *Store) finishCopy(path string) error {
	copied := &Store{path: path}
	c, err := openConn(copied.address("rw", "synchronous(FULL)"))
	if err != nil {
		return err
	}
	_, err = c.exec(context.Background(), `UPDATE meta SET copied_ms = ?`, s.now().UnixMilli())
	if err == nil {
		_, err = c.exec(context.Background(), `PRAGMA journal_mode = WAL`)
	}
	if err := errors.Join(err, c.close()); err != nil {
		return err
	}
	return syncFile(path)
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// renew gives a copy that is opened for writing for the first time an
// incarnation of its own.
func (s *Store) renew(ctx context.Context) error {
	if s.reads {
		return nil
	}
	copied := false
	err := s.writer.alone(ctx, func(c *conn) error {
		return c.query(context.Background(), func(r *row) error { copied = r.flag(); return nil },
			`SELECT copied_ms IS NOT NULL FROM meta`)
	})
	if err != nil || !copied {
		return s.explainOpen(err)
	}
	return s.write(ctx, 1, func(t *tx) error {
		_, err := t.exec(`UPDATE meta SET incarnation = ?, copied_ms = NULL WHERE copied_ms IS NOT NULL`, newIncarnation())
		return err
	})
}
