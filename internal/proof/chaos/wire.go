//go:build unix

package chaos

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"
)

// Message is one message of a client to the server, on its way.
type Message struct {
	Type byte // as in the protocol; 0 is the start-up packet

	// SQL is the text that the message is about: of a query or parse its own;
	// of bind and execute that of the statement; of sync all that was executed
	// since the sync before, because there it commits.
	SQL string

	raw []byte
}

// Executes matches the message that executes a text. The server acts on it
// at once, but outside a transaction block it commits with the sync after it.
func Executes(text string) func(Message) bool {
	return func(m Message) bool { return (m.Type == 'E' || m.Type == 'Q') && strings.Contains(m.SQL, text) }
}

// Commits matches the message with which a text that was executed takes
// effect, or the commit of a transaction block if the text is "commit".
func Commits(text string) func(Message) bool {
	return func(m Message) bool { return (m.Type == 'S' || m.Type == 'Q') && strings.Contains(m.SQL, text) }
}

// The messages that matter: freezes and cuts are aimed at them.
var (
	ClaimSent     = Executes("stint.claim(")
	ClaimCommits  = Commits("stint.claim(")
	FinishSent    = Executes("stint.finish(")
	FinishCommits = Commits("stint.finish(")
	BeatCommits   = Commits("update stint.beats")
	EnqueueSent   = Executes("insert into stint.entries")
	EnqueueLands  = Commits("insert into stint.entries")
	TxCommits     = Commits("commit")
	CompleteSent  = Executes("stint.complete(")
	FireSent      = Executes("after = m.after")
	FireCommits   = Commits("after = m.after")
)

// maxMessage is far beyond what stint sends; a longer one means that the
// stream was misread.
const maxMessage = 256 << 20

// frame reads one message: a type unless it is the start-up packet, a length
// that counts itself, and the body.
func frame(r *bufio.Reader, typed bool) ([]byte, error) {
	head := 4
	if typed {
		head = 5
	}
	peek, err := r.Peek(head)
	if err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint32(peek[head-4:])) + head - 4
	if size < head || size > maxMessage {
		return nil, fmt.Errorf("a message of %d bytes", size)
	}
	raw := make([]byte, size)
	_, err = io.ReadFull(r, raw)
	return raw, err
}

// wire cuts what a client sends into messages and knows what they are about.
type wire struct {
	*bufio.Reader
	begun    bool
	prepared map[string]string // statements by name
	bound    string            // the text of the portal bound last
	executed []string          // since the last sync
}

func newWire(r io.Reader) *wire {
	return &wire{Reader: bufio.NewReaderSize(r, 64<<10), prepared: map[string]string{}}
}

func (w *wire) next() (Message, error) {
	raw, err := frame(w.Reader, w.begun)
	if err != nil {
		return Message{}, err
	}
	m := Message{raw: raw}
	if !w.begun {
		w.begun = true
		return m, nil
	}
	m.Type = raw[0]
	body := raw[5:]
	switch m.Type {
	case 'Q':
		m.SQL, _ = text(body)
	case 'P':
		name, rest := text(body)
		m.SQL, _ = text(rest)
		w.prepared[name] = m.SQL
	case 'B':
		_, rest := text(body) // the portal: drivers use the unnamed one
		name, _ := text(rest)
		w.bound = w.prepared[name]
		m.SQL = w.bound
	case 'E':
		m.SQL = w.bound
		w.executed = append(w.executed, w.bound)
	case 'S':
		m.SQL = strings.Join(w.executed, ";\n")
		w.executed = w.executed[:0]
	}
	return m, nil
}

// text reads a string that ends with a zero byte.
func text(b []byte) (string, []byte) {
	head, rest, _ := bytes.Cut(b, []byte{0})
	return string(head), rest
}

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

// line is one direction of a link, after the stalls. What is written to it
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
