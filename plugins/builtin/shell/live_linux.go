package shell

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/axctl/ax/plugins"
	"github.com/axctl/ax/plugins/builtin/shell/cgroup"
	"github.com/axctl/ax/plugins/sdk"
	"golang.org/x/sys/unix"
)

// pauser lets an attempt stand still and go on, as a person asks: its control
// group, which nothing of it gets out of, or where it has none its process group.
// A signal that comes before there is a process is done when there is.
type pauser struct {
	mu     sync.Mutex
	pid    int           // of the process group; 0: not yet
	cgroup *cgroup.Group // nil: there are none here
	over   bool
	paused bool
}

// frozenWithin bounds the wait for processes to stand still. One that waits in
// the kernel does so when that answers.
const frozenWithin = 2 * time.Second

// signal is the attempt's Job.OnSignal. It is called for one signal at a time.
func (p *pauser) signal(s sdk.Signal) error {
	if s != plugins.Pause && s != plugins.Resume {
		return fmt.Errorf("unknown signal %q", s)
	}
	if err := p.set(s == plugins.Pause); err != nil {
		return err
	}
	p.mu.Lock()
	group := p.cgroup
	p.mu.Unlock()
	// The lock is free meanwhile: an end comes at once.
	if s == plugins.Resume || group == nil || group.AwaitFrozen(frozenWithin) {
		return nil
	}
	if err := p.set(false); err != nil {
		return err
	}
	return fmt.Errorf("it does not stand still within %s and goes on: %s", frozenWithin, name(group.Pids()))
}

func (p *pauser) set(paused bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return errors.New("its main process has ended or is to end")
	}
	p.paused = paused
	return p.apply()
}

// apply is called with mu held.
func (p *pauser) apply() error {
	switch {
	case p.cgroup != nil:
		return p.cgroup.Freeze(p.paused)
	case p.pid == 0:
		return nil
	case p.paused:
		return unix.Kill(-p.pid, unix.SIGSTOP)
	default:
		return unix.Kill(-p.pid, unix.SIGCONT)
	}
}

// begun says which groups it has.
func (p *pauser) begun(pid int, cgroup *cgroup.Group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pid, p.cgroup = pid, cgroup
	if p.paused {
		_ = p.apply()
	}
}

// end is called before the group is asked to end or is reaped: from then on its
// number may be another's.
func (p *pauser) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
}

// thaw is called after end, and lets what is left do as it was told by signals.
// Nothing is written for one that was not paused: the kernel has one lock for all
// groups of the machine.
func (p *pauser) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cgroup != nil && p.paused {
		_ = p.cgroup.Freeze(false)
	}
}

// progressEvery is how often $AX_PROGRESS is looked at.
const progressEvery = time.Second

// maxProgressTail is how much of the end of $AX_PROGRESS is read.
const maxProgressTail = 4 << 10

// follow tells what the last line of $AX_PROGRESS says, whenever the file has
// changed, until stop is closed, and once more then. Short work does not pay.
func (f *files) follow(job sdk.Job, stop chan struct{}) {
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	var seen time.Time
	var size int64
	for first := true; ; first = false {
		over := false
		select {
		case <-stop:
			over = true
		case <-ticker.C:
		}
		if over && first {
			return
		}
		info, err := os.Lstat(f.progress)
		if err == nil && (!info.ModTime().Equal(seen) || info.Size() != size) {
			seen, size = info.ModTime(), info.Size()
			if last, err := f.lastLine(); err == nil {
				tell(job, last)
			}
		}
		if over {
			return
		}
	}
}

// tell passes a line on: a number, which may have a percent sign, or a text, or
// both. A touched empty file is a sign of life.
func tell(job sdk.Job, line string) {
	if line == "" {
		job.Heartbeat()
		return
	}
	word, text, _ := strings.Cut(line, " ")
	percent, err := strconv.ParseFloat(strings.TrimSuffix(word, "%"), 64)
	if err != nil {
		percent, text = -1, line
	}
	job.Progress(percent, text)
}

// lastLine returns the last line of $AX_PROGRESS that says something.
func (f *files) lastLine() (string, error) {
	file, err := f.open(f.progress)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	size, err := file.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = file.Seek(max(size-maxProgressTail, 0), io.SeekStart)
	}
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(file, maxProgressTail))
	b = bytes.TrimSpace(b)
	return string(bytes.TrimSpace(b[bytes.LastIndexByte(b, '\n')+1:])), err
}

// open opens a file that the task made. The executor may be root and the folder
// another user's, so it opens nothing but a plain file of that user.
func (f *files) open(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !f.owns(info) {
		err = errors.New("is no plain file of the task's user")
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

func (f *files) owns(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && stat.Uid == f.who.uid && stat.Nlink == 1
}
