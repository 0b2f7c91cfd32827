package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/axctl/ax"
)

// Info implements ax.Queries.
func (s *Store) Info(ctx context.Context) (ax.StoreInfo, error) {
	info := ax.StoreInfo{URL: "sqlite:" + s.path}
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, func(r *row) error {
			info.ID, info.Incarnation, info.SchemaVersion, info.MinReader = r.text(), r.text(), r.int(), r.int()
			info.Serial, info.CreatedMs, info.TZData = r.int64(), r.int64(), r.text()
			info.Clock = scanClockMark(r)
			return nil
		}, `SELECT store_id, incarnation, schema_version, min_reader, serial, created_ms, tzdata, `+clockColumns+` FROM meta`)
	})
	return info, err
}

// Objects implements ax.Queries.
func (s *Store) Objects(ctx context.Context, f ax.ObjectFilter) (objects []ax.Object, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		objects, err = readObjects(ctx, c, f)
		return err
	})
	return objects, err
}

const selectVersions = `SELECT d.object_id, d.version, d.hash, d.body, ` + revisionColumns + `
	FROM definition d JOIN revision r ON r.id = d.revision_id JOIN stack s ON s.id = r.stack_id`

func scanVersion(r *row) ax.VersionRow {
	v := ax.VersionRow{VersionKey: ax.VersionKey{ObjectID: r.int64(), Version: r.int()}, Hash: r.text()}
	if body := r.text(); body != "" {
		v.Definition = json.RawMessage(body)
	} else {
		v.Deleted = true
	}
	v.Revision = scanRevision(r)
	return v
}

// Versions implements ax.Queries.
func (s *Store) Versions(ctx context.Context, objectID int64) ([]ax.VersionRow, error) {
	var versions []ax.VersionRow
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, func(r *row) error { versions = append(versions, scanVersion(r)); return nil },
			selectVersions+` WHERE d.object_id = ? ORDER BY d.version DESC`, objectID)
	})
	return versions, err
}

// Instance implements ax.Queries.
func (s *Store) Instance(ctx context.Context, id int64) (ax.Life, error) {
	var life ax.Life
	err := s.read(ctx, func(c *conn) error {
		err := c.query(ctx, func(r *row) error { life.InstanceRow = scanInstanceRow(r); return nil },
			selectInstanceRows+` WHERE i.id = ?`, id)
		if err != nil {
			return err
		}
		if life.ID == 0 {
			return fmt.Errorf("instance %d: %w", id, ax.ErrNotFound)
		}
		err = c.query(ctx, func(r *row) error { life.Attempts = append(life.Attempts, scanAttempt(r)); return nil },
			selectAttempts+` WHERE instance_id = ? ORDER BY attempt`, id)
		if err != nil {
			return err
		}
		err = c.query(ctx, func(r *row) error { life.Transitions = append(life.Transitions, scanTransition(r)); return nil },
			selectTransitions+` WHERE instance_id = ? ORDER BY seq`, id)
		if err != nil {
			return err
		}
		if err := c.live(ctx, &life); err != nil {
			return err
		}
		from, to := retryKeys(id)
		err = c.query(ctx, func(r *row) error { life.RetriedBy = append(life.RetriedBy, r.int64()); return nil },
			`SELECT id FROM instance WHERE due_ms = ? AND task_id = ? AND slot_key > ? AND slot_key < ?`, life.DueMs, life.TaskID, from, to)
		slices.Sort(life.RetriedBy)
		return err
	})
	return life, err
}

const selectAttempts = `SELECT instance_id, attempt, host, executor, status, error_class, error, handed_ms, started_ms, ended_ms, stopped_ms FROM attempt`

func scanAttempt(r *row) ax.Attempt {
	return ax.Attempt{
		InstanceID: r.int64(), Attempt: r.int(), Host: r.text(), Executor: r.text(), Status: ax.Status(r.text()),
		ErrorClass: ax.ErrorClass(r.text()), Error: r.text(), HandedMs: r.int64(), StartedMs: r.int64(), EndedMs: r.int64(), StoppedMs: r.int64(),
	}
}

const selectTransitions = `SELECT instance_id, at_ms, attempt, from_status, to_status, actor, cause, detail FROM transition`

func scanTransition(r *row) ax.Transition {
	return ax.Transition{
		InstanceID: r.int64(), AtMs: r.int64(), Attempt: r.int(), From: ax.Status(r.text()), To: ax.Status(r.text()),
		Actor: r.text(), Cause: ax.Cause(r.text()), Detail: r.text(),
	}
}

// Stretches implements ax.Queries.
func (s *Store) Stretches(ctx context.Context, taskID int64, limit int) ([]ax.SkippedStretch, error) {
	var stretches []ax.SkippedStretch
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, func(r *row) error {
			stretches = append(stretches, ax.SkippedStretch{
				TaskID: r.int64(), FromMs: r.int64(), ToMs: r.int64(), Slots: r.int(), Reason: ax.Reason(r.text()), Version: r.int(),
			})
			return nil
		}, `SELECT task_id, from_ms, to_ms, COALESCE(slots, -1), reason, version FROM skipped
			WHERE task_id = ? ORDER BY from_ms DESC, id LIMIT ?`, taskID, limit)
	})
	return stretches, err
}

// Hosts implements ax.Queries.
func (s *Store) Hosts(ctx context.Context) ([]ax.Host, error) {
	var hosts []ax.Host
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, func(r *row) error {
			h := ax.Host{
				Name: r.text(), Boot: r.text(), PID: r.int(), DataDir: r.text(), Listen: r.text(), Version: r.text(), TZData: r.text(),
			}
			if err := json.Unmarshal([]byte(r.text()), &h.Handlers); err != nil {
				return fmt.Errorf("host %q: %w", h.Name, err)
			}
			if pools := r.text(); pools != "" {
				if err := json.Unmarshal([]byte(pools), &h.Pools); err != nil {
					return fmt.Errorf("host %q: %w", h.Name, err)
				}
			}
			h.StartedMs, h.LeftMs = r.int64(), r.int64()
			hosts = append(hosts, h)
			return nil
		}, `SELECT name, boot, pid, data_dir, listen, version, tzdata, handlers, pools, started_ms, left_ms FROM host ORDER BY name`)
	})
	return hosts, err
}

// Counts implements ax.Queries.
func (s *Store) Counts(ctx context.Context) (map[ax.Status]int64, error) {
	counts := map[ax.Status]int64{}
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, func(r *row) error {
			if status, n := ax.Status(r.text()), r.int64(); n > 0 {
				counts[status] = n
			}
			return nil
		}, `SELECT 'pending', count(*) FROM instance WHERE status = 'pending'
			UNION ALL SELECT 'dispatched', count(*) FROM instance
				WHERE handed_ms IS NOT NULL AND stopped_ms IS NULL AND status = 'dispatched'`)
	})
	return counts, err
}
