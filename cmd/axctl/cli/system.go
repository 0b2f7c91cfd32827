package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"os/user"
	"syscall"

	"golang.org/x/term"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/clock"
)

// System returns the Env of this process.
func System(version string, open func(ctx context.Context, url string, o OpenOptions) (Store, error)) (Env, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Env{}, fmt.Errorf("find the current folder: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return Env{
		Args: os.Args[1:], Dir: dir, Environ: os.Environ(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Terminals: Terminals{
			Stdin:  term.IsTerminal(int(os.Stdin.Fd())),
			Stdout: term.IsTerminal(int(os.Stdout.Fd())),
			Stderr: term.IsTerminal(int(os.Stderr.Fd())),
		},
		User: userName(), Host: host, Version: version, Now: clock.Now, Clock: machineClock, Kernel: clock.Read, Open: open,
	}, nil
}

// machineClock reads the clocks as axd does.
func machineClock() ax.ClockMark {
	return ax.ClockMark{WallMs: clock.Now().UnixMilli(), ElapsedMs: clock.Elapsed().Milliseconds(), Kernel: clock.Kernel()}
}

// userName is who the process acts for: behind sudo, the person before it.
func userName() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if name == "" {
		name = fmt.Sprintf("uid %d", os.Getuid())
	}
	if by := os.Getenv("SUDO_USER"); by != "" && by != name {
		return by + " as " + name
	}
	return name
}

// WithSignals returns a context that SIGINT and SIGTERM cancel with an
// *Interrupt as the cause. A second signal ends the process at once. stop ends
// the watch.
func WithSignals(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		defer signal.Stop(signals)
		select {
		case <-done:
			cancel(nil)
		case s := <-signals:
			i := &Interrupt{Signal: "SIGINT", Code: ExitInterrupted}
			if s == syscall.SIGTERM {
				i = &Interrupt{Signal: "SIGTERM", Code: ExitTerminated}
			}
			cancel(i)
		}
	}()
	return ctx, func() { close(done) }
}
