package cli

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/faktory"
	"github.com/stint-go/stint/gateway"
)

// faktoryPort is that of the protocol.
const faktoryPort = "7419"

// faktoryKey is the password in a file, and faktoryVariable in the environment. There is no flag: other users may see
// command lines.
const (
	faktoryKey      = workTable + ".faktory-password"
	faktoryVariable = "STINT_FAKTORY_PASSWORD"
)

// faktoryServer is a listener of the Faktory work protocol. It listens before the database is opened, and accepts
// connections when it is. Nil is none.
type faktoryServer struct {
	net.Listener
	log     *slog.Logger
	config  faktory.Config
	url     string // the FAKTORY_URL of clients; the password goes between tcp:// and the host, after a colon
	inClear bool   // others can read what is sent
}

// faktoryPassword is the password of connections; empty for none.
func (a *app) faktoryPassword(f *engineFlags) (string, error) {
	password, err := a.secretOf(faktoryVariable, a.admission.faktory)
	if served := f.forFaktory(); err == nil && password == "" && !served.isOff() && !served.isLocal() {
		err = withHint(settingf("faktory", "others can reach %s, and there is no password", f.faktory), "set %s; 127.0.0.1:%s is for this machine alone", faktoryVariable, faktoryPort)
	}
	return password, err
}

func (a *app) listenFaktory(f *engineFlags, log *slog.Logger) (*faktoryServer, error) {
	served := f.forFaktory()
	if served.isOff() {
		return nil, nil
	}
	password, err := a.faktoryPassword(f)
	if err != nil {
		return nil, err
	}
	l, inClear, err := served.listenSecurely("the Faktory work protocol", "--faktory", faktoryPort, log)
	if err != nil {
		return nil, err
	}
	refused := &refusals{log: log}
	return &faktoryServer{l, log, faktory.Config{
		Password: password, Refused: append(builtin.names(), demoHarmful...),
		OnRefused: func(from, why string) {
			if refused.due() {
				log.Warn("a connection of the Faktory work protocol was refused", "why", brief(why), "from", from)
			}
		},
	}, "tcp" + map[bool]string{true: "+tls"}[served.certFile != ""] + "://" + l.Addr().String(), inClear}, nil
}

// serve begins to accept connections, with the engines of workers beside a host. When ctx ends nothing more is handed
// out. What is returned waits until workers hold no job any more, or the grace is over.
func (s *faktoryServer) serve(ctx context.Context, db fullStore, host *engine.Engine, config engine.Config) (stop func()) {
	if s == nil {
		return func() {}
	}
	s.config.Config = gateway.Config{Host: host, Client: config.Client, OnEvent: config.OnEvent}
	server := faktory.New(db, s.config)
	go func() {
		if err := server.Serve(s.Listener); err != nil {
			s.log.Error("the Faktory work protocol is not served any more", "error", err.Error())
		}
	}()
	s.log.Info("serving the Faktory work protocol", "address", s.Addr().String())
	if s.inClear {
		s.log.Warn("the Faktory work protocol is served in clear: others on the way can read jobs; give it a certificate (--dashboard-tls-cert)")
	}
	stop = sync.OnceFunc(func() {
		limit, cancel := context.WithTimeout(context.Background(), max(config.Grace, time.Millisecond))
		defer cancel()
		server.Shutdown(limit)
	})
	context.AfterFunc(ctx, stop)
	return stop
}

func (s *faktoryServer) close() {
	if s != nil {
		_ = s.Close()
	}
}
