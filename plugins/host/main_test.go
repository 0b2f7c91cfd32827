package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins"
	"github.com/axctl/ax/plugins/host"
	"github.com/axctl/ax/plugins/sdk"
	"go.uber.org/goleak"
)

// roleKey makes the test binary something else than a test: an executor, a
// faulty one, or an axd that is going to be killed.
const roleKey = "AX_TEST_ROLE"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleKey); role {
	case "":
		goleak.VerifyTestMain(m)
	case "executor":
		sdk.Serve("test", handlers()...)
	case "noisy": // says things before and after the handshake
		fmt.Println("hello | from | an | init | function")
		fmt.Print(strings.Repeat("x", 200_000), "\n")
		go func() {
			for range 2000 {
				_, _ = os.NewFile(1, "stdout").WriteString(strings.Repeat("1|1|noise|/nowhere|grpc", 20) + "\n")
			}
		}()
		sdk.Serve("test", handlers()...)
	case "exits":
		fmt.Fprintln(os.Stderr, "cannot go on: no license")
		os.Exit(3)
	case "newer":
		fmt.Println("1|99|unix|/nowhere|grpc")
		waitForEver()
	case "silent":
		waitForEver()
	case "foreign": // no cookie, as a plugin of some other program
		_ = os.Unsetenv("AX_PLUGIN")
		sdk.Serve("test", handlers()...)
	case "axd":
		if err := axd(os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "next axd":
		if err := nextAxd(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		panic("unknown role " + role)
	}
}

// waitForEver waits for a signal that never comes. An empty select would be
// seen as a deadlock, and end the process, where no C library is linked.
func waitForEver() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR2)
	<-c
}

// axd runs a host with sleeping attempts until it is killed. It says the
// executor's process id.
func axd(dir, nap string) error {
	grace, _ := time.ParseDuration(os.Getenv(graceKey))
	h := host.New(host.Config{
		Dir: dir, Grace: grace,
		Executors: []host.Command{{Name: "executor", Path: os.Args[0], Env: []string{roleKey + "=executor"}}},
		Output: func(chunks []host.OutputChunk) {
			for _, c := range chunks {
				if pid, ok := strings.CutPrefix(string(c.Data), "pid "); ok {
					fmt.Print("executor ", pid)
				}
			}
		},
	})
	go func() {
		<-h.Ready()
		h.Dispatch(naps(nap))
		for range h.Reports() {
		}
	}()
	return h.Run(context.Background())
}

// graceKey is the variable that tells axd's grace.
const graceKey = "AX_TEST_GRACE"

// naps are the attempts of the axd that is going to be killed.
func naps(nap string) []ax.Job {
	return []ax.Job{
		job("i-1-1", "sleep", text(nap+"; true")),
		job("i-2-1", "sleep", text("trap '' TERM; "+nap+"; true")),
		job("i-3-1", "sleep", text("setsid "+nap+" & wait")),
	}
}

// nextAxd asks for the attempts of an axd before and returns when all are lost.
func nextAxd(dir string) error {
	h := host.New(host.Config{Dir: dir})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	h.Recover(naps(""))
	for lost := 0; lost < 3; {
		for _, r := range <-h.Reports() {
			if r.Kind == ax.ReportLost {
				lost++
				fmt.Println(r.Error)
			}
			h.Acknowledge([]string{r.BatchNo})
		}
	}
	stop()
	return <-ended
}

// startAxd runs one in a process of its own, and returns when its attempts are
// at work.
func startAxd(t *testing.T, dir, nap string, env ...string) (axd *exec.Cmd, executor int) {
	t.Helper()
	axd = exec.Command(os.Args[0], dir, nap)
	axd.Env = append(env, roleKey+"=axd")
	axd.Stderr = t.Output()
	out, err := axd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := axd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fscanf(out, "executor %d\n", &executor); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the grandchildren", func() bool { return running(nap) >= 5 })
	return axd, executor
}

// input is the body of every test handler.
type input struct {
	Text string `ax:"text,optional"`
	N    int    `ax:"n,optional"`
}

func handlers() []plugins.Handler {
	return []plugins.Handler{
		sdk.Handler("noop", "Does nothing.", func(context.Context, sdk.Job, struct{}) (sdk.Outputs, error) { return nil, nil }),
		sdk.Handler("sleep", "Runs the shell line in text until it ends or its context does, and says its process id.", sleep),
		sdk.Handler("print", "Prints n bytes.", func(_ context.Context, job sdk.Job, in input) (sdk.Outputs, error) {
			_, err := io.CopyN(job.Output.Stdout, zeros{}, int64(in.N))
			return nil, err
		}),
		sdk.Handler("lines", "Prints n lines, one each 20 ms.", func(ctx context.Context, job sdk.Job, in input) (sdk.Outputs, error) {
			for i := range in.N {
				_, _ = fmt.Fprintf(job.Output.Stdout, "line %d\n", i)
				select {
				case <-time.After(20 * time.Millisecond):
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
			}
			return nil, nil
		}),
		sdk.Handler("result", "Returns n bytes of output, and an error text as long.", func(_ context.Context, _ sdk.Job, in input) (sdk.Outputs, error) {
			return sdk.Outputs{"big": strings.Repeat("r", in.N)}, nil
		}),
		sdk.Handler("fail", "Fails with n bytes of text.", func(_ context.Context, _ sdk.Job, in input) (sdk.Outputs, error) {
			return nil, fmt.Errorf("%s%s", in.Text, strings.Repeat("\x00\xff", in.N/2))
		}),
		sdk.Handler("panic", "Panics.", func(context.Context, sdk.Job, struct{}) (sdk.Outputs, error) { panic("as asked") }),
		sdk.Handler("stubborn", "Ignores its context for n ms.", func(_ context.Context, _ sdk.Job, in input) (sdk.Outputs, error) {
			<-time.After(time.Duration(in.N) * time.Millisecond)
			return nil, nil
		}),
	}
}

func sleep(ctx context.Context, job sdk.Job, in input) (sdk.Outputs, error) {
	cmd := exec.Command("/bin/sh", "-c", in.Text)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "AX_BATCH_NO=" + job.BatchNo}
	cmd.Stdout = job.Output.Stdout
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintf(job.Output.Stdout, "pid %d\n", os.Getpid())
	defer context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) })()
	return nil, cmd.Wait()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// bench is a host under test with all that it said.
type bench struct {
	*host.Host
	t      testing.TB
	cancel context.CancelFunc
	ended  chan error

	mu      sync.Mutex
	changed chan struct{} // closed, and made anew, when something came
	reports map[string][]ax.Report
	output  map[string][]byte
	notes   map[string]string
	log     strings.Builder
}

// start runs a host with executors of the given roles until the test ends.
func start(t testing.TB, change func(*host.Config), roles ...string) *bench {
	t.Helper()
	b := &bench{
		t: t, ended: make(chan error, 1), changed: make(chan struct{}),
		reports: map[string][]ax.Report{}, output: map[string][]byte{}, notes: map[string]string{},
	}
	cfg := host.Config{
		Dir: t.TempDir(), Host: "h", Boot: "b", Output: b.print,
		Log: slog.New(slog.NewTextHandler(b, nil)),
	}
	for _, role := range roles {
		cfg.Executors = append(cfg.Executors, host.Command{Name: role, Path: os.Args[0], Env: []string{roleKey + "=" + role}})
	}
	if change != nil {
		change(&cfg)
	}
	b.Host = host.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	go func() { b.ended <- b.Run(ctx) }()
	collected := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(collected)
		for {
			select {
			case rs := <-b.Reports():
				b.note(func() {
					for _, r := range rs {
						b.reports[r.BatchNo] = append(b.reports[r.BatchNo], r)
					}
				})
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() {
		b.stop()
		close(stop)
		<-collected
	})
	select {
	case <-b.Ready():
	case <-time.After(30 * time.Second):
		t.Fatal("host is not ready")
	}
	return b
}

// stop ends the host; more than once does nothing.
func (b *bench) stop() {
	b.cancel()
	err := <-b.ended
	b.ended <- err
	if err != nil {
		b.t.Errorf("Run: %v", err)
	}
}

func (b *bench) note(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *bench) print(chunks []host.OutputChunk) {
	b.note(func() {
		for _, c := range chunks {
			if c.Stream == "note" {
				b.notes[c.BatchNo] += string(c.Data)
			} else {
				b.output[c.BatchNo] = append(b.output[c.BatchNo], c.Data...)
			}
		}
	})
}

// Write takes the host's log.
func (b *bench) Write(p []byte) (int, error) {
	b.note(func() { b.log.Write(p) })
	return len(p), nil
}

// until waits for the condition, which is called with the lock held.
func (b *bench) until(what string, cond func() bool) {
	b.t.Helper()
	limit := time.After(30 * time.Second)
	for {
		b.mu.Lock()
		ok, changed := cond(), b.changed
		b.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-time.After(20 * time.Millisecond): // what it looks at may be outside
		case <-limit:
			b.mu.Lock()
			defer b.mu.Unlock()
			b.t.Fatalf("waited in vain for %s\nreports: %+v\nlog:\n%s", what, b.reports, b.log.String())
		}
	}
}

// end waits until the attempt is over and returns its end.
func (b *bench) end(batchNo string) ax.Report {
	b.t.Helper()
	var end ax.Report
	b.until("the end of "+batchNo, func() bool {
		for _, r := range b.reports[batchNo] {
			switch {
			case r.Kind == ax.ReportStopped:
				end.StoppedMs = r.StoppedMs
			case r.Kind != ax.ReportStarted:
				end = r
			}
		}
		return end.StoppedMs != 0
	})
	return end
}

// ofKind returns the reports of a kind that came for the attempt.
func (b *bench) ofKind(batchNo string, kind ax.ReportKind) []ax.Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	var rs []ax.Report
	for _, r := range b.reports[batchNo] {
		if r.Kind == kind {
			rs = append(rs, r)
		}
	}
	return rs
}

// executorPid waits for the line of a sleep handler and returns the process id
// of its executor.
func (b *bench) executorPid(batchNo string) int {
	b.t.Helper()
	pid := 0
	b.until("output of "+batchNo, func() bool {
		_, rest, ok := strings.Cut(string(b.output[batchNo]), "pid ")
		line, _, full := strings.Cut(rest, "\n")
		if ok && full {
			pid, _ = strconv.Atoi(line)
		}
		return pid != 0
	})
	return pid
}

func job(batchNo, handler, body string) ax.Job {
	return ax.Job{
		BatchNo: batchNo, InstanceID: 7, Attempt: 1, Stack: "demo", Task: "task.t", Handler: handler,
		Body: []byte(body), DueMs: 1767225600000, Timezone: "UTC", KillAfter: ax.DurationOf(time.Second),
	}
}

// newNap returns a sleep of half a minute that no other process runs.
func newNap() string { return "sleep 30." + strconv.Itoa(rand.Int()) }

// text is the body of a handler that takes it.
func text(s string) string {
	b, err := json.Marshal(map[string]string{"text": s})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// eventually waits for something outside of this process.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for !cond() {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-limit:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// gone reports whether the process has ended. It may still be a zombie: other
// tests make this process adopt orphans.
func gone(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(b), ") Z ")
}

// running counts the processes whose command line holds the text.
func running(text string) int {
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
