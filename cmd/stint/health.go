package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/observe/probes"
	"github.com/stint-go/stint/observe/prom"
)

// healthValue is a flag that reads an address to listen at.
type healthValue string

func (h *healthValue) Set(text string) error {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Errorf("%q is not an address; write for example 127.0.0.1:9070, or :9070 for all interfaces", text)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q is not a port from 0 to 65535; write for example %s", port, net.JoinHostPort(host, "9070"))
	} else if n == 0 && port != "0" {
		return fmt.Errorf("%q is not a port", port)
	}
	*h = healthValue(text)
	return nil
}

func (h *healthValue) Type() string   { return "address" }
func (h *healthValue) String() string { return string(*h) }

// healthServer answers those who ask how the engine is. It is there before the
// database is opened, and goes last. Nil is none.
type healthServer struct {
	server  *http.Server
	figures *prometheus.Registry
	engine  atomic.Pointer[engine.Engine] // nil before there is one
}

// Bounds for whoever asks. An answer takes as long as the database may take to
// answer, and collecting figures.
const (
	healthHeaders = 5 * time.Second
	healthAnswer  = 15 * time.Second
	healthIdle    = 30 * time.Second
	healthStop    = 2 * time.Second
)

// serveHealth listens at the address of --health, if one is given.
func (a *app) serveHealth(address healthValue, log *slog.Logger, events *prom.Events) (*healthServer, error) {
	if address == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", string(address))
	if err != nil {
		return nil, withHint(fmt.Errorf("cannot serve health at %s: %w", address, innermost(err)), "%s", whyNotServed(err))
	}
	h := &healthServer{figures: prometheus.NewRegistry()}
	h.figures.MustRegister(events, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("/", probes.Handler(h))
	mux.Handle("GET /metrics", promhttp.HandlerFor(h.figures, promhttp.HandlerOpts{Timeout: healthAnswer, MaxRequestsInFlight: 4}))
	h.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: healthHeaders, ReadTimeout: healthHeaders, WriteTimeout: healthAnswer, IdleTimeout: healthIdle,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	go func() { _ = h.server.Serve(l) }() // until it is closed
	log.Info("serving /healthz, /readyz and /metrics", "address", l.Addr().String())
	return h, nil
}

// whyNotServed is what helps against an address that cannot be listened at.
func whyNotServed(err error) string {
	_, unknown := errors.AsType[*net.DNSError](err)
	switch {
	case unknown, errors.Is(err, syscall.EADDRNOTAVAIL):
		return "name an address that this machine has: 127.0.0.1:9070, or :9070 for all that it has"
	case errors.Is(err, os.ErrPermission):
		return "ports below 1024 are for the superuser: name another one by --health"
	}
	return "name another address by --health; two engines on one machine need two"
}

// watch says which engine is asked about.
func (h *healthServer) watch(e *engine.Engine) {
	if h != nil {
		h.engine.Store(e)
	}
}

// count adds the figures of an engine that has some.
func (h *healthServer) count(e any) error {
	counts, ok := e.(interface{ Metrics() stint.Metrics })
	if h == nil || !ok {
		return nil
	}
	return h.figures.Register(prom.Figures(counts.Metrics))
}

// Alive implements [probes.Engine]: a process that waits for its database is
// alive.
func (h *healthServer) Alive() error {
	if e := h.engine.Load(); e != nil {
		return e.Alive()
	}
	return nil
}

// Ready implements [probes.Engine].
func (h *healthServer) Ready(ctx context.Context) error {
	if e := h.engine.Load(); e != nil {
		return e.Ready(ctx)
	}
	return &stint.UnreadyError{Condition: stint.ConditionDatabase, Problem: "it was not reached yet"}
}

// close lets answers that are under way end.
func (h *healthServer) close() {
	if h == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), healthStop)
	defer cancel()
	if h.server.Shutdown(ctx) != nil {
		_ = h.server.Close()
	}
}
