package postgres

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// outage is long enough for no test to wait for its end.
const outage = time.Hour

// present has an engine join by a store, and tells what buries it when others saw no beat of it for so
// long.
func present(t *testing.T, s, others *Store) (w *storetest.Worker, bury func(silent time.Duration) error) {
	t.Helper()
	w = storetest.NewWorker(t, s, "k")
	w.Info.MaxOutage, w.Info.TimeToLive = outage, time.Second
	must(t, w.TryJoin(t.Context()))
	return w, func(silent time.Duration) error {
		time.Sleep(5 * time.Millisecond)
		_, err := others.Bury(t.Context(), store.Burial{Engine: w.Info.Token, Unless: time.Millisecond, Silent: silent}, storetest.Judge)
		return err
	}
}

func vouches(s *Store, w *storetest.Worker) bool {
	return s.Vouches(w.Info.Token, time.Now()).After(time.Now())
}

func eventuallyTrue(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func TestAnEngineWhoseSessionStandsIsBuriedOnlyAfterALongSilence(t *testing.T) {
	s := newStore(t)
	w, bury := present(t, openStore(t, s.url()), s)
	for _, silent := range []time.Duration{time.Second, outage * 5 / 4} {
		if err := bury(silent); !errors.Is(err, store.ErrAlive) {
			t.Errorf("after a silence of %v the burial gives %v", silent, err)
		}
	}
	w.Heartbeat()
	must(t, bury(outage*4/3))
}

// A process that dies closes its connections, and need not be waited for.
func TestAnEngineWhoseProcessDiedIsBuriedAtOnce(t *testing.T) {
	s := newStore(t)
	present(t, s, s) // it has nothing to do with that
	its := openStore(t, s.url())
	_, bury := present(t, its, s)
	its.Close()
	eventuallyTrue(t, "it is buried", func() bool { return bury(time.Second) == nil })
}

// A beat vouches for its own time only, and so does an answer of the server.
func TestAnEngineIsVouchedForNoLongerThanItsLongestOutage(t *testing.T) {
	s := newStore(t)
	w, _ := present(t, s, s)
	beat := time.Now().Add(-outage / 2)
	if got := s.Vouches(w.Info.Token, beat); !got.Equal(beat.Add(outage)) {
		t.Errorf("behind a beat of %v it is vouched for until %v", beat, got)
	}
	if got := s.Vouches(w.Info.Token, time.Now().Add(outage)); got.After(time.Now().Add(outage)) {
		t.Errorf("for the sake of a beat it is vouched for until %v, after any answer", got)
	}
}

// However the server ends, the engine knows that it is the server; and when it is back,
// who has not found it yet is not taken for dead.
func TestAnEngineSurvivesTheEndOfItsServer(t *testing.T) {
	for name, mode := range map[string]pgtest.Mode{"fast": pgtest.Fast, "immediate": pgtest.Immediate} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := pgtest.Start(t, pgtest.Options{Fsync: true})
			its := openStore(t, server.New(t))
			// Once the server is back, it is out of reach for a while.
			var away atomic.Bool
			others := its
			its = dialing(t, others, func(ctx context.Context, network, addr string) (net.Conn, error) {
				if away.Load() {
					return nil, os.ErrDeadlineExceeded
				}
				return new(net.Dialer).DialContext(ctx, network, addr)
			})
			w, bury := present(t, its, others)
			server.Stop(mode)
			time.Sleep(3 * time.Second)
			if !vouches(its, w) {
				t.Error("while the server is down nobody vouches for it")
			}
			away.Store(true)
			server.Start()
			eventuallyTrue(t, "the server works", func() bool { _, err := others.Now(t.Context()); return err == nil })
			if err := bury(time.Second); !errors.Is(err, store.ErrAlive) {
				t.Errorf("before it was there again the burial gives %v", err)
			}
			if !vouches(its, w) {
				t.Error("while it cannot reach the server again nobody vouches for it")
			}
			away.Store(false)
			eventuallyTrue(t, "its session stands", func() bool { return stands(others, w) })
			w.Heartbeat()
			if err := bury(time.Second); !errors.Is(err, store.ErrAlive) {
				t.Errorf("once it was there again the burial gives %v", err)
			}
			its.Close()
			eventuallyTrue(t, "it is buried", func() bool { return bury(time.Second) == nil })
		})
	}
}

// Where the connection alone is lost, others work on and may bury the engine: then its beats decide.
func TestAnEngineThatIsCutOffIsNotVouchedFor(t *testing.T) {
	s := newStore(t)
	var cut atomic.Bool
	its := dialing(t, s, func(ctx context.Context, network, addr string) (net.Conn, error) {
		if cut.Load() {
			return nil, os.ErrDeadlineExceeded
		}
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &severed{conn, &cut}, err
	})
	w, bury := present(t, its, s)
	if !vouches(its, w) {
		t.Fatal("nobody vouches for it")
	}
	w.Heartbeat(42) // or its session is seldom asked
	cut.Store(true)
	eventuallyTrue(t, "nobody vouches for it", func() bool { return !vouches(its, w) })
	eventuallyTrue(t, "its place is free", func() bool { return !stands(s, w) })
	must(t, bury(time.Second))
}

// Somebody ends the session: a new one takes its place, and the one before does not stand in its way.
func TestASessionThatSomebodyEndedIsMadeAgain(t *testing.T) {
	s := newStore(t)
	w, bury := present(t, openStore(t, s.url()), s)
	const ofEngines = `from pg_stat_activity where application_name = 'stint engine' and datname = current_database()`
	ended := value[int32](t, s.pool, `select pid `+ofEngines)
	if !value[bool](t, s.pool, `select pg_terminate_backend($1)`, ended) {
		t.Fatal("it was not ended")
	}
	eventuallyTrue(t, "there is another one", func() bool {
		return value[bool](t, s.pool, `select exists (select `+ofEngines+` and pid <> $1)`, ended) && stands(s, w)
	})
	if err := bury(time.Second); !errors.Is(err, store.ErrAlive) {
		t.Errorf("the burial gives %v", err)
	}
}

// What is set for a role, for the sake of other programs, does not end the session.
func TestTheSessionOfAnEngineOutlivesTheTimeOutsOfItsRole(t *testing.T) {
	s := newStore(t)
	for _, setting := range []string{"idle_session_timeout", "statement_timeout"} {
		if value[bool](t, s.pool, `select exists (select from pg_settings where name = $1)`, setting) {
			must(t, setDefault(t.Context(), s.url(), setting, "600ms"))
		}
	}
	w, _ := present(t, openStore(t, s.url()), s)
	const pid = `select pid from pg_stat_activity where application_name = 'stint engine' and datname = current_database()`
	before := value[int32](t, s.pool, pid)
	time.Sleep(1500 * time.Millisecond)
	if after := value[int32](t, s.pool, pid); after != before || !stands(s, w) {
		t.Errorf("the session %d was replaced by %d", before, after)
	}
}

// stands reports whether somebody holds an engine's place.
func stands(s *Store, w *storetest.Worker) bool {
	var free bool
	err := s.pool.QueryRow(context.Background(), `select pg_try_advisory_xact_lock_shared(`+placeOf+`)`, w.Info.Token).Scan(&free)
	return err == nil && !free
}

// dialing opens a second handle on a store's database that connects in its own way.
func dialing(t *testing.T, s *Store, dial func(ctx context.Context, network, addr string) (net.Conn, error)) *Store {
	t.Helper()
	config, err := pgxpool.ParseConfig(s.url())
	must(t, err)
	config.ConnConfig.DialFunc = dial
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	must(t, err)
	t.Cleanup(pool.Close)
	again, err := New(t.Context(), pool)
	must(t, err)
	t.Cleanup(again.Close)
	return again
}

// severed is a connection that breaks without a word of the server's when it is cut.
type severed struct {
	net.Conn
	cut *atomic.Bool
}

func (s *severed) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if s.cut.Load() {
		s.Conn.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

// Whoever listens at an engine's store hears by its session, goes on after the engine has left, and is
// told when the session breaks.
func TestTheSessionOfAnEngineHearsNotificationsForAll(t *testing.T) {
	s := newStore(t)
	w, _ := present(t, s, s)
	const listeners = `select count(*) from pg_stat_activity where datname = current_database() and application_name = 'stint listen'`
	hears := func(rung <-chan struct{}) {
		t.Helper()
		if _, err := s.pool.Exec(t.Context(), `select pg_notify($1, '')`, s.sql.channel); err != nil {
			t.Fatal(err)
		}
		select {
		case <-rung:
		case <-time.After(patience):
			t.Error("it hears nothing")
		}
	}
	one, oneOver := listen(t.Context(), t, s)
	two, _ := listen(t.Context(), t, s)
	hears(one)
	hears(two)
	if n := value[int](t, s.pool, listeners); n != 0 {
		t.Errorf("%d have connections of their own, although an engine's session stands", n)
	}
	value[bool](t, s.pool, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'stint engine'`)
	select {
	case err := <-oneOver:
		if err == nil {
			t.Error("the session broke, and listening ended without an error")
		}
	case <-time.After(patience):
		t.Fatal("the session broke, and nobody who listens is told")
	}
	eventuallyTrue(t, "the session stands again", func() bool { return vouches(s, w) })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	three, threeOver := listen(ctx, t, s)
	w.Leave()
	eventuallyTrue(t, "it has a connection of its own", func() bool { return value[int](t, s.pool, listeners) == 1 })
	for len(three) > 0 {
		<-three
	}
	hears(three)
	cancel()
	if err := <-threeOver; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// While nothing runs, the session is seldom asked whether it stands; what has begun needs a fresh answer.
func TestTheSessionOfAnEngineWithoutJobsIsLeftAlone(t *testing.T) {
	s := newStore(t)
	w, _ := present(t, s, s)
	answered := func() time.Time {
		return s.Vouches(w.Info.Token, time.Now().Add(outage))
	}
	w.Heartbeat()
	first := answered()
	time.Sleep(time.Second)
	if !answered().Equal(first) {
		t.Error("the session of an engine that has no job is asked each quarter of its time to live")
	}
	before, began := answered(), time.Now()
	w.Heartbeat(42)
	for range 2 {
		eventuallyTrue(t, "the session of an engine with a job is asked", func() bool { return answered().After(before) })
		before = answered()
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the session of an engine that got a job was asked twice after %v, want within a second", took)
	}
	w.Heartbeat()
	eventuallyTrue(t, "it is left alone", func() bool {
		before := answered()
		time.Sleep(time.Second)
		return answered().Equal(before)
	})
}
