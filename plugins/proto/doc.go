// Package proto is the wire between a host and its executors, generated from
// ax.proto, which is also its documentation.
package proto

import "time"

// Version is the protocol version.
const Version = 1

// The handshake by which a program knows that a host started it.
const (
	CookieKey   = "AX_PLUGIN"
	CookieValue = "f7b1c0de-ax-executor"
	// SecretKey is the variable that carries the executor's secret, which the
	// host repeats in the session's first message.
	SecretKey = "AX_EXECUTOR_SECRET"
	// HomeKey is the variable that names the executor's own folder, DirKey the
	// one that names the host's.
	HomeKey = "AX_EXECUTOR_HOME"
	DirKey  = "AX_EXECUTOR_DIR"
)

// LastWords is the file in its folder in which an executor that ends leaves
// what no host has acknowledged. It is there, and may be empty, whenever an
// executor has ended by itself; what it does not list was not begun.
const LastWords = "last-words"

// MaxMessageBytes bounds one message. Both sides send at most about 1 MiB, but
// for a single job with a large body.
const MaxMessageBytes = 64 << 20

// A host pings an executor of which it has heard nothing for PingInterval, and
// takes it for hung when no answer came within PingTimeout.
const (
	PingInterval = 10 * time.Second
	PingTimeout  = 20 * time.Second
)

// ChunkEnvelope is what a chunk costs of credit besides its data, in bytes.
const ChunkEnvelope = 128

// Cost is what the chunk costs of credit.
func (x *Chunk) Cost() int { return len(x.GetData()) + ChunkEnvelope }
