//go:build unix

package chaos

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
)

// packet is a message as a client sends it; type 0 is the start-up packet.
func packet(kind byte, body string) []byte {
	var b []byte
	if kind != 0 {
		b = append(b, kind)
	}
	return append(binary.BigEndian.AppendUint32(b, uint32(len(body)+4)), body...)
}

// FuzzWire makes sure that what a client sends goes on as it came, byte by byte,
// however it is misread.
func FuzzWire(f *testing.F) {
	start := packet(0, "\x00\x03\x00\x00user\x00x\x00\x00")
	f.Add(start)
	f.Add(bytes.Join([][]byte{start, packet('P', "s1\x00select stint.claim($1)\x00\x00\x00"), packet('B', "\x00s1\x00"), packet('E', "\x00\x00\x00\x00\x00"), packet('S', "")}, nil))
	f.Add(append(bytes.Clone(start), packet('Q', "commit\x00")...))
	f.Add(append(bytes.Clone(start), packet('B', "")...))
	f.Add([]byte{0, 0, 0, 3})
	f.Add([]byte{0, 0, 0, 4, 'Q', 0, 0, 0, 3})
	f.Fuzz(func(t *testing.T, sent []byte) {
		// By hand: where whole messages end, and whether what follows has a length
		// that can be right.
		whole, valid := 0, true
		for rest := sent; ; rest = sent[whole:] {
			head := 5
			if whole == 0 {
				head = 4
			}
			if len(rest) < head {
				break
			}
			size := int(binary.BigEndian.Uint32(rest[head-4:])) + head - 4
			if size < head || size > maxMessage {
				valid = false
				break
			}
			if size > len(rest) {
				if size > 1<<20 {
					return // which would only take memory
				}
				break
			}
			whole += size
		}
		w := newWire(bytes.NewReader(sent))
		var went []byte
		for {
			m, err := w.next()
			if err != nil {
				if ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF); ended != valid {
					t.Errorf("%x ends with %v", sent, err)
				}
				break
			}
			if len(went) > 0 && m.Type != m.raw[0] {
				t.Errorf("a message of type %q is one of %q", m.raw[0], m.Type)
			}
			went = append(went, m.raw...)
		}
		if !bytes.Equal(went, sent[:whole]) {
			t.Errorf("of %x went on %x", sent[:whole], went)
		}
	})
}
