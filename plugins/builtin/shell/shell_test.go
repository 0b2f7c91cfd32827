package shell_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax/plugins"
	"github.com/axctl/ax/plugins/builtin/shell"
	"github.com/axctl/ax/plugins/builtin/shell/cgroup"
	"github.com/axctl/ax/plugins/plugintest"
	pb "github.com/axctl/ax/plugins/proto"
	"github.com/axctl/ax/plugins/sdk"
	"golang.org/x/sys/unix"
)

// TestMain makes the test process what an executor is: the one that adopts
// orphans.
func TestMain(m *testing.M) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func start(t *testing.T) *plugintest.Executor {
	return plugintest.Start(t, sdk.Options{Handlers: []plugins.Handler{shell.New()}})
}

func body(pairs ...any) string {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// alive counts the processes whose command line holds the text.
func alive(text string) int {
	n := 0
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		b, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err == nil && strings.Contains(strings.ReplaceAll(string(b), "\x00", " "), text) {
			n++
		}
	}
	return n
}

func TestConformance(t *testing.T) {
	t.Parallel()
	plugintest.Run(t, plugintest.Subject{
		Handler: shell.New(),
		Success: `{"command": "echo hello"}`,
		Failure: `{"command": ["false"]}`,
		Endless: `{"command": "sleep 60.101; true"}`,
	})
}

func TestResults(t *testing.T) {
	t.Parallel()
	e := start(t)
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("echo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		body   string
		status string
		class  string
		error  string // a part of it
		stdout string
	}{
		{"shell", body("command", "echo $((6*7))"), "success", "", "", "42\n"},
		{"no shell", body("command", []string{"echo", "$HOME; $(id)", "*"}), "success", "", "", "$HOME; $(id) *\n"},
		{"exit code", body("command", "exit 7"), "failed", "failed", "exit code 7", ""},
		{"ok code", body("command", "exit 7", "ok_codes", []int{0, 7}), "success", "", "", ""},
		{"zero not ok", body("command", "exit 0", "ok_codes", []int{1}), "failed", "failed", "exit code 0", ""},
		{"signal", body("command", "kill -USR1 $$"), "failed", "failed", "killed by signal USR1", ""},
		{"command not found by the shell", body("command", "no_such_command_x"), "failed", "failed", "exit code 127", ""},
		{"command not found", body("command", []string{"no_such_command_x"}), "failed", "permanent", `command "no_such_command_x" is not in PATH (/usr/local/sbin:`, ""},
		{"not executable", body("command", []string{plain}), "failed", "permanent", "permission denied", ""},
		{"program's path missing", body("command", []string{dir + "/missing"}), "failed", "permanent", "start " + dir + "/missing: no such file or directory", ""},
		{"found in its own PATH", body("command", []string{"plain"}, "env", map[string]string{"PATH": dir}), "failed", "permanent", "is not in PATH", ""},
		{"script", body("script", "set -e\nx='a b'\necho \"$x\" \"$#\"\n"), "success", "", "", "a b 0\n"},
		{"interpreter with arguments", body("script", "echo one\nfalse\necho two\n", "interpreter", []string{"sh", "-e"}), "failed", "failed", "exit code 1", "one\n"},
		{"interpreter by name", body("script", "BEGIN { print 6*7 }", "interpreter", []string{"awk", "-f"}), "success", "", "", "42\n"},
		{"stdin", body("command", "tr a-z A-Z", "stdin", "quiet\n"), "success", "", "", "QUIET\n"},
		{"no stdin", body("command", "cat; echo end"), "success", "", "", "end\n"},
		{"dir", body("command", "pwd", "dir", dir), "success", "", "", dir + "\n"},
		{"dir missing", body("command", "pwd", "dir", dir+"/missing"), "failed", "failed", "dir " + dir + "/missing does not exist", ""},
		{"dir not absolute", body("command", "pwd", "dir", "."), "failed", "permanent", "dir . is not absolute", ""},
		{"dir is a file", body("command", "pwd", "dir", plain), "failed", "permanent", "is no directory", ""},
		{"unknown user", body("command", "id", "user", "no_such_user_x"), "failed", "permanent", "there is no user no_such_user_x here", ""},
		{"NUL", body("command", []string{"echo", "a\x00b"}), "failed", "permanent", "invalid argument", ""},
		{"both", body("command", "true", "script", "true"), "failed", "permanent", "exactly one of command and script", ""},
		{"neither", body("dir", "/"), "failed", "permanent", "exactly one of command and script", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := e.Do(e.Job("shell", c.body))
			if res.Status != c.status || res.Class != c.class || !strings.Contains(res.Error, c.error) || res.Stdout != c.stdout {
				t.Errorf("got %s %s %q, stdout %q, stderr %q", res.Status, res.Class, res.Error, res.Stdout, res.Stderr)
			}
		})
	}
}

// B100: the environment is the documented one and nothing else.
func TestEnvironment(t *testing.T) {
	t.Setenv("AX_DB_DSN", "secret")
	t.Setenv("LD_LIBRARY_PATH", "/nowhere")
	t.Setenv("BASH_ENV", "./x")
	t.Setenv("TMOUT", "5")
	e := start(t)
	j := e.Job("shell", body("command", []string{"env"}, "env", map[string]string{"MINE": "it's \"$HOME\"\nand more", "LANG": "de_DE", "AX_TASK": "forged"}))
	j.Timezone, j.UtcOffsetS = "Asia/Tokyo", 9*3600
	j.DueMs = time.Date(2026, 3, 1, 15, 30, 0, 0, time.UTC).UnixMilli()
	res := e.Do(j)
	got := map[string]string{}
	last := ""
	for line := range strings.Lines(res.Stdout) {
		k, v, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok {
			got[last] += "\n" + k
			continue
		}
		got[k], last = v, k
	}
	output := got["AX_OUTPUT"]
	delete(got, "AX_OUTPUT")
	delete(got, "AX_PROGRESS")
	home := got["HOME"]
	want := map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME": home, "USER": got["USER"], "LOGNAME": got["USER"], "SHELL": "/bin/sh", "LANG": "de_DE",
		"AX_STACK": "demo", "AX_TASK": "task.test", "AX_INSTANCE": "1", "AX_ATTEMPT": "1",
		"AX_BATCH_NO": j.BatchNo, "AX_IDEMPOTENCY_KEY": j.IdempotencyKey,
		"AX_DUE": "2026-03-02T00:30:00+09:00", "AX_DATE": "2026-03-02", "AX_PREV_DATE": "2026-03-01",
		"MINE": "it's \"$HOME\"\nand more",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if _, err := os.Stat(output); output == "" || err == nil {
		t.Errorf("AX_OUTPUT %q is left behind", output)
	}
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	e := start(t)
	for _, c := range []struct {
		command string
		want    map[string]any
		class   string
	}{
		{`printf 'a=1\nb.c-d=x=y\n\na=2\n' >>$AX_OUTPUT`, map[string]any{"a": "2", "b.c-d": "x=y"}, ""},
		{`printf 'a=1' >$AX_OUTPUT`, map[string]any{"a": "1"}, ""},
		{`true`, nil, ""},
		{`echo a=1 >$AX_OUTPUT; rm $AX_OUTPUT`, nil, ""},
		{`printf 'a=one\ntwo\n' >$AX_OUTPUT`, map[string]any{"a": "one"}, "permanent"},
		{`printf '1a=one\n' >$AX_OUTPUT`, nil, "permanent"},
		{`printf 'a=\377\n' >$AX_OUTPUT`, map[string]any{"a": "\uFFFD"}, ""},
		{`echo a=1 >$AX_OUTPUT; exit 3`, map[string]any{"a": "1"}, "failed"},
		{`head -c 5000000 /dev/zero >$AX_OUTPUT`, map[string]any{"ax_dropped": "more than 65536 bytes in AX_OUTPUT"}, ""},
	} {
		res := e.Do(e.Job("shell", body("command", c.command)))
		if !maps.Equal(res.Outputs, c.want) || res.Class != c.class {
			t.Errorf("%s: %v, %s %q", c.command, res.Outputs, res.Class, res.Error)
		}
	}
}

// handlers are the ways in which an attempt's processes are held together here.
func handlers(t *testing.T) map[string]func() plugins.Handler {
	all := map[string]func() plugins.Handler{"process group": func() plugins.Handler { return shell.NewWithoutCgroups() }}
	if _, err := cgroup.Find(os.Getpid()); err != nil {
		t.Logf("control groups are not shown here: %v", err)
	} else {
		all["control group"] = func() plugins.Handler { return shell.New() }
	}
	return all
}

// B068: what holds the pipes, left the group or ignores TERM neither holds up
// the attempt nor outlives it.
func TestProcessesLeftBehind(t *testing.T) {
	t.Parallel()
	for how, handler := range handlers(t) {
		for _, c := range []struct {
			name, command  string
			timeout        int64
			status, stdout string
			within         time.Duration
		}{
			{"background child", "SLEEP & echo started", 0, "success", "started\n", 3 * time.Second},
			{"background child that ignores TERM", "(trap '' TERM; while :; do SLEEP; done) & echo started", 0, "success", "started\n", 5 * time.Second},
			{"child in a session of its own", "setsid SLEEP & sleep 0.2; echo started", 0, "success", "started\n", 3 * time.Second},
			{"daemon", "(setsid sh -c 'SLEEP; true' >/dev/null 2>&1 &) ; sleep 0.2; echo started", 0, "success", "started\n", 3 * time.Second},
			{"child in a group of its own", "set -m; (SLEEP; true) & echo started", 0, "success", "started\n", 3 * time.Second},
			{"timeout with a grandchild", `echo started; sh -c "SLEEP; true"`, 500, "timeout", "started\n", 3 * time.Second},
			{"timeout with a daemon", `echo started; (setsid sh -c 'setsid SLEEP & SLEEP' &); SLEEP`, 500, "timeout", "started\n", 5 * time.Second},
			{"timeout of what ignores TERM", `trap '' TERM; echo started; while :; do SLEEP; done`, 500, "timeout", "started\n", 5 * time.Second},
			{"timeout of what is stopped", `echo started; kill -STOP $$; SLEEP`, 500, "timeout", "started\n", 5 * time.Second},
			{"timeout of what forks on and on", `trap '' TERM; echo started; while :; do sh -c 'SLEEP' & sleep 0.02; done`, 500, "timeout", "started\n", 8 * time.Second},
			{"TERM is heeded", `trap 'echo ended; exit 0' TERM; echo started; SLEEP & wait`, 500, "timeout", "started\nended\n", 3 * time.Second},
		} {
			t.Run(how+", "+c.name, func(t *testing.T) {
				t.Parallel()
				e := plugintest.Start(t, sdk.Options{Handlers: []plugins.Handler{handler()}})
				mark := "sleep 60." + strconv.Itoa(rand.Int())
				j := e.Job("shell", body("command", strings.ReplaceAll(c.command, "SLEEP", mark)))
				if c.timeout != 0 {
					j.TimeoutMs = c.timeout
				}
				began := time.Now()
				res := e.Do(j)
				if res.Status != c.status || res.Stdout != c.stdout {
					t.Errorf("%s %s %q, stdout %q, stderr %q", res.Status, res.Class, res.Error, res.Stdout, res.Stderr)
				}
				if took := time.Since(began); took > c.within {
					t.Errorf("took %s", took)
				}
				if n := alive(mark); n > 0 {
					t.Errorf("%d processes are left", n)
				}
				if c.status == "success" && !slices.Equal(res.Notes, []string{"processes left by the main process are killed"}) {
					t.Errorf("notes: %q", res.Notes)
				}
			})
		}
	}
}

// An attempt whose work ends at the very instant of its timeout has one end, and
// nothing of it is left when that is told to be so.
func TestEndAtTheTimeout(t *testing.T) {
	t.Parallel()
	e := start(t)
	mark := "sleep 0.3" + strconv.Itoa(rand.Int())
	var jobs []*pb.Job
	for range 16 {
		j := e.Job("shell", body("command", mark+" & wait"))
		j.TimeoutMs = 300
		jobs = append(jobs, j)
	}
	e.Send(&pb.Down{Jobs: jobs})
	for _, j := range jobs {
		if res := e.End(j.BatchNo); res.Status != "success" && res.Status != "timeout" {
			t.Errorf("%s %q", res.Status, res.Error)
		}
		e.Until("one end", func(told []*pb.Report, _ plugintest.Result) bool {
			ends, stops := 0, 0
			for _, r := range told {
				if r.Kind == pb.Kind_KIND_ENDED {
					ends++
				}
				if r.StoppedMs != 0 {
					stops++
				}
			}
			if ends > 1 || stops > 1 {
				t.Errorf("%d ends, %d stops: %v", ends, stops, told)
			}
			return ends == 1 && stops == 1
		}, j.BatchNo)
	}
	if n := alive(mark); n > 0 {
		t.Errorf("%d processes are left", n)
	}
}

// In a control group nothing hides: what has left its session and its
// environment is killed with its attempt, while others run, and leaves no zombie.
func TestNothingHidesInAControlGroup(t *testing.T) {
	t.Parallel()
	handler, ok := handlers(t)["control group"]
	if !ok {
		return
	}
	e := plugintest.Start(t, sdk.Options{Handlers: []plugins.Handler{handler()}})
	long := e.Job("shell", body("command", "sleep 60"))
	e.Send(&pb.Down{Jobs: []*pb.Job{long}})
	mark := "sleep 60." + strconv.Itoa(rand.Int())
	pids := filepath.Join(t.TempDir(), "pids")
	res := e.Do(e.Job("shell", body("command", []string{
		"bash", "-c",
		`set -m; (env -i setsid ` + mark + ` >/dev/null 2>&1 & echo $! >>` + pids + `); env -i ` + mark + ` >/dev/null 2>&1 & echo $! >>` + pids,
	})))
	if n := alive(mark); n != 0 || res.Status != "success" || !slices.Equal(res.Notes, []string{"processes left by the main process are killed"}) {
		t.Errorf("%d processes are left; %s, notes %q", n, res.Status, res.Notes)
	}
	b, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(string(b)) {
		if _, err := os.Stat("/proc/" + pid); err == nil {
			t.Errorf("process %s is a zombie", pid)
		}
	}
	e.Send(&pb.Down{Cancels: []*pb.Cancel{{BatchNo: long.BatchNo}}})
	e.End(long.BatchNo)
}

// groupOf returns the control group of a process.
func groupOf(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, group, _ := strings.Cut("\n"+string(b), "\n0::")
	return strings.TrimSpace(group)
}

// A paused attempt stands still with what left its process group, the kernel says
// so, and it does over a new session of axd; it goes on when it is told to, and
// ends paused as it ends else: asked, killed, or when its main process is gone.
func TestPauseReachesWhatLeftTheGroup(t *testing.T) {
	t.Parallel()
	own, err := cgroup.Find(os.Getpid())
	if err != nil {
		t.Logf("a pause of what left the group is not shown here, that takes a cgroup v2 tree that this process may write (root, or Delegate=yes): %v", err)
		return
	}
	e := start(t)
	for _, c := range []struct {
		name, term string
		end        func(j *pb.Job, main int)
		status     string
		stdout     string
	}{
		{"asked to end", "echo ended; exit 0", func(j *pb.Job, _ int) { e.Send(&pb.Down{Cancels: []*pb.Cancel{{BatchNo: j.BatchNo}}}) }, "cancelled", "ended\n"},
		{"killed", "", func(j *pb.Job, _ int) { e.Send(&pb.Down{Cancels: []*pb.Cancel{{BatchNo: j.BatchNo}}}) }, "cancelled", ""},
		{"main process killed", "", func(_ *pb.Job, main int) { _ = unix.Kill(main, unix.SIGKILL) }, "failed", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, mark := t.TempDir(), "0.01"+strconv.Itoa(rand.Int())
			j := e.Job("shell", body("command", fmt.Sprintf(
				`trap '%s' TERM; echo $$ >%s/main; setsid sh -c 'while :; do echo >>%s/beats; sleep %s; done' & while :; do wait; done`, c.term, dir, dir, mark)))
			j.KillAfterMs = 300
			e.Send(&pb.Down{Jobs: []*pb.Job{j}})
			beats := func() int64 {
				info, err := os.Stat(filepath.Join(dir, "beats"))
				if err != nil {
					return 0
				}
				return info.Size()
			}
			goesOn := func() {
				t.Helper()
				for began, deadline := beats(), time.Now().Add(20*time.Second); beats() == began; <-time.After(5 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatal("it does not go on")
					}
				}
			}
			goesOn()
			b, err := os.ReadFile(filepath.Join(dir, "main"))
			if err != nil {
				t.Fatal(err)
			}
			main, _ := strconv.Atoi(strings.TrimSpace(string(b)))
			group := filepath.Join(own, strings.TrimPrefix(groupOf(t, main), groupOf(t, os.Getpid())))
			stands := func(want bool) {
				t.Helper()
				began := beats()
				<-time.After(200 * time.Millisecond)
				events, err := os.ReadFile(filepath.Join(group, "cgroup.events"))
				if err != nil || strings.Contains(string(events), "frozen 1") != want || (beats() == began) != want {
					t.Errorf("stands still is to be %t: %d lines more, %q %v", want, beats()-began, events, err)
				}
			}
			for range 2 {
				if a := e.Signal(j.BatchNo, "pause"); a.Refused != "" {
					t.Fatal(a)
				}
				stands(true)
				e.Reconnect()
				stands(true)
				if a := e.Signal(j.BatchNo, "resume"); a.Refused != "" {
					t.Fatal(a)
				}
				goesOn()
			}
			if a := e.Signal(j.BatchNo, "pause"); a.Refused != "" {
				t.Fatal(a)
			}
			stands(true)
			c.end(j, main)
			if res := e.End(j.BatchNo); res.Status != c.status || res.Stdout != c.stdout {
				t.Errorf("%s %q, stdout %q", res.Status, res.Error, res.Stdout)
			}
			if n := alive(mark); n > 0 {
				t.Errorf("%d processes are left", n)
			}
			if _, err := os.Stat(group); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("its control group: %v", err)
			}
		})
	}
}

// freezer makes a group of the old kind whose processes no signal reaches while it
// is frozen, as none reaches one that waits for a device.
func freezer(t *testing.T) (dir string, ok bool) {
	t.Helper()
	dir, err := os.MkdirTemp("/sys/fs/cgroup/freezer", "ax-test-")
	if err != nil {
		t.Logf("a process that cannot be killed is not shown here, that takes a freezer (cgroup v1): %v", err)
		return "", false
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	return dir, true
}

// What cannot be killed is told by its number, keeps its place, and is over when
// it ends at last.
func TestUnkillable(t *testing.T) {
	t.Parallel()
	for how, handler := range handlers(t) {
		for _, c := range []struct{ name, command string }{
			{"the main process", "echo $$ >FREEZER/cgroup.procs; echo FROZEN >FREEZER/freezer.state; sleep 60"},
			{"a child that is left", "sh -c 'echo $$ >FREEZER/cgroup.procs; echo FROZEN >FREEZER/freezer.state; sleep 60' & while ! grep -q FROZEN FREEZER/freezer.state; do sleep 0.1; done"},
		} {
			t.Run(how+", "+c.name, func(t *testing.T) {
				t.Parallel()
				dir, ok := freezer(t)
				if !ok {
					return
				}
				e := plugintest.Start(t, sdk.Options{Handlers: []plugins.Handler{handler()}})
				j := e.Job("shell", body("command", strings.ReplaceAll(c.command, "FREEZER", dir)))
				j.TimeoutMs, j.KillAfterMs = 2000, 200
				e.Send(&pb.Down{Jobs: []*pb.Job{j}})
				var warned *pb.Report
				e.Until("the warning", func(told []*pb.Report, _ plugintest.Result) bool {
					for _, r := range told {
						if r.StoppedMs != 0 {
							t.Fatalf("it is stopped: %v", r)
						}
						if r.Kind == pb.Kind_KIND_UNKILLABLE {
							warned = r
						}
					}
					return warned != nil
				}, j.BatchNo)
				pids, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
				if err != nil || len(pids) == 0 {
					t.Fatalf("nothing is frozen: %v", err)
				}
				if pid := strings.Fields(string(pids))[0]; !strings.Contains(warned.Error, pid+" (") || !strings.Contains(warned.Error, "state D") {
					t.Errorf("process %s is told as %q", pid, warned.Error)
				}
				if err := os.WriteFile(filepath.Join(dir, "freezer.state"), []byte("THAWED"), 0); err != nil {
					t.Fatal(err)
				}
				if res := e.End(j.BatchNo); res.Status != "timeout" && res.Status != "success" {
					t.Errorf("%s %q", res.Status, res.Error)
				}
			})
		}
	}
}

// A flood of output does not keep an attempt from its timeout.
func TestTimeoutUnderAFlood(t *testing.T) {
	t.Parallel()
	for how, handler := range handlers(t) {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			e := plugintest.Start(t, sdk.Options{Handlers: []plugins.Handler{handler()}})
			j := e.Job("shell", body("command", `trap '' TERM; setsid yes & while :; do cat /dev/zero; done`))
			j.TimeoutMs = 500
			began := time.Now()
			res := e.Do(j)
			if took := time.Since(began); res.Status != "timeout" || took > 8*time.Second {
				t.Errorf("%s after %s", res.Status, took)
			}
		})
	}
}

// A process that left its group and its environment is nobody's: it is killed
// when no attempt runs, and until then no other attempt is slowed down by it or
// told that it left something.
func TestProcessThatHides(t *testing.T) {
	e := plugintest.Start(t, sdk.Options{Handlers: []plugins.Handler{shell.NewWithoutCgroups()}})
	mark := "sleep 60." + strconv.Itoa(rand.Int())
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	long := e.Job("shell", body("command", []string{"cat", fifo}))
	e.Send(&pb.Down{Jobs: []*pb.Job{long}})
	e.Do(e.Job("shell", body("command", "(env -i setsid "+mark+" >/dev/null 2>&1 &); sleep 0.2")))
	if n := alive(mark); n != 1 {
		t.Fatalf("%d processes hide while another attempt runs", n)
	}
	for range 5 {
		if res := e.Do(e.Job("shell", body("command", "true"))); len(res.Notes) > 0 {
			t.Errorf("notes of an attempt that left nothing: %q", res.Notes)
		}
	}
	if err := os.WriteFile(fifo, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	res := e.End(long.BatchNo)
	if n := alive(mark); n != 0 || len(res.Notes) != 1 || !strings.Contains(res.Notes[0], "hid whose they are") {
		t.Errorf("%d processes still hide; notes %q", n, res.Notes)
	}
}

// B072: bytes are kept as they are.
func TestBinaryOutput(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bytes")
	content := make([]byte, 3_000_000)
	for i := range content {
		content[i] = byte(i * i >> 3)
	}
	content[0], content[1], content[2] = 0, 0xff, 0xfe
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	e := start(t)
	res := e.Do(e.Job("shell", body("command", []string{"cat", file})))
	e.Until("the output", func(_ []*pb.Report, r plugintest.Result) bool { return len(r.Stdout) == len(content) }, res.Report.BatchNo)
	if got := e.End(res.Report.BatchNo).Stdout; sha256.Sum256([]byte(got)) != sha256.Sum256(content) {
		t.Error("the log differs from the source")
	}
}

// B101, B071: a flood is cut in the middle, said so, and ends well.
func TestFlood(t *testing.T) {
	t.Parallel()
	e := start(t)
	res := e.Do(e.Job("shell", body("command", "seq 1 3000000; echo the end")))
	e.Until("the output", func(_ []*pb.Report, r plugintest.Result) bool { return strings.HasSuffix(r.Stdout, "\nthe end\n") }, res.Report.BatchNo)
	out := e.End(res.Report.BatchNo).Stdout
	if res.Status != "success" || !strings.HasPrefix(out, "1\n2\n3\n") || !strings.HasSuffix(out, "\n2999999\n3000000\nthe end\n") {
		t.Errorf("%s, %d bytes", res.Status, len(out))
	}
	r := res.Report
	if int64(len(out)) != r.OutputBytes-r.OutputDropped || len(out) != sdk.DefaultOutputHead+sdk.DefaultOutputTail {
		t.Errorf("kept %d of %d, dropped %d", len(out), r.OutputBytes, r.OutputDropped)
	}
	if want := fmt.Sprintf("… %d bytes dropped …", r.OutputDropped); !slices.Equal(res.Notes, []string{want}) {
		t.Errorf("notes: %q, want %q", res.Notes, want)
	}
}

func TestUser(t *testing.T) {
	t.Parallel()
	e := start(t)
	if os.Getuid() != 0 {
		res := e.Do(e.Job("shell", body("command", "id", "user", "root")))
		if res.Class != "permanent" || res.Error != "run as user root: axd does not run as root" {
			t.Errorf("%+v", res)
		}
		return
	}
	res := e.Do(e.Job("shell", body("user", "nobody", "script", "id -un; id -ru; echo $USER $LOGNAME; cat; echo k=v >>$AX_OUTPUT", "stdin", "in\n")))
	if want := "nobody\n65534\nnobody nobody\nin\n"; res.Stdout != want || !maps.Equal(res.Outputs, map[string]any{"k": "v"}) {
		t.Errorf("%+v", res)
	}
	// The executor is root: what it reads for a task, the task must be able to
	// read by itself.
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"ln -s " + secret + " $AX_OUTPUT", "mkfifo $AX_OUTPUT", "mkdir $AX_OUTPUT"} {
		res := e.Do(e.Job("shell", body("user", "nobody", "command", command)))
		if res.Class != "permanent" || !strings.HasPrefix(res.Error, "AX_OUTPUT: ") || res.Outputs != nil {
			t.Errorf("%s: %+v", command, res)
		}
	}
	own := e.Do(e.Job("shell", body("user", "root", "command", []string{"id", "-un"})))
	if own.Stdout != "root\n" {
		t.Errorf("%+v", own)
	}
}

// Nothing of an attempt is left on disk or among the children.
func TestNothingIsLeft(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	e := start(t)
	for range 20 {
		e.Do(e.Job("shell", body("script", "sleep 0.01 & echo a=x >$AX_OUTPUT", "stdin", "y")))
	}
	if left, err := filepath.Glob(filepath.Join(tmp, "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("after the attempts: %v %v", left, err)
	}
	e.Stop()
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range bytes.Fields(children) {
		stat, _ := os.ReadFile("/proc/" + string(pid) + "/stat")
		if bytes.Contains(stat, []byte(") Z ")) {
			t.Errorf("zombie: %s", stat)
		}
	}
}

// The exit code goes with the report, as a shell would tell it.
func TestExitCodeIsReported(t *testing.T) {
	t.Parallel()
	e := plugintest.Start(t, sdk.Options{Handlers: []plugins.Handler{shell.New()}})
	for command, want := range map[string]int32{"exit 75": 75, "kill -KILL $$": 137, "true": 0, "no_such_command_x": 127} {
		if res := e.Do(e.Job("shell", body("command", command))); res.Report.ExitCode != want || res.Report.HttpStatus != 0 {
			t.Errorf("%s: %d, %d", command, res.Report.ExitCode, res.Report.HttpStatus)
		}
	}
}
