package faktory

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/gateway"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/ops"
)

// Store is what a server needs of one: what a gateway does, and figures and pauses of queues for people.
type Store interface {
	gateway.Store
	ops.Store
}

// Config says how a server works.
type Config struct {
	// Host is the running engine of the same store that engines of workers are beside. Required.
	Host *engine.Engine

	// Client enqueues what is pushed, and its keys open sealed arguments for the workers. Nil is a plain client of
	// the store.
	Client *stint.Client

	// OnEvent receives the events of the workers' engines: see [engine.Config].
	OnEvent func(event.Event)

	// Password is asked of every connection. Empty means none: then a server serves this machine alone.
	Password string

	// Refused are the kinds whose jobs nobody may push, as those that run any command.
	Refused []string

	// TimeToLive is how long a worker may be silent before its jobs run elsewhere. Workers send a heartbeat every
	// 15 seconds. The default is 60 seconds, the minimum 5 seconds.
	TimeToLive time.Duration

	// MaxConns bounds the connections. The default is 2000.
	MaxConns int

	// Version is the version of the program, as INFO tells it.
	Version string

	// OnRefused is called when a connection is refused, for a log, with its address and the reason. It may be nil.
	OnRefused func(from, why string)
}

const (
	defaultTimeToLive = time.Minute
	defaultMaxConns   = 2000
	callTime          = 30 * time.Second // of a command
	iterations        = 2000             // of the hash of the password
	badPassword       = time.Second      // the answer to a wrong one takes that long
)

// ErrClosed is returned by [Server.Serve] after [Server.Shutdown].
var ErrClosed = errors.New("faktory: the server is closed")

// Server has programs that speak the Faktory work protocol take part in a store. Its methods may be called
// concurrently.
type Server struct {
	config  Config
	store   Store
	client  *stint.Client
	gateway *gateway.Gateway
	ops     *ops.Local
	began   time.Time

	commands atomic.Int64
	info     figures

	stopping chan struct{} // closed when nothing more is handed out
	closed   context.Context
	close    context.CancelFunc
	running  sync.WaitGroup // connections, and what they leave behind

	mu        sync.Mutex // guards the rest
	stopped   bool
	listeners map[net.Listener]bool
	conns     map[net.Conn]bool
	sessions  map[string]*session
}

// New returns a server of a store. [Server.Shutdown] ends it.
func New(st Store, c Config) *Server {
	c.TimeToLive = cmp.Or(c.TimeToLive, defaultTimeToLive)
	c.MaxConns = cmp.Or(c.MaxConns, defaultMaxConns)
	s := &Server{
		config: c, store: st, client: c.Client, gateway: gateway.New(st, gateway.Config{Host: c.Host, Client: c.Client, OnEvent: c.OnEvent}),
		ops: newOps(st), began: time.Now(), stopping: make(chan struct{}),
		listeners: map[net.Listener]bool{}, conns: map[net.Conn]bool{}, sessions: map[string]*session{},
	}
	if s.client == nil {
		s.client = stint.NewClient(st)
	}
	s.closed, s.close = context.WithCancel(context.Background())
	return s
}

// Serve accepts connections until [Server.Shutdown], and then returns [ErrClosed]. It closes the listener. Without a password
// it refuses one that other machines reach.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	if at, ok := l.Addr().(*net.TCPAddr); s.config.Password == "" && (!ok || !at.IP.IsLoopback()) {
		return fmt.Errorf("faktory: others can reach %s, and there is no password", l.Addr())
	}
	s.mu.Lock()
	s.listeners[l] = true
	stopped := s.stopped
	s.mu.Unlock()
	for !stopped {
		c, err := l.Accept()
		switch {
		case s.closed.Err() != nil:
			if err == nil {
				c.Close()
			}
			return ErrClosed
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("faktory: %w", err)
		case err != nil: // no file descriptors, perhaps
			sleep(s.closed, 50*time.Millisecond)
		default:
			s.admit(c)
		}
	}
	return ErrClosed
}

// admit serves a connection, unless there are too many.
func (s *Server) admit(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped:
		c.Close()
		return
	case len(s.conns) >= s.config.MaxConns:
		s.refused(c, "there are too many connections")
		c.Close()
		return
	}
	s.conns[c] = true
	s.running.Go(func() {
		defer func() {
			c.Close()
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.conns, c)
		}()
		s.serve(newWire(c))
	})
}

func (s *Server) refused(c net.Conn, why string) {
	if s.config.OnRefused != nil {
		s.config.OnRefused(c.RemoteAddr().String(), why)
	}
}

// Quiet hands out no more jobs: a FETCH finds none. What runs goes on, and its end is recorded.
func (s *Server) Quiet() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isStopping() {
		close(s.stopping)
	}
}

func (s *Server) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// Shutdown hands out no more jobs, waits until workers hold none or ctx ends, and closes all connections. What
// workers still hold runs elsewhere after their time to live.
func (s *Server) Shutdown(ctx context.Context) {
	s.Quiet()
	for !s.holdsNothing() && ctx.Err() == nil {
		sleep(ctx, 50*time.Millisecond)
	}
	s.mu.Lock()
	s.stopped = true
	s.close()
	for l := range s.listeners {
		l.Close()
	}
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
	s.gateway.Close()
}

func (s *Server) holdsNothing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.sessions {
		if !one.holdsNothing() {
			return false
		}
	}
	return true
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
func parseHello(text []byte) (h hello, err error) {
	if err := json.Unmarshal(text, &h); err != nil {
		return h, fmt.Errorf("HELLO needs a JSON object: %w", err)
	}
	switch {
	case h.Version != 2:
		return h, fmt.Errorf("the client speaks version %d of the protocol, and the server 2", h.Version)
	case h.WID != "" && (len(h.WID) > 100 || valid.Name("wid", h.WID) != nil):
		return h, errors.New("the wid is no name of up to 100 bytes")
	}
	h.Hostname, h.PID = valid.CleanText(h.Hostname, valid.MaxName), max(0, h.PID)
	return h, nil
}

// hashOf is the hash that a client sends of the password.
func hashOf(password, salt string, iterations int) string {
	sum := sha256.Sum256([]byte(password + salt))
	for range iterations - 1 {
		sum = sha256.Sum256(sum[:])
	}
	return hex.EncodeToString(sum[:])
}

// greet does the handshake. It returns the session of a worker; nil for a producer.
func (s *Server) greet(w *wire) (*session, error) {
	if err := w.conn.SetDeadline(time.Now().Add(helloTime)); err != nil {
		return nil, err
	}
	hi, salt := `+HI {"v":2}`, ""
	if s.config.Password != "" {
		salt = rand.Text()
		hi = fmt.Sprintf(`+HI {"v":2,"s":%q,"i":%d}`, salt, iterations) // clients split it at the space
	}
	if err := w.write(reply(hi + "\r\n")); err != nil {
		return nil, err
	}
	line, err := readLine(w.r, maxHello)
	if err != nil {
		return nil, err
	}
	verb, text := parseCommand(line)
	if verb != "HELLO" {
		return nil, s.refuse(w, errors.New("say HELLO first"))
	}
	h, err := parseHello(text)
	if err != nil {
		return nil, s.refuse(w, err)
	}
	if want := hashOf(s.config.Password, salt, iterations); salt != "" && subtle.ConstantTimeCompare([]byte(h.Hash), []byte(want)) == 0 {
		sleep(s.closed, badPassword)
		return nil, s.refuse(w, errors.New("the password is wrong"))
	}
	if err := w.conn.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	return s.enter(h), w.write(replyOK)
}

func (s *Server) refuse(w *wire, why error) error {
	s.refused(w.conn, why.Error())
	return errors.Join(why, w.write(failed(why)))
}

// enter adds a connection to the session of its worker.
func (s *Server) enter(h hello) *session {
	if h.WID == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.sessions[h.WID]
	if one == nil {
		one = &session{server: s, wid: h.WID, host: h.Hostname, pid: h.PID, workers: map[string]string{}, jobs: map[string]*held{}}
		s.sessions[h.WID] = one
	}
	one.conns++
	return one
}

// exit takes away a connection. With the last one a worker that holds nothing leaves the roster. One that holds jobs may
// come back within its time to live.
func (s *Server) exit(one *session) {
	if one == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one.conns--
	switch {
	case one.conns > 0:
	case one.holdsNothing():
		delete(s.sessions, one.wid)
		s.running.Go(one.leave)
	default:
		time.AfterFunc(s.config.TimeToLive, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if one.conns == 0 && s.sessions[one.wid] == one {
				delete(s.sessions, one.wid)
			}
		})
	}
}
