// Package folder is a host's plugin folder: which plugins are in it, whether
// they may be started, and what they offer. axd and axctl read it alike. It
// starts nothing but to ask a plugin to describe itself (Describe).
package folder

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/axctl/ax"
)

// Prefix is what the file of every plugin is called, before its name.
const Prefix = "ax-handler-"

// Plugin is a program of the folder, or one that is declared and not there.
type Plugin struct {
	Name    string
	Path    string // absolute
	Spec    ax.PluginSpec
	Problem string // why it is not to be started, "" when it may be
	Missing bool   // its file is not there, which is the Problem
}

// Find returns the plugins of a folder in the order of their names: those that
// are declared, and each other file that is called ax-handler-NAME. The error is
// about the folder as a whole, and then none may be started.
func Find(dir string, declared map[string]ax.PluginSpec) ([]Plugin, error) {
	folderErr := safe(dir, true)
	var found []Plugin
	taken := map[string]bool{} // paths of declared ones
	for name, spec := range declared {
		p := Plugin{Name: name, Path: filepath.Join(dir, spec.Path), Spec: spec}
		taken[p.Path] = true
		switch {
		case folderErr != nil:
			p.Problem = folderErr.Error()
		case !filepath.IsLocal(spec.Path): // the store may have been written by anybody
			p.Problem = fmt.Sprintf("path %q leaves the plugin folder", spec.Path)
		default:
			p.Problem = problem(dir, spec.Path)
			_, err := os.Lstat(p.Path)
			p.Missing = errors.Is(err, fs.ErrNotExist)
		}
		found = append(found, p)
	}
	if folderErr == nil {
		entries, err := os.ReadDir(dir)
		if err != nil {
			folderErr = fmt.Errorf("plugin folder: %w", err)
		}
		for _, e := range entries {
			name, ok := strings.CutPrefix(e.Name(), Prefix)
			path := filepath.Join(dir, e.Name())
			if !ok || taken[path] {
				continue
			}
			p := Plugin{Name: name, Path: path, Problem: problem(dir, e.Name())}
			if _, twice := declared[name]; twice {
				p.Problem = fmt.Sprintf("plugin %q is declared with path %q", name, declared[name].Path)
			}
			if strings.ContainsFunc(name, func(r rune) bool {
				return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
			}) || name == "" {
				p.Problem = fmt.Sprintf("%q is no name of a plugin: letters, digits, _ and -", name)
			}
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b Plugin) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Path, b.Path)) })
	return found, folderErr
}

// problem says why a file of the folder is not to be started; every folder on
// the way to it must be safe too.
func problem(dir, path string) string {
	at := dir
	for _, part := range strings.Split(filepath.Dir(path), string(filepath.Separator)) {
		if part == "." {
			continue
		}
		at = filepath.Join(at, part)
		if err := safe(at, true); err != nil {
			return err.Error()
		}
	}
	if err := safe(filepath.Join(dir, path), false); err != nil {
		return err.Error()
	}
	return ""
}

// safe refuses what somebody else could have written: what it holds would run
// as this user.
func safe(path string, folder bool) error {
	stat := os.Lstat
	if folder {
		stat = os.Stat // a link to a folder is as good as what it points to
	}
	info, err := stat(path)
	what := "file"
	if folder {
		what = "folder"
	}
	var perr *fs.PathError
	switch {
	case errors.As(err, &perr):
		return fmt.Errorf("%s: %w", path, perr.Err)
	case err != nil:
		return err
	case folder && !info.IsDir():
		return fmt.Errorf("%s is no folder", path)
	case !folder && !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file", path)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("the %s %s may be written by others than its owner (mode %04o): chmod go-w", what, path, info.Mode().Perm())
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("the %s %s belongs to user %d, neither to user %d nor to root", what, path, st.Uid, os.Geteuid())
	}
	if !folder && info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("the file %s is not executable: chmod +x", path)
	}
	return nil
}

// Environ returns the variables of an environment that the plugin's block
// passes through.
func (p Plugin) Environ(environ []string) []string {
	var out []string
	for _, kv := range environ {
		if name, _, _ := strings.Cut(kv, "="); slices.Contains(p.Spec.Env, name) {
			out = append(out, kv)
		}
	}
	return out
}

// Open opens a file whose SHA-256, which it returns in hexadecimal digits, is
// the pinned one, "" any. What is to be started is the file that was opened
// (OpenedPath), so that nobody can put another one in its place meanwhile.
func Open(path, pinned string) (f *os.File, sum string, err error) {
	if f, err = os.Open(path); err != nil {
		return nil, "", err
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		_ = f.Close()
		return nil, "", fmt.Errorf("read %s: %w", path, err)
	}
	sum = hex.EncodeToString(h.Sum(nil))
	if pinned != "" && sum != pinned {
		_ = f.Close()
		return nil, "", fmt.Errorf("%s has sha256 %s, and %s is pinned", path, sum, pinned)
	}
	return f, sum, nil
}

// OpenedPath is the path of a program that a new process has as its file
// descriptor fd.
func OpenedPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// Sum returns the SHA-256 of a file in hexadecimal digits.
func Sum(path string) (string, error) {
	f, sum, err := Open(path, "")
	if err != nil {
		return "", err
	}
	return sum, f.Close()
}
