package sqlite

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/axctl/ax"
)

// Instances implements ax.Queries. No page reads more of the ledger than it
// shows, give or take what is not in history yet: it asks what has the wanted
// rows in order. Only a search for successes where nearly nothing succeeds
// reads past the rest.
func (s *Store) Instances(ctx context.Context, f ax.InstanceFilter) ([]ax.InstanceRow, error) {
	f.Limit = cmp.Or(f.Limit, 100)
	rows := []ax.InstanceRow{}
	err := s.read(ctx, func(c *conn) error {
		rows = rows[:0]
		sources, err := sourcesOf(f, c.reader(ctx))
		if err != nil {
			return err
		}
		for _, src := range sources {
			err := c.query(ctx, func(r *row) error { rows = append(rows, scanInstanceRow(r)); return nil }, src.sql(), src.args...)
			if err != nil {
				return err
			}
		}
		return nil
	})
	slices.SortFunc(rows, func(a, b ax.InstanceRow) int {
		return cmp.Or(cmp.Compare(b.DueMs, a.DueMs), cmp.Compare(b.TaskID, a.TaskID), cmp.Compare(b.SlotKey, a.SlotKey))
	})
	return rows[:min(len(rows), f.Limit)], err
}

// source is one place that has wanted instances: an index of the ledger, the
// ledger itself, or history. Its newest keys are found first, then their rows.
type source struct {
	from  string
	where []string
	args  []any
	task  string // the condition on the task
}

func (s *source) and(where string, args ...any) {
	s.where, s.args = append(s.where, where), append(s.args, args...)
}

func (s *source) sql() string {
	return selectInstanceColumns + ` FROM (SELECT k.due_ms, k.task_id, k.slot_key FROM ` + s.from + ` WHERE ` + strings.Join(s.where, ` AND `) +
		` ORDER BY k.due_ms DESC, k.task_id DESC, k.slot_key DESC LIMIT ?) w
		CROSS JOIN instance i ON i.due_ms = w.due_ms AND i.task_id = w.task_id AND i.slot_key = w.slot_key` + joinInstanceNames
}

// sourcesOf returns which sources have what f asks for, each of it once.
func sourcesOf(f ax.InstanceFilter, query func(func(*row) error, string, ...any) error) ([]*source, error) {
	var sources []*source
	add := func(from, where string, args ...any) *source {
		s := &source{from: from, task: `k.task_id = ?`}
		s.and(where, args...)
		sources = append(sources, s)
		return s
	}
	status, words := statusIn(f.Status)
	switch {
	case f.Held:
		open := add(`instance k INDEXED BY instance_open`, `k.handed_ms IS NOT NULL AND k.stopped_ms IS NULL`)
		if status != "" {
			open.and(`k.`+status, words...)
		}
	case len(f.Status) > 0 && !slices.Contains(f.Status, ax.StatusSuccess):
		for _, st := range slices.Compact(slices.Sorted(slices.Values(f.Status))) {
			switch st {
			case ax.StatusPending:
				add(`instance k`, `k.status = 'pending'`)
			case ax.StatusDispatched:
				add(`instance k INDEXED BY instance_open`, `k.handed_ms IS NOT NULL AND k.stopped_ms IS NULL AND k.status = 'dispatched'`)
			default:
				// The plus keeps the planner from sorting what the index has in order.
				add(`instance k INDEXED BY instance_status`, `k.status = ? AND k.status IN ('waiting', 'failed', 'timeout', 'skipped', 'cancelled')`,
					string(st)).task = `+k.task_id = ?`
			}
		}
	case f.TaskID != 0:
		to, err := indexedTo(query)
		if err != nil {
			return nil, err
		}
		old := add(`history k CROSS JOIN instance h ON h.due_ms = k.due_ms AND h.task_id = k.task_id AND h.slot_key = k.slot_key`, `h.id <= ?`, to)
		recent := add(`instance k INDEXED BY instance_id`, `k.id > ?`, to)
		if status != "" {
			old.and(`h.`+status, words...)
			recent.and(`(SELECT h.`+status+` FROM instance h WHERE h.due_ms = k.due_ms AND h.task_id = k.task_id AND h.slot_key = k.slot_key)`, words...)
		}
	default:
		all := add(`instance k`, `1`)
		if status != "" {
			all.and(`k.`+status, words...)
		}
	}
	for _, s := range sources {
		if f.TaskID != 0 {
			s.and(s.task, f.TaskID)
		}
		if len(f.Kinds) > 0 {
			s.and(kindIn(f.Kinds))
		}
		if f.SinceMs != 0 {
			s.and(`k.due_ms >= ?`, f.SinceMs)
		}
		if b := f.Before; b != nil {
			s.and(`k.due_ms <= ? AND (k.due_ms, k.task_id, k.slot_key) < (?, ?, ?)`, b.DueMs, b.DueMs, b.TaskID, b.SlotKey)
		}
		s.args = append(s.args, f.Limit)
	}
	return sources, nil
}

// kindIn returns the condition for a list of kinds, which a key tells.
func kindIn(list []ax.InstanceKind) string {
	var any []string
	for _, kind := range list {
		for _, prefix := range kind.SlotPrefixes() {
			any = append(any, `k.slot_key LIKE '`+prefix+`%'`)
		}
	}
	return `(` + strings.Join(append(any, `0`), ` OR `) + `)`
}

// statusIn returns the condition for a list of statuses, "" for none, without
// the table's name in front.
func statusIn(list []ax.Status) (condition string, words []any) {
	if len(list) == 0 {
		return "", nil
	}
	for _, st := range list {
		words = append(words, string(st))
	}
	return `status IN (?` + strings.Repeat(`, ?`, len(list)-1) + `)`, words
}

const (
	selectInstanceColumns = `SELECT ` + instanceColumns + `, s.name, o.kind, o.name,
		CASE WHEN i.status = 'pending' AND i.attempt > 1 THEN (SELECT a.error FROM attempt a WHERE a.instance_id = i.id AND a.attempt = i.attempt - 1) END,
		CASE WHEN i.handed_ms IS NOT NULL AND i.stopped_ms IS NULL THEN
			(SELECT t.detail FROM transition t WHERE t.instance_id = i.id AND t.attempt = i.attempt AND t.cause = 'unkillable' LIMIT 1) END,
		CASE WHEN i.status = 'dispatched' THEN (SELECT p.paused_ms FROM signal p WHERE p.instance_id = i.id AND p.attempt = i.attempt) END,
		CASE WHEN i.status = 'dispatched' THEN (SELECT p.paused_by FROM signal p WHERE p.instance_id = i.id AND p.attempt = i.attempt) END`
	joinInstanceNames  = ` CROSS JOIN object o ON o.id = i.task_id CROSS JOIN stack s ON s.id = o.stack_id`
	selectInstanceRows = selectInstanceColumns + ` FROM instance i` + joinInstanceNames
)

func scanInstanceRow(r *row) ax.InstanceRow {
	in := ax.InstanceRow{Instance: scanInstance(r), Stack: r.text()}
	in.Task, in.LastError, in.Unkillable = ax.Address(ax.ObjectKind(r.text()), r.text()), r.text(), r.text()
	in.PausedMs, in.PausedBy = r.int64(), r.text()
	return in
}
