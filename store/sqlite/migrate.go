package sqlite

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/axctl/ax"
)

//go:embed schema/*.sql
var schema embed.FS

const (
	// applicationID marks the file as ax's in its header ("axdb").
	applicationID = 0x61786462
	// minReader is the oldest schema version whose programs may still open a
	// store as this one leaves it, and minProgram the ax that brought it.
	minReader  = 1
	minProgram = "0.1.0"
)

type migration struct {
	number   int
	name     string
	sql      string
	checksum string
}

func migrations() ([]migration, error) {
	names, err := fs.Glob(schema, "schema/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var ms []migration
	for i, name := range names {
		sql, err := schema.ReadFile(name)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(sql)
		ms = append(ms, migration{i + 1, strings.TrimPrefix(name, "schema/"), string(sql), hex.EncodeToString(sum[:])})
	}
	return ms, nil
}

// migrate brings the store to this program's schema, one transaction a step
// (a new store in one alone), and refuses one that is newer, or no store at all.
func (s *Store) migrate(ctx context.Context, o Options) error {
	ms, err := migrations()
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	for {
		var have int
		err := s.writer.alone(ctx, func(c *conn) (err error) {
			have, err = s.inspect(c, ms)
			return err
		})
		switch {
		case err != nil:
			return s.explainOpen(err)
		case have >= len(ms):
			return nil
		case have == 0 && !o.Create:
			return noStore(s.path)
		case o.ReadOnly:
			return ax.WithHint(fmt.Errorf("store %s: %w: its schema is version %d, and this needs %d", s.path, ax.ErrUnavailable, have, len(ms)),
				"start this version's axd, or apply with its axctl: both bring the store up to date")
		}
		if have == 0 {
			// It stays in the file. A file of another program is left as it is.
			err := s.writer.alone(ctx, func(c *conn) error {
				_, err := c.exec(context.Background(), `PRAGMA journal_mode = WAL`)
				return err
			})
			if err != nil {
				return s.explainOpen(err)
			}
		}
		todo := ms[have : have+1]
		if have == 0 {
			todo = ms // a new store is there whole or not at all
		}
		if err := s.step(ctx, todo); err != nil {
			return s.explainOpen(err)
		}
	}
}

// errMigrated is returned when another process took the same step first.
var errMigrated = errors.New("migrated meanwhile")

// step takes some migrations in one transaction.
func (s *Store) step(ctx context.Context, todo []migration) error {
	err := s.writer.do(ctx, maxBatch, func(t *tx) error {
		var have int64
		if err := t.query(func(r *row) error { have = r.int64(); return nil }, `PRAGMA user_version`); err != nil {
			return err
		}
		if int(have) >= todo[0].number {
			return errMigrated
		}
		for _, m := range todo {
			if err := s.runMigration(t, m); err != nil {
				return fmt.Errorf("migration %s: %w", m.name, err)
			}
		}
		return nil
	})
	if errors.Is(err, errMigrated) {
		return nil
	}
	return err
}

func (s *Store) runMigration(t *tx, m migration) error {
	script := m.sql
	if m.number == 1 {
		script += `CREATE TABLE migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, at_ms INTEGER NOT NULL);`
	}
	script += fmt.Sprintf("PRAGMA user_version = %d; PRAGMA application_id = %d;", m.number, applicationID)
	if _, err := t.exec(script); err != nil {
		return err
	}
	nowMs := s.now().UnixMilli()
	if m.number == 1 {
		_, err := t.exec(`INSERT INTO meta (only, store_id, incarnation, schema_version, min_reader, min_program, serial, next_instance_id, created_ms)
			VALUES (1, ?, ?, 0, 0, '', 0, 1, ?)`, uuid.NewString(), newIncarnation(), nowMs)
		if err != nil {
			return err
		}
	}
	if _, err := t.exec(`UPDATE meta SET schema_version = ?, min_reader = ?, min_program = ?`, m.number, minReader, minProgram); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO migration (number, name, checksum, at_ms) VALUES (?, ?, ?, ?)`, m.number, m.name, m.checksum, nowMs)
	return err
}

// newIncarnation returns what batch numbers of this store begin with: random,
// without the dash that separates their parts.
func newIncarnation() string { return strings.ReplaceAll(uuid.NewString(), "-", "")[:12] }

// inspect returns the store's schema version, 0 for an empty file.
func (s *Store) inspect(c *conn, ms []migration) (have int, err error) {
	number := func(sql string) (n int64, err error) {
		err = c.query(context.Background(), func(r *row) error { n = r.int64(); return nil }, sql)
		return n, err
	}
	// In this order: another process makes all of it in one commit, which may
	// come between the two.
	tables, err := number(`SELECT count(*) FROM sqlite_schema`)
	if err != nil || tables == 0 {
		return 0, err
	}
	id, err := number(`PRAGMA application_id`)
	if err != nil {
		return 0, err
	}
	if id != applicationID {
		return 0, denied("store %s is the database of another program", "name another file with -store; this one was not touched", s.path)
	}
	var reader int
	var program string
	err = c.query(context.Background(), func(r *row) error {
		have, reader, program = r.int(), r.int(), r.text()
		return nil
	}, `SELECT schema_version, min_reader, min_program FROM meta`)
	if err != nil {
		return 0, err
	}
	if reader > len(ms) {
		return 0, ax.WithHint(fmt.Errorf("store %s: %w: it needs ax %s or newer", s.path, ax.ErrTooNew, program),
			"install ax %s", program)
	}
	err = c.query(context.Background(), func(r *row) error {
		n, sum := r.int(), r.text()
		if n <= len(ms) && ms[n-1].checksum != sum {
			return fmt.Errorf("store %s: migration %s was not the one of this program", s.path, ms[n-1].name)
		}
		return nil
	}, `SELECT number, checksum FROM migration ORDER BY number`)
	return have, err
}
