//go:build unix

package chaos

import (
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Weather is what the way between clients and server is like. The zero value
// is a wire: what is sent arrives at once.
type Weather struct {
	// Least and Most are how long what is sent takes to arrive, each way. It
	// comes in the order in which it was sent, so that some of it waits for
	// what was sent before.
	Least, Most time.Duration

	// Rate is how many bytes arrive in a second, each way; 0 is all of them.
	Rate int
}

// transit is how long it takes now until something arrives.
func (w *Weather) transit() time.Duration {
	if w == nil || w.Most == 0 {
		return 0
	}
	return w.Least + rand.N(w.Most-w.Least+1)
}

// takes is how long so many bytes keep the way for themselves.
func (w *Weather) takes(bytes int) time.Duration {
	if w == nil || w.Rate == 0 {
		return 0
	}
	return time.Duration(bytes) * time.Second / time.Duration(w.Rate)
}

// parcel is something on its way.
type parcel struct {
	bytes []byte
	due   time.Time
}

// line is one direction of a link behind the stalls. What is written to it
// arrives when the weather lets it, and writing waits only while too much is
// under way already.
type line struct {
	link    *link
	to      net.Conn
	last    time.Time // when what was written last arrives
	parcels chan parcel
	all     sync.WaitGroup
}

// mostParcels is how much may be under way: about what a window of TCP holds.
const mostParcels = 64

func newLine(l *link, to net.Conn) *line {
	n := &line{link: l, to: to, parcels: make(chan parcel, mostParcels)}
	n.all.Go(n.deliver)
	return n
}

// Write implements [io.Writer]. That it failed to arrive the writer learns when
// the link is over.
func (n *line) Write(b []byte) (int, error) {
	w, now := n.link.proxy.weather.Load(), time.Now()
	if n.last.Before(now) {
		n.last = now
	}
	if due := now.Add(w.transit()); n.last.Before(due) {
		n.last = due
	}
	n.last = n.last.Add(w.takes(len(b)))
	select {
	case n.parcels <- parcel{append([]byte(nil), b...), n.last}:
		return len(b), nil
	case <-n.link.over:
		return 0, net.ErrClosed
	}
}

func (n *line) deliver() {
	for p := range n.parcels {
		if late := time.Until(p.due); late > 0 {
			select {
			case <-time.After(late):
			case <-n.link.over:
			}
		}
		if _, err := n.to.Write(p.bytes); err != nil {
			n.link.close(false)
		}
	}
}

// close waits until all that was written has arrived, or the link is over.
func (n *line) close() {
	close(n.parcels)
	n.all.Wait()
}
