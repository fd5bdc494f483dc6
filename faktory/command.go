package faktory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/gateway"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/ops"
)

// conn is a connection after its HELLO.
type conn struct {
	*Server
	wire   *wire
	worker *session // nil of a producer

	// alive ends when the peer has hung up, or the server is closed: then nothing is handed out any more.
	alive context.Context
}

// incoming is a line that was read.
type incoming struct {
	line []byte
	err  error
}

// serve does what a connection asks until it ends.
func (s *Server) serve(w *wire) {
	worker, err := s.greet(w)
	defer s.exit(worker)
	if err != nil {
		return
	}
	ctx, hangUp := context.WithCancel(s.closed)
	defer hangUp()
	c := &conn{Server: s, wire: w, worker: worker, alive: ctx}
	lines := make(chan incoming)
	s.running.Go(func() {
		defer close(lines)
		for {
			line, err := w.readLine(maxLine, lineTime)
			if err != nil && !errors.Is(err, errTooLong) {
				hangUp()
				return
			}
			select {
			case lines <- incoming{line, err}:
			case <-ctx.Done():
				return
			}
		}
	})
	for in := range lines {
		s.commands.Add(1)
		if !c.do(in) {
			break
		}
	}
	hangUp()
	w.conn.Close() // ends the reader
}

// do obeys a command and answers it. It reports false if the connection is over.
func (c *conn) do(in incoming) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.alive), callTime)
	defer cancel()
	verb, text := parseCommand(in.line)
	var r reply
	err := in.err
	switch {
	case err != nil:
	case verb == "END":
		return false
	case verb == "FETCH":
		return c.fetch(text)
	default:
		r, err = c.answer(ctx, verb, text)
	}
	if err != nil {
		r = failed(err)
	}
	return c.wire.write(r) == nil
}

// answer obeys all commands but FETCH.
func (c *conn) answer(ctx context.Context, verb string, text []byte) (reply, error) {
	switch verb {
	case "PUSH":
		return c.push(ctx, text)
	case "PUSHB":
		return c.pushMany(ctx, text)
	case "ACK", "FAIL":
		return c.end(ctx, verb, text)
	case "BEAT":
		return c.beat(ctx, text)
	case "TRACK":
		return c.track(text)
	case "INFO":
		return c.tell(ctx)
	case "QUEUE":
		return c.queue(ctx, text)
	case "FLUSH", "MUTATE":
		return nil, fmt.Errorf("%s is not supported: see stint jobs cancel, retry and delete", verb)
	case "BATCH":
		return nil, errors.New("BATCH is not supported: stint has flows for that, see stint flows")
	}
	return nil, fmt.Errorf("the command %q is unknown", valid.CleanText(verb, 20))
}

var errNoWorker = errors.New("the connection gave no wid with HELLO: it is no worker")

// fetch hands out a job. One that the connection cannot take goes back at once.
func (c *conn) fetch(text []byte) bool {
	queues, err := queuesOf(text)
	if err == nil && c.worker == nil {
		err = errNoWorker
	}
	if err != nil {
		return c.wire.write(failed(err)) == nil
	}
	h, job, err := c.worker.fetch(c.alive, queues)
	switch {
	case err != nil:
		return c.wire.write(failed(err)) == nil
	case h == nil:
		return c.wire.write(replyNil) == nil
	}
	if c.alive.Err() != nil || c.wire.write(bulk(job)) != nil {
		c.worker.giveBack(h)
		return false
	}
	return true
}

// queuesOf reads the names of queues, or none for the default.
func queuesOf(text []byte) ([]string, error) {
	queues := strings.Fields(string(text))
	if len(queues) == 0 {
		queues = []string{stint.DefaultQueue}
	}
	if len(queues) > maxQueues {
		return nil, fmt.Errorf("%d queues are more than %d", len(queues), maxQueues)
	}
	for _, q := range queues {
		if err := valid.Queue(q); err != nil {
			return nil, err
		}
	}
	return queues, nil
}

// read reads a job of a PUSH, unless nobody may push its kind.
func (c *conn) read(text []byte) (jid string, job stint.NewJob, err error) {
	jid, job, err = parseJob(text)
	if err == nil && slices.Contains(c.config.Refused, job.Kind) {
		err = fmt.Errorf("jobs of the kind %s do whatever they say: they cannot be pushed", job.Kind)
	}
	if err == nil {
		err = job.Check(stint.Limits{})
	}
	return jid, job, err
}

func (c *conn) push(ctx context.Context, text []byte) (reply, error) {
	_, job, err := c.read(text)
	if err == nil {
		_, err = c.client.Enqueue(ctx, job)
	}
	return replyOK, err
}

// pushMany enqueues many jobs, and answers why some were refused, by their jids.
func (c *conn) pushMany(ctx context.Context, text []byte) (reply, error) {
	var texts []json.RawMessage
	if err := json.Unmarshal(text, &texts); err != nil {
		return nil, fmt.Errorf("PUSHB needs a JSON array: %w", err)
	}
	if len(texts) > ops.MostJobs {
		return nil, fmt.Errorf("%d jobs are more than %d", len(texts), ops.MostJobs)
	}
	refused := map[string]string{}
	var jids []string
	var jobs []stint.NewJob
	for i, one := range texts {
		jid, job, err := c.read(one)
		if err != nil {
			if jid == "" {
				jid = fmt.Sprintf("[%d]", i)
			}
			refused[jid] = err.Error()
			continue
		}
		jids, jobs = append(jids, jid), append(jobs, job)
	}
	if len(jobs) > 0 {
		_, err := c.client.EnqueueMany(ctx, jobs)
		switch {
		case errors.Is(err, stint.ErrKeyConflict), errors.Is(err, stint.ErrInvalid):
			for i, job := range jobs { // one of them is to blame
				if _, err := c.client.Enqueue(ctx, job); err != nil {
					refused[jids[i]] = err.Error()
				}
			}
		case err != nil:
			return nil, err
		}
	}
	told, err := json.Marshal(refused)
	return bulk(told), err
}

// ending is the argument of ACK and FAIL.
type ending struct {
	JID       string   `json:"jid"`
	ErrType   string   `json:"errtype"`
	Message   string   `json:"message"`
	Backtrace []string `json:"backtrace"`
}

// parseEnding reads the argument of ACK and FAIL.
func parseEnding(verb string, text []byte) (jid string, x gateway.Ending, err error) {
	var in ending
	if err := json.Unmarshal(text, &in); err != nil {
		return "", x, fmt.Errorf("%s needs a JSON object: %w", verb, err)
	}
	if in.JID == "" {
		return "", x, valid.Invalid("jid", "it is missing")
	}
	if verb == "FAIL" {
		x.Error = &gateway.RunError{Class: in.ErrType, Message: in.Message, Stack: strings.Join(in.Backtrace, "\n")}
	}
	return in.JID, x, nil
}

func (c *conn) end(ctx context.Context, verb string, text []byte) (reply, error) {
	jid, x, err := parseEnding(verb, text)
	switch {
	case err != nil:
		return nil, err
	case c.worker == nil:
		return nil, errNoWorker
	}
	return replyOK, c.worker.end(ctx, jid, x)
}

func (c *conn) beat(ctx context.Context, text []byte) (reply, error) {
	var in struct {
		WID string `json:"wid"`
	}
	switch err := json.Unmarshal(text, &in); {
	case err != nil:
		return nil, fmt.Errorf("BEAT needs a JSON object: %w", err)
	case c.worker == nil:
		return nil, errNoWorker
	case in.WID != c.worker.wid:
		return nil, errors.New("the wid is not that of the connection's HELLO")
	}
	state, err := c.worker.beat(ctx)
	if err != nil || state == "" {
		return replyOK, err
	}
	return bulk(fmt.Appendf(nil, `{"state":%q}`, state)), nil
}

// track notes how far a job is, for stint jobs show.
func (c *conn) track(text []byte) (reply, error) {
	verb, text := parseCommand(text)
	if verb != "SET" {
		return nil, errors.New("of TRACK only SET is supported: see stint jobs show")
	}
	var in struct {
		JID     string  `json:"jid"`
		Percent float64 `json:"percent"`
		Text    string  `json:"desc"`
	}
	switch err := json.Unmarshal(text, &in); {
	case err != nil:
		return nil, fmt.Errorf("TRACK SET needs a JSON object: %w", err)
	case c.worker == nil:
		return nil, errNoWorker
	}
	return replyOK, c.worker.track(in.JID, gateway.RunProgress{Fraction: in.Percent / 100, Text: in.Text})
}
