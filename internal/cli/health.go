package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/observe/probes"
	"github.com/stint-go/stint/observe/prom"
	"github.com/stint-go/stint/report"
)

const healthHelp = `health: Ask an engine or a dashboard on this machine whether it works

Health asks /healthz at the address where an engine answers, or a dashboard: it exits
with 0 if that is alive, and otherwise with 1 and the reason. With --ready it asks
/readyz: whether it works. It is for containers in which there is no other program to
ask with. Over HTTPS it does not ask.

Examples:
  stint health --health 127.0.0.1:9070
  STINT_HEALTH=:9070 stint health --ready`

func (a *app) healthCommand() *cobra.Command {
	var (
		address string
		ready   bool
	)
	cmd := a.does(page(healthHelp), func(ctx context.Context, _ *cobra.Command, _ []string) error {
		if address == "" {
			return withHint(usagef("there is no address to ask at"), "give the one of stint work --health, or of a dashboard, by --health or STINT_HEALTH")
		}
		return a.askHealth(ctx, address, ready)
	})
	flags := cmd.Flags()
	flags.Var(addresses("9070").in(&address), "health", "where it answers: 127.0.0.1:9070, or :9070 for this machine (default none)")
	elsewhere(flags, workTable, "health")
	flags.BoolVar(&ready, "ready", false, "ask whether it works, and not only whether it is alive")
	return cmd
}

// askHealth prints what a process answers about itself. An address that stands for all of this machine is
// asked at the loopback one.
func (a *app) askHealth(ctx context.Context, address string, ready bool) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	path := "/healthz"
	if ready {
		path = "/readyz"
	}
	ctx, cancel := context.WithTimeout(ctx, healthAnswer)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+path, nil)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Transport: &http.Transport{}}).Do(request) // past any proxy of the environment
	if err != nil {
		return fmt.Errorf("nothing answers at %s: %w", address, innermost(err))
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 16<<10))
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s at %s: %s: %s", path, address, answer.Status, strings.TrimSpace(string(text)))
	}
	fmt.Fprintln(a.out, strings.TrimSpace(string(text)))
	return nil
}

// checkAddress finds an address that can never be listened at. The port is for examples.
func checkAddress(text, example string) error {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Errorf("%q is not an address; write for example 127.0.0.1:%s, or :%[2]s for all interfaces", text, example)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q is not a port from 0 to 65535; write for example %s", port, net.JoinHostPort(host, example))
	} else if n == 0 && port != "0" {
		return fmt.Errorf("%q is not a port", port)
	}
	return nil
}

// Bounds for clients. An answer takes as long as the database may take to answer.
const (
	healthHeaders = 5 * time.Second
	healthAnswer  = 15 * time.Second
	healthIdle    = 30 * time.Second
	healthStop    = 2 * time.Second
)

// serveHealth serves the vitals at the address of --health, also before the database is
// opened. Without an address it returns nil.
func (a *app) serveHealth(address string, log *slog.Logger, v *vitals) (*http.Server, error) {
	if address == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, notServed("health", address, "--health", "9070", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", probes.Handler(v))
	mux.Handle("GET /metrics", v.metrics())
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: healthHeaders, ReadTimeout: healthHeaders, WriteTimeout: healthAnswer, IdleTimeout: healthIdle,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	go func() { _ = server.Serve(l) }() // until it is closed
	log.Info("serving /healthz, /readyz and /metrics", "address", l.Addr().String())
	return server, nil
}

// notServed says why an address cannot be listened at, and what helps. Flag gives the
// address, and port is for an example.
func notServed(what, address, flag, port string, err error) error {
	_, unknown := errors.AsType[*net.DNSError](err)
	hint := "name another address by %s; two engines on one machine need two"
	switch {
	case unknown, errors.Is(err, syscall.EADDRNOTAVAIL):
		hint = "name an address that this machine has by %s: 127.0.0.1:" + port + ", or :" + port + " for all that it has"
	case errors.Is(err, os.ErrPermission):
		hint = "ports below 1024 are for the superuser: name another one by %s"
	}
	return withHint(fmt.Errorf("cannot serve %s at %s: %w", what, address, innermost(err)), hint, flag)
}

// endServer ends a server after the answers that are under way. It accepts nil.
func endServer(s *http.Server, patience time.Duration) {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if s.Shutdown(ctx) != nil {
		_ = s.Close()
	}
}

// vitals are what a process says about itself, at the address of --health and of the
// dashboard: whether its engine lives and works, and metrics.
type vitals struct {
	figures *prometheus.Registry
	engine  atomic.Pointer[engine.Engine] // nil before it is made
}

// newVitals are those of the process, with other collectors.
func newVitals(others ...prometheus.Collector) *vitals {
	v := &vitals{figures: prometheus.NewRegistry()}
	v.figures.MustRegister(prom.BuildInfo(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	v.figures.MustRegister(others...)
	return v
}

// metrics serves the metrics, together with others.
func (v *vitals) metrics(others ...prometheus.Gatherer) http.Handler {
	all := append(prometheus.Gatherers{v.figures}, others...)
	return promhttp.HandlerFor(all, promhttp.HandlerOpts{Timeout: healthAnswer, MaxRequestsInFlight: 4})
}

// watch sets the engine.
func (v *vitals) watch(e *engine.Engine) { v.engine.Store(e) }

// count adds the metrics of an engine.
func (v *vitals) count(e any) error {
	counts, ok := e.(interface{ Metrics() report.Metrics })
	if !ok {
		return nil
	}
	return v.figures.Register(prom.Figures(counts.Metrics))
}

// Alive implements [probes.Engine]. A process that waits for its database is alive.
func (v *vitals) Alive() error {
	if e := v.engine.Load(); e != nil {
		return e.Alive()
	}
	return nil
}

// Ready implements [probes.Engine].
func (v *vitals) Ready(ctx context.Context) error {
	if e := v.engine.Load(); e != nil {
		return e.Ready(ctx)
	}
	return &event.UnreadyError{Condition: event.ConditionDatabase, Problem: "it was not reached yet"}
}
