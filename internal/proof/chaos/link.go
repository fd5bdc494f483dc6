//go:build unix

package chaos

import (
	"bufio"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

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
	// readyForQuery is the server's message behind everything that a sync or a
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
