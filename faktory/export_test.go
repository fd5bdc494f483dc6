package faktory

import (
	"bufio"
	"bytes"
	"encoding/json"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/gateway"
)

// ReadLine reads a line of at most so many bytes.
func ReadLine(text []byte, most int) ([]byte, error) {
	return readLine(bufio.NewReaderSize(bytes.NewReader(text), 16), most)
}

// ParseCommand splits a line.
func ParseCommand(line []byte) (string, []byte) { return parseCommand(line) }

// Failed is the answer to an error.
func Failed(err error) string { return failed(err) }

// ParseHello returns the wid of a HELLO.
func ParseHello(text []byte) (string, error) {
	h, err := parseHello(text)
	return h.WID, err
}

// ParseJob reads a job of a PUSH.
func ParseJob(text []byte) (string, stint.NewJob, error) { return parseJob(text) }

// ParseEnding reads the argument of FAIL.
func ParseEnding(text []byte) (string, gateway.Ending, error) { return parseEnding("FAIL", text) }

// TextOf is a job as a FETCH answers it, and its jid.
func TextOf(j *gateway.ClaimedJob) (string, []byte, error) {
	jid, job := answerOf(j)
	text, err := json.Marshal(job)
	return jid, text, err
}
