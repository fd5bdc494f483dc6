package pgtest

import (
	"errors"
	"net/url"
	"strconv"
	"sync"
	"testing"
)

// Options says what a private server shall be like. The zero value is a server of the newest version found, made for
// tests that need a server of their own and no particular settings.
type Options struct {
	// Major is the major version wanted; 0 takes the newest one found.
	Major int

	// Fsync makes the server write through to a disk as in production; measurements need it. Without it a commit
	// survives a killed server but not a power failure, which no test can tell apart, everything is much faster, and
	// the data may lie in memory. With it they lie in the temporary directory, which must be on the disk that counts.
	Fsync bool

	// Space is how many bytes the server has for its data, in memory, until [Server.Fill] takes them. 0 bounds
	// nothing. The test is skipped where no such file system can be mounted: that takes Linux and root.
	Space int64

	// Clock lets [Server.SetClock] set the server's clock. The test is skipped where libfaketime is not installed.
	Clock bool

	// Settings go into postgresql.conf and win over the defaults of this package.
	Settings map[string]string
}

// Mode is how a server shall stop, as in pg_ctl.
type Mode string

// The ways to stop a server.
const (
	Smart     Mode = "smart"     // waits until all clients have gone by themselves
	Fast      Mode = "fast"      // rolls back, disconnects the clients and writes a checkpoint
	Immediate Mode = "immediate" // drops everything; the next start recovers from the log
)

// Server is one running cluster. Its methods may be called from any goroutine. The verbs Stop, Start, Restart and Kill
// are carried out one after the other, report trouble with t.Errorf, and exist for private servers only.
type Server struct {
	installation Installation
	durable      bool  // the data are to survive the machine
	space        int64 // Options.Space
	dir          *runDir
	watchdog     *watchdog
	password     string
	t            testing.TB // nil for a shared server

	// verb is held for the whole of a verb, waiting included: two of them at once would make no sense.
	verb    sync.Mutex
	port    int // fixed once the server has started for the first time
	process *serverProcess

	templates sync.Map // *Template to func() (string, error)
}

// Start starts a private server and stops it when the test ends. If the test fails, it prints the end of the
// server's log.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	if _, found := fakeTime(); options.Clock && !found {
		t.Skip("libfaketime is not installed: make faketime does that on Debian")
	}
	s, err := open(Require(t, options.Major), options)
	if errors.Is(err, errNoSpace) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.until(t)
	return s
}

// until makes the server one of a test, at whose end it stops.
func (s *Server) until(t testing.TB) {
	s.t = t
	t.Cleanup(func() {
		s.printLogOnFailure(t, 0)
		if err := s.close(); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
}

// Open starts a private server for a program that is no test. Close stops it. The verbs are for tests and panic.
func Open(options Options) (*Server, error) {
	installation, err := Find(options.Major)
	if err != nil {
		return nil, err
	}
	return open(installation, options)
}

// Close stops a server that [Open] started, and removes all that it had.
func (s *Server) Close() error { return s.close() }

// Stop stops the server and returns when it has gone. Stopping a stopped server does nothing.
func (s *Server) Stop(mode Mode) {
	s.own("Stop").Helper()
	s.verb.Lock()
	defer s.verb.Unlock()
	if err := s.halt(mode); err != nil {
		s.t.Errorf("pgtest: %v", err)
	}
}

// Start starts a server that was stopped or killed or ended by itself, on the same port and with the same data, and returns when it
// accepts connections. Starting a running server does nothing.
func (s *Server) Start() {
	s.own("Start").Helper()
	s.verb.Lock()
	defer s.verb.Unlock()
	if err := s.launch(); err != nil {
		s.t.Errorf("pgtest: %v", err)
	}
}

// Restart is Stop, then Start. It also starts a server that was stopped or killed.
func (s *Server) Restart(mode Mode) {
	s.own("Restart").Helper()
	s.Stop(mode)
	s.Start()
}

// Kill kills the server as kill -9 would: nothing is written, nobody is told. Its children notice and leave too.
func (s *Server) Kill() {
	s.own("Kill").Helper()
	s.verb.Lock()
	defer s.verb.Unlock()
	if s.process == nil {
		return
	}
	err := s.process.kill()
	s.process = nil
	if err != nil {
		s.t.Errorf("pgtest: kill: %v", err)
	}
}

// own returns the test that the server belongs to. To disturb a server that other tests share is a mistake in the test.
func (s *Server) own(verb string) testing.TB {
	if s.t == nil {
		panic("pgtest: " + verb + " on a shared server: use pgtest.Start to have one of your own")
	}
	return s.t
}

// Major returns the major version of the server.
func (s *Server) Major() int { return s.installation.Major }

// DataDir returns the data directory, which only the servers' user can read.
func (s *Server) DataDir() string { return s.dir.data() }

// URL returns the address of a database over TCP, as programs reach a server in production. The user is a superuser.
func (s *Server) URL(database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, s.password),
		Host:     s.Addr(),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Addr returns host and port of the server, for a proxy to put itself in front of.
func (s *Server) Addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// SocketURL returns the address of a database over the server's unix socket, which needs no password. Where servers have
// no unix socket, it is the same as URL.
func (s *Server) SocketURL(database string) string {
	if !hasUnixSockets {
		return s.URL(database)
	}
	query := url.Values{"host": {s.host()}, "port": {strconv.Itoa(s.port)}, "user": {superuser}}
	return "postgres:///" + url.PathEscape(database) + "?" + query.Encode()
}

// host is what those on this machine reach the server by: its socket, where there are sockets.
func (s *Server) host() string {
	if hasUnixSockets {
		return s.dir.path
	}
	return "127.0.0.1"
}
