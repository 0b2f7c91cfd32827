package folder

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/axctl/ax/plugins"
	pb "github.com/axctl/ax/plugins/proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Description is what a plugin says of itself.
type Description struct {
	SHA256  string
	Build   string
	Schemas []plugins.Schema
}

// endWithin is how long a plugin that was asked may take to end.
const endWithin = 2 * time.Second

// ErrMute says that a plugin did not answer until the context ended.
var ErrMute = errors.New("it did not answer in time")

// Describe starts a plugin, asks it for its handlers over the real protocol and
// ends it. When ctx ends before it has answered it is killed (ErrMute). A file that is not the pinned one is not started.
func Describe(ctx context.Context, p Plugin, environ []string) (Description, error) {
	var d Description
	if p.Problem != "" {
		return d, errors.New(p.Problem)
	}
	f, sum, err := Open(p.Path, p.Spec.SHA256)
	if err != nil {
		return d, err
	}
	defer func() { _ = f.Close() }()
	d.SHA256 = sum
	dir, err := os.MkdirTemp("", "ax-describe-")
	if err != nil {
		return d, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	a, err := ask(ctx, p, f, dir, environ)
	if err != nil {
		return d, fmt.Errorf("%s: %w", p.Path, err)
	}
	if a.Protocol != pb.Version {
		return d, fmt.Errorf("%s speaks protocol %d, and this ax speaks %d", p.Path, a.Protocol, pb.Version)
	}
	d.Build = a.Build
	for _, h := range a.Handlers {
		schema, err := plugins.ReadSchema(h.Name, h.Schema)
		if err != nil {
			return d, fmt.Errorf("%s: %w", p.Path, err)
		}
		d.Schemas = append(d.Schemas, schema)
	}
	return d, nil
}

// ask runs the process for one question.
func ask(ctx context.Context, p Plugin, file *os.File, dir string, environ []string) (*pb.DescribeResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, OpenedPath(3))
	cmd.Args, cmd.ExtraFiles = []string{p.Path}, []*os.File{file}
	cmd.Env = append([]string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + dir, "LANG=C.UTF-8", "TMPDIR=" + dir,
		pb.CookieKey + "=" + pb.CookieValue, fmt.Sprintf("PLUGIN_PROTOCOL_VERSIONS=%d", pb.Version), "PLUGIN_UNIX_SOCKET_DIR=" + dir,
	}, p.Environ(environ)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var answered atomic.Bool
	cmd.Cancel = func() error {
		if !answered.Load() { // it is not asked politely who does not answer
			return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		return cmd.Process.Signal(syscall.SIGTERM)
	}
	cmd.WaitDelay = endWithin
	var said tail
	cmd.Stderr = &said
	out, outW := io.Pipe()
	cmd.Stdout = outW
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	address := make(chan string, 1)
	go func() {
		if a, ok := handshake(out); ok {
			address <- a
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left in its session's first group
		_ = outW.Close()
		ended <- err
	}()
	var answer *pb.DescribeResponse
	var err error
	select {
	case a := <-address:
		answer, err = describe(ctx, a)
		answered.Store(err == nil)
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("%w: it made its handshake and no more", ErrMute)
		}
		cancel()
		<-ended
	case err = <-ended:
		if err = fmt.Errorf("it ended before its handshake (%s)", exitText(err)); ctx.Err() != nil {
			err = ErrMute
		}
	case <-ctx.Done():
		<-ended
		err = ErrMute
	}
	if text := said.text(); err != nil && text != "" {
		err = fmt.Errorf("%w; it said: %s", err, text)
	}
	return answer, err
}

func exitText(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// handshake finds go-plugin's line (core version, version, network, address,
// protocol), whatever is before it.
func handshake(out io.Reader) (address string, ok bool) {
	r := bufio.NewReaderSize(out, 4096)
	for {
		line, _, err := r.ReadLine()
		if err != nil {
			return "", false
		}
		if parts := strings.Split(string(line), "|"); len(parts) >= 5 && parts[0] == "1" && parts[2] == "unix" {
			return parts[3], true
		}
	}
}

func describe(ctx context.Context, socket string) (*pb.DescribeResponse, error) {
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(pb.MaxMessageBytes)))
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close() }()
	answer, err := pb.NewExecutorClient(conn).Describe(ctx, &pb.DescribeRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return nil, fmt.Errorf("describe: %w", err)
	}
	return answer, nil
}

// tail keeps the end of what a process says.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const maxTail = 512

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if over := len(t.b) - maxTail; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(b), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.b), "\uFFFD"))
}
