//go:build unix

package chaos

import (
	"bufio"
	"errors"
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy stands between clients and a server, and does to their connections
// what networks do. It understands as much of the protocol as it takes to do
// that at a certain message:
//
//	client ── wire ──▶ hook ──▶ stalls ──▶ weather ──▶ server
//	       ◀── weather ◀── rings, mute ◀── stalls ◀──
//
// Give each process a proxy of its own, and what is done to it is known.
type Proxy struct {
	listener net.Listener
	upstream atomic.Pointer[string]
	stalls   stalls
	hook     atomic.Pointer[func(Message) Fate]
	weather  atomic.Pointer[Weather]
	deaf     atomic.Uint64 // of a million notifications so many are lost
	all      sync.WaitGroup

	mu     sync.Mutex
	links  map[*link]bool
	closed bool
}

// Direction is one of the two of a connection, or both.
type Direction int

// The directions.
const (
	Up   Direction = 1 << iota // to the server
	Down                       // to the client
	Both = Up | Down
)

// NewProxy starts a proxy in front of a server's address, until the test ends.
func NewProxy(t testing.TB, upstream string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, links: map[*link]bool{}}
	p.upstream.Store(&upstream)
	p.all.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.Cut()
		p.all.Wait()
	})
	return p
}

// Move has those who connect from now on reach another server, or none if its
// address is empty, and breaks off what there is: as an address does that a
// failover moves.
func (p *Proxy) Move(upstream string) {
	p.upstream.Store(&upstream)
	p.Reset()
}

// URL is that of a database, by way of the proxy.
func (p *Proxy) URL(database string) string {
	u, err := url.Parse(database)
	if err != nil {
		panic(err)
	}
	u.Host = p.listener.Addr().String()
	return u.String()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(10 * time.Millisecond) // out of descriptors, for a while
			continue
		}
		p.all.Go(func() { p.connect(client.(*net.TCPConn)) })
	}
}

// connect joins a client with the server, and returns when that is over. While
// the server is down clients are refused, though later than by a closed port.
func (p *Proxy) connect(client *net.TCPConn) {
	upstream := p.upstream.Load()
	server, err := net.DialTimeout("tcp", *upstream, 5*time.Second)
	if err != nil {
		reset(client)
		return
	}
	l := &link{proxy: p, client: client, server: server.(*net.TCPConn), over: make(chan struct{})}
	p.mu.Lock()
	if p.closed || p.upstream.Load() != upstream {
		l.close(false)
	}
	p.links[l] = true
	p.mu.Unlock()
	l.run()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// Links is how many connections there are.
func (p *Proxy) Links() int { return len(p.list()) }

func (p *Proxy) list() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*link, 0, len(p.links))
	for l := range p.links {
		all = append(all, l)
	}
	return all
}

// Cut closes every connection.
func (p *Proxy) Cut() {
	for _, l := range p.list() {
		l.close(false)
	}
}

// Reset breaks every connection off, as a firewall or a crashed host does.
func (p *Proxy) Reset() {
	for _, l := range p.list() {
		l.close(true)
	}
}

// Stall lets nothing pass for a while, on new connections neither. What was
// sent meanwhile arrives afterwards, and so does the news that a peer hung up.
func (p *Proxy) Stall(d Direction, long time.Duration) { p.stalls.begin(d, long) }

// StallOne does that to the n-th connection that there is, if any.
func (p *Proxy) StallOne(n int, d Direction, long time.Duration) {
	if all := p.list(); len(all) > 0 {
		all[n%len(all)].stalls.begin(d, long)
	}
}

// Weather is from now on as told, on connections that there are too.
func (p *Proxy) Weather(w Weather) { p.weather.Store(&w) }

// Deafen loses a share of the notifications from now on; 1 is all of them.
// Nobody is told, as when a pooler drops them.
func (p *Proxy) Deafen(share float64) { p.deaf.Store(uint64(share * million)) }

const million = 1_000_000

func (p *Proxy) losesRing() bool { return rand.Uint64N(million) < p.deaf.Load() }

// Calm ends all stalls and bad weather, loses no notification any more, and
// takes the hook away.
func (p *Proxy) Calm() {
	p.hook.Store(nil)
	p.weather.Store(nil)
	p.deaf.Store(0)
	p.stalls.end()
	for _, l := range p.list() {
		l.stalls.end()
	}
}

// Hook has every message of the clients pass by f, which decides on its fate
// and may take its time. It is called from many goroutines.
func (p *Proxy) Hook(f func(Message) Fate) { p.hook.Store(&f) }

// Once gives a fate to the n-th message from now on that matches; the first is
// 1. The channel is closed when it came to that. It takes the hook's place.
func (p *Proxy) Once(n int, match func(Message) bool, fate func() Fate) <-chan struct{} {
	met := make(chan struct{})
	var seen atomic.Int64
	p.Hook(func(m Message) Fate {
		if !match(m) || seen.Add(1) != int64(n) {
			return Pass
		}
		defer close(met)
		return fate()
	})
	return met
}

func (p *Proxy) decide(m Message) Fate {
	if f := p.hook.Load(); f != nil {
		return (*f)(m)
	}
	return Pass
}

// stalls are until when nothing passes, for each direction.
type stalls struct{ up, down atomic.Int64 } // nanoseconds of the wall clock

func (s *stalls) begin(d Direction, long time.Duration) {
	until := time.Now().Add(long).UnixNano()
	if d&Up != 0 {
		s.up.Store(until)
	}
	if d&Down != 0 {
		s.down.Store(until)
	}
}

func (s *stalls) end() {
	s.up.Store(0)
	s.down.Store(0)
}

func (s *stalls) left(d Direction) time.Duration {
	until := s.up.Load()
	if d == Down {
		until = s.down.Load()
	}
	return time.Until(time.Unix(0, until))
}

// Fate is what becomes of a message.
type Fate struct {
	does fate
	long time.Duration
}

type fate int

const (
	passes fate = iota
	cuts
	resets
	halves
	mutes
	holds
)

// The fates, beside [Hold].
var (
	Pass  = Fate{}             // it is sent on
	Cut   = Fate{does: cuts}   // it is not, and the connection is closed
	Reset = Fate{does: resets} // it is not, and the connection breaks off
	Halve = Fate{does: halves} // its first half is, and then the connection is closed
	Mute  = Fate{does: mutes}  // it is, but once the server did what it says, the connection is closed without an answer
)

// Forever is longer than any test.
const Forever = time.Hour

// Hold keeps a message, and all that follow it on its connection, for a while.
// What came before it is with the server.
func Hold(long time.Duration) Fate { return Fate{holds, long} }

// link is one connection through a proxy.
type link struct {
	proxy          *Proxy
	client, server *net.TCPConn
	stalls         stalls
	mute           atomic.Bool // no answer reaches the client any more
	closing        sync.Once
	over           chan struct{}
}

// run passes on what comes in both directions, until the connection is over.
func (l *link) run() {
	var both sync.WaitGroup
	both.Go(l.answers)
	both.Go(l.requests)
	both.Wait()
}

// requests are what the client sends.
func (l *link) requests() {
	defer l.close(false)
	way := newLine(l, l.server)
	defer way.close()
	in, out := newWire(l.client), bufio.NewWriterSize(way, 64<<10)
	for {
		m, err := in.next()
		if !l.await(Up) || err != nil {
			return
		}
		f := l.proxy.decide(m)
		switch f.does {
		case cuts:
			return
		case resets:
			l.close(true)
			return
		case halves:
			_, _ = out.Write(m.raw[:len(m.raw)/2])
			_ = out.Flush()
			return
		case mutes:
			l.mute.Store(true)
		case holds:
			if out.Flush() != nil {
				return
			}
			l.stalls.begin(Up, f.long)
			if !l.await(Up) {
				return
			}
		}
		if _, err := out.Write(m.raw); err != nil {
			return
		}
		if in.Buffered() == 0 && out.Flush() != nil {
			return
		}
	}
}

const (
	// readyForQuery is the server's message after everything that a sync or a
	// query led to.
	readyForQuery = 'Z'

	// notification is its message to who listens.
	notification = 'A'
)

// answers are what the server sends.
func (l *link) answers() {
	defer l.close(false)
	way := newLine(l, l.client)
	defer way.close()
	in, out := bufio.NewReaderSize(l.server, 64<<10), bufio.NewWriterSize(way, 64<<10)
	for {
		raw, err := frame(in, true)
		if !l.await(Down) || err != nil {
			_ = out.Flush()
			return
		}
		if l.mute.Load() {
			if raw[0] == readyForQuery {
				return
			}
			continue
		}
		if raw[0] == notification && l.proxy.losesRing() {
			raw = nil
		}
		if _, err := out.Write(raw); err != nil {
			return
		}
		if in.Buffered() == 0 && out.Flush() != nil {
			return
		}
	}
}

// await waits until a direction is open; false says that the link is closed.
func (l *link) await(d Direction) bool {
	for {
		left := max(l.stalls.left(d), l.proxy.stalls.left(d))
		if left <= 0 {
			return true
		}
		select {
		case <-l.over:
			return false
		case <-time.After(min(left, 10*time.Millisecond)): // a calm may come sooner
		}
	}
}

// close ends the connection on both sides, with or without manners.
func (l *link) close(abruptly bool) {
	l.closing.Do(func() {
		close(l.over)
		if abruptly {
			reset(l.client)
			reset(l.server)
			return
		}
		l.client.Close()
		l.server.Close()
	})
}

// reset closes a connection so that the peer's kernel learns that it broke.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	c.Close()
}
