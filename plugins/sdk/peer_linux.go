package sdk

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/credentials"
)

// ownUser are transport credentials that accept only peers on a unix socket
// that run as this process's user or as root.
type ownUser struct{}

func (ownUser) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, nil, errors.New("peer is not on a unix socket")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return nil, nil, fmt.Errorf("peer: %w", err)
	}
	var peer *unix.Ucred
	var perr error
	err = raw.Control(func(fd uintptr) {
		peer, perr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, perr); err != nil {
		return nil, nil, fmt.Errorf("peer credentials: %w", err)
	}
	if peer.Uid != 0 && int(peer.Uid) != os.Getuid() {
		return nil, nil, fmt.Errorf("peer runs as user %d", peer.Uid)
	}
	return c, peerInfo{}, nil
}

func (ownUser) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("server only")
}

func (ownUser) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "unix-peer"}
}
func (ownUser) Clone() credentials.TransportCredentials { return ownUser{} }
func (ownUser) OverrideServerName(string) error         { return nil }

// peerInfo says how much the handshake proved.
type peerInfo struct{}

func (peerInfo) AuthType() string { return "unix-peer" }
