// Command axd is the daemon: it fires what is due on this host. See axd -h.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/axctl/ax"
	"github.com/axctl/ax/cmd/axd/daemon"
	"github.com/axctl/ax/plugins/builtin"
	"github.com/axctl/ax/plugins/host"
)

// version is set by the linker.
var version string

// programVersion returns the version that the linker was given, or what Go
// itself knows.
func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 2 && args[0] == "executor" {
		return fail(stderr, builtin.Serve(args[1]))
	}
	f, err := parseFlags(args, os.LookupEnv, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return fail(stderr, err)
	case f.version:
		fmt.Fprintf(stdout, "axd %s\ntzdata %s\n", programVersion(), daemon.TZDataVersion())
		return 0
	}
	ctx, drain, stop := signals()
	defer stop()
	if f.demo != "" {
		return fail(stderr, demo(ctx, drain, f, stdout, stderr))
	}
	log := newLogger(f.logFormat, stderr)
	d, err := daemon.New(ctx, f.config(log))
	if err != nil {
		return fail(stderr, err)
	}
	defer d.Close()
	host.LogGRPC(log)
	return fail(stderr, d.Run(ctx, drain))
}

// signals returns a context that the second SIGTERM or SIGINT ends, and one
// that the first ends.
func signals() (ctx, drain context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	drain, begin := context.WithCancel(ctx)
	c := make(chan os.Signal, 2)
	signal.Notify(c, syscall.SIGTERM, syscall.SIGINT)
	done := make(chan struct{})
	go func() {
		for _, act := range []func(){begin, cancel} {
			select {
			case <-c:
				act()
			case <-done:
				return
			}
		}
	}()
	return ctx, drain, func() {
		signal.Stop(c)
		close(done)
		cancel()
	}
}

func newLogger(format string, w io.Writer) *slog.Logger {
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, nil))
	}
	return slog.New(slog.NewTextHandler(w, nil))
}

// fail prints an error with its hint and returns the exit code.
func fail(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(w, "axd: %v", err)
	var hint *ax.HintError
	if errors.As(err, &hint) {
		fmt.Fprintf(w, "; %s", hint.Hint)
	}
	fmt.Fprintln(w)
	return 1
}
