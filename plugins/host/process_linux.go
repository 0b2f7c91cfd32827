package host

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/axctl/ax/plugins/folder"
	pb "github.com/axctl/ax/plugins/proto"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"golang.org/x/sys/unix"
)

// process is one executor process, from before its start, or from when it was
// found again, until all that was in its session is gone. To go-plugin it is the
// runner that it starts and reads the handshake from; standard output is read
// here, because it may say anything at any time, and standard error is a file.
type process struct {
	x     *executor
	cmd   Command // as it was started; a found one has none
	rec   record
	child bool     // this host has started it
	env   []string // from go-plugin

	handle atomic.Pointer[handle] // nil: not started
	line   *io.PipeReader         // carries the handshake line to go-plugin
	lineW  *io.PipeWriter
	state  string // how it ended; set before done is closed, as are the next two
	// session clears what is left of it: left, which cannot be killed. Its number
	// is nobody else's as long as it has members.
	session clearing
	left    []stat
	done    chan struct{} // closed when it is gone and its session was cleared
	closed  chan struct{} // closed when it is left to the next host
	ended   atomic.Bool   // was asked to end
	killed  atomic.Bool   // had to be killed
}

var _ runner.Runner = (*process)(nil)

// newProcess makes one that is to be started, with a folder of its own.
func newProcess(x *executor, cmd Command, sum string) (*process, error) {
	home, err := os.MkdirTemp(x.host.cfg.Dir, homePrefix+cmd.Name+"-")
	if err != nil {
		return nil, fmt.Errorf("folder of executor: %w", err)
	}
	p := &process{
		x: x, cmd: cmd, child: true, done: make(chan struct{}), closed: make(chan struct{}),
		rec: record{
			Name: cmd.Name, Kernel: kernelBoot(), Secret: rand.Text(), SHA256: sum, Path: cmd.Path, Setup: cmd.setup(), home: home,
		},
	}
	p.line, p.lineW = io.Pipe()
	return p, nil
}

// foundProcess is one that an earlier host has started, or nil when it is gone.
func foundProcess(x *executor, r record) *process {
	if r.Kernel != kernelBoot() {
		return nil
	}
	h, err := openHandle(r.PID, r.Start)
	if err != nil {
		return nil
	}
	if h.exited() {
		h.close()
		return nil
	}
	p := &process{x: x, rec: r, done: make(chan struct{}), closed: make(chan struct{})}
	p.handle.Store(h)
	go p.wait()
	go p.readStderr()
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
			p.env, p.rec.SocketDir = cmd.Env, dir
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
	path := p.cmd.Path
	if p.cmd.Own {
		path = ownProgram
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	stderr, err := os.OpenFile(p.stderrPath(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = stderr.Close() }()
	outR, outW, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = outW.Close() }()

	env := append([]string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=" + homeDir(), "LANG=C.UTF-8", "TMPDIR=" + p.rec.SocketDir,
		pb.SecretKey + "=" + p.rec.Secret, pb.DirKey + "=" + p.x.host.cfg.Dir, pb.HomeKey + "=" + p.rec.home,
	}, p.env...)
	files := []*os.File{null, outW, stderr}
	if pin := p.cmd.SHA256; pin != "" && !p.cmd.Own {
		// What is started is the file whose sum is right, whatever is put in its
		// place meanwhile.
		f, _, err := folder.Open(path, pin)
		if err != nil {
			_ = outR.Close()
			close(p.done)
			return err
		}
		defer func() { _ = f.Close() }()
		path, files = folder.OpenedPath(len(files)), append(files, f)
	}
	proc, err := os.StartProcess(path, append([]string{p.cmd.Path}, p.cmd.Args...), &os.ProcAttr{
		Env:   append(env, p.cmd.Env...),
		Files: files,
		Sys:   &syscall.SysProcAttr{Setsid: true}, // it is to outlive this host
	})
	if err != nil {
		_ = outR.Close()
		close(p.done)
		return err
	}
	pid := proc.Pid
	_ = proc.Release()
	h, err := openHandle(pid, 0)
	if err != nil {
		_ = unix.Kill(pid, unix.SIGKILL) // a child that nobody has waited for
		_, _ = unix.Wait4(pid, nil, 0, nil)
		_ = outR.Close()
		close(p.done)
		return err
	}
	p.rec.PID, p.rec.Start = h.pid, h.start
	p.handle.Store(h)
	if p.ended.Load() { // meanwhile, by a host that is ending
		p.terminate()
	}
	go func() {
		p.readStdout(outR)
		p.over()
		_ = p.lineW.Close() // what go-plugin does now is about a process that is gone or left
	}()
	go p.readStderr()
	go func() {
		p.wait()
		_ = outR.SetReadDeadline(time.Now().Add(time.Second)) // held by what detached itself
	}()
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
func (p *process) wait() {
	h := p.handle.Load()
	if !h.wait() {
		close(p.closed)
		return
	}
	p.session = clearing{
		leader: h.pid, start: h.start, batches: p.x.host.batches(p), dir: p.x.host.cfg.Dir, spared: p.x.host.living, kill: p.x.host.kill,
	}
	p.x.host.clear(p)
	var status unix.WaitStatus
	p.state = "process ended"
	if pid, err := unix.Wait4(h.pid, &status, unix.WNOHANG, nil); err == nil && pid == h.pid {
		p.state = stateText(status)
	}
	h.close()
	close(p.done)
}

func stateText(s unix.WaitStatus) string {
	switch {
	case s.Signaled() && s.CoreDump():
		return "signal: " + s.Signal().String() + " (core dumped)"
	case s.Signaled():
		return "signal: " + s.Signal().String()
	default:
		return "exit status " + strconv.Itoa(s.ExitStatus())
	}
}

// leave lets go of the process: it is the next host's.
func (p *process) leave() {
	if h := p.handle.Load(); h != nil {
		h.close()
		p.over()
	}
}

// readStdout finds the handshake line, whatever is before it, and passes over
// all that comes after.
func (p *process) readStdout(f *os.File) {
	defer func() { _ = f.Close() }()
	go func() {
		select {
		case <-p.closed: // left while it lives
			_ = f.SetReadDeadline(time.Now())
		case <-p.done:
		}
	}()
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

func (p *process) stderrPath() string { return filepath.Join(p.rec.home, stderrName) }

// Standard error is looked at this often, and begun anew when it is so large.
const (
	stderrEvery = 250 * time.Millisecond
	maxStderr   = 1 << 20
)

// readStderr logs what the process says, as long as it lives here.
func (p *process) readStderr() {
	f, err := os.OpenFile(p.stderrPath(), os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	if !p.child {
		_, _ = f.Seek(0, io.SeekEnd) // the host before has told that
	}
	ticker := time.NewTicker(stderrEvery)
	defer ticker.Stop()
	for last := false; !last; {
		select {
		case <-ticker.C:
		case <-p.done:
			last = true
		case <-p.closed:
			return
		}
		at, _ := f.Seek(0, io.SeekCurrent)
		info, err := f.Stat()
		if err != nil {
			return
		}
		if info.Size() < at {
			_, _ = f.Seek(0, io.SeekStart) // it was begun anew
		} else if info.Size() == at {
			continue
		}
		p.lines(f, func(line []byte) {
			p.x.host.cfg.Log.Info("executor stderr", "executor", p.rec.Name, "line", string(line))
		})
		if info.Size() > maxStderr {
			_ = f.Truncate(0)
		}
	}
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

// signal sends to the process, and never to another one.
func (p *process) signal(sig syscall.Signal) {
	if h := p.handle.Load(); h != nil {
		h.signal(sig)
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

func (p *process) started() bool { return p.handle.Load() != nil }

// pid returns the process's id, 0 before it is started.
func (p *process) pid() int {
	if h := p.handle.Load(); h != nil {
		return h.pid
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

// stderrTail returns the last of what the process said.
func (p *process) stderrTail() string {
	b, err := os.ReadFile(p.stderrPath())
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(b[max(0, len(b)-maxStderrTail):]), "\uFFFD")
}

const maxStderrTail = 2048

// The rest of runner.Runner. Wait returns when the process is gone; the
// process's own standard error is not go-plugin's to read.

// Wait implements runner.Runner.
func (p *process) Wait(context.Context) error { p.over(); return nil }

// over waits until the process is gone or left.
func (p *process) over() {
	select {
	case <-p.done:
	case <-p.closed:
	}
}

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
