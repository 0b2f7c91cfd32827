package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// fullBytes is the size of the disk that the drill fills.
const fullBytes = 48 << 20

// full fills the disk of the store and of the data folder under a living axd,
// and frees it again; in every second round, the first for one, axd is killed
// meanwhile and starts on the full disk.
func full(ctx context.Context, s *stage) (report, error) {
	s.home = s.path("disk")
	if err := os.Mkdir(s.home, 0o700); err != nil {
		return report{}, err
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return report{}, fmt.Errorf("keep what is mounted from others (this needs CAP_SYS_ADMIN): %w", err)
	}
	if err := syscall.Mount("tmpfs", s.home, "tmpfs", 0, fmt.Sprintf("size=%d", fullBytes)); err != nil {
		return report{}, fmt.Errorf("mount a small disk (this needs CAP_SYS_ADMIN): %w", err)
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
	wentOn := 0
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
		if err := s.refusedOrClaims(ctx, from); err != nil {
			return rep, fmt.Errorf("round %d: %w", n+1, err)
		}
		if err := sleep(ctx, s.between(time.Second, 4*time.Second)); err != nil {
			return rep, err
		}
		if n%2 == 0 {
			if err := d.kill(); err != nil {
				return rep, err
			}
			if _, from, err = s.said(0); err != nil {
				return rep, err
			}
			if d, err = s.start(); err != nil {
				return rep, err
			}
			if err := s.refusedOrClaims(ctx, from); err != nil {
				return rep, fmt.Errorf("round %d, started on the full disk: %w", n+1, err)
			}
		}
		if err := os.Remove(s.home + "/ballast"); err != nil {
			return rep, err
		}
		if text, _, err := s.said(from); err != nil {
			return rep, err
		} else if strings.Contains(text, saysAway) {
			if err := s.resumes(ctx, from); err != nil {
				return rep, fmt.Errorf("round %d: %w", n+1, err)
			}
		} else {
			wentOn++
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
	if wentOn > 0 {
		rep.note = fmt.Sprintf("; in %d rounds the store's log had room enough", wentOn) + rep.note
	}
	found, err := s.integrity(ctx)
	if err == nil && found != "ok" {
		err = fmt.Errorf("SQLite's integrity check: %s", found)
	}
	return rep, err
}

// refusedOrClaims waits until axd says that the store cannot be used. After an
// earlier full disk the store's log may have room of its own, into which axd
// writes; then it must claim as ever.
func (s *stage) refusedOrClaims(ctx context.Context, from int64) error {
	unheard := s.hears(ctx, from, saysAway, 30*time.Second)
	if unheard == nil || ctx.Err() != nil {
		return unheard
	}
	if _, err := s.claims(ctx); err != nil {
		return fmt.Errorf("%w, and %w", unheard, err)
	}
	return nil
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
