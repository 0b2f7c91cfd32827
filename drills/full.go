package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// fullBytes is the size of the disk that the drill fills.
const fullBytes = 48 << 20

// full fills the disk of the store and of the data folder under a living axd,
// and frees it again; in every second round axd is killed meanwhile and starts
// on the full disk.
func full(ctx context.Context, s *stage) (report, error) {
	s.home = s.path("disk")
	if err := os.Mkdir(s.home, 0o700); err != nil {
		return report{}, err
	}
	if err := syscall.Mount("tmpfs", s.home, "tmpfs", 0, fmt.Sprintf("size=%d", fullBytes)); err != nil {
		return report{}, fmt.Errorf("mount a small disk (this needs CAP_SYS_ADMIN, in a user namespace of its own at least): %w", err)
	}
	defer func() { _ = syscall.Unmount(s.home, syscall.MNT_DETACH) }()
	rep := report{}
	if err := s.tasks(ctx, 50, ""); err != nil {
		return rep, err
	}
	d, err := s.start()
	if err != nil {
		return rep, err
	}
	for n := range s.rounds {
		if _, err := s.claims(ctx); err != nil {
			return rep, fmt.Errorf("round %d: %w", n+1, err)
		}
		_, from, err := s.said(0)
		if err != nil {
			return rep, err
		}
		if err := s.fill(); err != nil {
			return rep, err
		}
		rep.faults++
		err = s.hears(ctx, from, saysAway, 30*time.Second)
		if err == nil {
			err = sleep(ctx, s.between(time.Second, 4*time.Second))
		}
		if err == nil && n%2 == 1 {
			if err = d.kill(); err == nil {
				if _, from, err = s.said(0); err == nil {
					d, err = s.start()
				}
			}
			if err == nil {
				err = s.hears(ctx, from, saysAway, 30*time.Second)
			}
		}
		if err != nil {
			return rep, fmt.Errorf("round %d: %w", n+1, err)
		}
		if err := os.Remove(s.home + "/ballast"); err != nil {
			return rep, err
		}
		if err := s.resumes(ctx, from); err != nil {
			return rep, fmt.Errorf("round %d: %w", n+1, err)
		}
		back, err := s.claims(ctx)
		if err != nil {
			return rep, fmt.Errorf("round %d: %w", n+1, err)
		}
		rep.worst = max(rep.worst, back)
		select {
		case <-d.done:
			return rep, fmt.Errorf("round %d: axd has ended: %v", n+1, d.err)
		default:
		}
	}
	if err := s.end(ctx, d, &rep); err != nil {
		return rep, err
	}
	found, err := s.integrity(ctx)
	if err == nil && found != "ok" {
		err = fmt.Errorf("SQLite's integrity check: %s", found)
	}
	return rep, err
}

// fill takes what is free of the disk.
func (s *stage) fill() error {
	f, err := os.Create(s.home + "/ballast")
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = io.WriteString(f, strings.Repeat("\x00", size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			return err
		}
	}
	return nil
}

func (s *stage) integrity(ctx context.Context) (string, error) {
	db, err := s.database()
	if err != nil {
		return "", err
	}
	defer db.Close()
	var found string
	return found, db.QueryRowContext(ctx, `PRAGMA integrity_check`).Scan(&found)
}

// apartEnv says that this process has a mount namespace of its own.
const apartEnv = "AX_DRILL_APART"

// apart runs this program again in a mount namespace of its own, so that what a
// drill mounts is seen by nobody else and is gone with it; later flags win. Who is not root gets
// a user namespace as well.
func apart(ctx context.Context, more ...string) error {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append(slices.Clone(os.Args[1:]), more...)...)
	cmd.Env = append(os.Environ(), apartEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{21} // CAP_SYS_ADMIN, to mount
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("a mount namespace of its own (root has it, and others where user namespaces are allowed): %w", err)
	}
	return cmd.Wait()
}
