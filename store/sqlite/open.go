package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/axctl/ax"
)

// locate finds the store's file, or makes an empty one, and refuses what is
// not ours to use before anything is touched. The path it returns leads through
// no symbolic link, so that a store has one name whoever opens it by which: the
// lock that keeps a second axd away goes by it, and SQLite's own files do.
func locate(path string, o Options) (abs string, made bool, err error) {
	if abs, err = filepath.Abs(path); err != nil {
		return "", false, fmt.Errorf("open store: %w", err)
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	dir := filepath.Dir(abs)
	if err := checkOwner("store folder", dir); err != nil {
		return "", false, err
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist) && o.Create && !o.ReadOnly:
		made, err := create(abs)
		return abs, made, err
	case errors.Is(err, fs.ErrNotExist):
		return "", false, noStore(abs)
	case errors.Is(err, fs.ErrPermission):
		return "", false, denied("store %s cannot be reached", "let the user that runs this enter its folder", abs)
	case err != nil:
		return "", false, fmt.Errorf("open store: %w", err)
	case info.IsDir():
		return "", false, denied("store %s is a folder", "name the file in it, such as "+filepath.Join(abs, "ax.db"), abs)
	case !info.Mode().IsRegular():
		return "", false, denied("store %s is no regular file", "name a file on a local disk", abs)
	case names(info) > 1:
		// SQLite's log and locks go by the file's name: whoever opens it by
		// another one damages it.
		return "", false, denied("store %s has another name (a hard link)",
			"remove the other name (find -xdev -samefile "+abs+" finds it); a symbolic link does no harm, axctl store backup makes a copy", abs)
	}
	for _, name := range []string{abs, abs + "-wal", abs + "-shm"} {
		if err := checkOwner("store file", name); err != nil {
			return "", false, err
		}
	}
	if o.ReadOnly {
		return abs, false, nil
	}
	for _, name := range []string{dir, abs} {
		if err := unix.Access(name, unix.W_OK); err != nil {
			return "", false, denied("store %s cannot be written (%s: %v)", "make the file and its folder writable, or remount its disk", abs, name, err)
		}
	}
	return abs, false, nil
}

// create makes an empty file that only its owner reads. Nobody has it open
// yet, so closing it drops no lock.
func create(abs string) (made bool, err error) {
	f, err := os.OpenFile(abs, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		return true, f.Close()
	case errors.Is(err, fs.ErrExist):
		return false, nil // another process was faster; migrate sorts it out
	case errors.Is(err, fs.ErrNotExist):
		return false, ax.WithHint(fmt.Errorf("make store %s: %w: its folder does not exist", abs, ax.ErrNoStore), "mkdir -p %s", filepath.Dir(abs))
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return false, denied("store %s cannot be made: %v", "make its folder writable, or name another with -store", abs, err)
	default:
		return false, fmt.Errorf("make store: %w", err)
	}
}

// names returns how many hard links a file has.
func names(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

func noStore(abs string) error {
	return ax.WithHint(fmt.Errorf("%w at %s", ax.ErrNoStore, abs), "name the store with -store or AX_STORE if it is elsewhere; axctl apply makes one")
}

func denied(format, hint string, args ...any) error {
	return ax.WithHint(fmt.Errorf("%w: %s", ax.ErrDenied, fmt.Sprintf(format, args...)), "%s", hint)
}

// checkOwner refuses a file or folder that belongs to another user, by name:
// SQLite would leave files of ours in it that its owner cannot write, and root
// is no exception. A sticky folder such as /tmp is everybody's.
func checkOwner(what, name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return nil // what is missing is nobody's; the caller tells
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) == os.Geteuid() || info.IsDir() && info.Mode()&fs.ModeSticky != 0 {
		return nil
	}
	owner, me := userName(int(st.Uid)), userName(os.Geteuid())
	return ax.WithHint(fmt.Errorf("%w: %s %s belongs to %s, and this runs as %s", ax.ErrDenied, what, name, owner, me),
		"run this as %s, or give the folder and its files to %s", owner, me)
}

func userName(uid int) string {
	id := strconv.Itoa(uid)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return "user " + id
}

// explainOpen tells what is wrong with a file that SQLite does not open.
func (s *Store) explainOpen(err error) error {
	switch code(err) {
	case 0: // it explains itself
		return s.explain(err)
	case codeNotADB:
		return denied("store %s is not a database", "name another file with -store; this one was not touched", s.path)
	case codeReadOnly, codeCantOpen:
		return denied("store %s cannot be opened: %v", "make the file and its folder readable and writable", s.path, err)
	default:
		return s.explain(fmt.Errorf("open store: %w", err))
	}
}

// lockHolder says which process holds SQLite's write lock, as far as the
// kernel tells: in WAL mode it is byte 120 of the file PATH-shm.
func lockHolder(path string) string {
	const unknown = "unknown: an axctl apply, a backup or an sqlite3 shell"
	info, err := os.Stat(path + "-shm")
	if err != nil {
		return unknown
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	locks, err := os.ReadFile("/proc/locks")
	if !ok || err != nil {
		return unknown
	}
	inode := ":" + strconv.FormatUint(st.Ino, 10)
	for line := range strings.Lines(string(locks)) {
		// 1: POSIX ADVISORY WRITE 4711 fd:01:393 120 120
		f := strings.Fields(line)
		if len(f) != 8 || f[3] != "WRITE" || !strings.HasSuffix(f[5], inode) || f[6] != "120" {
			continue
		}
		name, err := os.ReadFile("/proc/" + f[4] + "/comm")
		if err != nil {
			return "process " + f[4]
		}
		return fmt.Sprintf("process %s (%s)", f[4], strings.TrimSpace(string(name)))
	}
	return unknown
}
