// Package cgroup keeps the processes of attempts together in control groups,
// where this process has been given a part of the tree (cgroup v2, Delegate=yes
// of a systemd unit). No process gets out of its group by leaving its session
// or by clearing its environment, all of them are killed by one write, and the
// kernel says when the last one is gone.
//
// In the delegated group each executor has a folder, ax-shell-NAME, that it
// holds a lock on, and in that a group for each attempt. A folder that nobody
// holds a lock on is left by an executor that died: the next one kills what is
// in it and removes it. No controller is turned on, so the executor itself may
// stay where it is.
package cgroup

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// prefix begins the name of an executor's folder.
const prefix = "ax-shell-"

// cleanWithin bounds the wait for what earlier executors left to be gone.
const cleanWithin = 3 * time.Second

// Find returns the folder of the group that the process is in, if a part of the
// tree may be built there; the error says why not.
func Find(pid int) (string, error) {
	proc := "/proc/" + strconv.Itoa(pid)
	mounts, err := os.ReadFile(proc + "/mountinfo")
	if err != nil {
		return "", err
	}
	own, err := os.ReadFile(proc + "/cgroup")
	if err != nil {
		return "", err
	}
	dir, top, err := locate(string(mounts), string(own))
	if err != nil {
		return "", err
	}
	if !top && !marked(dir) {
		return "", fmt.Errorf("%s is not delegated (Delegate=yes in the unit does that)", dir)
	}
	return dir, usable(dir)
}

// locate finds the folder of a group in the mounted tree, and says whether it
// is the top of what is mounted, as in a container.
func locate(mounts, own string) (dir string, top bool, err error) {
	path := ""
	for line := range strings.Lines(own) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			path = p
		}
	}
	if path == "" {
		return "", false, errors.New("the kernel has no cgroup v2")
	}
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		i := slices.Index(fields, "-")
		if i < 6 || len(fields) < i+2 || fields[i+1] != "cgroup2" {
			continue
		}
		below, ok := strings.CutPrefix(path, strings.TrimSuffix(fields[3], "/"))
		if ok && (below == "" || below[0] == '/') {
			below = cmp.Or(below, "/")
			return filepath.Join(fields[4], below), below == "/", nil
		}
	}
	return "", false, errors.New("no cgroup v2 tree is mounted")
}

// marked reports whether systemd, or whoever manages the tree, has marked the
// group as left to what runs in it.
func marked(dir string) bool {
	for _, name := range []string{"trusted.delegate", "user.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(dir, name, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// usable says why no groups can be made in a folder.
func usable(dir string) error {
	for _, path := range []string{dir, filepath.Join(dir, "cgroup.procs")} {
		if err := unix.Access(path, unix.W_OK); err != nil {
			return fmt.Errorf("%s cannot be written: %w", path, err)
		}
	}
	return nil
}

// Tree is one executor's part of the tree.
type Tree struct {
	dir  string
	lock *os.File
}

// Open removes what executors that died have left in the folder, with their
// processes, and makes a part for this one. Processes that do not go are an
// error beside the tree, which can be used.
func Open(dir string) (*Tree, error) {
	stuck := clean(dir, cleanWithin)
	for range 10 {
		path := filepath.Join(dir, prefix+strings.ToLower(rand.Text()[:10]))
		if err := os.Mkdir(path, 0o755); err != nil {
			return nil, err
		}
		lock, err := hold(path)
		if err != nil {
			continue // another one that starts has taken it for left
		}
		if _, err := os.Stat(filepath.Join(path, "cgroup.kill")); err != nil {
			_, _ = lock.Close(), os.Remove(path)
			return nil, errors.New("the kernel is older than 5.14 and cannot kill a cgroup")
		}
		return &Tree{dir: path, lock: lock}, stuck
	}
	return nil, fmt.Errorf("no folder in %s can be locked", dir)
}

// hold takes the lock on an executor's folder; it fails while another process
// has it, and when the folder is gone.
func hold(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// clean kills and removes the folders that nobody holds.
func clean(dir string, within time.Duration) error {
	paths, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	if err != nil {
		return err
	}
	var stuck []error
	deadline := time.Now().Add(within)
	for _, path := range paths {
		lock, err := hold(path)
		if err != nil {
			continue
		}
		left := &Group{dir: path}
		left.Kill()
		left.Await(time.Until(deadline))
		if err := left.Remove(); err != nil {
			stuck = append(stuck, fmt.Errorf("what an earlier executor left is not gone: processes %v in %s: %w", left.Pids(), path, err))
		}
		_ = lock.Close()
	}
	return errors.Join(stuck...)
}

// Group makes a group. The name is one that no other group of the tree has.
func (t *Tree) Group(name string) (*Group, error) {
	g := &Group{dir: filepath.Join(t.dir, name)}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.Open(g.dir)
	if err != nil {
		return nil, errors.Join(err, os.Remove(g.dir))
	}
	g.folder = f
	return g, nil
}

// Close removes the tree. What is left in it is killed.
func (t *Tree) Close() error {
	all := &Group{dir: t.dir}
	if all.Kill(); !all.Empty() {
		return t.lock.Close() // the next executor removes it
	}
	return errors.Join(all.Remove(), t.lock.Close())
}

// Group is the control group of one attempt.
type Group struct {
	dir    string
	folder *os.File
}

// FD is what a process is started into the group by (syscall.SysProcAttr).
func (g *Group) FD() int { return int(g.folder.Fd()) }

// Kill kills all processes in the group, and those that they begin meanwhile.
func (g *Group) Kill() { _ = os.WriteFile(filepath.Join(g.dir, "cgroup.kill"), []byte("1"), 0) }

// Freeze lets all processes in the group, and those that are in groups below it,
// stand still, or go on. AwaitFrozen tells when they do. No signal but KILL, by
// whatever way, reaches one that stands still.
func (g *Group) Freeze(on bool) error {
	value := "0"
	if on {
		value = "1"
	}
	return os.WriteFile(filepath.Join(g.dir, "cgroup.freeze"), []byte(value), 0)
}

// AwaitFrozen waits until the kernel says that all processes in the group stand
// still, at most as long as is said, and reports whether they do.
func (g *Group) AwaitFrozen(within time.Duration) (frozen bool) {
	g.await(func() bool {
		b, err := os.ReadFile(filepath.Join(g.dir, "cgroup.events"))
		frozen = bytes.Contains(b, []byte("frozen 1\n"))
		return frozen || errors.Is(err, os.ErrNotExist)
	}, within)
	return frozen
}

// Empty reports whether no process that lives is in the group or below it. A
// group that is gone is empty; one that cannot be read is not.
func (g *Group) Empty() bool {
	b, err := os.ReadFile(filepath.Join(g.dir, "cgroup.events"))
	return errors.Is(err, os.ErrNotExist) || bytes.Contains(b, []byte("populated 0\n"))
}

// Await waits until the group is empty, at most as long as is said.
func (g *Group) Await(within time.Duration) { g.await(g.Empty, within) }

// await waits until what cgroup.events tells has come about.
func (g *Group) await(so func() bool, within time.Duration) {
	f, err := os.Open(filepath.Join(g.dir, "cgroup.events"))
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	deadline := time.Now().Add(within)
	for !so() && time.Now().Before(deadline) {
		_, _ = f.ReadAt(make([]byte, 64), 0) // what changes from here on ends the wait
		if !so() {
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}, int(time.Until(deadline).Milliseconds())+1)
		}
	}
}

// Pids returns the processes in the group and below it.
func (g *Group) Pids() []int {
	var pids []int
	for _, dir := range g.folders() {
		b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			continue
		}
		for _, f := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
	}
	slices.Sort(pids)
	return pids
}

// Remove removes the group, and those that its processes made in it. It fails
// while it is not empty.
func (g *Group) Remove() error {
	if g.folder != nil {
		_ = g.folder.Close()
		g.folder = nil
	}
	var err error
	for _, dir := range slices.Backward(g.folders()) {
		if e := os.Remove(dir); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = e
		}
	}
	return err
}

// folders returns the group's folder and those below it, parents first.
func (g *Group) folders() []string {
	dirs := []string{g.dir}
	for i := 0; i < len(dirs); i++ {
		entries, err := os.ReadDir(dirs[i])
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.IsDir() {
				dirs = append(dirs, filepath.Join(dirs[i], e.Name()))
			}
		}
	}
	return dirs
}
