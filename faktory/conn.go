package faktory

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime/metrics"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/ops"
)

// Bounds of what a connection may send, and for how long.
const (
	maxHello  = 4 << 10 // bytes of a line before the password was checked
	maxLine   = 8 << 20 // bytes of a line after that; a job has at most 1 MiB of arguments
	maxError  = 500     // bytes of an error as it is told
	writeTime = 10 * time.Second
	helloTime = 5 * time.Second  // from the connection to the right HELLO
	callTime  = 30 * time.Second // of a command
)

var (
	errNoWorker = errors.New("the connection gave no wid with HELLO: it is no worker")
	errElse     = errors.New("the command is not supported: see stint jobs, stint queues and stint flows")
	errTooLong  = errors.New("the line is too long") // it was read to its end, so the next command can be
)

// conn is a connection: commands are lines, answers are those of RESP.
type conn struct {
	*Server
	net.Conn
	r      *bufio.Reader
	worker *session // nil of a producer
}

// serve does what a connection asks until it ends.
func (c *conn) serve() {
	h, err := c.greet()
	if err != nil {
		return
	}
	if h.WID != "" {
		c.worker = c.enter(h)
		defer c.exit(c.worker)
	}
	for err == nil {
		var line []byte
		line, err = readLine(c.r, maxLine)
		verb, arg := parseCommand(line)
		c.commands.Add(1)
		switch {
		case errors.Is(err, errTooLong):
			err = c.answer(nil, err)
		case err != nil || verb == "END":
			return
		case verb == "FETCH":
			err = c.fetch(arg)
		default:
			err = c.answer(c.do(verb, arg))
		}
	}
}

// readLine reads a line of at most so many bytes, without its end.
func readLine(r *bufio.Reader, most int) (line []byte, err error) {
	for long := false; ; {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > most+len("\r\n"); !long {
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
func parseCommand(line []byte) (verb string, arg []byte) {
	name, arg, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
	return strings.ToUpper(string(name)), bytes.TrimSpace(arg)
}

// argument reads what a command says in JSON.
func argument[T any](text []byte) (in T, err error) {
	if err = json.Unmarshal(text, &in); err != nil {
		err = fmt.Errorf("the command does not have the JSON that it needs: %w", err)
	}
	return in, err
}

// answer tells an error, or else a text, or else that all is well.
func (c *conn) answer(text []byte, err error) error {
	switch {
	case err != nil:
		return c.send(failed(err))
	case text != nil:
		return c.send(fmt.Sprintf("$%d\r\n%s\r\n", len(text), text))
	}
	return c.send("+OK\r\n")
}

// failed is the answer that something went wrong, in one line.
func failed(err error) string {
	text := strings.Map(func(r rune) rune { return max(r, ' ') }, valid.CleanText(err.Error(), maxError))
	return "-ERR " + text + "\r\n"
}

func (c *conn) send(text string) error {
	_ = c.SetWriteDeadline(time.Now().Add(writeTime))
	_, err := c.Write([]byte(text))
	return err
}

// fetch answers with a job. One that the connection cannot take goes back at once.
func (c *conn) fetch(arg []byte) error {
	if c.worker == nil {
		return c.answer(nil, errNoWorker)
	}
	ctx, done := c.watch()
	defer done()
	h, job, err := c.worker.fetch(ctx, strings.Fields(cmp.Or(string(arg), stint.DefaultQueue)))
	switch {
	case err != nil:
		return c.answer(nil, err)
	case h == nil:
		return c.send("$-1\r\n")
	}
	if err = ctx.Err(); err == nil {
		err = c.answer(job, nil)
	}
	if err != nil {
		c.worker.giveBack(h)
	}
	return err
}

// watch makes a context that ends when the peer hangs up. Nothing may be read before done is called.
func (c *conn) watch() (_ context.Context, done func()) {
	ctx, cancel := context.WithTimeout(c.closed, callTime)
	over := make(chan struct{})
	go func() {
		defer close(over)
		if _, err := c.r.Peek(1); err != nil {
			cancel()
		}
	}()
	return ctx, func() {
		_ = c.SetReadDeadline(time.Now())
		<-over
		_ = c.SetReadDeadline(time.Time{})
		cancel()
	}
}

// do obeys all commands but FETCH.
func (c *conn) do(verb string, arg []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	switch verb {
	case "PUSH":
		for _, why := range c.push(ctx, json.RawMessage(arg)) {
			return nil, errors.New(why)
		}
		return nil, nil
	case "PUSHB":
		jobs, err := argument[[]json.RawMessage](arg)
		if err == nil && len(jobs) > ops.MostJobs {
			err = fmt.Errorf("%d jobs are more than %d", len(jobs), ops.MostJobs)
		}
		if err != nil {
			return nil, err
		}
		return json.Marshal(c.push(ctx, jobs...))
	case "ACK", "FAIL", "BEAT":
		switch {
		case c.worker == nil:
			return nil, errNoWorker
		case verb == "BEAT":
			return c.worker.beat(ctx, arg)
		}
		return nil, c.worker.end(ctx, verb, arg)
	case "INFO":
		return c.info(ctx)
	case "FLUSH", "MUTATE", "QUEUE", "TRACK", "BATCH":
		return nil, errElse
	}
	return nil, fmt.Errorf("the command %q is unknown", valid.CleanText(verb, 20))
}

// push enqueues jobs. It says why some were refused, by their jids.
func (c *conn) push(ctx context.Context, texts ...json.RawMessage) map[string]string {
	refused := map[string]string{}
	var jids []string
	var jobs []stint.NewJob
	for i, text := range texts {
		jid, job, err := parseJob(text)
		if err == nil && slices.Contains(c.config.Refused, job.Kind) {
			err = fmt.Errorf("jobs of the kind %s do whatever they say: they cannot be pushed", job.Kind)
		}
		if err != nil {
			refused[cmp.Or(jid, fmt.Sprintf("[%d]", i))] = err.Error()
			continue
		}
		jids, jobs = append(jids, jid), append(jobs, job)
	}
	if _, err := c.client.EnqueueMany(ctx, jobs); err != nil {
		for i, job := range jobs { // one of them is to blame, perhaps
			if _, err := c.client.Enqueue(ctx, job); err != nil {
				refused[jids[i]] = err.Error()
			}
		}
	}
	return refused
}

// info answers INFO. Some clients fail if one of these names is missing.
func (c *conn) info(ctx context.Context) ([]byte, error) {
	all, err := c.store.Queues(ctx)
	if err != nil {
		return nil, err
	}
	queues, states := map[string]int64{}, map[stint.State]int64{}
	for _, q := range all {
		queues[q.Name] = q.Counts[stint.Available]
		for state, n := range q.Counts {
			states[state] += n
		}
	}
	now := time.Now().UTC()
	memory := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(memory)
	c.mu.Lock()
	defer c.mu.Unlock()
	return json.Marshal(map[string]any{
		"now": now, "server_utc_time": now.Format("15:04:05 UTC"),
		"faktory": map[string]any{
			"queues": queues, "total_queues": len(queues), "total_enqueued": states[stint.Available], "tasks": struct{}{},
			"total_processed": states[stint.Completed] + states[stint.Failed], "total_failures": states[stint.Failed],
		},
		"server": map[string]any{"description": "stint", "faktory_version": "1.9.0", "uptime": int(now.Sub(c.began).Seconds()), "connections": c.conns, "command_count": c.commands.Load(), "used_memory_mb": memory[0].Value.Uint64() >> 20},
	})
}
