//go:build unix

package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/store"
)

func init() {
	pooler = func(t *testing.T, server *pgtest.Server) func(string) string {
		p := pgtest.StartPooler(t, server.URL("postgres"), nil)
		// Callers' transactions are those of programs, which have to say so.
		return func(url string) string { return p.URL(url) + "&default_query_exec_mode=cache_describe" }
	}
}

// pooled is a database behind a pooler that shares two sessions of the server
// among all transactions, by its own URL.
func pooled(t *testing.T) (s *Store, url string) {
	t.Helper()
	s = verified(t)
	return s, pgtest.StartPooler(t, s.url(), map[string]string{"default_pool_size": "2"}).URL(s.url())
}

// The page has a configuration of PgBouncer, and makes its list of users. Here its addresses are the test's.
func TestTheConfigurationOnThePageOfPoolersWorks(t *testing.T) {
	page, err := os.ReadFile("../docs/poolers.md")
	must(t, err)
	block := func(language string) string {
		_, text, _ := strings.Cut(string(page), "```"+language+"\n")
		text, _, _ = strings.Cut(text, "```")
		return text
	}
	databases, rest, split := strings.Cut(block("ini"), "[pgbouncer]\n")
	if !split || !strings.Contains(databases, "[databases]\n") {
		t.Fatalf("the page has no configuration: %q", databases)
	}
	settings := map[string]string{}
	for line := range strings.Lines(rest) {
		name, value, is := strings.Cut(strings.TrimSpace(line), " = ")
		if is && !strings.HasPrefix(name, ";") && !strings.HasPrefix(name, "listen_") {
			settings[name] = value
		}
	}
	if settings["pool_mode"] != "transaction" || settings["idle_transaction_timeout"] == "" {
		t.Fatalf("the settings are %v", settings)
	}
	server := pgtest.Start(t, pgtest.Options{})
	direct, err := Open(t.Context(), server.URL("postgres"))
	must(t, err)
	t.Cleanup(direct.Close)
	_, err = direct.Migrate(t.Context())
	must(t, err)
	settings["auth_file"] = value[string](t, direct.pool, strings.ReplaceAll(strings.TrimRight(block("sql"), ";\n"), "'shop'", "'postgres'"))
	open := openStore(t, pgtest.StartPooler(t, server.URL("postgres"), settings).URL(server.URL("postgres")))
	b := &bench{t, open, nil}
	w := b.join()
	b.enqueue(3)
	w.Complete(w.ClaimAll()...)
	w.Leave()
	if counts, err := open.Counts(t.Context()); err != nil || counts[stint.Completed] != 3 {
		t.Errorf("the jobs are %v, error %v", counts, err)
	}

	// What runs behind a pooler is cancelled 4.5 s after the last beat that got through.
	server.Stop(pgtest.Fast)
	down, end := context.WithTimeout(t.Context(), time.Second)
	defer end()
	if _, err := open.Counts(down); err == nil {
		t.Error("the pooler answers for a server that is down")
	}
	server.Start()
	back, end := context.WithTimeout(t.Context(), 3*time.Second)
	defer end()
	for _, err = open.Counts(back); err != nil && back.Err() == nil; _, err = open.Counts(back) {
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		t.Errorf("3s after the server is back: %v", err)
	}
}

// What a connection prepared in one session is not there in the next one, or
// somebody else has prepared it there.
func TestThroughAPoolerNothingIsPreparedUnlessSomebodySaysSo(t *testing.T) {
	_, url := pooled(t)
	var all []*Store
	for range 2 {
		all = append(all, openStore(t, url))
	}
	var both sync.WaitGroup
	for _, s := range all {
		both.Go(func() {
			b := &bench{t, s, nil}
			w := b.join()
			for range 4 {
				b.enqueue(3)
				b.enqueue(300)
				w.Complete(w.ClaimAll()...)
			}
			w.Leave()
		})
	}
	both.Wait()
	for mode, prepares := range map[string]bool{"": false, "&default_query_exec_mode=cache_statement": true, "&default_query_exec_mode=exec": false} {
		if s := openStore(t, url+mode); s.prepares != prepares {
			t.Errorf("with %q statements are prepared: %v", mode, s.prepares)
		}
	}
}

// A pooler may take the end of one transaction for the end of all that was sent, and lend the session
// to another program while the next one runs there.
func TestThroughAPoolerNoTransactionIsSentBeforeTheOneBeforeItHasEnded(t *testing.T) {
	_, url := pooled(t)
	config, err := pgxpool.ParseConfig(url)
	must(t, err)
	var most atomic.Int32
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		return &ends{Conn: c, most: &most, sent: frames{skip: true}}, err
	}
	unprepared(config.ConnConfig)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	must(t, err)
	t.Cleanup(pool.Close)
	s, err := New(t.Context(), pool)
	must(t, err)
	t.Cleanup(s.Close)
	b := &bench{t, s, nil}
	w := b.join()
	for range 3 {
		b.enqueue(30)
		w.Complete(w.ClaimAll()...)
	}
	job := stint.NewJob{Kind: "k", Queue: stint.DefaultQueue, Args: []byte("{}")}
	if _, err := s.EnqueueClaimed(t.Context(), job, store.ClaimRequest{Engine: w.Info.Token, Serial: 1000, Low: 1, Nonce: 7}); err != nil {
		t.Error(err)
	}
	w.Leave()
	if n := most.Load(); n != 1 {
		t.Errorf("%d transactions are under way at once, want 1", n)
	}
}

// ends counts transactions whose end was asked for and is not known yet.
type ends struct {
	net.Conn
	sent, got frames
	open      atomic.Int32
	most      *atomic.Int32
}

func (c *ends) Write(b []byte) (int, error) {
	c.sent.each(b, func(kind byte) {
		if kind == 'S' || kind == 'Q' {
			if n := c.open.Add(1); n > c.most.Load() {
				c.most.Store(n)
			}
		}
	})
	return c.Conn.Write(b)
}

func (c *ends) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.got.each(b[:n], func(kind byte) {
		if kind == 'Z' && c.open.Load() > 0 { // the first one ends the beginning
			c.open.Add(-1)
		}
	})
	return n, err
}

// frames takes the messages of one side apart.
type frames struct {
	rest []byte
	skip bool // the first message has no kind
}

func (f *frames) each(b []byte, told func(kind byte)) {
	f.rest = append(f.rest, b...)
	for {
		head := 1
		if f.skip {
			head = 0
		}
		if len(f.rest) < head+4 {
			return
		}
		n := head + int(binary.BigEndian.Uint32(f.rest[head:]))
		if len(f.rest) < n {
			return
		}
		if !f.skip {
			told(f.rest[0])
		}
		f.skip, f.rest = false, f.rest[n:]
	}
}

// The sessions are other programs' as well.
func TestThroughAPoolerSessionsKeepTheirTimeOuts(t *testing.T) {
	_, url := pooled(t)
	s := openStore(t, url)
	must(t, s.startWork(t.Context(), 6*time.Second))
	for _, name := range []string{"statement_timeout", "lock_timeout", "tcp_user_timeout"} {
		if got := setting(t.Context(), t, s.work(), name); got != "0" {
			t.Errorf("%s is %s", name, got)
		}
	}
}

// The sessions of a pooler are others' as well: what they speak is not changed.
func TestThroughAPoolerARoleWithAnotherEncodingIsRefused(t *testing.T) {
	right := latin1(t)
	url := pgtest.StartPooler(t, unsaid(right), nil).URL(unsaid(right))
	s, err := Open(t.Context(), url)
	if err == nil {
		s.Close()
	}
	refuses(t, "the store", err)
	pool, err := pgxpool.New(t.Context(), url)
	must(t, err)
	t.Cleanup(pool.Close)
	_, err = New(t.Context(), pool)
	refuses(t, "a program's pool", err)
}

func TestAProgramsPoolThatPreparesBehindAPoolerIsToldWhatToDo(t *testing.T) {
	_, url := pooled(t)
	pool, err := pgxpool.New(t.Context(), url)
	must(t, err)
	t.Cleanup(pool.Close)
	for until := time.Now().Add(20 * time.Second); err == nil && time.Now().Before(until); {
		var s *Store
		if s, err = New(t.Context(), pool); err == nil {
			_, err = s.Counts(t.Context())
		}
		pool.Reset() // another connection prepares it anew
	}
	if !errors.Is(err, errLent) || !strings.Contains(err.Error(), "default_query_exec_mode") {
		t.Errorf("it is told %v", err)
	}
}

func TestWhoListensThroughAPoolerThatSharesSessionsIsToldOnce(t *testing.T) {
	direct, url := pooled(t)
	s := openStore(t, url)
	fails := func(store.News) { t.Error("it was rung") }
	first, end := context.WithTimeout(t.Context(), 20*time.Second)
	defer end()
	if err := s.Listen(first, fails); !errors.Is(err, errLent) {
		t.Errorf("it is told %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Listen(ctx, fails); err != nil {
		t.Errorf("it tries again at once, and is told %v", err)
	}
	s.deaf.Store(time.Now().UnixNano()) // a minute later
	again, cancel := context.WithTimeout(t.Context(), ringTakes+time.Second)
	defer cancel()
	if err := s.Listen(again, fails); err != nil || time.Until(time.Unix(0, s.deaf.Load())) < deafFor/2 {
		t.Errorf("it is told once more: %v", err)
	}
	if all := value[[]string](t, s.pool, `select coalesce(array_agg(c), '{}') from pg_listening_channels() c`); slices.Contains(all, "stint") {
		t.Errorf("a shared session listens to %v", all)
	}

	kept := pgtest.StartPooler(t, direct.url(), map[string]string{"pool_mode": "session"})
	rung, stop := listening(t, openStore(t, kept.URL(direct.url())))
	(&bench{t, direct, nil}).enqueue(1, stint.Delay(time.Hour))
	if !rings(rung) {
		t.Error("nobody is rung through a pooler that keeps sessions apart")
	}
	stop()
}

// The lock of whoever changes the schema is a session's.
func TestAnOnlineStepIsRefusedWhereSessionsAreShared(t *testing.T) {
	s, url := pooled(t)
	(&bench{t, s, nil}).enqueue(1)
	err := <-migrating(upgrader(t, url+"&default_query_exec_mode=exec", addColumn, buildIndex))
	if !errors.Is(err, errLent) || version(t, s) != first+1 {
		t.Errorf("it is told %v, and the schema has version %d", err, version(t, s))
	}
}
