package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// machine describes what the drills ran on.
func machine() string {
	cpu, kernel := "processor unknown", "kernel unknown"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				cpu = strings.TrimLeft(strings.TrimSpace(name), ": \t")
				break
			}
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel = strings.TrimSpace(string(text))
	}
	return fmt.Sprintf("%d CPUs, %s, %s %s, %s", runtime.NumCPU(), cpu, runtime.GOOS, kernel, runtime.Version())
}

// apartEnv says that this process has a mount namespace of its own.
const apartEnv = "AX_DRILL_APART"

// apart runs a drill in this program run again, in a mount namespace of its own:
// what is mounted there is seen by nobody else and is gone with it. Who is not
// root gets a user namespace as well. It returns the report line.
func apart(ctx context.Context, name string, seed uint64) (string, error) {
	args := append(slices.Clone(os.Args[1:]), "-name", name, "-seed", strconv.FormatUint(seed, 10)) // the last ones count
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	var out bytes.Buffer
	cmd.Env = append(os.Environ(), apartEnv+"=1")
	cmd.Stdout, cmd.Stderr = io.MultiWriter(os.Stdout, &out), os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // to mount
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("a mount namespace of its own, which root may have, and others where user namespaces are allowed: %w", err)
	}
	if err := cmd.Wait(); err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	return lines[len(lines)-1], nil
}
