package shell

import (
	"fmt"
	"os"
	"sync"

	"github.com/axctl/ax/plugins/builtin/shell/cgroup"
	"golang.org/x/sys/unix"
)

// cgroups makes a control group for each attempt where this process may. Where
// it may not, an attempt is held together by its process group and by the batch
// number in its environment.
type cgroups struct {
	find func(pid int) (string, error)

	once sync.Once
	mu   sync.Mutex // guards tree
	tree *cgroup.Tree
}

// open says once, on standard error, which of the two it is.
func (c *cgroups) open() {
	c.once.Do(func() {
		tree, err := c.make()
		c.mu.Lock()
		c.tree = tree
		c.mu.Unlock()
		if tree == nil {
			fmt.Fprintln(os.Stderr, "attempts have no control groups, but process groups and a mark in the environment:", err)
			return
		}
		fmt.Fprintln(os.Stderr, "each attempt has a control group of its own")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
}

// Containment says, for people, how an executor in this process's control group
// keeps the processes of an attempt together.
func Containment() string {
	if _, err := cgroup.Find(os.Getpid()); err != nil {
		return "process groups and a mark in the environment (" + err.Error() + ")"
	}
	return "a control group for each attempt"
}

func (c *cgroups) make() (*cgroup.Tree, error) {
	dir, err := c.find(os.Getpid())
	if err != nil {
		return nil, err
	}
	return cgroup.Open(dir)
}

// group makes an attempt's control group, nil where it cannot: the attempt runs
// all the same.
func (c *cgroups) group(batchNo string) *cgroup.Group {
	c.open()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tree == nil {
		return nil
	}
	g, err := c.tree.Group(batchNo)
	if err != nil {
		fmt.Fprintf(os.Stderr, "attempt %s has no control group: %v\n", batchNo, err)
		return nil
	}
	return g
}

// giveUp uses no control groups any more: processes cannot be started into
// them, as where clone3 is filtered.
func (c *cgroups) giveUp(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tree != nil {
		fmt.Fprintln(os.Stderr, "attempts have no control groups from here on:", why)
	}
	c.tree = nil
}

func (c *cgroups) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tree == nil {
		return nil
	}
	err := c.tree.Close()
	c.tree = nil
	return err
}

// killEscaped kills what is in the attempt's control group when nothing of its
// process group is left, or when its time is over, and reports whether anything
// was there.
func (g *group) killEscaped(alive, over bool) bool {
	if g.cgroup == nil || g.cgroup.Empty() {
		return false
	}
	if !alive || over {
		if g.inside == nil {
			g.inside = map[int]bool{}
		}
		for _, pid := range g.cgroup.Pids() {
			g.inside[pid] = true
		}
		g.cgroup.Kill()
	}
	return true
}

// reapEscaped takes in what killEscaped has ended: all of it has this process
// for its parent by the time that its own has ended too. It reports whether
// something is still to come.
func (g *group) reapEscaped() bool {
	for pid := range g.inside {
		if g.handler.tracked(pid) {
			delete(g.inside, pid) // another attempt's, with a number that is free again
			continue
		}
		_, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		if err == nil {
			continue // taken in, or about to be: the next look finds it gone
		}
		if unix.Kill(pid, 0) != nil || g.reapLooks >= maxReapLooks {
			delete(g.inside, pid)
		}
	}
	if g.reapLooks++; len(g.inside) == 0 {
		g.reapLooks = 0
	}
	return len(g.inside) > 0
}

// maxReapLooks bounds the wait for a process to become this one's child, half a
// second or so.
const maxReapLooks = 16
