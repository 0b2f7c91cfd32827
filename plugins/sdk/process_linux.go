package sdk

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of descendants whose own parent
// has died, so that none can get away from it.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt orphans: %w", err)
	}
	return nil
}

// standardOutputToError makes what is written to descriptor 1 go where that to
// descriptor 2 does, whoever writes it.
func standardOutputToError() { _ = unix.Dup3(2, 1, 0) }

// emptyStderr empties descriptor 2 when it is a file larger than max. It is open
// for appending, so what comes next begins the file.
func emptyStderr(max int64) {
	var s unix.Stat_t
	if unix.Fstat(2, &s) == nil && s.Mode&unix.S_IFMT == unix.S_IFREG && s.Size > max {
		_ = unix.Ftruncate(2, 0)
	}
}

// killChildren kills every descendant of this process and returns how many
// were left when the time was over.
func killChildren(within time.Duration) int {
	deadline := time.Now().Add(within)
	for {
		left := descendants(os.Getpid())
		if len(left) == 0 || time.Now().After(deadline) {
			return len(left)
		}
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		for {
			if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// descendants returns the processes under root in the process tree, zombies
// included.
func descendants(root int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if ppid := parent(pid); ppid > 0 {
			children[ppid] = append(children[ppid], pid)
		}
	}
	found := children[root]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}

// parent reads the parent of pid, 0 when pid is gone. The name in
// parentheses may hold anything, so fields count from the last one.
func parent(pid int) int {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	ppid, _ := strconv.Atoi(string(fields[1]))
	return ppid
}
