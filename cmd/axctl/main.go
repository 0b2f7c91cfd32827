// Command axctl plans and applies declared tasks, and shows what ran. All of it
// is in package cli; main lends it the process and opens the store.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/axctl/ax/cmd/axctl/cli"
	"github.com/axctl/ax/runtime/clock"
	"github.com/axctl/ax/store"
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

func main() {
	env, err := cli.System(programVersion(), open)
	if err != nil {
		fmt.Fprintln(os.Stderr, "axctl:", err)
		os.Exit(cli.ExitError)
	}
	ctx, stop := cli.WithSignals(context.Background())
	code := cli.Main(ctx, env)
	stop()
	os.Exit(code)
}

func open(ctx context.Context, url string, o cli.OpenOptions) (cli.Store, error) {
	s, err := store.Open(ctx, url, store.Options{
		Create: o.Create, ReadOnly: o.ReadOnly, BusyTimeout: cli.WriterPatience, Now: clock.Now,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}
