package postgres

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
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
