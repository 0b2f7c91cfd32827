package sdk

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/axctl/ax/plugins"
	pb "github.com/axctl/ax/plugins/proto"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// Limits of an executor's life.
const (
	firstSession = 30 * time.Second // for the host to open its first session
	handlersEnd  = 2 * time.Second  // for handlers to return when it ends
	childrenEnd  = 3 * time.Second  // for what they left to be gone
)

// maxStderr is the size at which standard error begins anew, where it is a
// file: nobody may be there who keeps it small.
const maxStderr = 4 << 20

func boundStderr() {
	for range time.Tick(5 * time.Second) {
		emptyStderr(maxStderr)
	}
}

// Serve is the executor process of a plugin: it serves the handlers to the
// host that started it and to those that come after it. It exits, with all its
// child processes, on SIGTERM and when no host has come back within the grace
// time. Started by hand it says so and exits. What handlers print to os.Stdout
// and os.Stderr goes to the host's own log, not to an attempt's.
func Serve(name string, handlers ...plugins.Handler) {
	os.Exit(serve(name, handlers))
}

func serve(name string, handlers []plugins.Handler) int {
	secret, home := os.Getenv(pb.SecretKey), os.Getenv(pb.HomeKey)
	for _, key := range []string{pb.SecretKey, pb.HomeKey, pb.DirKey} {
		_ = os.Unsetenv(key) // not for its children
	}
	abandoned := make(chan struct{})
	e, err := NewExecutor(Options{
		Plugin: name, Handlers: handlers, Secret: secret, Abandoned: func() { close(abandoned) },
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := adoptOrphans(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	// A host that died leaves a broken pipe. The signal is caught, not ignored:
	// children inherit ignored signals.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go boundStderr()
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)

	begun := make(chan struct{})
	server := newServer(begun)
	e.Register(server)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-begun:
			select {
			case <-abandoned:
			case <-terminated:
			}
		case <-terminated:
		case <-time.After(firstSession):
		}
		e.end(home)
		server.Stop()
	}()
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion: pb.Version, MagicCookieKey: pb.CookieKey, MagicCookieValue: pb.CookieValue,
		},
		Plugins:    plugin.PluginSet{name: service{}},
		GRPCServer: func([]grpc.ServerOption) *grpc.Server { return server },
		Logger:     hclog.NewNullLogger(),
	})
	<-gone
	if dir := os.Getenv(plugin.EnvUnixSocketDir); dir != "" {
		_ = os.RemoveAll(dir) // made for this process alone; the host may be dead
	}
	return 0
}

// end stops all attempts, leaves no child process, and writes down what no host
// has acknowledged.
func (e *Executor) end(home string) {
	ctx, cancel := context.WithTimeout(context.Background(), handlersEnd)
	defer cancel()
	if err := e.Stop(ctx, ErrHostGone); err != nil {
		fmt.Fprintf(os.Stderr, "executor %s: %v\n", e.opts.Plugin, err)
	}
	left := killChildren(childrenEnd)
	if left > 0 {
		fmt.Fprintf(os.Stderr, "executor %s: %d processes could not be killed\n", e.opts.Plugin, left)
	}
	if home == "" {
		return
	}
	if err := e.writeLastWords(home, left == 0); err != nil {
		fmt.Fprintf(os.Stderr, "executor %s: %v\n", e.opts.Plugin, err)
	}
}

// newServer returns the gRPC server. At the first session, which is after
// go-plugin has put pipes that nobody reads in the place of os.Stdout and
// os.Stderr, both become the process's standard error: its standard output is
// a pipe to a host that may be gone.
func newServer(begun chan struct{}) *grpc.Server {
	stderr := os.Stderr
	var once sync.Once
	first := func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
		once.Do(func() {
			os.Stdout, os.Stderr = stderr, stderr
			standardOutputToError()
			close(begun)
		})
		return h(srv, s)
	}
	return grpc.NewServer(append(ServerOptions(), grpc.Creds(ownUser{}), grpc.ChainStreamInterceptor(first))...)
}

// ServerOptions are those that a server of an Executor needs: its messages are
// larger than gRPC's defaults, and its host asks more often whether it lives
// than gRPC takes for polite.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(pb.MaxMessageBytes),
		grpc.InitialWindowSize(1 << 20),
		grpc.InitialConnWindowSize(1 << 20),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pb.PingInterval / 2, PermitWithoutStream: true}),
	}
}

// service tells go-plugin that the plugin speaks gRPC; the service itself is
// registered already.
type service struct {
	plugin.NetRPCUnsupportedPlugin
}

func (service) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }

func (service) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, fmt.Errorf("an executor is no client")
}
