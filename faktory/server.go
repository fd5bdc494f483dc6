package faktory

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/gateway"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

// Store is what a server needs of one: what a gateway does, and counts of jobs.
type Store interface {
	gateway.Store
	Queues(context.Context) ([]store.QueueInfo, error)
}

// Config says how a server works.
type Config struct {
	// The client of the gateway also enqueues what is pushed.
	gateway.Config

	// Password is asked of every connection. Empty means none: then a server serves this machine alone.
	Password string

	// Refused are the kinds whose jobs nobody may push, as those that run any command.
	Refused []string

	// TimeToLive is how long a worker may be silent before its jobs run elsewhere. Workers send a heartbeat every
	// 15 seconds. The default is 60 seconds, the minimum 5 seconds.
	TimeToLive time.Duration

	// MaxConns bounds the connections. The default is 2000.
	MaxConns int

	// OnRefused is called when a connection is refused, for a log, with its address and the reason. It may be nil.
	OnRefused func(from, why string)
}

const (
	iterations  = 2000        // of the hash of the password
	badPassword = time.Second // the answer to a wrong one takes that long
)

// Server has programs that speak the Faktory work protocol take part in a store. Its methods may be called
// concurrently.
type Server struct {
	config   Config
	store    Store
	client   *stint.Client
	gateway  *gateway.Gateway
	stopping atomic.Bool // nothing more is handed out
	began    time.Time
	commands atomic.Int64

	closed  context.Context
	close   context.CancelFunc // with mu held
	running sync.WaitGroup     // connections, and what they leave behind

	mu       sync.Mutex // guards the rest
	conns    int
	sessions map[string]*session
}

// New returns a server of a store. [Server.Shutdown] ends it.
func New(st Store, c Config) *Server {
	c.TimeToLive, c.MaxConns = cmp.Or(c.TimeToLive, time.Minute), cmp.Or(c.MaxConns, 2000)
	if c.OnRefused == nil {
		c.OnRefused = func(string, string) {}
	}
	s := &Server{config: c, store: st, client: cmp.Or(c.Client, stint.NewClient(st)), gateway: gateway.New(st, c.Config), began: time.Now(), sessions: map[string]*session{}}
	s.closed, s.close = context.WithCancel(context.Background())
	return s
}

// Serve accepts connections until [Server.Shutdown], and closes the listener. Without a password it refuses one that other
// machines reach.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	if at, ok := l.Addr().(*net.TCPAddr); s.config.Password == "" && (!ok || !at.IP.IsLoopback()) {
		return fmt.Errorf("faktory: others can reach %s, and there is no password", l.Addr())
	}
	defer context.AfterFunc(s.closed, func() { l.Close() })()
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			s.admit(c)
		case s.closed.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("faktory: %w", err)
		default: // no file descriptors, perhaps
			sleep(s.closed, 50*time.Millisecond)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// admit serves a connection, unless there are too many.
func (s *Server) admit(to net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	full := s.conns >= s.config.MaxConns
	if full {
		s.config.OnRefused(to.RemoteAddr().String(), "there are too many connections")
	}
	if full || s.closed.Err() != nil {
		to.Close()
		return
	}
	s.conns++
	s.running.Go(func() {
		defer context.AfterFunc(s.closed, func() { to.Close() })()
		(&conn{Server: s, Conn: to, r: bufio.NewReader(to)}).serve()
		// Who sees the end of a connection may make another one.
		s.mu.Lock()
		s.conns--
		s.mu.Unlock()
		to.Close()
	})
}

// Shutdown hands out no more jobs, waits until workers hold none or ctx ends, and closes all connections. What
// workers still hold runs elsewhere after their time to live.
func (s *Server) Shutdown(ctx context.Context) {
	s.stopping.Store(true)
	for len(s.gateway.Running()) > 0 && ctx.Err() == nil {
		sleep(ctx, 50*time.Millisecond)
	}
	s.mu.Lock()
	s.close()
	s.mu.Unlock()
	s.running.Wait()
	s.gateway.Close()
}

// hello is what a connection says first.
type hello struct {
	Hostname string `json:"hostname"`
	WID      string `json:"wid"` // empty for producers
	PID      int    `json:"pid"`
	Version  int    `json:"v"`
	Hash     string `json:"pwdhash"`
}

// parseHello reads the argument of HELLO.
func parseHello(text []byte) (hello, error) {
	h, err := argument[hello](text)
	switch {
	case err != nil:
	case h.Version != 2:
		err = fmt.Errorf("the client speaks version %d of the protocol, and the server 2", h.Version)
	case h.WID != "" && (len(h.WID) > 100 || valid.Name("wid", h.WID) != nil):
		err = errors.New("the wid is no name of up to 100 bytes")
	}
	h.Hostname, h.PID = valid.CleanText(h.Hostname, valid.MaxName), max(0, h.PID)
	return h, err
}

// hashOf is the hash that a client sends of the password.
func hashOf(password, salt string, iterations int) string {
	sum := sha256.Sum256([]byte(password + salt))
	for range iterations - 1 {
		sum = sha256.Sum256(sum[:])
	}
	return hex.EncodeToString(sum[:])
}

// greet does the handshake.
func (c *conn) greet() (h hello, err error) {
	_ = c.SetReadDeadline(time.Now().Add(helloTime))
	hi, salt := `+HI {"v":2}`, ""
	if c.config.Password != "" {
		salt = rand.Text()
		hi = fmt.Sprintf(`+HI {"v":2,"s":%q,"i":%d}`, salt, iterations) // clients split it at the space
	}
	if err := c.send(hi + "\r\n"); err != nil {
		return h, err
	}
	line, err := readLine(c.r, maxHello)
	if err != nil {
		return h, err
	}
	verb, arg := parseCommand(line)
	if h, err = parseHello(arg); verb != "HELLO" {
		err = errors.New("say HELLO first")
	}
	want := hashOf(c.config.Password, salt, iterations)
	if err == nil && salt != "" && subtle.ConstantTimeCompare([]byte(h.Hash), []byte(want)) == 0 {
		sleep(c.closed, badPassword)
		err = errors.New("the password is wrong")
	}
	if err != nil {
		c.config.OnRefused(c.RemoteAddr().String(), err.Error())
	}
	return h, errors.Join(err, c.answer(nil, err), c.SetReadDeadline(time.Time{}))
}

// enter adds a connection to the session of its worker.
func (s *Server) enter(h hello) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.sessions[h.WID]
	if one == nil {
		one = &session{hello: h, server: s, jobs: map[string]*held{}}
		s.sessions[h.WID] = one
	}
	one.conns++
	return one
}

// exit takes away a connection. With the last one a worker that holds nothing leaves the roster. One that holds jobs may
// come back within its time to live.
func (s *Server) exit(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.conns--; one.conns > 0 {
		return
	}
	s.running.Go(func() {
		idle := one.holdsNothing()
		if !idle {
			sleep(s.closed, s.config.TimeToLive)
		}
		s.mu.Lock()
		gone := one.conns == 0 && s.sessions[one.WID] == one
		if gone {
			delete(s.sessions, one.WID)
		}
		s.mu.Unlock()
		if worker := one.ofGateway(); gone && idle && worker != "" {
			ctx, cancel := context.WithTimeout(context.Background(), callTime)
			defer cancel()
			_ = s.gateway.Leave(ctx, worker) // otherwise it is buried
		}
	})
}
