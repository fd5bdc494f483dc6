package postgres

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// listening begins to listen to a store. The rings come until stop is called.
func listening(t *testing.T, s *Store) (rung <-chan struct{}, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	rung, over := listen(ctx, t, s)
	return rung, func() { t.Helper(); cancel(); must(t, <-over) }
}

// listen listens to a store until the context ends, and returns once it has begun; over receives what Listen returns.
func listen(ctx context.Context, t *testing.T, s *Store) (rung <-chan struct{}, over <-chan error) {
	t.Helper()
	rings, end := make(chan struct{}, 100), make(chan error, 1)
	go func() { end <- s.Listen(ctx, func(store.News) { rings <- struct{}{} }) }()
	select {
	case <-rings:
	case err := <-end:
		t.Fatalf("listening ended before it began: %v", err)
	case <-time.After(patience):
		t.Fatal("listening does not begin")
	}
	return rings, end
}

// U58: people see who listens, and it is a connection of its own.
func TestListeningIsAConnectionOfItsOwnWithAName(t *testing.T) {
	s := newStore(t)
	const listeners = `select count(*) from pg_stat_activity where datname = current_database() and application_name = 'stint listen'`
	if n := value[int](t, s.pool, listeners); n != 0 {
		t.Errorf("%d listen before anybody does", n)
	}
	_, stop := listening(t, s)
	if n := value[int](t, s.pool, listeners); n != 1 {
		t.Errorf("%d listen, want one", n)
	}
	if n := s.pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections of the pool are in use", n)
	}
	stop()
}

// A peer that was cut off without a word is noticed by asking.
func TestWhoListensOnAConnectionThatWentSilentIsTold(t *testing.T) {
	s := newStore(t)
	quiet, silence := context.WithCancel(t.Context())
	config, err := pgxpool.ParseConfig(s.url())
	must(t, err)
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		server, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return silenced(t, quiet, server), nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	must(t, err)
	t.Cleanup(pool.Close)
	cut, err := New(t.Context(), pool)
	must(t, err)
	t.Cleanup(cut.Close)
	// It bounds how long connecting may take, and a third of it how long an answer may, which a busy machine has to keep.
	cut.keepAlive = 900 * time.Millisecond
	_, over := listen(t.Context(), t, cut)
	select {
	case err := <-over:
		t.Fatalf("a connection on which nothing is said, and that is well, ended with %v", err)
	case <-time.After(2*cut.keepAlive + cut.keepAlive/2): // it has asked twice, and was answered
	}
	silence()
	select {
	case err := <-over:
		if err == nil {
			t.Error("it ended without an error")
		}
	case <-time.After(patience):
		t.Error("it goes on listening to nobody")
	}
}

// silenced passes on what both sides say until the context ends; from then on
// what is said is lost, and nobody is told.
func silenced(t *testing.T, until context.Context, server net.Conn) net.Conn {
	client, inner := net.Pipe()
	var ends sync.WaitGroup
	pass := func(to io.Writer, from io.Reader) {
		b := make([]byte, 32<<10)
		for {
			n, err := from.Read(b)
			if err != nil {
				return
			}
			if until.Err() == nil {
				if _, err := to.Write(b[:n]); err != nil {
					return
				}
			}
		}
	}
	ends.Go(func() { pass(server, inner); server.Close() })
	ends.Go(func() { pass(inner, server); inner.Close() })
	t.Cleanup(func() { inner.Close(); server.Close(); ends.Wait() })
	return client
}

// U115: two installations in one database know nothing of each other, and do
// not wake each other either.
func TestSchemasShareADatabaseAndNothingElse(t *testing.T) {
	s := newStore(t)
	other := openStore(t, s.url(), Config{Schema: "other"})
	ctx, stop := context.WithCancel(t.Context())
	rung, over := listen(ctx, t, other)
	b := &bench{t, s, nil}
	w := b.join()
	b.enqueue(3)
	b.enqueue(2, stint.Delay(time.Hour))
	w.Complete(w.ClaimAll()...)
	s.notifier.wait()
	select {
	case <-rung:
		t.Error("the other one was rung")
	case <-time.After(100 * time.Millisecond):
	}
	counts, err := other.Counts(t.Context())
	must(t, err)
	for state, n := range counts {
		if n != 0 {
			t.Errorf("the other one has %d %s", n, state)
		}
	}
	engines, err := other.Engines(t.Context())
	if err != nil || len(engines) != 0 {
		t.Errorf("the other one has the engines %v, %v", engines, err)
	}
	theirs := &bench{t, other, nil}
	v := theirs.join()
	theirs.enqueue(1)
	v.Complete(v.One())
	v.Leave()
	if !rings(rung) {
		t.Error("it was not rung for its own")
	}
	must(t, other.Uninstall(t.Context()))
	if n, err := s.Counts(t.Context()); err != nil || n[stint.Completed] != 3 || n[stint.Scheduled] != 2 {
		t.Errorf("what is left is %v, %v", n, err)
	}
	w.Leave()
	stop()
	<-over
}

// A server that is down may refuse, or swallow what is sent to it, before the
// connection is there or behind.
func TestWhoBeginsToListenWhileTheServerDoesNotAnswerIsToldAndMayStopAtOnce(t *testing.T) {
	s := newStore(t)
	mute, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and says nothing
	must(t, err)
	t.Cleanup(func() { mute.Close() })
	config := s.pool.Config()
	config.ConnConfig.ConnectTimeout = 0
	config.ConnConfig.DialFunc = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, mute.Addr().String())
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	must(t, err)
	t.Cleanup(pool.Close)
	down := &Store{pool: pool, config: s.config, sql: s.sql, keepAlive: 50 * time.Millisecond}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	over := make(chan error, 1)
	go func() { over <- down.Listen(ctx, func(store.News) { t.Error("it rang") }) }()
	select {
	case err := <-over:
		if err == nil {
			t.Error("whoever listens believes to be heard")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for ever for somebody to listen to")
	}
	down.keepAlive = time.Hour
	go func() { over <- down.Listen(ctx, func(store.News) {}) }()
	conn, err := mute.Accept() // of the first try, or of this one
	must(t, err)
	defer conn.Close()
	cancel()
	must(t, <-over)
}
