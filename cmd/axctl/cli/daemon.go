package cli

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/axctl/ax"
)

// daemonRuns reports whether an axd runs on the store: it holds the lock
// STORE.lock for as long as it lives, however it ends. Of a store that is no
// file it is not known; then true is said, since no alarm is to be raised.
func (c *call) daemonRuns() bool {
	path := c.storePath()
	if path == "" {
		return true
	}
	f, err := os.Open(path + ".lock")
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	defer f.Close()
	// A shared lock is enough to find out, and is given back at once.
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err != nil {
		return true
	}
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	return false
}

// clock returns what the clocks of this machine say; zero where nobody asks.
func (c *call) clock() ax.ClockMark {
	if c.env.Clock == nil {
		return ax.ClockMark{}
	}
	return c.env.Clock()
}

// liveHosts returns the hosts that have not stopped. running says that an axd
// holds the lock of a store file.
func liveHosts(hosts []ax.Host, running bool) []ax.Host {
	var live []ax.Host
	for _, h := range hosts {
		if h.LeftMs == 0 && running {
			live = append(live, h)
		}
	}
	return live
}
