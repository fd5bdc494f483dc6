package cli

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stint-go/stint/dashboard"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/gateway"
	"github.com/stint-go/stint/observe/probes"
	"github.com/stint-go/stint/observe/prom"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/store"
)

// dashboardServer serves a dashboard. It listens before the database is opened, and
// until then answers probes only. Nil is none.
type dashboardServer struct {
	config dashboard.Config
	vitals *vitals
	server *http.Server
	board  atomic.Pointer[dashboard.Dashboard] // nil before there is a database

	readOnly string // why nothing can be changed here; empty if it can
	url      string // where people find it
	fresh    string // the secret of its link; empty if the settings have one, or there is none
	address  net.Addr
	inClear  bool // others can read what is sent

	closing context.Context      // ends when live pages, and waits for the end of a job, are to end
	live    atomic.Pointer[span] // of those that are open
}

// span is a part of the time that a server serves.
type span struct {
	context.Context
	end func()
}

// Bounds for clients. A form takes at most half a minute, and live pages set the
// deadlines of their writes themselves.
const (
	dashboardHeaders = 10 * time.Second
	dashboardBody    = time.Minute // to send it
	dashboardAnswer  = 2 * time.Minute
	dashboardIdle    = 2 * time.Minute
	dashboardStop    = 10 * time.Second
)

// newSecret makes a secret of more than 128 bits.
func newSecret() string { return rand.Text() }

// listenDashboard listens at the address of the settings; nil if that is off. The vitals
// answer what is asked about the process.
func (a *app) listenDashboard(f *dashboardFlags, v *vitals, log *slog.Logger) (*dashboardServer, error) {
	if f.isOff() {
		return nil, nil
	}
	config, fresh, err := a.dashboardConfig(f)
	if err != nil {
		return nil, err
	}
	what := "the " + map[bool]string{false: "dashboard", true: "gateway"}[f.gateway]
	l, inClear, err := f.listenSecurely(what, "--"+f.flag("address"), strconv.Itoa(dashboardPort), log)
	if err != nil {
		return nil, err
	}
	d := &dashboardServer{
		config: config, vitals: v, fresh: fresh, url: f.url(l.Addr()),
		address: l.Addr(), inClear: inClear,
	}
	if f.readOnly {
		d.readOnly = "the dashboard is read-only"
	}
	closing, end := context.WithCancel(context.Background())
	d.closing = closing
	d.endLive()
	d.config.Log, d.config.Guard.OnRefused = log, (&refusals{log: log}).on
	d.server = &http.Server{
		Handler: d, ReadHeaderTimeout: dashboardHeaders, WriteTimeout: dashboardAnswer, IdleTimeout: dashboardIdle,
		MaxHeaderBytes: 32 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), Protocols: new(http.Protocols),
	}
	// With HTTP/2 an event stream would end at the time that its last write had.
	d.server.Protocols.SetHTTP1(true)
	d.server.RegisterOnShutdown(end)
	go func() { _ = d.server.Serve(l) }() // until it is closed

	// What a pipe said is gone.
	if info, err := os.Stat(a.config); err == nil && info.Mode().IsRegular() {
		go d.watchSettings(a, f)
	}
	return d, nil
}

// endLive ends live pages and waits that are open. Whoever may see them opens them again.
func (d *dashboardServer) endLive() {
	ctx, end := context.WithCancel(d.closing)
	if old := d.live.Swap(&span{ctx, end}); old != nil {
		old.end()
	}
}

// watchSettings lets in whom the file of settings names, also when that changes, until the server closes. The
// rest of the file holds from the start of the process on.
func (d *dashboardServer) watchSettings(a *app, f *dashboardFlags) {
	file := &files{names: []string{a.config}, changed: a.admission.changed, log: d.config.Log,
		failed: "the changed file of settings cannot be read; who may use the " + d.what() + " stays as it was",
		read:   func() error { return d.admitAgain(a, f) }}
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if d.board.Load() != nil {
				file.look()
			}
		case <-d.closing.Done():
			return
		}
	}
}

// admitAgain reads from the file of settings who may use the server.
func (d *dashboardServer) admitAgain(a *app, f *dashboardFlags) error {
	file, err := readFile(a.config)
	if err != nil {
		return err
	}
	g, fresh, err := a.admit(f, &file.admission)
	if err != nil {
		return err
	}
	if fresh != "" {
		g.Link = d.fresh // which people have, and none that nobody knows
	}
	if d.readOnly != "" {
		g = viewersOnly(g)
	}
	g.OnRefused = d.config.Guard.OnRefused
	if err := d.board.Load().Admit(g); err != nil {
		return err
	}
	d.endLive()
	d.config.Log.Info("the file of settings was read again for who may use the "+d.what(), "tokens", len(g.Tokens), "users", len(g.Users))
	return nil
}

// listenSecurely listens at the address, with the certificates of the settings if there are any. It reports whether
// others can read what is sent.
func (f *dashboardFlags) listenSecurely(what, flag, port string, log *slog.Logger) (l net.Listener, inClear bool, err error) {
	pair, err := f.certificates()
	if err != nil {
		return nil, false, err
	}
	if l, err = f.listen(); err != nil {
		return nil, false, notServed(what, f.address, flag, port, err)
	}
	if pair == nil {
		host, _, _ := net.SplitHostPort(f.address)
		return l, !isLoopback(host), nil
	}
	pair.files.log = log
	return tls.NewListener(l, &tls.Config{GetCertificate: pair.get, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}), false, nil
}

// listen listens at the address, or, if that is the default, at the next free port.
func (f *dashboardFlags) listen() (net.Listener, error) {
	l, err := net.Listen("tcp", f.address)
	for port := dashboardPort + 1; f.anyPort && errors.Is(err, syscall.EADDRINUSE) && port < dashboardPort+dashboardPorts; port++ {
		l, err = net.Listen("tcp", net.JoinHostPort(dashboardHost, strconv.Itoa(port)))
	}
	if err != nil {
		return nil, err
	}
	if at, ok := l.Addr().(*net.TCPAddr); f.isLocal() && (!ok || !at.IP.IsLoopback()) {
		return nil, errors.Join(fmt.Errorf("others can reach %s", l.Addr()), l.Close()) // whatever localhost means here
	}
	return l, nil
}

// url is the address that people open.
func (f *dashboardFlags) url(at net.Addr) string {
	scheme, host := "http", at.String()
	if f.certFile != "" {
		scheme = "https"
	}
	if named, _, _ := net.SplitHostPort(f.address); !isLoopback(named) {
		_, port, _ := net.SplitHostPort(host)
		host = net.JoinHostPort(named, port)
		if len(f.hosts) > 0 {
			if host = f.hosts[0]; !strings.Contains(host, ":") {
				host = net.JoinHostPort(host, port)
			}
		}
	}
	return scheme + "://" + host + strings.TrimSuffix(f.path, "/") + "/"
}

// link is the address to open, with the secret if the settings do not have it.
func (d *dashboardServer) link() string {
	if d.fresh == "" {
		return d.url
	}
	return d.url + "?token=" + d.fresh
}

// open begins to serve a database. Health answers probes from now on; nil asks whether
// the database answers. The metrics are those of the process and of the store.
func (d *dashboardServer) open(db fullStore, health probes.Engine, workers *gateway.Gateway) error {
	if d == nil {
		return nil
	}
	if s, ok := db.(*postgres.Store); ok && d.readOnly == "" {
		d.readOnlyAs(s)
	}
	c := d.config
	c.API.Bury = func(ctx context.Context, e store.EngineID, why string) (int, error) {
		return engine.Bury(ctx, db, e, why)
	}
	c.API.Workers = workers
	waiting := prometheus.NewRegistry()
	waiting.MustRegister(prom.Store(db))
	c.Metrics, c.Health = d.vitals.metrics(waiting), health
	board, err := dashboard.New(db, c)
	if err != nil {
		return err
	}
	d.board.Store(board)
	c.Log.Info("serving the "+d.what(), "address", d.address.String())
	if d.inClear {
		c.Log.Warn("the " + d.what() + " is served in clear: others on the way can read passwords and tokens; give it a certificate, or a proxy that has one")
	}
	return nil
}

// readOnlyAs lets nothing be changed if the login at the database may only read.
func (d *dashboardServer) readOnlyAs(s *postgres.Store) {
	ctx, cancel := context.WithTimeout(context.Background(), explainTime)
	defer cancel()
	if only, err := s.OnlyReads(ctx); err != nil || !only {
		return // what fails on the way fails again, with an answer of its own
	}
	d.readOnly = "the login by which the " + d.what() + " uses the database may only read"
	if d.config.LinkKey = ""; d.fresh != "" {
		d.config.Guard.Link, d.fresh = "", ""
	}
	d.config.Guard = viewersOnly(d.config.Guard)
	d.config.Log.Warn("the login at the database may only read: the " + d.what() + " refuses every change until it is started again with a login that may write, such as a member of stint_engine")
}

// what is what it serves.
func (d *dashboardServer) what() string {
	if d.config.WorkersOnly {
		return "gateway"
	}
	return "dashboard"
}

// ServeHTTP serves the dashboard, or probes only before the database is open.
func (d *dashboardServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	board := d.board.Load()
	changes := r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions
	switch path := strings.TrimPrefix(r.URL.Path, strings.TrimSuffix(d.config.Path, "/")); {
	case board == nil && (path == "/healthz" || path == "/readyz"):
		http.StripPrefix(strings.TrimSuffix(d.config.Path, "/"), probes.Handler(d.vitals)).ServeHTTP(w, r)
		return
	case board == nil:
		w.Header().Set("Retry-After", "5")
		guard.Refuse(w, r, http.StatusServiceUnavailable, "the database was not reached yet")
		return
	case changes && d.readOnly != "":
		why := "nothing can be changed here: " + d.readOnly
		d.config.Guard.OnRefused(r, guard.Identity{}, http.StatusForbidden, why)
		guard.Refuse(w, r, http.StatusForbidden, why)
		return
	case path == "/events", r.URL.Query().Has("wait"):
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(d.live.Load(), cancel)()
		r = r.WithContext(ctx)
	case changes:
		// Not for all requests: the server goes on reading while a handler works,
		// and takes the end of that wait for the end of the client.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(dashboardBody))
	}
	board.ServeHTTP(w, r)
}

// close ends live pages and waits for jobs at once, and lets other answers finish.
func (d *dashboardServer) close() {
	if d != nil {
		endServer(d.server, dashboardStop)
	}
}

// refusals logs requests that the dashboard refused: a few lines in each period, and the
// number of the others.
type refusals struct {
	log *slog.Logger

	mu     sync.Mutex // guards the rest
	since  time.Time  // when the period began
	logged int
	others int
}

const (
	refusalsFor  = 10 * time.Second
	refusalsMost = 10
	refusalsText = 200 // characters of what a client has written
)

// on logs a request that was refused.
func (l *refusals) on(r *http.Request, who guard.Identity, status int, why string) {
	if !l.due() {
		return
	}
	// Without the query, which may hold a secret.
	l.log.Warn("the dashboard refused a request", "status", status, "why", brief(why), "method", brief(r.Method),
		"path", brief(r.URL.Path), "from", r.RemoteAddr, "who", brief(who.Name))
}

// due reports whether to log a refusal now. The others are counted.
func (l *refusals) due() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.since) >= refusalsFor {
		l.since, l.logged = now, 0
	}
	if l.logged < refusalsMost {
		l.logged++
		return true
	}
	if l.others++; l.others == 1 {
		time.AfterFunc(refusalsFor-now.Sub(l.since), l.rest)
	}
	return false
}

func (l *refusals) rest() {
	l.mu.Lock()
	n := l.others
	l.others = 0
	l.mu.Unlock()
	l.log.Warn("the dashboard refused more requests, which are not logged one by one", "count", n)
}

// brief is the beginning of a text that a client has written, in one line.
func brief(text string) string {
	if runes := []rune(text); len(runes) > refusalsText {
		text = string(runes[:refusalsText]) + "…"
	}
	return oneLine(text)
}
