package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// holds has a session of its own take an advisory lock.
func holds(t *testing.T, s *Store, function string, args ...any) *pgx.Conn {
	t.Helper()
	conn := connect(t, s)
	text := `select ` + function + `($1::bigint)`
	if len(args) == 2 {
		text = `select ` + function + `($1::integer, $2::integer)`
	}
	if _, err := conn.Exec(t.Context(), text, args...); err != nil {
		t.Fatal(err)
	}
	return conn
}

// queues has a session of its own wait for the engine's lock, and tells when it has it.
func queues(t *testing.T, s *Store, function string, token store.EngineID) (session *pgx.Conn, has <-chan error) {
	t.Helper()
	conn, done := connect(t, s), make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), `select `+function+`($1)`, token)
		done <- err
	}()
	blocked(t, s)
	return conn, done
}

// alike are locks that are not the engine's, each like its in all but one thing.
func alike(t *testing.T, s *Store, token store.EngineID, function string) (sessions []*pgx.Conn) {
	t.Helper()
	key := int64(token)
	return []*pgx.Conn{
		holds(t, newStore(t), function, key),                           // in another database
		holds(t, s, function, key^1), holds(t, s, function, key^1<<40), // of another engine
		holds(t, s, function, int32(key>>32), int32(key)), // of two numbers
	}
}

// Who is evicted shares the lock of the engine. Nobody else's session ends.
func TestWhoIsEvictedSharesTheLockOfTheEngineAndNothingLikeIt(t *testing.T) {
	s := newStore(t)
	w := (&bench{t, s, nil}).join()
	token := w.Info.Token
	evicted := func(when string, want int) {
		t.Helper()
		if n, err := s.Evict(t.Context(), token); err != nil || n != want {
			t.Errorf("%s %d are evicted, error %v; want %d", when, n, err, want)
		}
	}
	others := alike(t, s, token, "pg_advisory_lock_shared")
	shares := holds(t, s, "pg_advisory_lock_shared", int64(token))
	waits, exclusive := queues(t, s, "pg_advisory_lock", token)
	evicted("while one shares it and one waits for it alone,", 1)
	must(t, <-exclusive)
	if err := shares.Ping(t.Context()); err == nil {
		t.Error("the session that shared it goes on")
	}
	// Now somebody has it alone, as a burial, and somebody waits to share it.
	_, shared := queues(t, s, "pg_advisory_lock_shared", token)
	evicted("while one has it alone and one waits to share it,", 0)
	_, err := waits.Exec(t.Context(), `select pg_advisory_unlock($1)`, token)
	must(t, err)
	must(t, <-shared)
	for i, conn := range others {
		if err := conn.Ping(t.Context()); err != nil {
			t.Errorf("session %d: %v", i, err)
		}
	}
}

// A burial waits for another one, and for nothing else that is locked.
func TestABurialIsBlockedAtOnceByWhoeverSharesTheLockAndWaitsForNothingLikeABurial(t *testing.T) {
	s := newStore(t)
	w := (&bench{t, s, nil}).join()
	alike(t, s, w.Info.Token, "pg_advisory_lock")
	shares := holds(t, s, "pg_advisory_lock_shared", int64(w.Info.Token))
	waits, exclusive := queues(t, s, "pg_advisory_lock", w.Info.Token)
	began := time.Now()
	_, err := s.Bury(t.Context(), store.Burial{Engine: w.Info.Token}, storetest.Judge)
	if took := time.Since(began); !errors.Is(err, store.ErrBurialBlocked) || took >= burialWait {
		t.Errorf("the burial gives %v after %v", err, took)
	}
	must(t, shares.Close(t.Context()))
	must(t, <-exclusive)
	over := make(chan error, 1)
	go func() {
		time.Sleep(50 * time.Millisecond)
		_, err := waits.Exec(t.Context(), `select pg_advisory_unlock($1)`, w.Info.Token)
		over <- err
	}()
	if _, err := storetest.Bury(t.Context(), s, store.Burial{Engine: w.Info.Token}, storetest.Judge); err != nil {
		t.Errorf("behind another one the burial gives %v", err)
	}
	must(t, <-over)
}

// A beat that waits shares the lock of its engine too: who buries it is told at once,
// and can end it.
func TestABurialIsBlockedAtOnceByABeatThatWaits(t *testing.T) {
	s := newStore(t)
	b := &bench{t, s, nil}
	w := b.join()
	other := begin(t, s)
	_, err := other.Exec(t.Context(), `select from stint.beats for update`)
	must(t, err)
	beat := make(chan error, 1)
	go func() { _, err := s.Heartbeat(t.Context(), w.Info.Token, store.Heartbeat{Number: 1}); beat <- err }()
	blocked(t, s)
	if err := b.soon("the burial", func(ctx context.Context) error {
		_, err := s.Bury(ctx, store.Burial{Engine: w.Info.Token}, storetest.Judge)
		return err
	}); !errors.Is(err, store.ErrBurialBlocked) {
		t.Errorf("the burial gives %v", err)
	}
	must(t, other.Rollback(t.Context()))
	must(t, <-beat)
}
