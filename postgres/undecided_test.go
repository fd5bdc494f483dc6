package postgres

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// U36: an impossible state cannot be stored, whoever tries.
func TestWhatIsUndecidedHasNoDateAndWhatIsNotHasOne(t *testing.T) {
	s := newStore(t)
	for values, ok := range map[string]bool{
		`null, 'f', true, 'retrying'`:    true,
		`now(), null, true, 'retrying'`:  true,
		`null, null, null, 'retrying'`:   false, // no date, and nobody to decide it
		`now(), 'f', null, 'retrying'`:   false, // a date, and somebody to decide it
		`null, 'f', null, 'scheduled'`:   false, // undecided without a failure
		`null, '', null, 'retrying'`:     false, // by nobody
		`now(), null, false, 'retrying'`: false, // faulty is said or not
	} {
		_, err := s.pool.Exec(t.Context(), `
			insert into stint.waiting (job, due, undecided, faulty, why, body, attempt, priority, queue, kind)
			values (nextval('stint.positions'), `+values+`, 1, 1, 0, 'q', 'k')`)
		if pg, refused := errors.AsType[*pgconn.PgError](err); (err == nil) != ok || refused && pg.Code != "23514" {
			t.Errorf("%s gives %v", values, err)
		}
	}
}

// A failure that somebody is deciding about is passed over and not waited for:
// whoever decides about many would stand behind each of them.
func TestAFailureThatSomebodyDecidesAboutIsPassedOver(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	ids := b.enqueue(2, stint.Retry(retry.Function("f")))
	w := b.join()
	w.Finish(store.Result{Outcome: stint.OutcomeFailed, Err: errors.New("no paper")}, w.Claim(normal, 2)...)
	var funcs retry.Registry
	must(t, funcs.Register("f", func(error, retry.Failure) retry.Decision { return retry.Again(time.Hour) }))
	all, err := s.Undecided(t.Context(), []string{"f"}, 0, 10)
	must(t, err)
	var done []store.Completion
	for _, u := range all {
		x, err := u.Conclude(&funcs, time.Now(), 0.5)
		must(t, err)
		done = append(done, x)
	}
	other := begin(t, s)
	if n := value[int](t, other, `select count(*) from stint.take_undecided($1, '{2}')`, ids[:1]); n != 1 {
		t.Fatalf("somebody else decides about %d", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if got, err := s.Decide(ctx, w.Info.Token, done); err != nil || !slices.Equal(got, ids[1:]) {
		t.Errorf("decided were %v, error %v, want %v", got, err, ids[1:])
	}
	must(t, other.Rollback(t.Context()))
	if got, err := s.Decide(t.Context(), w.Info.Token, done); err != nil || !slices.Equal(got, ids[:1]) {
		t.Errorf("behind that were decided %v, error %v, want %v", got, err, ids[:1])
	}
}
