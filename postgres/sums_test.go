package postgres

import (
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// The views are for people who ask in SQL: of what is in the sums, and what is not yet.
func TestTheViewsOfTheSumsCountEachAttemptOnce(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	exec(t, s, sumAtOnceSQL)
	b.enqueue(4)
	w := b.join()
	got := w.Claim(normal, 4)
	w.Complete(got[:2]...)
	w.Finish(store.Result{Outcome: stint.OutcomeFailed, Err: errors.New("no")}, got[2])
	w.Heartbeat(got[3].Pos)
	w.Leave() // and that one is lost
	check := func(when string) {
		t.Helper()
		all := value[[]int64](t, s.pool, `select array[attempts, succeeded, failed, lost] from stint.kind_stats where kind = 'k'`)
		if want := []int64{4, 2, 1, 1}; !slices.Equal(all, want) {
			t.Errorf("%s the kinds say %v, want %v", when, all, want)
		}
		if n := value[int64](t, s.pool, `select sum(n)::bigint from stint.stats_hours`); n != 4 {
			t.Errorf("%s the hours say %d, want 4", when, n)
		}
	}
	check("before they are summed up")
	wait(t, "the sums", func() bool {
		_, err := s.SumUp(t.Context())
		must(t, err)
		return value[int64](t, s.pool, `select coalesce(sum(n), 0)::bigint from stint.stats where minutes = 60`) == 4
	})
	check("when they are")
}

// How far the sums are to go stays as it was said while somebody is left who began
// before: else there could always be somebody.
func TestTheSumsKeepTheirAimWhileSomebodyIsLeftWhoBeganBefore(t *testing.T) {
	s := newStore(t)
	before := begin(t, s)
	value[int64](t, before, `select pg_current_xact_id()::text::bigint`)
	const aim = `select aim::text || ' ' || xid::text from stint.summed`
	var first string
	for n := range 3 {
		if _, err := s.SumUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := value[string](t, s.pool, aim); n == 0 {
			first = got
		} else if got != first {
			t.Errorf("it was %s, and is %s", first, got)
		}
	}
	must(t, before.Rollback(t.Context()))
}

// Who finds somebody else at the sums changes none of them.
func TestTheSumsAreChangedByOneAtATime(t *testing.T) {
	s := newStore(t)
	exec(t, s, `insert into stint.stats values (1, now() - interval '49 hours', 'k', 'q', 1, 1, 1, 1, 1, 1, 1, now(), 1)`)
	other := begin(t, s)
	_, err := other.Exec(t.Context(), `select from stint.summed for update`)
	must(t, err)
	for want := 1; want >= 0; want-- { // beside the other one, and behind it
		_, err := s.SumUp(t.Context())
		must(t, err)
		if n := value[int](t, s.pool, `select count(*) from stint.stats`); n != want {
			t.Errorf("%d sums are left, want %d", n, want)
		}
		if want == 1 {
			must(t, other.Rollback(t.Context()))
		}
	}
}

// A step in a transaction of another isolation would not see what it waits for.
func TestTheSumsAreMadeInReadCommittedTransactionsOnly(t *testing.T) {
	s := newStore(t)
	_, err := begin(t, s, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}).Exec(t.Context(), `select stint.sum_up()`)
	if !errors.Is(translate(err), errIsolation) {
		t.Errorf("it gives %v", err)
	}
}
