package faktory_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/faktory"
	"github.com/stint-go/stint/gateway"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// migrated is a database with the schema.
var migrated = pgtest.NewTemplate(func(ctx context.Context, url string) error {
	s, err := postgres.Open(ctx, url)
	if err != nil {
		return err
	}
	s.Close()
	return nil
})

// full is what the tests do with a store.
type full interface {
	faktory.Store
	store.Auditor
}

// onEach runs a test on both stores, and checks the invariants after it.
func onEach(t *testing.T, f func(t *testing.T, s full)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		t.Cleanup(func() { storetest.Verify(t, s) })
		f(t, s)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		s, err := postgres.Open(t.Context(), migrated.New(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		t.Cleanup(func() { storetest.Verify(t, s) })
		f(t, s)
	})
}

const password = "of-the-tests"

// served is a running server.
type served struct {
	t    *testing.T
	s    full
	at   string
	host *engine.Engine
	*faktory.Server
}

func serve(t *testing.T, s full, c faktory.Config) *served {
	t.Helper()
	host, err := engine.New(s, stint.NewMux(), engine.Config{ClaimsNothing: true, TimeToLive: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- host.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the host: %v", err)
		}
	})
	c.Host, c.Password = host, password
	x := &served{t, s, "", host, faktory.New(s, c)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x.at = l.Addr().String()
	ended := make(chan error, 1)
	go func() { ended <- x.Serve(l) }()
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		x.Shutdown(now)
		if err := <-ended; err != nil {
			t.Errorf("Serve returned %v", err)
		}
	})
	return x
}

// client is a connection as a test drives it.
type client struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

// dial opens a connection up to the server's HI.
func (x *served) dial() (c *client, salt string, iterations int) {
	x.t.Helper()
	conn, err := net.Dial("tcp", x.at)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { conn.Close() })
	c = &client{x.t, conn, bufio.NewReader(conn)}
	var hi struct {
		V int    `json:"v"`
		S string `json:"s"`
		I int    `json:"i"`
	}
	verb, text, _ := strings.Cut(c.answer(), " ")
	if err := json.Unmarshal([]byte(text), &hi); err != nil || verb != "HI" || hi.V != 2 || hi.I < 1000 || strings.Contains(text, " ") {
		x.t.Fatalf("the server said %s %s (%v)", verb, text, err)
	}
	return c, hi.S, hi.I
}

// hash is what a client sends of a password.
func hash(password, salt string, iterations int) string {
	sum := sha256.Sum256([]byte(password + salt))
	for range iterations - 1 {
		sum = sha256.Sum256(sum[:])
	}
	return hex.EncodeToString(sum[:])
}

// connect opens a connection of a worker, or of a producer without a wid.
func (x *served) connect(wid string) *client {
	x.t.Helper()
	c, salt, n := x.dial()
	hello := map[string]any{"v": 2, "hostname": "host1", "pid": 7, "pwdhash": hash(password, salt, n)}
	if wid != "" {
		hello["wid"], hello["labels"] = wid, []string{"test"}
	}
	c.must("OK", "HELLO", hello)
	return c
}

// send writes a command, with an argument as JSON or as it is.
func (c *client) send(verb string, arg any) {
	c.t.Helper()
	text, ok := arg.(string)
	if !ok {
		raw, err := json.Marshal(arg)
		if err != nil {
			c.t.Fatal(err)
		}
		text = string(raw)
	}
	if _, err := fmt.Fprintf(c, "%s %s\r\n", verb, text); err != nil {
		c.t.Fatal(err)
	}
}

// answer reads an answer: its text, with a - in front of an error; "nil" for none.
func (c *client) answer() string {
	c.t.Helper()
	text, err := c.read()
	if err != nil {
		c.t.Fatal(err)
	}
	return text
}

func (c *client) read() (string, error) {
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	line, err := c.r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	switch line[0] {
	case '+':
		return line[1:], nil
	case '-':
		return line, nil
	case '$':
		n, err := strconv.Atoi(line[1:])
		if err != nil {
			return "", err
		}
		if n < 0 {
			return "nil", nil
		}
		text := make([]byte, n+2)
		_, err = io.ReadFull(c.r, text)
		return string(text[:n]), err
	}
	return "", fmt.Errorf("the answer is %q", line)
}

func (c *client) ask(verb string, arg any) string {
	c.t.Helper()
	c.send(verb, arg)
	return c.answer()
}

// must asks, and expects an answer that begins with a text.
func (c *client) must(want, verb string, arg any) string {
	c.t.Helper()
	got := c.ask(verb, arg)
	if !strings.HasPrefix(got, want) {
		c.t.Fatalf("%s %v is answered by %q, want %q", verb, arg, got, want)
	}
	return got
}

// job is one as a worker sees it.
type job struct {
	JID        string          `json:"jid"`
	Jobtype    string          `json:"jobtype"`
	Queue      string          `json:"queue"`
	Args       json.RawMessage `json:"args"`
	Custom     map[string]any  `json:"custom"`
	ReserveFor int             `json:"reserve_for"`
	Retry      *int            `json:"retry"`
	Priority   int             `json:"priority"`
	Backtrace  int             `json:"backtrace"`
	CreatedAt  time.Time       `json:"created_at"`
	EnqueuedAt time.Time       `json:"enqueued_at"`
	Failure    *struct {
		RetryCount int `json:"retry_count"`
	} `json:"failure"`
}

// fetch waits for a job.
func (c *client) fetch(queues ...string) job {
	c.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if text := c.must("", "FETCH", strings.Join(queues, " ")); text != "nil" {
			var j job
			if err := json.Unmarshal([]byte(text), &j); err != nil {
				c.t.Fatalf("%s: %v", text, err)
			}
			return j
		}
	}
	c.t.Fatal("no job came")
	panic("")
}

func (c *client) ack(j job) { c.t.Helper(); c.must("OK", "ACK", map[string]string{"jid": j.JID}) }

func (c *client) push(fields map[string]any) { c.t.Helper(); c.must("OK", "PUSH", fields) }

func (x *served) jobs() []stint.JobInfo {
	x.t.Helper()
	list, err := x.s.Jobs(x.t.Context(), store.Filter{})
	if err != nil {
		x.t.Fatal(err)
	}
	for i := range list {
		full, err := x.s.Job(x.t.Context(), list[i].ID)
		if err != nil {
			x.t.Fatal(err)
		}
		list[i] = *full
	}
	return list
}

func (x *served) only() stint.JobInfo {
	x.t.Helper()
	all := x.jobs()
	if len(all) != 1 {
		x.t.Fatalf("there are %d jobs, want one", len(all))
	}
	return all[0]
}

func (x *served) roster() (workers []store.EngineInfo) {
	x.t.Helper()
	all, err := x.s.Engines(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	for _, e := range all {
		if e.ByBeats() {
			workers = append(workers, e)
		}
	}
	return workers
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after half a minute it is not so that %s", what)
		}
	}
}

// retries is how often the policy of a job tries it again.
func retries(t *testing.T, j stint.JobInfo) int {
	t.Helper()
	policy, err := retry.Parse(j.Retry)
	if err != nil {
		t.Fatal(err)
	}
	n, _ := policy.Retries()
	return n
}

func TestAJobIsPushedWorkedAndAcknowledged(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		x := serve(t, s, faktory.Config{})
		p, w := x.connect(""), x.connect("w1")
		p.push(map[string]any{
			"jid": "j-12345678", "jobtype": "resize", "queue": "images", "args": []any{1, "a"}, "reserve_for": 600, "retry": 3, "priority": 7, "backtrace": 12,
			"custom": map[string]any{"locale": "fr"}, "created_at": "2026-01-02T03:04:05.5Z",
		})
		j := w.fetch("images")
		if j.JID != "j-12345678" || j.Jobtype != "resize" || j.Queue != "images" || strings.ReplaceAll(string(j.Args), " ", "") != `[1,"a"]` || j.Custom["locale"] != "fr" || len(j.Custom) != 1 ||
			j.ReserveFor != 600 || *j.Retry != 3 || j.Priority != 7 || j.Backtrace != 12 || j.CreatedAt.Year() != 2026 || j.EnqueuedAt.IsZero() || j.Failure != nil {
			t.Errorf("the job came as %+v", j)
		}
		row := x.roster()[0]
		if row.Instance != "faktory-w1" || row.Host != "host1" || row.PID != 7 || !row.Performs("anything") || !row.WorksOn("images") || row.WorksOn("mail") {
			t.Errorf("the worker is in the roster as %+v", row)
		}
		w.ack(j)
		w.ack(j) // its answer was lost
		got := x.only()
		if got.State != stint.Completed || got.Timeout.AsDuration() != 10*time.Minute || got.Priority != -2 || got.Kind != "resize" {
			t.Errorf("the job is %+v", got)
		}
		if n := retries(t, got); n != 3 {
			t.Errorf("its policy is %v", got.Retry)
		}
		w.must("nil", "FETCH", "images")
		w.send("END", "")
		eventually(t, "the worker has left the roster", func() bool { return len(x.roster()) == 0 })
	})
}

func TestARepeatedPushIsOneJob(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		x := serve(t, s, faktory.Config{Refused: []string{"sh"}})
		p := x.connect("")
		push := map[string]any{"jid": "same", "jobtype": "k", "args": []any{1}}
		p.push(push)
		p.push(push)
		p.must("-ERR enqueue 1 jobs: idempotency key", "PUSH", map[string]any{"jid": "same", "jobtype": "k", "args": []any{2}})
		answer := p.ask("PUSHB", []any{
			push, map[string]any{"jid": "same", "jobtype": "other"}, map[string]any{"jid": "new", "jobtype": "k"}, map[string]any{"jobtype": "k"}, 7,
			map[string]any{"jid": "shell", "jobtype": "sh"},
		})
		var refused map[string]string
		if err := json.Unmarshal([]byte(answer), &refused); err != nil || len(refused) != 4 || refused["same"] == "" || refused["[3]"] == "" || refused["[4]"] == "" || !strings.Contains(refused["shell"], "sh") {
			t.Errorf("PUSHB answered %s (%v)", answer, err)
		}
		if all := x.jobs(); len(all) != 2 {
			t.Errorf("there are %d jobs, want 2", len(all))
		}
		if answer := p.ask("PUSHB", []any{}); answer != "{}" {
			t.Errorf("PUSHB of nothing answered %s", answer)
		}
	})
}

func TestAFailedJobIsTriedAgainAsOftenAsItSays(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		x := serve(t, s, faktory.Config{})
		w := x.connect("w1")
		for _, c := range []struct {
			retry any
			state stint.State
			want  int
		}{{nil, stint.Retrying, 25}, {1, stint.Retrying, 1}, {0, stint.Failed, 0}, {-1, stint.Failed, 0}} {
			push := map[string]any{"jid": fmt.Sprint("retry ", c.retry), "jobtype": "k"}
			if c.retry != nil {
				push["retry"] = c.retry
			}
			w.push(push)
			w.must("OK", "FAIL", map[string]any{"jid": w.fetch("default").JID, "errtype": "ValueError", "message": "boom", "backtrace": []string{"a", "b"}})
			got := x.jobs()[0]
			n := retries(t, got)
			if f := got.Attempts[0].Error; got.State != c.state || n != c.want || f.Class != "ValueError" || f.Message != "boom" || f.Stack != "a\nb" {
				t.Errorf("retry %v: the job is %s, %d retries, %+v", c.retry, got.State, n, f)
			}
			if c.state == stint.Retrying {
				if wait := time.Until(got.Due); wait < 5*time.Second || wait > 30*time.Second {
					t.Errorf("its first retry is in %v", wait)
				}
			}
		}
	})
}

func TestARetryTellsHowOftenItFailed(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		x := serve(t, s, faktory.Config{})
		w := x.connect("w1")
		if _, err := stint.NewClient(s).Enqueue(t.Context(), stint.NewJob{Kind: "k", Retry: retry.Fixed(1, 0)}); err != nil {
			t.Fatal(err)
		}
		first := w.fetch()
		w.must("OK", "FAIL", map[string]any{"jid": first.JID})
		second := w.fetch()
		if second.JID != first.JID || second.Failure == nil || second.Failure.RetryCount != 1 {
			t.Errorf("after %+v came %+v", first, second)
		}
		w.ack(second)
	})
}

// Kinds that no program has declared, and that appear while workers fetch, reach them; what is not for them stays.
func TestAWorkerGetsJobsOfEveryKindInItsQueues(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		x := serve(t, s, faktory.Config{})
		w := x.connect("w1")
		w.must("nil", "FETCH", "a b")
		client := stint.NewClient(s)
		for i, args := range []string{`{"n":1}`, `[1]`, `7`} {
			id, err := client.Enqueue(t.Context(), stint.NewJob{Kind: fmt.Sprint("kind-", i), Queue: "a", Args: json.RawMessage(args), Metadata: json.RawMessage(`{"faktory":7,"x":1}`)})
			if err != nil {
				t.Fatal(err)
			}
			j := w.fetch("a", "b")
			want := args
			if args[0] != '[' {
				want = "[" + args + "]"
			}
			if j.JID != "stint-"+id.String() || j.Jobtype != fmt.Sprint("kind-", i) || strings.ReplaceAll(string(j.Args), " ", "") != want || j.ReserveFor != 1800 || j.Custom["x"] != 1.0 {
				t.Errorf("it came as %+v, with %s", j, j.Args)
			}
			w.ack(j)
		}
		if _, err := client.Enqueue(t.Context(), stint.NewJob{Kind: "kind-0", Queue: "c"}); err != nil {
			t.Fatal(err)
		}
		w.must("nil", "FETCH", "a b")
	})
}

func TestQueuesComeInTheOrderOfTheFetch(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		x := serve(t, s, faktory.Config{})
		w := x.connect("w1")
		var all []any
		for i := range 4 {
			for _, q := range []string{"a", "b", "c"} {
				all = append(all, map[string]any{"jid": fmt.Sprint(q, i), "jobtype": "k", "queue": q, "priority": map[string]int{"a": 1, "b": 9, "c": 5}[q]})
			}
		}
		w.must("{}", "PUSHB", all)
		for _, c := range []struct{ order, want string }{{"b a c", "b"}, {"b a c", "b"}, {"c b a", "c"}, {"a c b", "a"}, {"b c a", "b"}, {"b c a", "b"}, {"b c a", "c"}} {
			j := w.fetch(strings.Fields(c.order)...)
			if j.Queue != c.want {
				t.Errorf("FETCH %s brought a job of %s, want one of %s", c.order, j.Queue, c.want)
			}
			w.ack(j)
		}
	})
}

// A worker takes what its connections wait for. What it does not take is there for others.
func TestAWorkerTakesNoMoreThanItWaitsFor(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		x := serve(t, s, faktory.Config{})
		a, b := x.connect("w1"), x.connect("w2")
		var all []any
		for i := range 10 {
			all = append(all, map[string]any{"jid": fmt.Sprint("j", i), "jobtype": "k"})
		}
		a.must("{}", "PUSHB", all)
		mine := a.fetch()
		time.Sleep(300 * time.Millisecond)
		counts, err := s.Counts(t.Context())
		if err != nil || counts[stint.Running] != 1 || counts[stint.Available] != 9 {
			t.Errorf("one job was fetched, and there are %v (%v)", counts, err)
		}
		for range 9 {
			b.ack(b.fetch())
		}
		a.ack(mine)
	})
}

func TestManyConnectionsAreOneWorker(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		x := serve(t, s, faktory.Config{})
		const conns, n = 8, 200
		p := x.connect("")
		var all []any
		for i := range n {
			all = append(all, map[string]any{"jid": fmt.Sprint("j", i), "jobtype": "k"})
		}
		p.must("{}", "PUSHB", all)
		var mu sync.Mutex
		seen := map[string]int{}
		var running sync.WaitGroup
		acks := x.connect("w1")
		var acking sync.Mutex
		for range conns {
			c := x.connect("w1")
			running.Go(func() {
				for {
					mu.Lock()
					done := len(seen) == n
					mu.Unlock()
					if done {
						return
					}
					text := c.ask("FETCH", "default")
					if text == "nil" {
						continue
					}
					var j job
					if err := json.Unmarshal([]byte(text), &j); err != nil {
						t.Errorf("%s: %v", text, err)
						return
					}
					mu.Lock()
					seen[j.JID]++
					mu.Unlock()
					acking.Lock()
					acks.ack(j) // by another connection
					acking.Unlock()
				}
			})
		}
		running.Wait()
		for jid, times := range seen {
			if times != 1 {
				t.Errorf("%s came %d times", jid, times)
			}
		}
		if counts, err := s.Counts(t.Context()); err != nil || counts[stint.Completed] != n {
			t.Errorf("the jobs are %v (%v)", counts, err)
		}
		if rows := x.roster(); len(rows) != 1 {
			t.Errorf("the roster has %d workers, want one", len(rows))
		}
	})
}

func TestAWorkerEndsNoJobOfAnother(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		x := serve(t, s, faktory.Config{})
		w, thief := x.connect("w1"), x.connect("w2")
		w.push(map[string]any{"jid": "mine", "jobtype": "k"})
		j := w.fetch()
		thief.must("nil", "FETCH", "")
		for _, verb := range []string{"ACK", "FAIL"} {
			thief.must("-ERR this worker does not hold", verb, map[string]any{"jid": "mine"})
		}
		x.connect("").must("-ERR the connection gave no wid", "ACK", map[string]any{"jid": "mine"})
		if got := x.only(); got.State != stint.Running {
			t.Errorf("the job is %s", got.State)
		}
		w.ack(j)
		w.must("-ERR this worker does not hold", "ACK", map[string]any{"jid": "never"})
	})
}

func TestAJobIsNotHandedToADeadFetch(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		x := serve(t, s, faktory.Config{})
		dead, p := x.connect("w1"), x.connect("w1")
		p.must("nil", "FETCH", "") // it has joined
		for i := range 5 {
			dead.send("FETCH", "default")
			time.Sleep(100 * time.Millisecond)
			dead.Close()
			if i%2 == 0 {
				time.Sleep(50 * time.Millisecond)
			}
			p.push(map[string]any{"jid": fmt.Sprint("j", i), "jobtype": "k"})
			began := time.Now()
			j := p.fetch()
			if j.JID != fmt.Sprint("j", i) || time.Since(began) > 10*time.Second {
				t.Errorf("%s came after %v", j.JID, time.Since(began))
			}
			p.ack(j)
			dead = x.connect("w1")
		}
		for _, j := range x.jobs() {
			if j.Attempt != 1 || j.State != stint.Completed {
				t.Errorf("the job is %+v", j)
			}
		}
	})
}

func TestAJobThatNoFetchTakesGoesBack(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		x := serve(t, s, faktory.Config{})
		quiet, other := x.connect("w1"), x.connect("w2")
		for i := range 3 { // sometimes the worker's engine has it when the FETCH ends
			quiet.send("FETCH", "default")
			time.Sleep(2*time.Second - 5*time.Millisecond)
			other.push(map[string]any{"jid": fmt.Sprint("j", i), "jobtype": "k"})
			if text := quiet.answer(); text != "nil" {
				var j job
				if err := json.Unmarshal([]byte(text), &j); err != nil {
					t.Fatal(err)
				}
				quiet.ack(j)
				continue
			}
			other.ack(other.fetch())
		}
	})
}

func TestTheJobsOfADeadWorkerRunAgainAfterItsTimeToLive(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		x := serve(t, s, faktory.Config{TimeToLive: 5 * time.Second})
		dead, w := x.connect("w1"), x.connect("w2")
		w.push(map[string]any{"jid": "j1", "jobtype": "k", "reserve_for": 1800})
		dead.fetch()
		dead.Close()
		began := time.Now()
		j := w.fetch()
		if took := time.Since(began); j.JID != "j1" || took < 3*time.Second {
			t.Errorf("%s came again after %v", j.JID, took)
		}
		back := x.connect("w1") // it was only slow
		back.must("-ERR this worker does not hold", "ACK", map[string]any{"jid": "j1"})
		w.ack(j)
		if got := x.only(); len(got.Attempts) != 2 || got.Attempts[0].Outcome != stint.OutcomeLost || got.State != stint.Completed {
			t.Errorf("the job is %s, with %+v", got.State, got.Attempts)
		}
		back.must("nil", "FETCH", "") // and joins again
	})
}

func TestHeartbeatsKeepAWorkerAlive(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		x := serve(t, s, faktory.Config{TimeToLive: 5 * time.Second})
		w := x.connect("w1")
		w.must("OK", "BEAT", map[string]any{"wid": "w1"})
		w.push(map[string]any{"jid": "j1", "jobtype": "k"})
		j := w.fetch()
		for range 8 {
			time.Sleep(time.Second)
			w.must("OK", "BEAT", map[string]any{"wid": "w1", "current_state": "", "rss_kb": 1})
		}
		w.ack(j)
		w.must("-ERR the wid", "BEAT", map[string]any{"wid": "w2"})
		if got := x.only(); len(got.Attempts) != 1 || got.State != stint.Completed {
			t.Errorf("the job is %s, with %+v", got.State, got.Attempts)
		}
	})
}

func TestAJobWhoseReservationIsOverFails(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		x := serve(t, s, faktory.Config{})
		w := x.connect("w1")
		w.push(map[string]any{"jid": "j1", "jobtype": "k", "reserve_for": 1})
		j := w.fetch()
		eventually(t, "the attempt has failed", func() bool { return x.only().State == stint.Retrying })
		if f := x.only().Attempts[0].Error; f.Class != "timeout" {
			t.Errorf("its error is %+v", f)
		}
		w.must("-ERR this worker does not hold", "ACK", map[string]any{"jid": j.JID})
	})
}

func TestADrainedWorkerIsQuietAndThenTerminates(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		x := serve(t, s, faktory.Config{})
		w := x.connect("w1")
		w.push(map[string]any{"jid": "j1", "jobtype": "k"})
		j := w.fetch()
		if err := s.Drain(t.Context(), x.roster()[0].Token); err != nil {
			t.Fatal(err)
		}
		w.push(map[string]any{"jid": "j2", "jobtype": "k"})
		beat := map[string]any{"wid": "w1"}
		eventually(t, "the worker is told to be quiet", func() bool { return w.ask("BEAT", beat) == `{"state":"quiet"}` })
		began := time.Now()
		w.must("nil", "FETCH", "")
		if time.Since(began) < time.Second {
			t.Error("a FETCH of a drained worker does not wait")
		}
		w.ack(j)
		w.must(`{"state":"terminate"}`, "BEAT", beat)
		w.must(`{"state":"terminate"}`, "BEAT", beat)
	})
}

func TestAStopWaitsForWhatWorkersHold(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		x := serve(t, s, faktory.Config{})
		w := x.connect("w1")
		w.push(map[string]any{"jid": "j1", "jobtype": "k"})
		j := w.fetch()
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			x.Shutdown(ctx)
		}()
		time.Sleep(100 * time.Millisecond)
		w.push(map[string]any{"jid": "j2", "jobtype": "k"})
		w.must("nil", "FETCH", "")
		w.must("OK", "BEAT", map[string]any{"wid": "w1"})
		select {
		case <-stopped:
			t.Fatal("it did not wait")
		default:
		}
		w.ack(j)
		<-stopped
		if counts, err := s.Counts(t.Context()); err != nil || counts[stint.Completed] != 1 || counts[stint.Available] != 1 {
			t.Errorf("the jobs are %v (%v)", counts, err)
		}
	})
}

func TestFiguresOfQueues(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		x := serve(t, s, faktory.Config{})
		w := x.connect("w1")
		for i := range 3 {
			w.push(map[string]any{"jid": fmt.Sprint("j", i), "jobtype": "k", "queue": "mail"})
		}
		w.ack(w.fetch("mail"))
		w.must("OK", "FAIL", map[string]any{"jid": w.fetch("mail").JID})
		var got struct {
			Faktory struct {
				Queues                          map[string]int
				Total_queues, Total_enqueued    int //nolint:all // as they stand in JSON
				Total_processed, Total_failures int
			}
			Server          struct{ Connections, Command_count, Used_memory_mb int }
			Server_utc_time string
		}
		if err := json.Unmarshal([]byte(w.ask("INFO", "")), &got); err != nil {
			t.Fatal(err)
		}
		f := got.Faktory
		if f.Queues["mail"] != 1 || f.Total_queues != 1 || f.Total_enqueued != 1 || f.Total_processed != 1 || f.Total_failures != 0 || got.Server_utc_time == "" ||
			got.Server.Connections != 1 || got.Server.Command_count != 8 || got.Server.Used_memory_mb == 0 {
			t.Errorf("INFO says %+v", got)
		}
	})
}

func TestAPushSaysWhenAndUntilWhen(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		x := serve(t, s, faktory.Config{})
		p := x.connect("")
		at := time.Now().Add(time.Hour).Truncate(time.Millisecond)
		p.push(map[string]any{"jid": "later", "jobtype": "k", "at": at.Format(time.RFC3339Nano), "custom": map[string]any{"expires_at": at.Add(time.Hour).Format(time.RFC3339)}})
		if got := x.only(); got.State != stint.Scheduled || !got.Due.Equal(at) || got.StartBy.Before(at) {
			t.Errorf("the job is %+v", got)
		}
	})
}

func TestWhatCannotBeIsRefusedAndTheConnectionGoesOn(t *testing.T) {
	onEach(t, func(t *testing.T, s full) {
		x := serve(t, s, faktory.Config{})
		w := x.connect("w1")
		for _, c := range [][2]string{
			{"PUSH", `{`}, {"PUSH", `[]`}, {"PUSH", `null`}, {"PUSH", `{"jid":"a"}`}, {"PUSH", `{"jobtype":"k"}`}, {"PUSH", `{"jid":"a","jobtype":"k","args":{}}`},
			{"PUSH", `{"jid":"a","jobtype":"k","at":"soon"}`}, {"PUSH", `{"jid":"a","jobtype":"k","reserve_for":-1}`}, {"PUSH", `{"jid":"a","jobtype":"k","priority":10}`},
			{"PUSH", `{"jid":"a","jobtype":"k","custom":{"unique_for":60}}`}, {"PUSH", `{"jid":"a","jobtype":"k","custom":{"faktory":1}}`}, {"PUSH", `{"jid":"stint-1","jobtype":"k"}`},
			{"PUSH", `{"jid":"a","jobtype":"k","args":["` + strings.Repeat("x", 2<<20) + `"]}`}, {"PUSH", `{"jid":"a","jobtype":"k","custom":{"expires_at":1}}`},
			{"PUSHB", `{}`}, {"ACK", `7`}, {"ACK", `{}`}, {"FAIL", ``}, {"BEAT", `[]`}, {"TRACK", `SET {"jid":"a"}`}, {"QUEUE", `PAUSE *`}, {"FLUSH", ``}, {"MUTATE", `{}`}, {"BATCH", `NEW {}`}, {"NONSENSE", ``}, {"", ``},
			{"FETCH", strings.Repeat("q ", 200)}, {"FETCH", strings.Repeat("q", 300)}, {"PUSH", strings.Repeat("x", 9<<20)},
		} {
			if got := w.ask(c[0], c[1]); !strings.HasPrefix(got, "-ERR ") || len(got) > 600 {
				t.Errorf("%s %.60s is answered by %q", c[0], c[1], got)
			}
		}
		w.must("nil", "FETCH", "a b")
		w.must("nil", "FETCH", "b a b")
		w.must("-ERR the worker fetched from other queues", "FETCH", "a")
		if all := x.jobs(); len(all) != 0 {
			t.Errorf("there are %d jobs", len(all))
		}
	})
}

func TestNobodyGetsInWithoutThePassword(t *testing.T) {
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	var mu sync.Mutex
	why := map[string]int{}
	x := serve(t, s, faktory.Config{MaxConns: 3, OnRefused: func(from, reason string) {
		mu.Lock()
		defer mu.Unlock()
		why[reason]++
	}})
	for _, hello := range []func(salt string, n int) (string, any){
		func(salt string, n int) (string, any) { return "HELLO", map[string]any{"v": 2} },
		func(salt string, n int) (string, any) {
			return "HELLO", map[string]any{"v": 2, "pwdhash": hash("other", salt, n)}
		},
		func(salt string, n int) (string, any) {
			return "HELLO", map[string]any{"v": 2, "pwdhash": hash(password, salt, n-1)}
		},
		func(salt string, n int) (string, any) {
			return "HELLO", map[string]any{"v": 1, "pwdhash": hash(password, salt, 1)}
		},
		func(salt string, n int) (string, any) {
			return "HELLO", map[string]any{"v": 2, "wid": strings.Repeat("w", 101), "pwdhash": hash(password, salt, n)}
		},
		func(string, int) (string, any) { return "HELLO", "{" },
		func(string, int) (string, any) { return "INFO", "" },
	} {
		c, salt, n := x.dial()
		verb, arg := hello(salt, n)
		c.must("-ERR ", verb, arg)
		if text, err := c.read(); !errors.Is(err, io.EOF) {
			t.Errorf("after a refusal the server said %q (%v)", text, err)
		}
	}
	long, _, _ := x.dial()
	long.send("HELLO", strings.Repeat("x", 10<<10))
	if text, err := long.read(); err == nil {
		t.Errorf("a long HELLO is answered by %q", text)
	}
	for range 3 {
		x.connect("")
	}
	full, err := net.Dial("tcp", x.at)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	if n, _ := full.Read(make([]byte, 10)); n > 0 {
		t.Error("a fourth connection is served")
	}
	mu.Lock()
	defer mu.Unlock()
	if why["the password is wrong"] != 3 || why["there are too many connections"] != 1 {
		t.Errorf("refused were %v", why)
	}
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := faktory.New(s, faktory.Config{Config: gateway.Config{Host: x.host}}).Serve(l); err == nil || !strings.Contains(err.Error(), "no password") {
		t.Errorf("without a password Serve returned %v", err)
	}
}

// A FETCH looks for a hangup while it waits, and the commands after it are read as ever.
func TestAFetchOverTLSLeavesTheConnectionAsItWas(t *testing.T) {
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	x := serve(t, s, faktory.Config{})
	certified := httptest.NewTLSServer(nil)
	t.Cleanup(certified.Close)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certified.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = x.Serve(l) }()
	conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // of a test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	w := &client{t, conn, bufio.NewReader(conn)}
	var hi struct{ S string }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(w.answer(), "HI ")), &hi); err != nil {
		t.Fatal(err)
	}
	w.must("OK", "HELLO", map[string]any{"v": 2, "wid": "w1", "pwdhash": hash(password, hi.S, 2000)})
	w.must("nil", "FETCH", "")
	w.push(map[string]any{"jid": "j1", "jobtype": "k"})
	w.ack(w.fetch())
	w.must("nil", "FETCH", "")
	w.must("OK", "BEAT", map[string]any{"wid": "w1"})
}
