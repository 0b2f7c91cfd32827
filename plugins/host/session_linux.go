package host

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	pb "github.com/axctl/ax/plugins/proto"
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

// clearing says which processes must go. All of it may be empty.
type clearing struct {
	// leader is an executor that has exited; all in its session go, but for
	// itself. Its number is that of its session as long as the session has
	// members; that it is nobody else's is seen by start.
	leader int
	start  uint64
	// batches are numbers of attempts; processes that carry one go, unless they
	// are under a living executor.
	batches map[string]bool
	dir     string // the host's folder
	// executors makes the executors of dir go, with all of their sessions, unless
	// they live under this process or are spared.
	executors bool
	// spared are executors that live on, by pid.
	spared func() map[int]uint64
	kill   func(stat)
}

// sigkill kills a process, and never another one.
func sigkill(s stat) {
	if h, err := openHandle(s.pid, s.start); err == nil {
		h.signal(unix.SIGKILL)
		h.close()
	}
}

// run kills until nothing is left, and returns what was still there when its time
// was over: it waits in the kernel.
func (c clearing) run() (left []stat) {
	deadline := time.Now().Add(sessionLimit)
	sessions := map[int]bool{}
	for {
		left = nil
		all := map[int]stat{}
		for _, s := range processes() {
			all[s.pid] = s
		}
		spared := map[int]uint64{}
		if c.spared != nil {
			spared = c.spared()
		}
		reused := all[c.leader].pid != 0 && all[c.leader].start != c.start
		for _, s := range all {
			inside := c.leader != 0 && !reused && s.session == c.leader && s.pid != c.leader
			if inside && s.zombie && s.parent == os.Getpid() {
				_, _ = unix.Wait4(s.pid, nil, unix.WNOHANG, nil)
			}
			if s.zombie || !inside && !c.outside(s, all, spared, sessions) {
				continue
			}
			left = append(left, s)
			c.kill(s)
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// outside decides on a process that is not in the leader's session. It adds to
// sessions those of executors that must go.
func (c clearing) outside(s stat, all map[int]stat, spared map[int]uint64, sessions map[int]bool) bool {
	if ancestor(s, all, func(p stat) bool { return spared[p.pid] == p.start && p.start != 0 }) {
		return false
	}
	if c.executors && !ancestor(s, all, func(p stat) bool { return p.pid == os.Getpid() }) {
		if of, executor := variable(s.pid, pb.DirKey); executor && of == c.dir {
			sessions[s.session] = true
			return true
		}
		if sessions[s.session] {
			return true
		}
	}
	if len(c.batches) == 0 || s.pid == os.Getpid() {
		return false
	}
	batch, marked := variable(s.pid, "AX_BATCH_NO")
	return marked && c.batches[batch] && !ancestor(s, all, func(p stat) bool {
		of, executor := variable(p.pid, pb.DirKey)
		return executor && of != c.dir
	})
}

// ancestor reports whether is holds for a process or one that it is under.
func ancestor(s stat, all map[int]stat, is func(stat) bool) bool {
	for range len(all) { // the processes were not read at one instant
		if is(s) {
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
	name                 string
	pid, parent, session int
	start                uint64 // in clock ticks since the kernel's start
	zombie, stopped      bool
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
// parent, group, session, and the start is the 20th.
func readStat(pid int) (s stat, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return s, false
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 20 {
		return s, false
	}
	name := string(b[bytes.IndexByte(b, '(')+1 : bytes.LastIndexByte(b, ')')])
	s = stat{pid: pid, name: name, zombie: f[0][0] == 'Z' || f[0][0] == 'X', stopped: f[0][0] == 'T'}
	s.parent, _ = strconv.Atoi(string(f[1]))
	s.session, _ = strconv.Atoi(string(f[3]))
	s.start, _ = strconv.ParseUint(string(f[19]), 10, 64)
	return s, true
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
