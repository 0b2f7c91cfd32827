package sqlite_test

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store/sqlite"
	"github.com/axctl/ax/store/storetest"
)

// refused opens a store that is not to be opened and wants its error to say
// want, with a hint.
func refused(t *testing.T, path string, o sqlite.Options, kind error, want string) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, o)
	if err == nil {
		_ = s.Close()
		t.Fatalf("opened %s", path)
	}
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), want) {
		t.Errorf("error is %q, want %v saying %q", err, kind, want)
	}
	var hint *ax.HintError
	if !errors.As(err, &hint) || hint.Hint == "" {
		t.Errorf("error %q says nothing of what to do", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing.db")
	refused(t, missing, sqlite.Options{}, ax.ErrNoStore, "no store at "+missing)
	if _, err := os.Stat(missing); err == nil {
		t.Error("looking for a store made a file")
	}
	refused(t, filepath.Join(dir, "no", "folder.db"), sqlite.Options{Create: true}, ax.ErrNoStore, "folder does not exist")
	refused(t, dir, sqlite.Options{Create: true}, ax.ErrDenied, dir+" is a folder")
	empty := filepath.Join(dir, "empty.db")
	write(t, empty, nil)
	refused(t, empty, sqlite.Options{}, ax.ErrNoStore, "no store at "+empty)
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, fifo, sqlite.Options{Create: true}, ax.ErrDenied, "no regular file")
	path := populate(t)
	hard := filepath.Join(dir, "hard.db")
	if err := os.Link(path, hard); err != nil {
		t.Fatal(err)
	}
	refused(t, hard, sqlite.Options{}, ax.ErrDenied, "another name (a hard link)")
	refused(t, path, sqlite.Options{ReadOnly: true}, ax.ErrDenied, "another name (a hard link)")
}

func TestOpenLeavesOtherFilesAlone(t *testing.T) {
	t.Parallel()
	text := filepath.Join(t.TempDir(), "notes.txt")
	write(t, text, bytes.Repeat([]byte("no database\n"), 500))
	other := filepath.Join(t.TempDir(), "other.db")
	if _, err := open(t, other).ExecContext(t.Context(), `CREATE TABLE song (title TEXT)`); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{text: "is not a database", other: "another program"} {
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		refused(t, path, sqlite.Options{Create: true}, ax.ErrDenied, want)
		after, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(before, after) {
			t.Errorf("%s was changed", path)
		}
	}
}

func TestOpenRefusesNewerStores(t *testing.T) {
	t.Parallel()
	path := populate(t)
	db := open(t, path)
	if _, err := db.ExecContext(t.Context(), `UPDATE meta SET schema_version = 99, min_reader = 1`); err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{}) // newer, and still readable
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `UPDATE meta SET min_reader = 99, min_program = '9.1.0'`); err != nil {
		t.Fatal(err)
	}
	refused(t, path, sqlite.Options{}, ax.ErrTooNew, "needs ax 9.1.0 or newer")
	if _, err := db.ExecContext(t.Context(), `UPDATE meta SET schema_version = 1, min_reader = 1; UPDATE migration SET checksum = 'other'`); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), path, sqlite.Options{}); err == nil || !strings.Contains(err.Error(), "0001_first.sql") {
		t.Errorf("a changed migration gives %v", err)
	}
}

// A store of another user is refused by name, root or not.
func TestOpenRefusesOtherOwners(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 { // the folder is root's
		refused(t, "/etc/passwd", sqlite.Options{}, ax.ErrDenied, "/etc belongs to root")
		return
	}
	path := populate(t)
	if err := os.Chown(path, 4321, -1); err != nil {
		t.Fatal(err)
	}
	refused(t, path, sqlite.Options{}, ax.ErrDenied, path+" belongs to user 4321, and this runs as root")
	if err := os.Chown(filepath.Dir(path), 4321, -1); err != nil {
		t.Fatal(err)
	}
	refused(t, path, sqlite.Options{ReadOnly: true}, ax.ErrDenied, "folder "+filepath.Dir(path)+" belongs to user 4321")
	refused(t, filepath.Join(filepath.Dir(path), "new.db"), sqlite.Options{Create: true}, ax.ErrDenied, "belongs to user 4321")
}

func TestOpenMakesOneStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ax.db")
	ids := make([]string, 8)
	made := 0
	var mu sync.Mutex
	var group sync.WaitGroup
	for i := range ids {
		group.Go(func() {
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{Create: true})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			info, err := s.Info(t.Context())
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			ids[i] = info.ID
			if s.Made() {
				made++
			}
		})
	}
	group.Wait()
	for _, id := range ids {
		if id != ids[0] || id == "" {
			t.Fatalf("store ids are %v", ids)
		}
	}
	if made != 1 {
		t.Errorf("%d of them made the store", made)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v", info.Mode())
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	path := populate(t)
	for _, name := range []string{"alone", "beside a writer"} {
		if name != "alone" {
			w, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
		}
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := s.Instances(t.Context(), ax.InstanceFilter{})
		if err != nil || len(rows) == 0 {
			t.Errorf("%s: %d instances, %v", name, len(rows), err)
		}
		if err := s.Join(t.Context(), ax.Host{Name: "h9"}); !errors.Is(err, ax.ErrDenied) {
			t.Errorf("%s: a write gives %v", name, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What a program that was killed while it made the store has left is undone, also
// by a program that only reads: then there is no store yet.
func TestOpenAfterAKilledMaker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	being := filepath.Join(dir, "being-made.db")
	db, err := sql.Open("sqlite", "file:"+being+"?_pragma=cache_size(2)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	// More than the cache holds, so that pages are in the file before a commit.
	_, err = tx.ExecContext(t.Context(), `CREATE TABLE half AS
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT i, hex(randomblob(500)) FROM n`)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "ax.db")
	for _, suffix := range []string{"", "-journal"} {
		content, err := os.ReadFile(being + suffix)
		if err != nil || len(content) == 0 {
			t.Fatalf("%s: %d bytes, %v", suffix, len(content), err)
		}
		write(t, path+suffix, content)
	}
	refused(t, path, sqlite.Options{ReadOnly: true}, ax.ErrNoStore, "no store at "+path)
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Two openings of a file see each other as two processes do.
func TestChangedByAnother(t *testing.T) {
	t.Parallel()
	path := populate(t)
	var stores [2]*sqlite.Store
	for i := range stores {
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{Now: storetest.PopulatedNow})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		stores[i] = s
	}
	changed := func(i int) bool {
		t.Helper()
		c, err := stores[i].Changed(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	changed(0)
	changed(1)
	if err := stores[1].Join(t.Context(), ax.Host{Name: "h2", Boot: "b"}); err != nil {
		t.Fatal(err)
	}
	if !changed(0) {
		t.Error("another's commit went unseen")
	}
	if changed(0) || changed(1) {
		t.Error("changed without a change")
	}
}

func TestFileGoneAndBack(t *testing.T) {
	t.Parallel()
	path := populate(t)
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	away := path + ".away"
	if err := os.Rename(path, away); err != nil {
		t.Fatal(err)
	}
	_, readErr := s.Counts(t.Context())
	_, pollErr := s.Changed(t.Context())
	for what, err := range map[string]error{
		"a read": readErr, "a poll": pollErr, "a write": s.Join(t.Context(), ax.Host{Name: "h2"}),
	} {
		if !errors.Is(err, ax.ErrUnavailable) || !strings.Contains(err.Error(), "removed or replaced") {
			t.Errorf("%s without a file: %v", what, err)
		}
		if hint := (*ax.HintError)(nil); !errors.As(err, &hint) || !strings.Contains(hint.Hint, "put "+path+" back") || !strings.Contains(hint.Hint, "restart axd") {
			t.Errorf("%s without a file: hint %v", what, hint)
		}
	}
	if err := os.Rename(away, path); err != nil {
		t.Fatal(err)
	}
	if err := s.Join(t.Context(), ax.Host{Name: "h2"}); err != nil {
		t.Errorf("a write after the file came back: %v", err)
	}
}

// A log that is removed under an open store would be written on and lost. Nothing
// is written into it any more, and what it had is saved when the store closes.
func TestLogGone(t *testing.T) {
	t.Parallel()
	path := populate(t)
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Join(t.Context(), ax.Host{Name: "before"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"-wal", path+".away"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		err := s.Join(t.Context(), ax.Host{Name: "meanwhile"})
		if !errors.Is(err, ax.ErrUnavailable) || !strings.Contains(err.Error(), "its write-ahead log was removed or replaced") {
			t.Errorf("a write without the log: %v", err)
		}
		if hint := (*ax.HintError)(nil); !errors.As(err, &hint) || !strings.Contains(hint.Hint, "stop axd") {
			t.Errorf("the hint is %v", hint)
		}
	}
	if err := os.Rename(path+".away", path+"-wal"); err != nil {
		t.Fatal(err)
	}
	if err := s.Join(t.Context(), ax.Host{Name: "after"}); err != nil {
		t.Errorf("a write after the log came back: %v", err)
	}
	if err := os.Remove(path + "-wal"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Counts(t.Context()); !errors.Is(err, ax.ErrUnavailable) {
		t.Errorf("a read without the log: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	hosts, err := again.Hosts(t.Context())
	var names []string
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	if err != nil || !slices.Contains(names, "before") || !slices.Contains(names, "after") || slices.Contains(names, "meanwhile") {
		t.Errorf("hosts %v, %v", names, err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	s, err := sqlite.Open(t.Context(), populate(t), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var mode string
	if err := open(t, s.Path()).QueryRowContext(t.Context(), `PRAGMA journal_mode`).Scan(&mode); err != nil || mode != "wal" {
		t.Errorf("journal mode is %q, %v", mode, err)
	}
	if !filepath.IsAbs(s.Path()) {
		t.Errorf("path %q is not absolute", s.Path())
	}
}

// A store has one name, whichever link it is opened by.
func TestPathOfALinkedStore(t *testing.T) {
	t.Parallel()
	path := populate(t)
	link, folder := filepath.Join(t.TempDir(), "link.db"), filepath.Join(t.TempDir(), "folder")
	if err := errors.Join(os.Symlink(path, link), os.Symlink(filepath.Dir(path), folder)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{link, filepath.Join(folder, filepath.Base(path))} {
		s, err := sqlite.Open(t.Context(), name, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if s.Path() != path {
			t.Errorf("%s is opened as %s, not as %s", name, s.Path(), path)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The driver works with exactly one version of its C library: the one that its
// own go.mod names.
func TestLibcIsThePinnedOne(t *testing.T) {
	t.Parallel()
	list := func(format, module string) string {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", format, module).Output()
		if err != nil {
			t.Fatalf("go list -m %s: %v", module, err)
		}
		return strings.TrimSpace(string(out))
	}
	mod, err := os.ReadFile(list("{{.GoMod}}", "modernc.org/sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	pinned := regexp.MustCompile(`modernc\.org/libc (v\S+)`).FindSubmatch(mod)
	if pinned == nil {
		t.Fatal("the driver's go.mod names no libc")
	}
	used := list("{{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}", "modernc.org/libc")
	if used != string(pinned[1]) {
		t.Errorf("libc is %s, and the driver pins %s: put that into go.mod", used, pinned[1])
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
