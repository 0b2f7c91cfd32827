package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stage is where a drill plays: a folder with programs of its own, so that
// every process it begets can be told from all others by its program's path.
type stage struct {
	dir    string
	home   string // where the store and the data folder are; "": in dir
	axd    string
	axctl  string
	ledger string // the program that tasks run
	rounds int
	rnd    *rand.Rand
	log    *os.File // what axd printed

	limits       figures // of each start that is measured
	failpointDir string  // where axd and axctl with failpoints are
	failingAxd   string
	failingAxctl string
	changes      int // of the configuration

	// finished says that no handler was killed: what it finished is recorded so.
	finished bool
	faults   []time.Time // when axd was ended; attempts go on over that
	flags    []string    // of axd, besides its own
	env      []string    // likewise
}

// newStage sets a stage up in dir: set has the programs as they are given, and
// what the drills are told.
func newStage(dir string, set stage, rnd *rand.Rand) (*stage, error) {
	s := &set
	s.dir, s.rnd = dir, rnd
	for _, p := range []struct {
		from string
		to   *string
		name string
	}{{set.axd, &s.axd, "axd"}, {set.axctl, &s.axctl, "axctl"}, {set.ledger, &s.ledger, "task"}} {
		*p.to = filepath.Join(dir, p.name)
		if err := copyProgram(p.from, *p.to); err != nil {
			return nil, err
		}
	}
	var err error
	s.log, err = os.Create(filepath.Join(dir, "axd.log"))
	return s, err
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}

func (s *stage) path(name string) string { return filepath.Join(s.dir, name) }
func (s *stage) storePath() string       { return s.inHome("ax.db") }
func (s *stage) ledgerPath() string      { return s.path("ledger") }

func (s *stage) inHome(name string) string { return filepath.Join(cmp.Or(s.home, s.dir), name) }

// between returns a random duration in [from, to).
func (s *stage) between(from, to time.Duration) time.Duration {
	return from + time.Duration(s.rnd.Int64N(int64(to-from)))
}

// sleep waits, or returns what ended ctx.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// write writes a file of the stage.
func (s *stage) write(name, text string) error {
	return os.WriteFile(s.path(name), []byte(text), 0o600)
}

// run runs axctl to its end.
func (s *stage) run(ctx context.Context, args ...string) (string, error) {
	cmd := s.command(ctx, args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("axctl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

func (s *stage) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.axctl, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "AX_STORE=sqlite:"+s.storePath())
	return cmd
}

// daemon is one axd process.
type daemon struct {
	cmd     *exec.Cmd
	started time.Time
	done    chan struct{} // closed when it has ended
	err     error
}

func (s *stage) start() (*daemon, error) { return s.launch(s.axd) }

// launch starts a program that is axd, with more variables.
func (s *stage) launch(program string, env ...string) (*daemon, error) {
	cmd := exec.Command(program, append([]string{
		"-store", "sqlite:" + s.storePath(), "-data", s.inHome("ax.data"), "-listen", "127.0.0.1:0", "-name", "drill",
	}, s.flags...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = s.dir, s.log, s.log, append(append(os.Environ(), s.env...), env...)
	d := &daemon{cmd: cmd, started: time.Now(), done: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		d.err = cmd.Wait()
		close(d.done)
	}()
	return d, nil
}

func (d *daemon) signal(sig syscall.Signal) error { return d.cmd.Process.Signal(sig) }

// wait waits for the end of the process.
func (d *daemon) wait(limit time.Duration) error {
	select {
	case <-d.done:
		return d.err
	case <-time.After(limit):
		return fmt.Errorf("axd has not ended %s after it should", limit)
	}
}

// kill is kill -9.
func (d *daemon) kill() error {
	select {
	case <-d.done:
		return fmt.Errorf("axd ended by itself: %v", d.err)
	default:
	}
	if err := d.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-d.done
	return nil
}

// process is one that this stage begot.
type process struct {
	pid  int
	args string
}

// processes lists the stage's processes besides axctl: axd, its executors, and
// what they run. A zombie has ended already and is not listed.
func (s *stage) processes() []process {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	var all []process
	for _, link := range links {
		exe, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(strings.TrimSuffix(exe, " (deleted)"), s.dir+"/") {
			continue
		}
		pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
		args, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
		all = append(all, process{pid, string(bytes.ReplaceAll(args, []byte{0}, []byte{' '}))})
	}
	return all
}

// gone waits until no process of the stage is left.
func (s *stage) gone(ctx context.Context, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for {
		left := s.processes()
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d processes left %s after axd was gone: %v", len(left), limit, left)
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// killAll ends what is left and returns how many there were.
func (s *stage) killAll() int {
	left := s.processes()
	for _, p := range left {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
	_ = s.log.Close()
	return len(left)
}
