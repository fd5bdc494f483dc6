package pgtest

import (
	"context"
	crypto "crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
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

	templates sync.Map       // *Template to func() (string, error)
	sessions  chan *pgx.Conn // of a shared server: what admin used and may use again
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
	s.do("Stop", func() error { return s.halt(mode) })
}

// Start starts a server that was stopped or killed or ended by itself, on the same port and with the same data, and returns when it
// accepts connections. Starting a running server does nothing.
func (s *Server) Start() {
	s.do("Start", s.launch)
}

// Restart is Stop, then Start. It also starts a server that was stopped or killed.
func (s *Server) Restart(mode Mode) {
	s.Stop(mode)
	s.Start()
}

// Kill kills the server as kill -9 would: nothing is written, nobody is told. Its children notice and leave too.
func (s *Server) Kill() {
	s.do("Kill", func() error {
		if s.process == nil {
			return nil
		}
		killed := s.process
		s.process = nil
		return killed.kill()
	})
}

// do carries out a verb and reports what goes wrong.
func (s *Server) do(verb string, act func() error) {
	s.own(verb).Helper()
	s.verb.Lock()
	defer s.verb.Unlock()
	if err := act(); err != nil {
		s.t.Errorf("pgtest: %s: %v", verb, err)
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

// SocketURL returns the address of a database over the server's unix socket, which needs no password.
func (s *Server) SocketURL(database string) string {
	query := url.Values{"host": {s.dir.path}, "port": {strconv.Itoa(s.port)}, "user": {superuser}}
	return "postgres:///" + url.PathEscape(database) + "?" + query.Encode()
}

// open creates a cluster and starts its server.
func open(installation Installation, options Options) (*Server, error) {
	s := &Server{installation: installation, durable: options.Fsync, space: options.Space, password: crypto.Text()}
	s.sessions = make(chan *pgx.Conn, 4)
	return s, s.setUp(func() error { return s.initialise(options) })
}

// setUp makes a run directory, has its data directory filled, and starts the server there. Nothing is left when that
// fails.
func (s *Server) setUp(fill func() error) (err error) {
	if s.dir, err = newRunDir(s.durable); err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("pgtest: %v: %w", s.installation, err), s.close())
		}
	}()
	if s.watchdog, err = newWatchdog(s.dir.path); err != nil {
		return fmt.Errorf("start the watchdog: %w", err)
	}
	if err := writeFile(s.dir.log(), ""); err != nil {
		return err
	}
	if s.space > 0 {
		if err := s.dir.bound(s.space); err != nil {
			return err
		}
	}
	if err := fill(); err != nil {
		return err
	}
	return s.launchFirst()
}

// close stops the server the quickest way and removes all that it had.
func (s *Server) close() error {
	s.verb.Lock()
	defer s.verb.Unlock()
	for len(s.sessions) > 0 {
		(<-s.sessions).Close(context.Background())
	}
	err := s.halt(Immediate)
	releaseSharedMemory(s.dir.pidFile())
	err = errors.Join(err, s.dir.remove())
	if s.watchdog != nil {
		err = errors.Join(err, s.watchdog.dismiss())
	}
	return err
}

// halt stops the server if it runs. The caller holds the verb.
func (s *Server) halt(mode Mode) error {
	if s.process == nil {
		return nil
	}
	if err := s.process.stop(mode); err != nil {
		return fmt.Errorf("stop (%s): %w", mode, err)
	}
	s.process = nil
	return nil
}

// launchFirst starts a new server on a port of its choice. Between the choice and the start somebody else may take the
// port; then it takes another one.
func (s *Server) launchFirst() error {
	for range 10 {
		port, err := freePort()
		if err != nil {
			return err
		}
		s.port = port
		if err = s.attempt(); err == nil {
			return nil
		}
		if !strings.Contains(s.LogTail(0), "Address already in use") {
			return err
		}
	}
	return errors.New("found no port to listen on in ten attempts")
}

// launch starts a server that has run before. Two obstacles pass by themselves: the backends of a killed server need a
// moment to notice and to let go of its memory, and its port may be in use by a connection that is being closed.
func (s *Server) launch() error {
	if s.process != nil && !s.process.ended() {
		return nil
	}
	s.process = nil
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		mark := s.logSize()
		err := s.attempt()
		if err == nil || time.Since(begin) > startLimit {
			return err
		}
		said := s.LogTail(mark)
		if !strings.Contains(said, "still in use") && !strings.Contains(said, "Address already in use") {
			return err
		}
	}
}

func (s *Server) attempt() error {
	mark := s.logSize()
	process, err := startServer(s.installation, s.dir, s.port)
	if err != nil {
		return fmt.Errorf("start: %w\n%s", err, s.LogTail(mark))
	}
	s.process = process
	return nil
}

const superuser = "postgres"

// defaults are the settings of every server. They make it quick to start and to drop and change nothing that a client
// can see: transactions, locks and synchronous commits are those of production.
var defaults = map[string]string{
	"listen_addresses":           "127.0.0.1",
	"unix_socket_permissions":    "0700",
	"max_connections":            "200",
	"max_prepared_transactions":  "64",
	"shared_buffers":             "128MB",
	"timezone":                   "UTC",
	"log_timezone":               "UTC",
	"log_line_prefix":            "%m [%p] %d ",
	"log_checkpoints":            "off",
	"dynamic_shared_memory_type": "mmap", // lies in the data directory, so that a killed server leaves nothing elsewhere
}

// fleeting are the settings of servers whose data need not survive the machine.
var fleeting = map[string]string{
	"fsync":            "off",
	"full_page_writes": "off",
	"max_wal_size":     "256MB", // A checkpoint is cheap here, and the log may lie in memory.
}

// initialise creates the cluster's data directory. Who can open the socket's directory is trusted; over TCP, where
// every user of the machine could come in, a random password is asked for.
func (s *Server) initialise(options Options) error {
	password := filepath.Join(s.dir.path, "password")
	if err := writeFile(password, s.password+"\n"); err != nil {
		return err
	}
	if options.Clock {
		if err := s.dir.setClock(0); err != nil {
			return err
		}
	}
	args := []string{
		"-D", s.dir.data(), "-U", superuser, "--encoding=UTF8", "--locale=C", "--no-sync",
		"--auth-local=trust", "--auth-host=scram-sha-256", "--pwfile=" + password,
	}
	if s.Major() >= 16 {
		// Nobody guesses this password, and thousands of iterations for each connection take tests a tenth of their time.
		args = append(args, "-c", "scram_iterations=1")
	}
	if err := s.run("initdb", args...); err != nil {
		return err
	}
	if err := os.Truncate(s.dir.log(), 0); err != nil { // What initdb says is of interest only when it fails.
		return err
	}
	return appendTo(filepath.Join(s.dir.data(), "postgresql.conf"), configuration(options))
}

// writeFile writes a file that the servers' user owns.
func writeFile(path, text string) error {
	return errors.Join(os.WriteFile(path, []byte(text), 0o600), giveToServer(path))
}

// run runs one of the installation's programs to its end, as the servers' user.
func (s *Server) run(program string, args ...string) error {
	log, err := os.OpenFile(s.dir.log(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer log.Close()
	mark := s.logSize()
	if err := runAsServer(s.installation.program(program), args, s.dir.path, log); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, s.LogTail(mark))
	}
	return nil
}

// configuration returns the lines for postgresql.conf; where a setting occurs twice, the server takes the last one.
func configuration(options Options) string {
	settings := maps.Clone(defaults)
	if !options.Fsync {
		maps.Copy(settings, fleeting)
	}
	maps.Copy(settings, options.Settings)
	var b strings.Builder
	b.WriteString("\n# Settings of pgtest.\n")
	quote := strings.NewReplacer(`'`, `''`, `\`, `\\`)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&b, "%s = '%s'\n", name, quote.Replace(settings[name]))
	}
	return b.String()
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// freePort picks a port at random from below the range that systems take the ports of outgoing connections from.
// A port from that range could be gone while its server is down for a restart.
func freePort() (int, error) {
	var last error
	for range 100 {
		port := 20_000 + rand.IntN(12_000)
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err == nil {
			return port, l.Close()
		}
		last = err
	}
	return 0, fmt.Errorf("find a free port: %w", last)
}

// serverEnv is the environment of servers: ours, without the variables that would make them another server than the
// one that is meant, and in a locale that every machine has.
func serverEnv() []string {
	env := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "PG") || strings.HasPrefix(variable, "LC_") ||
			strings.HasPrefix(variable, "LANG") || strings.HasPrefix(variable, "TZ=")
	})
	return append(env, "LC_ALL=C", "TZ=UTC")
}

// LogTail returns the last lines of what the server has written to its log from an offset on.
func (s *Server) LogTail(from int64) string {
	const limit = 50
	text, err := os.ReadFile(s.dir.log())
	if err != nil {
		return err.Error()
	}
	lines := slices.Collect(strings.Lines(string(text[min(int(from), len(text)):])))
	return strings.Join(lines[max(0, len(lines)-limit):], "")
}

func (s *Server) logSize() int64 {
	info, err := os.Stat(s.dir.log())
	if err != nil {
		return 0 // The server has not started yet.
	}
	return info.Size()
}

func (s *Server) printLogOnFailure(t testing.TB, from int64) {
	t.Helper()
	if tail := s.LogTail(from); t.Failed() && tail != "" {
		t.Logf("the end of the log of %v:\n%s", s.installation, tail)
	}
}
