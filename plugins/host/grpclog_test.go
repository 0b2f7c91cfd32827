package host

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
)

// What gRPC says is a record as all others are, and only its errors are one.
func TestGRPCLogsInOurFormat(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	g := grpcLogger(slog.New(slog.NewJSONHandler(&out, nil)))
	g.Info("all is well")
	g.Warningln("nearly well")
	g.Errorf("[transport] closed: %s", "EOF\nand more")
	var record struct{ Msg, Component, Text string }
	if err := json.Unmarshal(out.Bytes(), &record); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	if record.Msg != "gRPC reports a fault" || record.Component != "host" || !strings.HasSuffix(record.Text, "[transport] closed: EOF\nand more") {
		t.Errorf("got %+v", record)
	}
}
