package host

import (
	"bytes"
	"io"
	"log/slog"

	"google.golang.org/grpc/grpclog"
)

// LogGRPC makes gRPC tell its errors to log, which it writes on stderr else.
// What it tells beside them is dropped. gRPC has one logger a process, without
// a lock: call this once in main, before a host runs.
func LogGRPC(log *slog.Logger) { grpclog.SetLoggerV2(grpcLogger(log)) }

func grpcLogger(log *slog.Logger) grpclog.LoggerV2 {
	return grpclog.NewLoggerV2(io.Discard, io.Discard, lines{log})
}

// lines makes a record of each write, which is one line of gRPC's.
type lines struct{ log *slog.Logger }

func (l lines) Write(line []byte) (int, error) {
	l.log.Warn("gRPC reports a fault", "component", "host", "text", string(bytes.TrimSpace(line)))
	return len(line), nil
}
