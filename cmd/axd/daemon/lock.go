package daemon

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/axctl/ax"
	"golang.org/x/sys/unix"
)

// How often, and how long apart, a lock that is taken is tried again.
const (
	lockTries = 10
	lockPause = 20 * time.Millisecond
)

// lockFile takes an exclusive lock that ends with the process, so that only one
// axd works on a store, or in a data folder. The file stays; only the lock
// counts.
func lockFile(path, what string) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, ax.WithHint(fmt.Errorf("lock %s: %w", what, err), "see that this user may write %s", path)
	}
	// axctl looks for a moment whether the lock is free; that is no other axd.
	for try := 0; ; try++ {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || try == lockTries {
			break
		}
		time.Sleep(lockPause)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		f.Close()
		return nil, ax.WithHint(fmt.Errorf("another axd is using %s", what),
			"stop it first (fuser %s shows which process it is), or give this one another -store and -data", path)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", what, err)
	}
	return func() { f.Close() }, nil
}
