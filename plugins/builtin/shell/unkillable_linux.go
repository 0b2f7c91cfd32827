package shell

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// unkillableAfter is how long after KILL a process that is still there counts as
// one that cannot be killed: it waits in the kernel, for a device or a file
// system, and dies when that answers.
const unkillableAfter = 5 * time.Second

// maxNamed bounds how many such processes are named.
const maxNamed = 8

// expectEnd has it told when something of the attempt is left so long after it
// was killed, which is to be at the end of the grace time. It goes on being
// killed and waited for.
func (g *group) expectEnd(grace time.Duration) {
	if g.complaint == nil {
		g.complaint = time.AfterFunc(max(grace, 0)+unkillableAfter, func() { g.job.Unkillable(g.left()) })
	}
}

// left names the processes of the attempt that are there.
func (g *group) left() string { return name(g.pids()) }

// name names processes, for people.
func name(pids []int) string {
	var named []string
	for _, pid := range pids[:min(len(pids), maxNamed)] {
		name, state, _ := look(pid)
		named = append(named, fmt.Sprintf("%d (%s, state %c)", pid, name, state))
	}
	switch more := len(pids) - len(named); {
	case len(named) == 0:
		return "a process of which nothing is known"
	case more > 0:
		named = append(named, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(named, ", ")
}

// pids returns the processes that are in the attempt's control group, its
// process group, or have its mark in their environment, zombies left out.
func (g *group) pids() []int {
	if g.cgroup != nil {
		return g.cgroup.Pids()
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		_, state, group := look(pid)
		if state == 0 || state == 'Z' || state == 'X' {
			continue
		}
		if group != g.pid {
			environ, err := os.ReadFile("/proc/" + e.Name() + "/environ")
			if err != nil || !hasVariable(environ, "AX_BATCH_NO="+g.job.BatchNo) {
				continue
			}
		}
		pids = append(pids, pid)
	}
	return pids
}

// look reads a process's name, state and process group; state 0: it is gone.
// The name may hold anything, so what follows counts from its last parenthesis.
func look(pid int) (name string, state byte, group int) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	begin, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if err != nil || begin < 0 || end < begin {
		return "", 0, 0
	}
	fields := bytes.Fields(b[end+1:])
	if len(fields) < 3 {
		return "", 0, 0
	}
	group, _ = strconv.Atoi(string(fields[2]))
	return string(b[begin+1 : end]), fields[0][0], group
}
