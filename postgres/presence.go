package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stint-go/stint/store"
)

// presence is a session by which the server knows that an engine's process lives. It
// holds an advisory lock on the engine's token, which the server frees when the
// process ends, however it ends, and when the server itself ends. So nobody need
// fear that the engine is dead while it is only that beats do not arrive:
//
//	the session stands            nobody buries the engine before it was silent for four
//	                              thirds of its longest outage
//	the server is down            nobody does either: nobody's queries work, and when they
//	                              do again, the last beat is one of another start of the
//	                              server
//	the session is lost           beats decide, and the time to live
//
// It hears notifications as well, for all who listen at the engine's store.
//
// A machine that is cut off without a word keeps its session for as long: the server
// is told to wait. Through a pooler there is no such session, and beats decide.
type presence struct {
	store  *Store
	engine store.EngineID
	outage time.Duration // the longest one
	every  time.Duration // how often the session is used while the engine holds jobs

	end   context.CancelFunc
	over  chan struct{} // closed when it has ended
	begun chan struct{} // closed when the first attempt is over

	mu       sync.Mutex
	session  *hearing  // nil while no session stands
	down     bool      // the server said that it goes down, or is not there
	answered time.Time // when the last question that it answered was asked
	busy     bool      // the engine's last beat said that something runs
	use      func()    // has the session be used at once; nil before it stands
}

// hearing passes on what a session hears to those who listen.
type hearing struct {
	ended chan struct{}              // closed when the session has ended
	why   error                      // set before that
	rings map[*func(store.News)]bool // of those who listen
}

var _ store.LivenessLocker = (*Store)(nil)

// Vouches implements [store.LivenessLocker].
func (s *Store) Vouches(engine store.EngineID, beat time.Time) time.Time {
	p, ok := s.presences.Load(engine)
	if !ok {
		return time.Time{}
	}
	return p.(*presence).vouches(beat)
}

// Release implements [store.LivenessLocker].
func (s *Store) Release(engine store.EngineID) {
	if p, ok := s.presences.LoadAndDelete(engine); ok {
		p.(*presence).close()
	}
}

// appear begins an engine's presence, and returns when that was tried once. It reports whether
// there was none yet.
func (s *Store) appear(ctx context.Context, e store.EngineInfo) bool {
	// The session ends with the engine, whatever becomes of the call.
	on, end := context.WithCancel(context.WithoutCancel(ctx))
	p := &presence{
		store: s, engine: e.Token, outage: e.MaxOutage, every: e.TimeToLive / 4,
		end: end, over: make(chan struct{}), begun: make(chan struct{}),
	}
	if _, there := s.presences.LoadOrStore(e.Token, p); there {
		end()
		return false
	}
	go p.run(on)
	select {
	case <-p.begun:
	case <-ctx.Done():
	}
	return true
}

func (p *presence) close() {
	p.end()
	<-p.over
}

func (p *presence) vouches(beat time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == nil && !p.down {
		return time.Time{}
	}
	since := p.answered
	if beat.Before(since) {
		since = beat
	}
	return since.Add(p.outage)
}

// run has the session stand until ctx ends.
func (p *presence) run(ctx context.Context) {
	defer close(p.over)
	var first sync.Once
	tried := func() { first.Do(func() { close(p.begun) }) }
	for ctx.Err() == nil {
		err := p.stand(ctx, tried)
		tried()
		p.lost(err)
		if errors.Is(err, errLent) {
			return
		}
		select {
		case <-time.After(p.every / 4):
		case <-ctx.Done():
		}
	}
}

// stand makes the session and uses it until it ends, and returns why it did.
func (p *presence) stand(ctx context.Context, tried func()) error {
	limit, cancel := context.WithTimeout(ctx, max(p.every, longestDial))
	defer cancel()
	conn, err := p.store.dial(limit, "stint engine")
	if err != nil {
		return err
	}
	defer hangUp(ctx, conn)
	asked := time.Now()
	if err := p.lock(limit, conn); err != nil {
		return err
	}
	if _, err := conn.Exec(limit, "listen "+p.store.sql.schema); err != nil {
		return err
	}
	p.answer(asked)
	tried()
	for {
		if err := p.hear(ctx, conn, asked); err != nil {
			return err
		}
		asked = time.Now()
		ask, cancel := context.WithTimeout(ctx, p.longestSilence())
		err = conn.Ping(ask)
		cancel()
		if err != nil {
			return err
		}
		p.answer(asked)
	}
}

// hear passes on the notifications that come until the session is to be used again. What the server says at
// its end is heard at once, too.
func (p *presence) hear(ctx context.Context, conn *pgx.Conn, asked time.Time) error {
	wait, cancel := p.untilNextUse(ctx, asked)
	defer cancel()
	for {
		n, err := conn.WaitForNotification(wait)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled): // of this wait
			return nil
		case err != nil:
			return err
		}
		p.mu.Lock()
		for ring := range p.session.rings {
			(*ring)(newsOf(n.Payload))
		}
		p.mu.Unlock()
	}
}

// untilNextUse returns a context that ends when the session is to be used, which was used last at the given
// time. While nothing runs an old answer does no harm.
func (p *presence) untilNextUse(ctx context.Context, last time.Time) (context.Context, func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	every := p.every
	if !p.busy {
		every = max(every, min(p.outage/5, keepAlive))
	}
	ctx, p.use = context.WithDeadline(ctx, last.Add(every))
	return ctx, p.use
}

// beaten notes whether something runs, as a beat says.
func (p *presence) beaten(busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if busy && !p.busy && p.use != nil {
		p.use()
	}
	p.busy = busy
}

// listen rings for the notifications that the session hears, as [Store.Listen] does. It reports
// whether it did so until it was over: an engine that leaves takes its session with it.
func (p *presence) listen(ctx context.Context, ring func(store.News)) (bool, error) {
	p.mu.Lock()
	session := p.session
	if session != nil {
		session.rings[&ring] = true
		ring(store.News{})
	}
	p.mu.Unlock()
	if session == nil {
		return false, nil
	}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(session.rings, &ring)
	}()
	select {
	case <-session.ended:
		if !errors.Is(session.why, context.Canceled) {
			return true, listenError(ctx, fmt.Errorf("the engine's session ended: %w", session.why))
		}
		select {
		case <-time.After(afterLeave):
			return false, nil
		case <-ctx.Done():
			return true, nil
		}
	case <-ctx.Done():
		return true, nil
	}
}

// afterLeave is when whoever listened on the session of an engine that left gets a connection of its
// own: most of them leave as well.
const afterLeave = time.Second

// longestDial bounds the making of a session.
const longestDial = 3 * time.Second

// errLocked says that the session before this one stands yet.
var errLocked = errors.New("another session holds the engine's place")

// lock takes the engine's place. The server must not end the session for being idle, nor before
// the engine would give up where nothing of it arrives any more. Settings that a server does not have are
// passed over.
func (p *presence) lock(ctx context.Context, conn *pgx.Conn) error {
	var (
		backend int32
		mine    bool
	)
	silence := p.longestSilence()
	quarter := fmt.Sprint(max(1, int((silence+3*time.Second).Seconds()/4)))
	err := conn.QueryRow(ctx, `
		with settings as materialized (
		  select count(set_config(w.name, w.value, false))
		  from (values ('statement_timeout', '0'), ('idle_session_timeout', '0'), ('tcp_user_timeout', $2),
		               ('tcp_keepalives_idle', $3), ('tcp_keepalives_interval', $3), ('tcp_keepalives_count', '4')) as w(name, value)
		  where pg_backend_pid() = $4 and current_setting(w.name, true) is not null)
		select pg_backend_pid(), case when pg_backend_pid() = $4 then pg_try_advisory_lock(`+placeOf+`) else false end from settings`,
		p.engine, fmt.Sprint(silence.Milliseconds()), quarter, int32(conn.PgConn().PID())).Scan(&backend, &mine)
	switch {
	case err != nil:
		return err
	case isPooled(conn, backend):
		return errLent
	case !mine:
		return errLocked
	}
	return nil
}

// placeOf is the key of the lock on an engine's place, of a token that is the first
// parameter. It is one of two numbers: the fence's is one number, and another lock.
const placeOf = `($1::bigint >> 32)::int, (($1::bigint & 4294967295) - 2147483648)::int`

// longestSilence is for how long the engine must have been silent before it is buried
// although its session stands.
func (p *presence) longestSilence() time.Duration { return longestSilence(p.outage) }

func longestSilence(outage time.Duration) time.Duration { return outage * 4 / 3 }

func (p *presence) answer(asked time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down, p.answered = false, asked; p.session == nil {
		p.session = &hearing{ended: make(chan struct{}), rings: map[*func(store.News)]bool{}}
	}
}

// lost notes why the session ended, or could not be made.
func (p *presence) lost(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != nil {
		p.session.why = err
		close(p.session.ended)
		p.session = nil
	}
	switch {
	case saysDown(err):
		p.down = true
	case isAnswer(err):
		p.down = false
	}
}

// wsaRefused is how Windows says that a connection was refused.
const wsaRefused = syscall.Errno(10061)

// saysDown reports whether an error tells that the server works for nobody: it says so
// itself, or nobody listens where it did, or something that stands before it has nobody to connect to.
func saysDown(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch e.Code {
		case "57P01", "57P02", "57P03": // it is shut down, has crashed, is not up yet
			return true
		}
		return false
	}
	if _, connecting := errors.AsType[*pgconn.ConnectError](err); !connecting {
		return false
	}
	dial, ok := errors.AsType[*net.OpError](err)
	return ok && (errors.Is(dial, syscall.ECONNREFUSED) || errors.Is(dial, wsaRefused) || errors.Is(dial, fs.ErrNotExist)) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// isAnswer reports whether an error shows that the server works.
func isAnswer(err error) bool {
	_, ok := errors.AsType[*pgconn.PgError](err)
	return ok || errors.Is(err, errLocked) || errors.Is(err, errLent)
}
