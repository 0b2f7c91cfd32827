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

// Limits of an executor's life without a host.
const (
	firstSession = 30 * time.Second // for the host to open its session
	handlersEnd  = 2 * time.Second  // for handlers to return once the host is gone
	childrenEnd  = 3 * time.Second  // for what they left to be gone
)

// Serve is the executor process of a plugin: it serves the handlers to the
// host that started it and exits, with all its child processes, when that is
// gone. Started by hand it says so and exits. What handlers print to
// os.Stdout and os.Stderr goes to the host's own log, not to an attempt's.
func Serve(name string, handlers ...plugins.Handler) {
	os.Exit(serve(name, handlers))
}

func serve(name string, handlers []plugins.Handler) int {
	secret := os.Getenv(pb.SecretKey)
	_ = os.Unsetenv(pb.SecretKey)
	ended := make(chan struct{}, 1)
	e, err := NewExecutor(Options{
		Plugin: name, Handlers: handlers, Secret: secret,
		SessionEnded: func() {
			select {
			case ended <- struct{}{}:
			default:
			}
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := adoptOrphans(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	// A host that died leaves a broken pipe on standard error. The signal is
	// caught, not ignored: children inherit ignored signals.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
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
			case <-ended:
			case <-terminated:
			}
		case <-terminated:
		case <-time.After(firstSession):
		}
		e.end()
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

// end stops all attempts and leaves no child process.
func (e *Executor) end() {
	ctx, cancel := context.WithTimeout(context.Background(), handlersEnd)
	defer cancel()
	if err := e.Stop(ctx, ErrHostGone); err != nil {
		fmt.Fprintf(os.Stderr, "executor %s: %v\n", e.opts.Plugin, err)
	}
	if left := killChildren(childrenEnd); left > 0 {
		fmt.Fprintf(os.Stderr, "executor %s: %d processes could not be killed\n", e.opts.Plugin, left)
	}
}

// newServer returns the gRPC server. At the first session, which is after
// go-plugin has put pipes that nobody reads in the place of os.Stdout and
// os.Stderr, both become the process's standard error.
func newServer(begun chan struct{}) *grpc.Server {
	stderr := os.Stderr
	var once sync.Once
	first := func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
		once.Do(func() {
			os.Stdout, os.Stderr = stderr, stderr
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
