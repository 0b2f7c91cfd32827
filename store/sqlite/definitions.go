package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/axctl/ax"
)

// ReadStack implements ax.Definitions.
func (s *Store) ReadStack(ctx context.Context, name string) (ax.StackState, error) {
	st := ax.StackState{Stack: name}
	err := s.read(ctx, func(c *conn) error {
		err := c.query(ctx, func(r *row) error { st.StoreID = r.text(); return nil }, `SELECT store_id FROM meta`)
		if err != nil {
			return err
		}
		id := int64(-1)
		err = c.query(ctx, func(r *row) error {
			id, st.Serial, st.Origin = r.int64(), r.int64(), r.text()
			return nil
		}, `SELECT id, serial, origin FROM stack WHERE name = ?`, name)
		if err != nil {
			return err
		}
		if st.Objects, err = readObjects(ctx, c, ax.ObjectFilter{Stack: name}); err != nil {
			return err
		}
		st.InFlight, err = readInFlight(ctx, c, id)
		return err
	})
	return st, err
}

// The key of an object begins with its stack, which few are asked for: CROSS JOIN
// makes SQLite go from stack to stack, and not through all objects.
const selectObjects = `
	SELECT o.id, o.kind, s.name, o.name, o.version, o.deleted_ms, o.hash, d.body, r.who, r.at_ms,
		t.enabled, t.next_fire_time, t.last_slot, o.fingerprint, t.active, t.waiting, t.lock_version, o.checked_from, t.failure_streak,
		t.hold, h.who, h.since_ms, h.until_ms, h.reason
	FROM stack s
	CROSS JOIN object o ON o.stack_id = s.id
	JOIN definition d ON d.object_id = o.id AND d.version = o.defined
	JOIN definition l ON l.object_id = o.id AND l.version = o.version
	JOIN revision r ON r.id = l.revision_id
	LEFT JOIN task t ON t.object_id = o.id
	LEFT JOIN hold h ON h.task_id = o.id`

func scanObject(r *row) ax.Object {
	o := ax.Object{
		ID: r.int64(), Kind: ax.ObjectKind(r.text()), Stack: r.text(), Name: r.text(), Version: r.int(),
		Deleted: r.flag(), Hash: r.text(), Definition: json.RawMessage(r.text()), WrittenBy: r.text(), WrittenMs: r.int64(),
		Row: ax.TaskRow{
			Enabled: r.flag(), NextMs: r.int64(), LastSlotMs: r.int64(), Fingerprint: r.text(),
			Active: r.int(), Waiting: r.int(), LockVersion: r.int64(), CheckedFromMs: r.int64(), FailureStreak: r.int(),
		},
	}
	if h := scanHold(r); h.Kind != "" {
		o.Row.Hold = &h
	}
	return o
}

func scanHold(r *row) ax.Hold {
	return ax.Hold{Kind: ax.HoldKind(r.text()), Who: r.text(), SinceMs: r.int64(), UntilMs: r.int64(), Reason: r.text()}
}

// readObjects names no column that the filter leaves open, so that what is asked
// for is found by its key.
func readObjects(ctx context.Context, c *conn, f ax.ObjectFilter) ([]ax.Object, error) {
	where := ` WHERE TRUE`
	var args []any
	for _, by := range []struct{ column, value string }{{"s.name", f.Stack}, {"o.kind", string(f.Kind)}, {"o.name", f.Name}} {
		if by.value != "" {
			where += ` AND ` + by.column + ` = ?`
			args = append(args, by.value)
		}
	}
	if len(f.IDs) > 0 {
		ids, err := json.Marshal(f.IDs)
		if err != nil {
			return nil, err
		}
		where += ` AND o.id IN (SELECT value FROM json_each(?))`
		args = append(args, string(ids))
	}
	var objects []ax.Object
	err := c.query(ctx, func(r *row) error {
		objects = append(objects, scanObject(r))
		return nil
	}, selectObjects+where+` ORDER BY s.name, o.kind, o.name`, args...)
	return objects, err
}

// readInFlight returns the open instances of a stack, oldest first.
func readInFlight(ctx context.Context, c *conn, stackID int64) ([]ax.InFlight, error) {
	type open struct {
		ax.InFlight
		dueMs int64
	}
	var found []open
	for _, where := range []string{
		`i.status = 'pending'`,
		`i.handed_ms IS NOT NULL AND i.stopped_ms IS NULL AND i.status = 'dispatched'`,
	} {
		err := c.query(ctx, func(r *row) error {
			found = append(found, open{dueMs: r.int64(), InFlight: ax.InFlight{
				ObjectID: r.int64(), ID: r.int64(), Version: r.int(),
				Kind: ax.InstanceKind(r.text()), Status: ax.Status(r.text()),
			}})
			return nil
		}, `SELECT i.due_ms, i.task_id, i.id, i.version, i.kind, i.status
			FROM instance i JOIN object o ON o.id = i.task_id
			WHERE `+where+` AND o.stack_id = ? ORDER BY i.due_ms, i.id LIMIT ?`, stackID, ax.MaxInFlight)
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, func(a, b open) int {
		return cmp.Or(cmp.Compare(a.dueMs, b.dueMs), cmp.Compare(a.ID, b.ID))
	})
	var inFlight []ax.InFlight
	for _, f := range found[:min(len(found), ax.MaxInFlight)] {
		inFlight = append(inFlight, f.InFlight)
	}
	return inFlight, nil
}

const revisionColumns = `r.apply_id, s.name, r.serial, r.at_ms, r.who, r.host, r.origin, r.git_remote, r.git_commit, r.git_dirty,
	r.plan_hash, r.config_hash, r.message, r.added, r.changed, r.deleted`

func scanRevision(r *row) ax.Revision {
	return ax.Revision{
		ApplyID: r.text(), Stack: r.text(), Serial: r.int64(), AtMs: r.int64(), Who: r.text(), Host: r.text(),
		Origin: r.text(), GitRemote: r.text(), GitCommit: r.text(), GitDirty: r.flag(),
		PlanHash: r.text(), ConfigHash: r.text(), Message: r.text(),
		Added: r.int(), Changed: r.int(), Deleted: r.int(),
	}
}

const selectRevision = `SELECT ` + revisionColumns + ` FROM revision r JOIN stack s ON s.id = r.stack_id WHERE r.apply_id = ?`

// Revision implements ax.Definitions.
func (s *Store) Revision(ctx context.Context, applyID string) (ax.Revision, error) {
	var found ax.Revision
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, func(r *row) error { found = scanRevision(r); return nil }, selectRevision, applyID)
	})
	if err == nil && found.ApplyID == "" {
		err = fmt.Errorf("apply %q: %w", applyID, ax.ErrNotFound)
	}
	return found, err
}

// TaskVersions implements ax.Specs.
func (s *Store) TaskVersions(ctx context.Context, keys []ax.VersionKey) ([]ax.TaskVersion, error) {
	var versions []ax.TaskVersion
	err := s.read(ctx, func(c *conn) error {
		for _, k := range keys {
			err := c.query(ctx, func(r *row) error {
				v := ax.TaskVersion{VersionKey: k, Stack: r.text(), Name: r.text()}
				if err := json.Unmarshal([]byte(r.text()), &v.Spec); err != nil {
					s.log.Error("a definition cannot be read; apply its task again", "task", ax.Address(ax.KindTask, v.Name),
						"version", v.Version, "error", err)
					return nil
				}
				versions = append(versions, v)
				return nil
			}, `SELECT s.name, o.name, d.body
				FROM definition d JOIN object o ON o.id = d.object_id JOIN stack s ON s.id = o.stack_id
				WHERE d.object_id = ? AND d.version = ? AND d.body IS NOT NULL`, k.ObjectID, k.Version)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return versions, err
}
