package sqlite_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store/check"
	"github.com/axctl/ax/store/sqlite"
	"github.com/axctl/ax/store/storetest"
)

// violations break one invariant each, as no commit of ours would.
var violations = []struct {
	invariant int
	name      string
	sql       string
	told      bool // the SQL in docs/invariants.md tells it too
}{
	{2, "a version gone", `DELETE FROM definition WHERE object_id = 1 AND version = 1`, true},
	{2, "a definition changed", `UPDATE definition SET body = replace(body, '"1m"', '"9m"') WHERE object_id = 1 AND version = 1`, false},
	{3, "active too high", `UPDATE task SET active = active + 1 WHERE object_id = 1`, true},
	{3, "waiting too low", `UPDATE task SET waiting = waiting - 1 WHERE object_id = 1`, true},
	{3, "an attempt stopped behind the counter's back", `UPDATE instance SET stopped_ms = 1, ended_ms = 1, status = 'success' WHERE status = 'dispatched'`, true},
	{4, "running nowhere", `UPDATE instance SET host = NULL WHERE status = 'dispatched'`, true},
	{4, "running without a deadline", `UPDATE instance SET deadline_ms = NULL WHERE status = 'dispatched'`, true},
	{4, "waiting since ever", `UPDATE instance SET not_before_ms = 0 WHERE status = 'pending'`, true},
	{4, "waiting for nothing", `UPDATE instance SET status = 'waiting' WHERE status = 'pending'`, true},
	{4, "a status that is none", `UPDATE instance SET status = 'gone', ended_ms = NULL WHERE status = 'dispatched'`, false},
	{8, "a life line with a status that is none", `UPDATE transition SET to_status = 'gone' WHERE cause = 'timeout'`, false},
	{5, "an end that changed", `INSERT INTO transition SELECT instance_id, 9, at_ms, attempt, 'timeout', 'success', 'ghost', 'cancel', NULL
		FROM transition WHERE cause = 'timeout'`, true},
	{5, "a row against its life line", `UPDATE instance SET status = 'success' WHERE id = (SELECT instance_id FROM transition WHERE cause = 'timeout')`, false},
	{6, "next before last", `UPDATE task SET last_slot = next_fire_time WHERE object_id = 1`, true},
	{6, "a slot gone", `DELETE FROM instance WHERE id = 2`, false},
	{6, "a slot passed over", `UPDATE task SET next_fire_time = next_fire_time + 60000 WHERE object_id = 1`, false},
	{6, "a stretch gone", `DELETE FROM skipped`, false},
	{6, "a slot told twice", `UPDATE skipped SET from_ms = from_ms - 60000`, true},
	{6, "next of a deleted task", `UPDATE task SET next_fire_time = 1 WHERE object_id = (SELECT id FROM object WHERE deleted_ms IS NOT NULL)`, false},
	{8, "an attempt forgotten", `DELETE FROM attempt`, true},
	{8, "a retry forgotten", `DELETE FROM transition WHERE cause = 'retry'`, false},
	{8, "skipped without a word", `DELETE FROM transition WHERE cause = 'overlap'`, false},
	{10, "two attempts at once", `UPDATE attempt SET stopped_ms = NULL`, true},
	{13, "an instance of no backfill", `UPDATE instance SET slot_key = 'b:9:' || due_ms WHERE kind = 'backfill'`, true},
	{13, "an instance of a slot that is not decided", `UPDATE backfill SET position_ms = from_ms`, true},
	{13, "made more than there are", `UPDATE backfill SET made = 2`, true},
	{13, "an end that is none", `UPDATE backfill SET ended_ms = 1`, true},
	{11, "written by another stack", `UPDATE revision SET stack_id = 99; INSERT INTO stack (id, name, serial) VALUES (99, 'other', 1)`, true},
	{8, "held by nobody", `DELETE FROM hold; UPDATE task SET hold = 'paused' WHERE object_id = 1`, false},
	{8, "a cancel forgotten", `UPDATE instance SET cancel_by = 'ann' WHERE id = 2`, false},
	{8, "a verdict changed", `UPDATE instance SET verdict = 'skipped' WHERE id = 2`, false},
	{12, "not in its task's history", `UPDATE meta SET history_to = 3`, true},
	{12, "only in its task's history", `INSERT INTO history VALUES (1, 1, 's:1')`, true},
}

func TestViolationsAreFound(t *testing.T) {
	t.Parallel()
	doc := documented(t)
	for _, v := range violations {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			path := populate(t)
			db := open(t, path)
			if _, err := db.ExecContext(t.Context(), v.sql); err != nil {
				t.Fatal(err)
			}
			if !told(t, db, doc, v.invariant) && v.told {
				t.Errorf("the SQL of invariant %d tells nothing", v.invariant)
			}
			for _, f := range findings(t, path) {
				if f.Invariant == v.invariant && f.Subject != "" && f.Remedy != "" {
					return
				}
			}
			t.Errorf("check did not find invariant %d violated", v.invariant)
		})
	}
}

// A key collision cannot be planted in the ledger: it is its primary key.
func TestSlotsAreUnique(t *testing.T) {
	t.Parallel()
	db := open(t, populate(t))
	_, err := db.ExecContext(t.Context(), `INSERT INTO instance SELECT due_ms, task_id, slot_key, id + 1000, version, kind, status, attempt, not_before_ms,
		claimed_ms, assigned_ms, handed_ms, started_ms, ended_ms, stopped_ms, deadline_ms, host, boot, executor, reason, cancel_by,
		output_bytes, output_dropped, error_class, error, output FROM instance WHERE id = 1`)
	if err == nil {
		t.Error("a slot got two instances")
	}
}

func TestDocumentedInvariantsHold(t *testing.T) {
	t.Parallel()
	doc := documented(t)
	path := populate(t)
	db := open(t, path)
	for n := range doc {
		if told(t, db, doc, n) {
			t.Errorf("the SQL of invariant %d tells of a sound store", n)
		}
	}
	for _, f := range findings(t, path) {
		t.Errorf("finding: %s", f)
	}
	for _, n := range []int{1, 3, 4, 6} {
		if len(doc[n]) == 0 {
			t.Errorf("docs/invariants.md has no SQL for invariant %d", n)
		}
	}
}

// populate makes a store with one of everything and closes it.
func populate(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ax.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Create: true, Now: storetest.PopulatedNow})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Populate(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func findings(t *testing.T, path string) []check.Finding {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{ReadOnly: true, Now: storetest.PopulatedNow})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	found, err := check.Check(t.Context(), s, storetest.PopulatedNow())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// documented returns the queries of docs/invariants.md by invariant.
func documented(t *testing.T) map[int][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "invariants.md"))
	if err != nil {
		t.Fatal(err)
	}
	doc := map[int][]string{}
	number := 0
	for _, m := range regexp.MustCompile("(?ms)^## (\\d+)\\.|^```sql\n(.*?)^```").FindAllStringSubmatch(string(text), -1) {
		if m[1] != "" {
			if number, err = strconv.Atoi(m[1]); err != nil {
				t.Fatal(err)
			}
			continue
		}
		doc[number] = append(doc[number], m[2])
	}
	return doc
}

// told reports whether a query of the invariant returns a row.
func told(t *testing.T, db *sql.DB, doc map[int][]string, invariant int) bool {
	t.Helper()
	found := false
	for _, query := range doc[invariant] {
		rows, err := db.QueryContext(t.Context(), query)
		if err != nil {
			t.Fatal(fmt.Errorf("SQL of invariant %d: %w", invariant, err))
		}
		found = rows.Next() || found
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// A definition that this program cannot read is missing, and told; the others
// are there.
func TestUnreadableDefinition(t *testing.T) {
	t.Parallel()
	path := populate(t)
	if _, err := open(t, path).Exec(`UPDATE definition SET body = '{"timeout":"soon"}' WHERE object_id = 1 AND version = 1`); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	vs, err := s.TaskVersions(t.Context(), []ax.VersionKey{{ObjectID: 1, Version: 1}, {ObjectID: 2, Version: 1}})
	if err != nil || len(vs) != 1 || vs[0].ObjectID != 2 {
		t.Errorf("%+v, %v", vs, err)
	}
	if !strings.Contains(log.String(), "cannot be read") {
		t.Errorf("told %q", log.String())
	}
}
