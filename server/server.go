// Package server answers HTTP for axd: /healthz and /metrics. It owns no state
// and starts nothing by itself. The API and the console join it here.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Health says whether axd does its work. It is what /healthz answers, with 200
// when OK and 503 otherwise.
type Health struct {
	OK bool `json:"ok"`
	// Problem is one line for an operator; with OK it is one that passes.
	Problem string `json:"problem,omitempty"`
	Host    string `json:"host"`
	Version string `json:"version"`
	// UptimeMs is how long this axd has been running, LagMs how late the
	// oldest slot is that is due and not claimed.
	UptimeMs int64 `json:"uptime_ms"`
	LagMs    int64 `json:"lag_ms"`
	Running  int   `json:"running"` // attempts at work on this host
	Waiting  int   `json:"waiting"` // instances that wait for a place
	// Quarantined are executors that are not started for now, after a crash
	// loop, with the reason.
	Quarantined map[string]string `json:"quarantined,omitempty"`
}

// Config is what a Server needs. All fields are required.
type Config struct {
	Listener net.Listener
	Health   func() Health
	Gatherer prometheus.Gatherer
	Log      *slog.Logger
}

// Server serves one listener.
type Server struct {
	cfg  Config
	http *http.Server
}

// CheckAddress refuses to listen anywhere but on loopback: off it axd needs TLS
// and a token, which this version does not have.
func CheckAddress(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listen address %q: %w", addr, err)
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("listen address %q is not on loopback: that needs TLS and a token, which this version does not have; use 127.0.0.1:PORT", addr)
}

// New makes a Server; Run serves.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.health)
	mux.Handle("GET /metrics", promhttp.HandlerFor(cfg.Gatherer, promhttp.HandlerOpts{}))
	s.http = &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
	}
	return s
}

// Run serves until ctx ends, then gives open requests two seconds.
func (s *Server) Run(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(s.cfg.Listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve http: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := s.http.Shutdown(grace); err != nil {
		_ = s.http.Close()
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve http: %w", err)
	}
	return nil
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	h := s.cfg.Health()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !h.OK {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if err := json.NewEncoder(w).Encode(h); err != nil {
		s.cfg.Log.Debug("answer", "error", err)
	}
}
