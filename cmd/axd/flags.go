package main

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/axctl/ax/cmd/axd/daemon"
	"github.com/axctl/ax/runtime/retention"
)

// flags are axd's flags. Each may also stand as AX_NAME in the environment.
type flags struct {
	store, data, listen, name, plugins string
	pools                              pools
	tick, scan, grace, retain          time.Duration
	retainLast                         int
	logFormat                          string
	demo                               string
	demoFor                            time.Duration
	version                            bool
}

// later names the flags that are designed and not built in this version.
var later = []string{"tls-cert", "tls-key", "labels", "secrets"}

const usage = `axd fires what is due on this host.

  axd [flags]
  axd -demo FILE [-for D]    apply FILE to a store in a temporary folder, run
                             it, print each firing

SIGTERM drains: no new claims, running attempts may end (-grace), and those that
do not go on in their executors, for the next axd to take over; without one they
are stopped after 5 minutes. A second SIGTERM stops them at once.

Each flag may also stand in the environment, as AX_STORE for -store.

`

func parseFlags(args []string, env func(string) (string, bool), out io.Writer) (flags, error) {
	f := flags{pools: pools{}}
	set := flag.NewFlagSet("axd", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&f.store, "store", "sqlite:ax.db", "`URL` of the store, sqlite:PATH")
	set.StringVar(&f.data, "data", "", "data `folder`: logs, report journal, sockets (default ax.data beside the store)")
	set.StringVar(&f.listen, "listen", "127.0.0.1:7420", "loopback `address` of /healthz and /metrics; \"\" for none")
	set.StringVar(&f.plugins, "plugins", "", "`folder` of plugins, whose files are ax-handler-NAME; \"\" for none")
	set.StringVar(&f.name, "name", "", "`name` of this host (default the machine's)")
	set.Var(f.pools, "pools", "places by pool, as in shell=64,hot=8: a task fills the pool it names (pool), else that of its handler (default 64 for shell and http, twice the CPUs and 2 for others)")
	set.DurationVar(&f.tick, "tick", time.Second, "width of a slot of the time wheel")
	set.DurationVar(&f.scan, "scan", 5*time.Second, "how often the store is scanned for due tasks")
	set.DurationVar(&f.grace, "grace", daemon.DefaultGrace, "how long a drain waits for running attempts before it leaves them to the next axd")
	set.DurationVar(&f.retain, "retain", retention.DefaultAge, "how long after its end an instance is kept, and logs")
	set.IntVar(&f.retainLast, "retain-last", retention.DefaultLast, "how many instances of each task are kept whatever their age")
	set.StringVar(&f.logFormat, "log-format", "text", "`text` or json")
	set.StringVar(&f.demo, "demo", "", "run this `file` on a temporary store")
	set.DurationVar(&f.demoFor, "for", 0, "end the demo after this long (default: Ctrl-C)")
	set.BoolVar(&f.version, "version", false, "print the version")

	var bad error
	set.VisitAll(func(fl *flag.Flag) {
		name := "AX_" + strings.ToUpper(strings.ReplaceAll(fl.Name, "-", "_"))
		if v, ok := env(name); ok && bad == nil {
			if err := set.Set(fl.Name, v); err != nil {
				bad = fmt.Errorf("%s=%q: %w", name, v, err)
			}
		}
	})
	if bad != nil {
		return f, bad
	}
	for _, a := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if strings.HasPrefix(a, "-") && slices.Contains(later, name) {
			return f, fmt.Errorf("-%s is designed and not built in this version", name)
		}
	}
	switch err := set.Parse(args); {
	case err == flag.ErrHelp:
		fmt.Fprint(out, usage)
		set.SetOutput(out)
		set.PrintDefaults()
		return f, err
	case err != nil:
		return f, fmt.Errorf("%w; axd -h lists the flags", err)
	case set.NArg() > 0:
		return f, fmt.Errorf("unexpected %q; axd -h lists the flags", set.Arg(0))
	case f.logFormat != "text" && f.logFormat != "json":
		return f, fmt.Errorf("-log-format=%s: text or json", f.logFormat)
	case f.tick < time.Millisecond || f.scan < 100*time.Millisecond || f.grace < 0 || f.demoFor < 0:
		return f, fmt.Errorf("-tick is at least 1ms, -scan at least 100ms, -grace and -for are not negative")
	case f.retain < time.Minute || f.retainLast < 1:
		return f, fmt.Errorf("-retain is at least 1m, -retain-last at least 1")
	case f.demoFor > 0 && f.demo == "":
		return f, fmt.Errorf("-for goes with -demo")
	}
	return f, nil
}

func (f flags) config(log *slog.Logger) daemon.Config {
	return daemon.Config{
		StoreURL: f.store, DataDir: f.data, Listen: f.listen, Name: f.name, Version: programVersion(),
		Pools: f.pools, Tick: f.tick, Scan: f.scan, Grace: f.grace,
		PluginDir: f.plugins, Environ: os.Environ(), Retain: f.retain, RetainLast: f.retainLast, Log: log,
	}
}

// pools is the value of -pools.
type pools map[string]int

func (p pools) String() string {
	parts := make([]string, 0, len(p))
	for name, n := range p {
		parts = append(parts, name+"="+strconv.Itoa(n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// Set reads name=places,….
func (p pools) Set(s string) error {
	for part := range strings.SplitSeq(s, ",") {
		name, text, ok := strings.Cut(part, "=")
		n, err := strconv.Atoi(text)
		if !ok || name == "" || err != nil || n < 1 || n > 100_000 {
			return fmt.Errorf("%q: write pool=places, places from 1 to 100000", part)
		}
		p[name] = n
	}
	return nil
}
