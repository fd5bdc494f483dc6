package faktory

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/stint-go/stint/internal/valid"
)

// Bounds of what a connection may send, and for how long.
const (
	maxHello  = 4 << 10 // bytes of a line before the password was checked
	maxLine   = 8 << 20 // bytes of a line after that; a job has at most 1 MiB of arguments
	lineTime  = 30 * time.Second
	writeTime = 10 * time.Second
	helloTime = 5 * time.Second // from the connection to the right HELLO
	maxError  = 500             // bytes of an error as it is told
)

// errTooLong says that a line was longer than allowed. It was read to its end, so the next command can be.
var errTooLong = errors.New("the line is too long")

// wire is a connection: commands are lines, answers are those of RESP. One goroutine may read while another writes.
type wire struct {
	conn net.Conn
	r    *bufio.Reader
	w    *bufio.Writer
}

func newWire(c net.Conn) *wire {
	return &wire{c, bufio.NewReader(c), bufio.NewWriter(c)}
}

// readLine waits for a line of at most so many bytes, for as long as it takes. A line that has begun must be complete
// in some time.
func (w *wire) readLine(most int, within time.Duration) ([]byte, error) {
	if _, err := w.r.Peek(1); err != nil {
		return nil, err
	}
	if err := w.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return nil, err
	}
	line, err := readLine(w.r, most)
	if err == nil || errors.Is(err, errTooLong) {
		err = errors.Join(err, w.conn.SetReadDeadline(time.Time{}))
	}
	return line, err
}

// readLine reads a line without its end. Of one that is too long it keeps nothing.
func readLine(r *bufio.Reader, most int) (line []byte, err error) {
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > most+len("\r\n"); long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return nil, err
		case long:
			return nil, errTooLong
		default:
			return bytes.TrimRight(line, "\r\n"), nil
		}
	}
}

// parseCommand splits a line into a verb, in capitals, and what follows it.
func parseCommand(line []byte) (verb string, rest []byte) {
	name, rest, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
	return strings.ToUpper(string(name)), bytes.TrimSpace(rest)
}

// reply is an answer as it stands on the wire.
type reply []byte

var (
	replyOK  = reply("+OK\r\n")
	replyNil = reply("$-1\r\n")
)

// bulk is an answer with any text.
func bulk(text []byte) reply {
	return fmt.Appendf(nil, "$%d\r\n%s\r\n", len(text), text)
}

// failed is the answer that something went wrong, in one line.
func failed(err error) reply {
	text := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, valid.CleanText(err.Error(), maxError))
	return fmt.Appendf(nil, "-ERR %s\r\n", text)
}

// write sends an answer.
func (w *wire) write(r reply) error {
	if err := w.conn.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	if _, err := w.w.Write(r); err != nil {
		return err
	}
	return w.w.Flush()
}
