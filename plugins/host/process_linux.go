package host

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	pb "github.com/axctl/ax/plugins/proto"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"golang.org/x/sys/unix"
)

// launcher starts processes from one OS thread. The kernel sends the
// parent-death signal when the thread that forked ends, so that thread must
// live as long as the host.
type launcher struct{ start chan func() }

func (l launcher) run(ctx context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		select {
		case f := <-l.start:
			f()
		case <-ctx.Done():
			return
		}
	}
}

// process is one executor process, from before its start until all that was in
// its session is gone. To go-plugin it is the runner that it starts and reads
// the handshake from; standard output and error are read here, because they
// may say anything at any time.
type process struct {
	x      *executor
	secret string
	dir    string // of its socket and temporary files; made by go-plugin
	env    []string

	proc   atomic.Pointer[os.Process] // nil: not started
	line   *io.PipeReader             // carries the handshake line to go-plugin
	lineW  *io.PipeWriter
	stderr tailBuffer
	state  string        // how it ended; set before done is closed
	done   chan struct{} // closed when it and its session are gone
	ended  atomic.Bool   // was asked to end
	killed atomic.Bool   // had to be killed
}

var _ runner.Runner = (*process)(nil)

func newProcess(x *executor, secret string) *process {
	p := &process{x: x, secret: secret, done: make(chan struct{})}
	p.line, p.lineW = io.Pipe()
	return p
}

// maxSocketDir is the longest folder in which go-plugin's own folder and
// socket names still make a socket path of less than 108 bytes.
const maxSocketDir = 60

// handshake starts the process and returns the path of its socket.
func (p *process) handshake(timeout time.Duration) (string, error) {
	base := p.x.host.cfg.Dir
	if len(base) > maxSocketDir {
		base = os.TempDir()
	}
	c := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion: pb.Version, MagicCookieKey: pb.CookieKey, MagicCookieValue: pb.CookieValue,
		},
		Plugins:          plugin.PluginSet{p.x.cmd.Name: &plugin.NetRPCUnsupportedPlugin{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, dir string) (runner.Runner, error) {
			p.env, p.dir = cmd.Env, dir
			return p, nil
		},
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: base},
		SkipHostEnv:      true,
		StartTimeout:     timeout,
		Logger:           hclog.NewNullLogger(),
	})
	began := time.Now()
	addr, err := c.Start()
	switch {
	case err == nil && addr.Network() == "unix":
		return addr.String(), nil
	case err == nil:
		return "", fmt.Errorf("handshake: socket is %s, not unix", addr.Network())
	case !p.started():
		return "", fmt.Errorf("start: %w", err)
	}
	// Where go-plugin only says what it did not find, what happened to the
	// process says more.
	switch {
	case !p.killed.Load():
		<-p.done
		return "", fmt.Errorf("%s before its handshake", p.state)
	case time.Since(began) >= timeout:
		return "", fmt.Errorf("no handshake within %s", timeout)
	default:
		return "", fmt.Errorf("handshake: %w", err)
	}
}

// Start implements runner.Runner.
func (p *process) Start(context.Context) error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	outR, outW, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = outW.Close() }()
	errR, errW, err := os.Pipe()
	if err != nil {
		_ = outR.Close()
		return err
	}
	defer func() { _ = errW.Close() }()

	env := append([]string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=" + homeDir(), "LANG=C.UTF-8", "TMPDIR=" + p.dir,
		pb.SecretKey + "=" + p.secret, dirKey + "=" + p.x.host.cfg.Dir,
	}, p.env...)
	attr := &os.ProcAttr{
		Env:   append(env, p.x.cmd.Env...),
		Files: []*os.File{null, outW, errW},
		// TERM rather than KILL, so that it can kill its own children.
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM},
	}
	started := make(chan error)
	p.x.host.launcher.start <- func() {
		proc, err := os.StartProcess(p.x.cmd.Path, append([]string{p.x.cmd.Path}, p.x.cmd.Args...), attr)
		if err == nil {
			p.proc.Store(proc)
		}
		started <- err
	}
	if err := <-started; err != nil {
		_, _ = outR.Close(), errR.Close()
		close(p.done)
		return err
	}
	if p.ended.Load() { // meanwhile, by a host that is ending
		p.terminate()
	}
	var readers sync.WaitGroup
	readers.Go(func() { p.readStdout(outR) })
	readers.Go(func() { p.readStderr(errR) })
	go p.wait(&readers, outR, errR)
	return nil
}

func homeDir() string {
	if home, err := os.UserHomeDir(); err == nil {
		return home
	}
	return "/"
}

// wait sees the process exit, clears its session, and only then reaps it: as
// long as it is a zombie its pid, and so its session's id, is nobody else's.
func (p *process) wait(readers *sync.WaitGroup, pipes ...*os.File) {
	for {
		err := unix.Waitid(unix.P_PID, p.pid(), nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	left := clearSession(p.pid(), p.x.host.batches(p.x))
	if left > 0 {
		p.x.host.cfg.Log.Error("processes of an executor could not be killed", "executor", p.x.cmd.Name, "processes", left)
	}
	state, err := p.proc.Load().Wait()
	p.state = "process ended: " + fmt.Sprint(err)
	if err == nil {
		p.state = state.String()
	}
	for _, f := range pipes {
		_ = f.SetReadDeadline(time.Now().Add(time.Second)) // held by what detached itself
	}
	readers.Wait()
	close(p.done)
	_ = p.lineW.Close() // after done: what go-plugin does now is about a dead process
}

// readStdout finds the handshake line, whatever is before it, and passes over
// all that comes after.
func (p *process) readStdout(f *os.File) {
	defer func() { _ = f.Close() }()
	found := false
	p.lines(f, func(line []byte) {
		if !found && isHandshake(line) {
			found = true
			_, _ = p.lineW.Write(append(line, '\n'))
			return
		}
		p.x.host.cfg.Log.Debug("executor stdout", "executor", p.x.cmd.Name, "line", string(line))
	})
}

// isHandshake recognises go-plugin's line: core version, version, network,
// address, protocol.
func isHandshake(line []byte) bool {
	parts := strings.Split(string(line), "|")
	if len(parts) < 5 {
		return false
	}
	_, err1 := strconv.Atoi(parts[0])
	_, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (parts[2] == "unix" || parts[2] == "tcp")
}

func (p *process) readStderr(f *os.File) {
	defer func() { _ = f.Close() }()
	p.lines(f, func(line []byte) {
		p.stderr.add(line)
		p.x.host.cfg.Log.Info("executor stderr", "executor", p.x.cmd.Name, "line", string(line))
	})
}

// lines calls fn for each line, long ones in pieces of 4 KiB.
func (p *process) lines(f *os.File, fn func([]byte)) {
	r := bufio.NewReaderSize(f, 4096)
	for {
		line, _, err := r.ReadLine()
		if err != nil {
			return
		}
		fn(bytes.ToValidUTF8(line, []byte("\uFFFD")))
	}
}

// terminate asks the process to end.
func (p *process) terminate() {
	p.ended.Store(true)
	p.signal(unix.SIGTERM)
}

// signal sends to the process while it is surely ours.
func (p *process) signal(sig syscall.Signal) {
	if proc := p.proc.Load(); proc != nil {
		_ = proc.Signal(sig)
	}
}

// end waits until the process is gone, killing it when it takes longer than
// limit. Its connection must be closed.
func (p *process) end(limit time.Duration) {
	if !p.started() {
		return
	}
	p.terminate()
	select {
	case <-p.done:
	case <-time.After(limit):
		p.killed.Store(true)
		p.signal(unix.SIGKILL)
		<-p.done
	}
}

func (p *process) started() bool { return p.proc.Load() != nil }

// pid returns the process's id, 0 before it is started.
func (p *process) pid() int {
	if proc := p.proc.Load(); proc != nil {
		return proc.Pid
	}
	return 0
}

func (p *process) exitText() string {
	switch {
	case !p.started():
		return "process did not start"
	case p.killed.Load():
		return p.state + " (killed: it did not end by itself)"
	default:
		return p.state
	}
}

func (p *process) stderrTail() string { return p.stderr.text() }

// cleanUp removes the process's folder.
func (p *process) cleanUp() {
	if p.dir != "" {
		_ = os.RemoveAll(p.dir)
	}
}

// The rest of runner.Runner. Wait returns when the process is gone; the
// process's own standard error is not go-plugin's to read.

// Wait implements runner.Runner.
func (p *process) Wait(context.Context) error { <-p.done; return nil }

// Kill implements runner.Runner. It is called when the start has failed: the
// process has exited, or its time was over.
func (p *process) Kill(context.Context) error {
	select {
	case <-p.done:
	default:
		p.killed.Store(true)
		p.signal(unix.SIGKILL)
	}
	return nil
}

// Stdout implements runner.Runner.
func (p *process) Stdout() io.ReadCloser { return p.line }

// Stderr implements runner.Runner.
func (p *process) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Name implements runner.Runner.
func (p *process) Name() string { return p.x.cmd.Name }

// ID implements runner.Runner.
func (p *process) ID() string { return strconv.Itoa(p.pid()) }

// Diagnose implements runner.Runner.
func (p *process) Diagnose(context.Context) string { return "" }

// PluginToHost implements runner.Runner.
func (p *process) PluginToHost(network, addr string) (string, string, error) {
	return network, addr, nil
}

// HostToPlugin implements runner.Runner.
func (p *process) HostToPlugin(network, addr string) (string, string, error) {
	return network, addr, nil
}

// tailBuffer keeps the last lines of standard error for the log of a crash.
type tailBuffer struct {
	mu sync.Mutex
	b  []byte
}

const maxStderrTail = 2048

func (t *tailBuffer) add(line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(append(t.b, line...), '\n')
	if over := len(t.b) - maxStderrTail; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
}

func (t *tailBuffer) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.b), "\uFFFD")
}
