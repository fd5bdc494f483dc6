package cli

import (
	"cmp"
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

	closing context.Context // ends when live pages, and waits for the end of a job, are to end
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
	d.config.Log, d.config.Guard.OnRefused = log, (&refusals{log: log}).on
	d.server = &http.Server{
		Handler: d, ReadHeaderTimeout: dashboardHeaders, WriteTimeout: dashboardAnswer, IdleTimeout: dashboardIdle,
		MaxHeaderBytes: 32 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), Protocols: new(http.Protocols),
	}
	// With HTTP/2 an event stream would end at the time that its last write had.
	d.server.Protocols.SetHTTP1(true)
	d.server.RegisterOnShutdown(end)
	go func() { _ = d.server.Serve(l) }() // until it is closed
	return d, nil
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
	pair.log = log
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
		http.Error(w, "the database was not reached yet", http.StatusServiceUnavailable)
		return
	case changes && d.readOnly != "":
		why := "nothing can be changed here: " + d.readOnly
		d.config.Guard.OnRefused(r, guard.Identity{}, http.StatusForbidden, why)
		http.Error(w, why, http.StatusForbidden)
		return
	case path == "/events", r.URL.Query().Has("wait"):
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(d.closing, cancel)()
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

// certificates are read from files, and read again when these change: renewing them
// needs no restart.
type certificates struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex // guards the rest
	looked  time.Time  // when the files were checked for changes
	changed time.Time  // as the files said when they were read last
	now     *tls.Certificate
}

// lookAgain is how often the files are checked, at most.
const lookAgain = 10 * time.Second

// certificates reads those of the settings; nil without any.
func (f *dashboardFlags) certificates() (*certificates, error) {
	if f.certFile == "" {
		if f.keyFile != "" {
			return nil, settingf(f.flag("tls-key"), "there is no certificate to the key: name it by --%s", f.flag("tls-cert"))
		}
		return nil, nil
	}
	c := &certificates{certFile: f.certFile, keyFile: cmp.Or(f.keyFile, f.certFile), log: slog.Default()}
	if err := c.read(); err != nil {
		return nil, settingf(f.flag("tls-cert"), "%s", err.Error())
	}
	return c, nil
}

func (c *certificates) read() error {
	changed, err := c.lastChange()
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.now, c.changed = &pair, changed
	return nil
}

func (c *certificates) lastChange() (last time.Time, err error) {
	for _, name := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return last, err
		}
		if info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last, nil
}

// get returns the certificate for a connection. Files that cannot be read, or do not fit
// together while they are being replaced, leave the last one.
func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < lookAgain {
		return c.now, nil
	}
	c.looked = time.Now()
	changed, err := c.lastChange()
	if err == nil && !changed.Equal(c.changed) {
		err = c.read()
	}
	if err != nil {
		c.log.Warn("the new certificate cannot be read; the last one is still used", "error", fmt.Sprint(err))
	}
	return c.now, nil
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
