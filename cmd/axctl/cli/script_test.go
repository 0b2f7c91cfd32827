package cli_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/axctl/ax/cmd/axctl/cli"
	"github.com/axctl/ax/store"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"axctl": axctl, "axd": axd})
}

// axctl is the program as cmd/axctl has it, with a terminal and a clock that
// scripts can set: AXTEST_TTY lists the streams that are terminals, AXTEST_NOW
// is the instant.
func axctl() {
	env, err := cli.System("v0.0.0-test", open)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	env.User, env.Host = "ada", "host1"
	tty := os.Getenv("AXTEST_TTY")
	env.Terminals = cli.Terminals{
		Stdin:  strings.Contains(tty, "stdin"),
		Stdout: strings.Contains(tty, "stdout"),
		Stderr: strings.Contains(tty, "stderr"),
	}
	if text := os.Getenv("AXTEST_NOW"); text != "" {
		now, err := time.Parse(time.RFC3339, text)
		if err != nil {
			panic(err)
		}
		env.Now = func() time.Time { return now }
	}
	ctx, stop := cli.WithSignals(context.Background())
	code := cli.Main(ctx, env)
	stop()
	os.Exit(code)
}

func open(ctx context.Context, url string, o cli.OpenOptions) (cli.Store, error) {
	return store.Open(ctx, url, store.Options{
		Create: o.Create, ReadOnly: o.ReadOnly, BusyTimeout: cli.WriterPatience, Now: time.Now,
	})
}

// Each script shows one command, or one promise. Commands: axctl and axd, and
//
//	code N COMMAND...         the command must end with exactly this exit code
//	until REGEXP COMMAND...   the command is run again until its output matches
//	plugin NAME...            builds plugins of examples/plugins into the folder plugins
func TestScripts(t *testing.T) {
	t.Parallel()
	examples, err := filepath.Abs("../../../examples/plugins")
	if err != nil {
		t.Fatal(err)
	}
	examplePlugins.dir, examplePlugins.built = examples, map[string][]byte{}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE") != "",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": code, "until": until, "plugin": plugin,
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("LANG", "C")
			return nil
		},
	})
}

// code runs a command and compares its exit code.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command args...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = err.Error()
		var exit interface{ ExitCode() int }
		if errors.As(err, &exit) {
			got = fmt.Sprint(exit.ExitCode())
		}
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// examplePlugins builds each plugin of examples/plugins once.
var examplePlugins struct {
	sync.Mutex
	dir   string
	built map[string][]byte
}

// plugin puts plugins of examples/plugins into the script's folder plugins. A
// name like report-2 is a copy of report.
func plugin(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: plugin name...")
	}
	examplePlugins.Lock()
	defer examplePlugins.Unlock()
	for _, name := range args {
		of, _, _ := strings.Cut(name, "-")
		if examplePlugins.built[of] == nil {
			file := filepath.Join(ts.Getenv("WORK"), "built-"+of)
			cmd := exec.Command("go", "build", "-o", file, ".")
			cmd.Dir = filepath.Join(examplePlugins.dir, of)
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOPROXY=off")
			if out, err := cmd.CombinedOutput(); err != nil {
				ts.Fatalf("build of plugin %s: %v\n%s", of, err, out)
			}
			text, err := os.ReadFile(file)
			ts.Check(err)
			examplePlugins.built[of] = text
		}
		ts.Check(os.MkdirAll(ts.MkAbs("plugins"), 0o755))
		ts.Check(os.WriteFile(ts.MkAbs("plugins/ax-handler-"+name), examplePlugins.built[of], 0o755))
	}
}
