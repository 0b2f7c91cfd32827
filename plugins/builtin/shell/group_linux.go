package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/axctl/ax/plugins"
	"github.com/axctl/ax/plugins/builtin/shell/cgroup"
	"github.com/axctl/ax/plugins/sdk"
	"golang.org/x/sys/unix"
)

// group is the process group of one attempt.
type group struct {
	handler   *Handler
	job       sdk.Job
	killAfter time.Duration
	pid       int // of the main process, and the group's number
	exited    chan struct{}
	pipes     []*pipe
	copies    sync.WaitGroup
	pauser    pauser
	end       unix.WaitStatus // of the main process, once reaped
	strays    map[int]bool    // killed outside of the group, not yet reaped
	looks     int             // at processes of which nothing is known
	hidden    int             // times that such were killed
	cgroup    *cgroup.Group   // nil: there are none here
	inside    map[int]bool    // killed in the cgroup, not yet reaped
	reapLooks int             // at those
	complaint *time.Timer     // tells what does not end
}

// maxLooks bounds the looks at a process that shows no environment, 30 ms or so;
// maxHidden how long one that cannot be killed holds up an attempt, 5 s or so.
const (
	maxLooks  = 6
	maxHidden = 100
)

// start begins the main process.
func (g *group) start(argv, env []string, dir string, who user, stdin *os.File) error {
	outR, outW, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = outW.Close() }()
	errR, errW, err := os.Pipe()
	if err != nil {
		_ = outR.Close()
		return err
	}
	defer func() { _ = errW.Close() }()
	attr := &os.ProcAttr{
		Dir: dir, Env: env, Files: []*os.File{stdin, outW, errW},
		// The kernel kills the main process when the thread that started it
		// ends. Nothing in this process ends threads, so that is when the
		// executor dies.
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: who.credential},
	}
	if g.cgroup != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, g.cgroup.FD()
	}
	if g.pid, err = g.handler.fork(argv, attr); err != nil {
		_, _ = outR.Close(), errR.Close()
		return err
	}
	g.pauser.begun(g.pid, g.cgroup)
	g.exited = make(chan struct{})
	go func() {
		defer close(g.exited)
		for errors.Is(unix.Waitid(unix.P_PID, g.pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
		}
	}()
	for _, c := range []struct {
		r *os.File
		w io.Writer
	}{{outR, g.job.Output.Stdout}, {errR, g.job.Output.Stderr}} {
		p := &pipe{r: c.r, w: c.w}
		g.pipes = append(g.pipes, p)
		g.copies.Go(p.copy)
	}
	return nil
}

// wait returns how the main process ended, once nothing of the attempt is left.
func (g *group) wait(ctx context.Context) unix.WaitStatus {
	grace := min(g.killAfter, graceAfterExit)
	asked := false
	select {
	case <-g.exited:
	case <-ctx.Done():
		asked = true
		grace = g.killAfter
		if errors.Is(context.Cause(ctx), plugins.ErrHostGone) {
			grace = 0
		}
		g.pauser.end()
		_ = unix.Kill(-g.pid, unix.SIGTERM)
		_ = unix.Kill(-g.pid, unix.SIGCONT)
		g.pauser.thaw()
		timer := time.NewTimer(grace)
		began := time.Now()
		select {
		case <-g.exited:
			grace -= time.Since(began)
		case <-timer.C:
			g.kill()
			g.expectEnd(0)
			<-g.exited
			grace = 0
		}
		timer.Stop()
	}
	g.pauser.end()
	g.pauser.thaw()
	g.expectEnd(grace)
	g.clear(asked, grace)
	g.complaint.Stop()
	g.drain()
	return g.end
}

// kill ends all of the attempt at once.
func (g *group) kill() {
	_ = unix.Kill(-g.pid, unix.SIGKILL)
	if g.cgroup != nil {
		g.cgroup.Kill()
	}
}

// clear kills what is left of the attempt and returns when it is gone. Its
// main process has exited and is not reaped yet.
func (g *group) clear(asked bool, grace time.Duration) {
	deadline := time.Now().Add(grace)
	pause := time.Millisecond
	noted := asked
	for {
		alive := g.reap()
		over := !time.Now().Before(deadline)
		strays, unknown := g.killStrays()
		escaped := g.killEscaped(alive, over)
		if !alive && !strays && !unknown && !escaped && !g.reapEscaped() {
			break
		}
		if (alive || strays || escaped) && !noted {
			g.job.Output.Note("processes left by the main process are killed")
			noted = true
		}
		if alive && !asked {
			_ = unix.Kill(-g.pid, unix.SIGTERM)
			_ = unix.Kill(-g.pid, unix.SIGCONT)
			asked = true
		}
		if alive && over {
			_ = unix.Kill(-g.pid, unix.SIGKILL)
		}
		time.Sleep(pause)
		pause = min(2*pause, 50*time.Millisecond)
	}
	if g.cgroup != nil {
		if err := g.cgroup.Remove(); err != nil {
			g.job.Output.Note("its control group cannot be removed: " + err.Error())
		}
	}
}

// reap takes in what has ended in the group and reports whether something is
// left that has not. As long as that is so the group's number is its own.
func (g *group) reap() (alive bool) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-g.pid, &status, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return false
		case pid == 0:
			return true
		case pid == g.pid:
			g.end = status
			g.handler.untrack(g.pid)
		}
	}
}

// killStrays kills the orphans that this process has adopted and that belong
// to the attempt, by the batch number in their environment, and reports
// whether there were any: then their children are to be looked for. It reports
// too whether there are some of which nothing is known yet.
func (g *group) killStrays() (found, unknown bool) {
	found = len(g.strays) > 0
	var nameless []int // a process has no environment while it is in exec
	for _, f := range children() {
		pid, err := strconv.Atoi(f)
		if err != nil || g.handler.tracked(pid) || g.strays[pid] {
			continue
		}
		environ, err := os.ReadFile("/proc/" + f + "/environ")
		switch {
		case err != nil: // it has ended, or is another user's
			reapOrphan(pid)
		case hasVariable(environ, "AX_BATCH_NO="+g.job.BatchNo):
			_ = unix.Kill(pid, unix.SIGKILL)
			if g.strays == nil {
				g.strays = map[int]bool{}
			}
			g.strays[pid] = true
			found = true
		case !bytes.Contains(environ, []byte("AX_BATCH_NO=")) && !reapOrphan(pid):
			nameless = append(nameless, pid)
		}
	}
	if g.looks < maxLooks && !g.handler.knows(nameless) {
		g.looks++
		return found, true
	}
	if g.handler.meet(nameless) && g.hidden < maxHidden {
		if g.hidden++; g.hidden == 1 {
			g.job.Output.Note("processes that hid whose they are, this attempt's or an earlier one's, are killed")
		}
		for _, pid := range nameless {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		unknown = true // until they are reaped
	}
	for pid := range g.strays {
		if reaped, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); reaped == pid || errors.Is(err, unix.ECHILD) {
			delete(g.strays, pid)
		}
	}
	return found, unknown
}

// children returns the process ids of the first thread's children: the kernel
// gives it the orphans. The kernel may leave one out when another one ends
// while it makes the list, so it is read three times. Where there is no such
// list, strays live until the executor's own end.
func children() []string {
	f, err := os.Open("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children")
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	var pids []string
	buf := make([]byte, 16<<10)
	for range 3 {
		n, _ := f.ReadAt(buf, 0)
		pids = append(pids, strings.Fields(string(buf[:n]))...)
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// reapOrphan takes in an orphan that has ended, and reports whether it had. One
// in this process's own session is left to whoever else may wait for it.
func reapOrphan(pid int) bool {
	session, err := unix.Getsid(pid)
	own, err2 := unix.Getsid(0)
	if err != nil || err2 != nil || session == own {
		return true
	}
	reaped, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	return reaped == pid || err != nil
}

func hasVariable(environ []byte, kv string) bool {
	for e := range bytes.SplitSeq(environ, []byte{0}) {
		if string(e) == kv {
			return true
		}
	}
	return false
}

// drainPause is how long a silent pipe is still listened to when all the
// attempt's processes are gone.
const drainPause = 250 * time.Millisecond

// drain waits until the output was read to its end. When some process that
// could not be found still holds a pipe, it is left once it is silent.
func (g *group) drain() {
	done := make(chan struct{})
	go func() {
		g.copies.Wait()
		close(done)
	}()
	tick := time.NewTicker(drainPause)
	defer tick.Stop()
	seen := make([]int64, len(g.pipes))
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		for i, p := range g.pipes {
			if n := p.steps.Load(); n == seen[i] && n%2 == 1 && !p.left {
				p.left = true
				g.job.Output.Note("a process that is not of the attempt holds its output open")
				_ = p.r.SetReadDeadline(time.Unix(1, 0))
			} else {
				seen[i] = n
			}
		}
	}
}

// pipe copies one stream of the processes.
type pipe struct {
	r     *os.File
	w     io.Writer
	steps atomic.Int64 // odd while it waits for input
	left  bool
}

func (p *pipe) copy() {
	defer func() { _ = p.r.Close() }()
	buf := make([]byte, 32<<10)
	for {
		p.steps.Add(1)
		n, err := p.r.Read(buf)
		p.steps.Add(1)
		if n > 0 {
			_, _ = p.w.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// startError says what kind of failure a failed start is.
func startError(program string, err error) error {
	if fork := (*os.PathError)(nil); errors.As(err, &fork) && fork.Path == program {
		err = fork.Err // without the name, which stands before it
	}
	err = fmt.Errorf("start %s: %w", program, err)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOMEM), errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE),
		errors.Is(err, unix.EBADF): // what a child gets that may open no more
		return sdk.Resource(err)
	case errors.Is(err, unix.ETXTBSY):
		return sdk.Transient(err)
	default:
		return sdk.Permanent(err)
	}
}

// signalName returns a signal's name without SIG.
func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return strings.TrimPrefix(name, "SIG")
	}
	return strconv.Itoa(int(s))
}
