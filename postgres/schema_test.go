package postgres

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stint-go/stint"
)

// U36: an impossible state cannot be stored, whoever tries.
func TestImpossibleStatesCannotBeStored(t *testing.T) {
	s := newStore(t)
	const (
		entry = `insert into stint.entries (lane, job, body, attempt, priority, losses, queue, kind, args) values `
		bound = `insert into stint.entries (lane, queue, kind, args, due, start_by) values `
		exec  = `insert into stint.executions (pos, attempt, nonce, engine, slot, started, finished, outcome, final) values `
		wait  = `insert into stint.waiting (job, due, body, why, attempt, priority, queue, kind) values `
		claim = `insert into stint.claims (lane, n, nonce, engine, serial, xid, pos, positions) values `
		queue = `insert into stint.queues (queue) values `
		early = `timestamptz '2026-01-01 10:00+00'`
		late  = `timestamptz '2026-01-01 11:00+00'`
		times = early + `, ` + late
	)
	const refused, twice = "23514", "23505" // check violation, unique violation
	for _, c := range []struct{ text, code string }{
		{entry + `(1, null, null, 1, 0, 0, 'q', 'k', '{}')`, ""},
		{entry + `(1, null, null, 1, 0, 0, 'q', 'k', null)`, refused},   // no arguments
		{entry + `(1, 9, 9, 1, 0, 0, 'q', 'k', '{}')`, refused},         // arguments twice
		{entry + `(1, null, 9, 1, 0, 0, 'q', 'k', null)`, refused},      // contents elsewhere, job here
		{entry + `(1, null, null, 0, 0, 0, 'q', 'k', '{}')`, refused},   // attempt 0
		{entry + `(1, null, null, 1, 101, 0, 'q', 'k', '{}')`, refused}, // priority
		{entry + `(1, null, null, 1, 0, -1, 'q', 'k', '{}')`, refused},  // losses
		{entry + `(-2, null, null, 1, 0, 0, 'q', 'k', '{}')`, refused},  // lane
		{entry + `(1, null, null, 1, 0, 0, '', 'k', '{}')`, refused},    // no queue
		{entry + `(1, null, null, 1, 0, 0, 'q', '', '{}')`, refused},    // no kind
		{bound + `(1, 'q', 'k', '{}', ` + times + `)`, ""},
		{bound + `(1, 'q', 'k', '{}', ` + late + `, ` + early + `)`, refused}, // to begin before it is due
		{exec + `(1, 1, 1, 1, 1, ` + times + `, 1, true)`, ""},
		{exec + `(1, 1, 1, 1, 1, ` + times + `, 1, true)`, twice},
		{exec + `(2, 1, 1, 1, 1, ` + times + `, 1, false)`, refused}, // completed is final
		{exec + `(2, 1, 1, 1, 1, ` + times + `, 6, false)`, refused}, // cancelled is final
		{exec + `(2, 1, 1, 1, 1, ` + times + `, 7, false)`, refused}, // expired is final
		{exec + `(2, 1, 1, 1, 1, ` + times + `, 3, true)`, refused},  // snoozed never is
		{exec + `(2, 1, 1, 1, 1, ` + times + `, 4, true)`, refused},  // returned never is
		{exec + `(2, 1, 1, 1, 1, ` + times + `, 8, true)`, refused},  // no such outcome
		{exec + `(2, 0, 1, 1, 1, ` + times + `, 1, true)`, refused},  // attempt 0
		{exec + `(2, 1, 1, 1, 1, ` + late + `, ` + early + `, 1, true)`, refused},
		{exec + `(2, 1, 1, 1, 1, ` + times + `, 2, false), (3, 1, 1, 1, 0, ` + times + `, 5, true)`, ""},
		{wait + `(1, now(), 1, 'scheduled', 1, 0, 'q', 'k')`, ""},
		{wait + `(1, now(), 1, 'retrying', 1, 0, 'q', 'k')`, twice}, // waits twice
		{wait + `(2, now(), 1, 'bored', 1, 0, 'q', 'k')`, refused},
		{claim + `(1, 1, 1, 1, 1, '5', 5, '{1}')`, ""},
		{claim + `(1, 1, 2, 2, 1, '6', 6, '{2}')`, twice}, // a stale frontier
		{queue + `('*')`, refused},
	} {
		_, err := s.pool.Exec(t.Context(), c.text)
		code := ""
		if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
			code = pg.Code
		}
		if code != c.code || (err == nil) != (c.code == "") {
			t.Errorf("%s\n  gives %v, want %q", c.text, err, c.code)
		}
	}
}

// U3: people find jobs by what is in their arguments, wherever a job is in its
// life, and never meet a null.
func TestArgumentsAreFoundBySQLAndAreNeverNull(t *testing.T) {
	s := verified(t)
	client := stint.NewClient(s)
	enqueue := func(args string, opts ...stint.Option) stint.ID {
		id, err := client.Enqueue(t.Context(), stint.Declaration{Name: "k"}.Job(json.RawMessage(args), opts...))
		must(t, err)
		return id
	}
	bench := &bench{t, s, nil}
	w := bench.join()
	fails := enqueue(`{"customer": "ann", "n": 9007199254740993}`)
	w.Finish(stint.Ending{Outcome: stint.OutcomeFailed, Err: errors.New("no")}, w.ClaimAll()...)
	done := enqueue(`{"customer": "ben"}`)
	w.Complete(w.ClaimAll()...)
	later := enqueue(`{"customer": "cy"}`, stint.In(time.Hour))
	for key, id := range map[string]stint.ID{"ann": fails, "ben": done, "cy": later} {
		if got := value[stint.ID](t, s.pool, `select id from stint.jobs where args->>'customer' = $1`, key); got != id {
			t.Errorf("%s finds job %d, want %d", key, got, id)
		}
	}
	if n := value[string](t, s.pool, `select args->>'n' from stint.jobs where id = $1`, fails); n != "9007199254740993" {
		t.Errorf("the number became %s", n)
	}
	both := []stint.ID{
		enqueue(`{"customer": 42, "new": true}`),
		value[stint.ID](t, s.pool, `select stint.enqueue('k', '{"customer": 42}', delay => '1 hour')`),
	}
	if got := value[[]stint.ID](t, s.pool, `select array_agg(id order by id) from stint.jobs where args->>'customer' = '42'`); !slices.Equal(got, both) {
		t.Errorf("by a number jobs %v are found, want %v", got, both)
	}
	enqueue(``)
	enqueue(`null`, stint.In(time.Hour))
	for _, args := range []string{``, `, null`, `, 'null'`, `, null, delay => '1 hour'`} {
		value[stint.ID](t, s.pool, `select stint.enqueue('k'`+args+`)`)
	}
	if n := value[int](t, s.pool, `select count(*) from stint.jobs where args = '{}'`); n != 6 {
		t.Errorf("%d jobs have an empty object, want 6", n)
	}
	if n := value[int](t, s.pool, `select count(*) from stint.jobs where args is null or args = 'null'`); n != 0 {
		t.Errorf("%d jobs have null", n)
	}
	w.Leave()
}

// U26: no tags are no row and no column, so that jobs without any pay nothing.
func TestJobsWithoutTagsHaveNoneStored(t *testing.T) {
	s := verified(t)
	_, err := stint.NewClient(s).EnqueueMany(t.Context(), []stint.NewJob{
		{Kind: "k"}, {Kind: "k", Tags: []string{}}, {Kind: "k", Tags: []string{}, Delay: time.Hour},
	})
	must(t, err)
	value[stint.ID](t, s.pool, `select stint.enqueue('k', tags => '{}')`)
	if n := value[int](t, s.pool, `select count(*) from stint.entries where tags is null`); n != 4 {
		t.Errorf("%d of 4 jobs have no tags", n)
	}
	value[stint.ID](t, s.pool, `select stint.enqueue('k', tags => '{b,a,b}')`)
	if tags := value[string](t, s.pool, `select string_agg(tag, ' ' order by tag) from stint.job_tags`); tags != "a b" {
		t.Errorf("the tags are %s", tags)
	}
}
