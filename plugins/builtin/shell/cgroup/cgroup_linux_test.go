package cgroup

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// scratch is a group for a test to build in, made where this process may make
// one; false where it may make none.
func scratch(t *testing.T) (string, bool) {
	t.Helper()
	dir, err := Find(os.Getpid())
	if err == nil {
		dir, err = os.MkdirTemp(dir, "ax-test-")
	}
	if err != nil {
		t.Logf("nothing is shown here, that takes a cgroup v2 tree that this process may write (root, or Delegate=yes): %v", err)
		return "", false
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Errorf("something is left in it: %v", err)
		}
	})
	return dir, true
}

// into starts a shell command in the group and waits until it has printed a
// line.
func into(t *testing.T, g *Group, command string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: g.FD(), Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	return cmd
}

// A process that leaves its session, and one that makes a group of its own below
// the attempt's, are killed with the rest; the group is empty only then, and can
// be removed only then.
func TestKill(t *testing.T) {
	dir, ok := scratch(t)
	if !ok {
		return
	}
	tree, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	g, err := tree.Group("batch-1-1")
	if err != nil {
		t.Fatal(err)
	}
	into(t, g, `mkdir `+g.dir+`/below; sh -c 'echo $$ >`+g.dir+`/below/cgroup.procs; exec sleep 60' &
		env -i setsid sleep 60 & while test -z "$(cat `+g.dir+`/below/cgroup.procs)"; do :; done; echo begun; wait`)
	if g.Empty() || len(g.Pids()) != 3 {
		t.Fatalf("empty %t, processes %v", g.Empty(), g.Pids())
	}
	if err := g.Remove(); !errors.Is(err, unix.EBUSY) {
		t.Errorf("removed while it is not empty: %v", err)
	}
	g.Kill()
	if g.Await(10 * time.Second); !g.Empty() {
		t.Fatalf("processes %v are left", g.Pids())
	}
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(g.dir); !errors.Is(err, os.ErrNotExist) || !g.Empty() {
		t.Errorf("it is still there: %v", err)
	}
	if err := tree.Close(); err != nil {
		t.Error(err)
	}
}

// What is frozen stands still, with what left its session, goes on when it is
// thawed, and can be killed while it is frozen, as by the next executor.
func TestFreeze(t *testing.T) {
	dir, ok := scratch(t)
	if !ok {
		return
	}
	tree, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	g, err := tree.Group("batch-1-1")
	if err != nil {
		t.Fatal(err)
	}
	into(t, g, "setsid sleep 60 & echo begun; while :; do :; done")
	if g.AwaitFrozen(10 * time.Millisecond) {
		t.Error("it is frozen")
	}
	for _, on := range []bool{true, false, true} {
		if err := g.Freeze(on); err != nil {
			t.Fatal(err)
		}
		within := 10 * time.Second
		if !on {
			within = 10 * time.Millisecond
		}
		if g.AwaitFrozen(within) != on {
			t.Errorf("it is to be frozen, %t, and is not so", on)
		}
	}
	_ = tree.lock.Close() // its executor dies
	next, err := Open(dir)
	if err != nil {
		t.Error(err)
	}
	if !g.Empty() || g.AwaitFrozen(time.Minute) {
		t.Errorf("processes %v are left", g.Pids())
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

// The next executor kills and removes what one that died has left, and nothing
// of one that lives.
func TestOpenCleans(t *testing.T) {
	dir, ok := scratch(t)
	if !ok {
		return
	}
	died, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	left, err := died.Group("left-1-1")
	if err != nil {
		t.Fatal(err)
	}
	into(t, left, "setsid sleep 60 & echo begun")
	lives, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if left.Empty() {
		t.Fatal("an executor that lives lost its processes")
	}
	_ = died.lock.Close() // as the kernel does when it dies
	next, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(died.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of the one that died: %v", err)
	}
	if _, err := os.Stat(lives.dir); err != nil {
		t.Errorf("the folder of the one that lives: %v", err)
	}
	if err := errors.Join(lives.Close(), next.Close()); err != nil {
		t.Error(err)
	}
}

func TestLocate(t *testing.T) {
	t.Parallel()
	const (
		v2     = "24 1 0:22 / /proc rw - proc proc rw\n31 22 0:27 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw\n"
		bound  = "40 30 0:34 /docker/abc /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n"
		hybrid = "31 30 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n40 30 0:34 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	)
	for _, c := range []struct {
		name, mounts, own, dir string
		top                    bool
		err                    string
	}{
		{"systemd", v2, "0::/system.slice/axd.service\n", "/sys/fs/cgroup/system.slice/axd.service", false, ""},
		{"namespace", v2, "0::/\n", "/sys/fs/cgroup", true, ""},
		{"container without a namespace", bound, "0::/docker/abc\n", "/sys/fs/cgroup", true, ""},
		{"below it", bound, "0::/docker/abc/x\n", "/sys/fs/cgroup/x", false, ""},
		{"not below it", bound, "0::/docker/abcd\n", "", false, "no cgroup v2 tree is mounted"},
		{"both versions", hybrid, "4:memory:/x\n0::/user.slice\n", "/sys/fs/cgroup/unified/user.slice", false, ""},
		{"version 1 only", strings.SplitAfter(hybrid, "\n")[0], "4:memory:/x\n", "", false, "the kernel has no cgroup v2"},
	} {
		dir, top, err := locate(c.mounts, c.own)
		if dir != c.dir || top != c.top || (err != nil) != (c.err != "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %q %t %v", c.name, dir, top, err)
		}
	}
}

// A group is left to its processes by whoever manages the tree.
func TestMarked(t *testing.T) {
	dir, ok := scratch(t)
	if !ok {
		return
	}
	if marked(dir) {
		t.Error("marked from the start")
	}
	if err := unix.Setxattr(dir, "user.delegate", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	if !marked(dir) {
		t.Error("not marked")
	}
}
