// Package proto is the wire between a host and its executors, generated from
// ax.proto, which is also its documentation.
package proto

// Version is the protocol version. A host speaks to executors of this version
// and of the one before.
const Version = 1
