package cli_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/axctl/ax/cmd/axd/daemon"
	"github.com/axctl/ax/plugins/builtin"
)

// axd is the daemon on the store of the current folder, without a listener. A
// signal drains it.
func axd() {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "axd:", err)
			os.Exit(1)
		}
	}
	if len(os.Args) == 3 && os.Args[1] == "executor" {
		fail(builtin.Serve(os.Args[2]))
		return
	}
	drain, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	pools := map[string]int{} // AXTEST_POOLS is the flag -pools
	for pool := range strings.SplitSeq(os.Getenv("AXTEST_POOLS"), ",") {
		if name, size, ok := strings.Cut(pool, "="); ok {
			n, err := strconv.Atoi(size)
			fail(err)
			pools[name] = n
		}
	}
	d, err := daemon.New(drain, daemon.Config{
		StoreURL: "sqlite:ax.db", Name: "host1", Version: "test", Tick: 100 * time.Millisecond, Scan: time.Second, Pools: pools,
		PluginDir: os.Getenv("AX_PLUGINS"), Environ: os.Environ(),
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	fail(err)
	defer d.Close()
	fail(d.Run(context.Background(), drain))
}

// until runs a command again and again until its output matches.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until regexp command args...")
	}
	want, err := regexp.Compile(args[0])
	ts.Check(err)
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	deadline := time.After(30 * time.Second)
	for {
		err := ts.Exec(args[1], args[2:]...)
		if want.MatchString(ts.ReadFile("stdout")) {
			return
		}
		select {
		case <-poll.C:
		case <-deadline:
			ts.Fatalf("%v never said %q (%v)", args[1:], args[0], err)
		}
	}
}
