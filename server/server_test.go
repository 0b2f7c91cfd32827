package server

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestCheckAddress(t *testing.T) {
	t.Parallel()
	for addr, ok := range map[string]bool{
		"127.0.0.1:7420": true, "[::1]:0": true, "localhost:7420": true, "127.8.9.1:1": true,
		"0.0.0.0:7420": false, ":7420": false, "10.0.0.1:7420": false, "[::]:7420": false, "example.org:80": false, "7420": false,
	} {
		if err := CheckAddress(addr); (err == nil) != ok {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestServes(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "ax_test_things_total"}, func() float64 { return 3 }))
	health := Health{OK: true, Host: "h1", Version: "v", Running: 2}
	s := New(Config{
		Listener: l, Gatherer: reg, Log: slog.New(slog.DiscardHandler),
		Health: func() Health { return health },
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()

	get := func(path string) (int, string) {
		t.Helper()
		r, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		return r.StatusCode, string(b)
	}
	code, body := get("/healthz")
	var h Health
	if err := json.Unmarshal([]byte(body), &h); err != nil || code != 200 || !reflect.DeepEqual(h, health) {
		t.Errorf("healthz: %d %s (%v)", code, body, err)
	}
	health = Health{Problem: "store unavailable"}
	if code, body := get("/healthz"); code != 503 || !strings.Contains(body, "store unavailable") {
		t.Errorf("unhealthy: %d %s", code, body)
	}
	if code, body := get("/metrics"); code != 200 || !strings.Contains(body, "ax_test_things_total 3") {
		t.Errorf("metrics: %d %s", code, body)
	}
	if code, _ := get("/nothing"); code != 404 {
		t.Errorf("unknown path: %d", code)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("stop: %v", err)
	}
}
