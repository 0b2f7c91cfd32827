package host

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// handle is one process, and never another one that got its pid later.
type handle struct {
	pid   int
	start uint64 // when it began, in clock ticks since the kernel's start
	fd    *os.File
}

// errOther says that a pid is nobody's, or somebody else's.
var errOther = errors.New("no such process, or another one")

// openHandle opens the process that began at start; 0 is any. It may have exited
// and not been waited for.
func openHandle(pid int, start uint64) (*handle, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil, errOther
	}
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	h := &handle{pid: pid, fd: os.NewFile(uintptr(fd), "pidfd")}
	s, ok := readStat(pid) // of the process that the descriptor is of, or of nobody's
	if !ok || start != 0 && s.start != start {
		_ = h.fd.Close()
		return nil, errOther
	}
	h.start = s.start
	return h, nil
}

// signal sends to the process, if it is there.
func (h *handle) signal(sig syscall.Signal) {
	if c, err := h.fd.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _ = unix.PidfdSendSignal(int(fd), sig, nil, 0) })
	}
}

func (h *handle) exited() (yes bool) {
	c, err := h.fd.SyscallConn()
	if err != nil {
		return true
	}
	_ = c.Control(func(fd uintptr) { yes = readable(fd) })
	return yes
}

// wait returns true when the process has exited, false when the handle was
// closed before.
func (h *handle) wait() bool {
	c, err := h.fd.SyscallConn()
	if err != nil {
		return false
	}
	return c.Read(readable) == nil
}

func (h *handle) close() { _ = h.fd.Close() }

// readable reports whether the process of a pidfd has exited.
func readable(fd uintptr) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(p, 0)
		if !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}
