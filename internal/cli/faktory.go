package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/faktory"
)

// faktoryPort is that of the protocol.
const faktoryPort = "7419"

// faktoryKey is the password in a file, and faktoryVariable in the environment. There is no flag: other users may see
// command lines.
const (
	faktoryKey      = workTable + ".faktory-password"
	faktoryVariable = "STINT_FAKTORY_PASSWORD"
)

// faktoryPassword is the password of connections that speak the Faktory work protocol; empty for none.
func (a *app) faktoryPassword() (string, error) {
	password := a.env(faktoryVariable)
	if password == "" {
		return a.admission.faktory, nil
	}
	if err := checkFaktoryPassword(password); err != nil {
		return "", usagef("%s in the environment: %w", faktoryVariable, err)
	}
	return password, nil
}

func checkFaktoryPassword(password string) error {
	if n := len([]rune(password)); n < leastPassword {
		return withHint(fmt.Errorf("it has %d characters; at least %d are needed", n, leastPassword), "openssl rand -hex 16 makes a good one")
	}
	return nil
}

// checkFaktory finds mistakes in the settings of the Faktory work protocol.
func (a *app) checkFaktory(f *engineFlags) error {
	if f.faktory == "" {
		return nil
	}
	password, err := a.faktoryPassword()
	if err != nil {
		return err
	}
	if host, _, _ := net.SplitHostPort(f.faktory); password == "" && !isLoopback(host) {
		return withHint(settingf("faktory", "others can reach %s, and there is no password", f.faktory), "set %s; 127.0.0.1:%s is for this machine alone", faktoryVariable, faktoryPort)
	}
	_, err = f.board.certificates()
	return err
}

// faktoryServer is a listener of the Faktory work protocol. It listens before the database is opened, and accepts
// connections when it is. Nil is none.
type faktoryServer struct {
	net.Listener
	log    *slog.Logger
	config faktory.Config
	tls    bool
}

func (a *app) listenFaktory(f *engineFlags, log *slog.Logger) (*faktoryServer, error) {
	if f.faktory == "" {
		return nil, nil
	}
	password, err := a.faktoryPassword()
	if err != nil {
		return nil, err
	}
	pair, err := f.board.certificates()
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", f.faktory)
	if err != nil {
		return nil, notServed("the Faktory work protocol", f.faktory, "--faktory", faktoryPort, err)
	}
	if pair != nil {
		pair.log = log
		l = tls.NewListener(l, &tls.Config{GetCertificate: pair.get, MinVersion: tls.VersionTLS12})
	}
	refused := &refusals{log: log}
	return &faktoryServer{l, log, faktory.Config{
		Password: password, Refused: append(builtin.names(), demoHarmful...), Version: version(),
		OnRefused: func(from, why string) {
			if refused.due() {
				log.Warn("a connection of the Faktory work protocol was refused", "why", brief(why), "from", from)
			}
		},
	}, pair != nil}, nil
}

// url is what clients are given as FAKTORY_URL; the password goes between tcp:// and the host, after a colon.
func (s *faktoryServer) url() string {
	if s.tls {
		return "tcp+tls://" + s.Addr().String()
	}
	return "tcp://" + s.Addr().String()
}

// serve begins to accept connections, with the engines of workers beside a host. When ctx ends nothing more is handed
// out. What is returned waits until workers hold no job any more, or the grace is over.
func (s *faktoryServer) serve(ctx context.Context, db fullStore, host *engine.Engine, config engine.Config) (stop func()) {
	if s == nil {
		return func() {}
	}
	s.config.Host, s.config.Client, s.config.OnEvent = host, config.Client, config.OnEvent
	server := faktory.New(db, s.config)
	go func() {
		if err := server.Serve(s.Listener); !errors.Is(err, faktory.ErrClosed) {
			s.log.Error("the Faktory work protocol is not served any more", "error", err.Error())
		}
	}()
	s.log.Info("serving the Faktory work protocol", "address", s.Addr().String())
	if host, _, _ := net.SplitHostPort(s.Addr().String()); !s.tls && !isLoopback(host) {
		s.log.Warn("the Faktory work protocol is served in clear: others on the way can read jobs; give it a certificate (--dashboard-tls-cert)")
	}
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		limit, cancel := context.WithTimeout(context.Background(), max(config.Grace, time.Millisecond))
		defer cancel()
		server.Shutdown(limit)
	}()
	return func() {
		cancel()
		<-stopped
	}
}

func (s *faktoryServer) close() {
	if s != nil {
		_ = s.Close()
	}
}
