package host

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// sessionLimit bounds the clearing of a session: a process that cannot be
// killed hangs in the kernel.
const sessionLimit = 5 * time.Second

// adoptOrphans makes this process the parent of descendants whose own parent
// has died.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt orphans: %w", err)
	}
	return nil
}

// clearSession kills all processes of the session of a dead, not yet reaped
// leader, and orphans of ours that detached themselves but still carry one of
// the batch numbers in their environment. It returns how many were left.
func clearSession(leader int, batches map[string]bool) int {
	deadline := time.Now().Add(sessionLimit)
	self := os.Getpid()
	for {
		left := 0
		for _, s := range processes() {
			if s.pid == leader || s.session != leader && (s.parent != self || !marked(s.pid, batches)) {
				continue
			}
			if s.zombie {
				if s.parent == self {
					_, _ = unix.Wait4(s.pid, nil, unix.WNOHANG, nil)
				}
				continue
			}
			left++
			_ = unix.Kill(s.pid, unix.SIGKILL)
		}
		if left == 0 || time.Now().After(deadline) {
			return left
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// stat is what /proc says of a process.
type stat struct {
	pid, parent, session int
	zombie               bool
}

func processes() []stat {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []stat
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if s, ok := readStat(pid); ok {
			all = append(all, s)
		}
	}
	return all
}

// readStat reads a process's entry; ok is false when it is gone. The name in
// parentheses may hold anything, so fields count from the last one: state,
// parent, group, session.
func readStat(pid int) (s stat, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return s, false
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 4 {
		return s, false
	}
	s = stat{pid: pid, zombie: f[0][0] == 'Z' || f[0][0] == 'X'}
	s.parent, _ = strconv.Atoi(string(f[1]))
	s.session, _ = strconv.Atoi(string(f[3]))
	return s, true
}

// marked reports whether a process's environment names one of the batches.
func marked(pid int, batches map[string]bool) bool {
	if len(batches) == 0 {
		return false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for kv := range bytes.SplitSeq(b, []byte{0}) {
		if v, ok := bytes.CutPrefix(kv, []byte("AX_BATCH_NO=")); ok && batches[string(v)] {
			return true
		}
	}
	return false
}
