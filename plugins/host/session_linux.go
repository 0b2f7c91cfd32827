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

// dirKey is the variable that says whose executor a process is: the value is
// the host's own folder.
const dirKey = "AX_EXECUTOR_DIR"

// clearLeft kills the executors that a dead host with the same folder left,
// all of their sessions, and the processes that carry one of the batch numbers.
// Those under an executor of another folder are a living host's, which works on
// a copy of the store, and are let be. It returns how many were left.
func clearLeft(dir string, batches map[string]bool) int {
	deadline := time.Now().Add(sessionLimit)
	sessions := map[int]bool{}
	for {
		left := 0
		all := map[int]stat{}
		for _, s := range processes() {
			all[s.pid] = s
		}
		for _, s := range all {
			if s.zombie || own(s, all) {
				continue
			}
			of, executor := variable(s.pid, dirKey)
			switch batch, marked := variable(s.pid, "AX_BATCH_NO"); {
			case executor && of == dir:
				sessions[s.session] = true
			case sessions[s.session]:
			case !marked || !batches[batch] || served(s, all, dir):
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

// own reports whether a process is this one or under it.
func own(s stat, all map[int]stat) bool {
	return ancestor(s, all, func(pid int) bool { return pid == os.Getpid() })
}

// served reports whether a process is under an executor of another folder.
func served(s stat, all map[int]stat, dir string) bool {
	return ancestor(s, all, func(pid int) bool {
		of, executor := variable(pid, dirKey)
		return executor && of != dir
	})
}

// ancestor reports whether is holds for a process or one that it is under.
func ancestor(s stat, all map[int]stat, is func(pid int) bool) bool {
	for range len(all) { // the processes were not read at one instant
		if is(s.pid) {
			return true
		}
		above, ok := all[s.parent]
		if !ok {
			return false
		}
		s = above
	}
	return false
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
	batch, ok := variable(pid, "AX_BATCH_NO")
	return ok && batches[batch]
}

// variable returns a variable of the environment that a process began with.
func variable(pid int, name string) (value string, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return "", false
	}
	for kv := range bytes.SplitSeq(b, []byte{0}) {
		if v, ok := bytes.CutPrefix(kv, []byte(name+"=")); ok {
			return string(v), true
		}
	}
	return "", false
}
