package postgres

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// impossible says of tables what a row is that may be stored, after the name of the
// table, and what may not be done to it. Where it is empty the table has its row.
var impossible = []struct {
	table, row string
	wrong      []string
}{
	{"meta", "", []string{`one = false`}},
	{"policies", `(id, body) values (1, '{}')`, nil},
	{"entries", `(pos, lane, queue, kind, args) values (5, 1, 'q', 'k', '{}')`, []string{
		`attempt = 0`, `priority = -101`, `priority = 101`, `losses = -1`, `suspect = -1`, `timeout = 0`, `max_losses = -1`, `faulty = false`,
		`queue = ''`, `queue = repeat('q', 256)`, `kind = ''`, `kind = repeat('k', 256)`,
	}},
	{"entries", `(pos, lane, job, body, priority, faulty, queue, kind) values (5, -1, 3, 2, -100, true, 'q', 'k')`, nil},
	{"job_tags", `(tag, job) values ('t', 1)`, nil},
	{"idempotency", `(key, job, fingerprint, expires) values ('k', 1, '', now())`, nil},
	{"claims", `(lane, n, nonce, engine, serial, xid, pos, pending_xid, pending_pos, positions) values (1, 1, 1, 1, 1, '5', 5, '{4}', '{3}', '{1}')`, []string{
		`pending_pos = '{1, 3}'`,
	}},
	{"executions", `(pos, attempt, nonce, engine, slot, started, finished, outcome, final) values (5, 1, 1, 1, 0, now(), now(), 2, false)`, []string{
		`attempt = 0`, `slot = -1`, `outcome = 0`, `outcome = 8`, `finished = started - interval '1 second'`,
		`outcome = 1`,               // completed is final
		`outcome = 6`,               // cancelled is
		`outcome = 7`,               // expired is
		`outcome = 3, final = true`, // snoozed never is
		`outcome = 4, final = true`, // returned never is
	}},
	{"executions", `(pos, attempt, nonce, engine, slot, started, finished, outcome, final)
		select outcome, 1, 1, 1, 0, now(), now(), outcome, final from unnest(array[1, 2, 3, 4, 5, 6, 7], array[true, true, false, false, true, true, true]) a(outcome, final)`, nil},
	{"waiting", `(job, due, body, why, attempt, priority, queue, kind) values (1, now(), 1, 'scheduled', 1, 0, 'q', 'k')`, []string{
		`why = 'bored'`, `attempt = 0`, `priority = -101`, `priority = 101`, `faulty = false`,
		`due = null`, // no date, and nobody to decide it
	}},
	{"waiting", `(job, undecided, faulty, body, why, attempt, priority, queue, kind) values (1, 'f', true, 1, 'retrying', 1, 0, 'q', 'k')`, []string{
		`due = now()`,       // a date, and somebody to decide it
		`why = 'scheduled'`, // undecided without a failure
		`undecided = ''`,    // by nobody
	}},
	{"steps", `(job, name, pos, began, ended, result) values (1, 's', 5, now(), now(), 'null')`, []string{`name = ''`, `name = repeat('s', 256)`}},
	{"cancellations", `(job) values (1)`, nil},
	{"queues", `(queue) values ('q')`, []string{`queue = ''`, `queue = '*'`, `queue = repeat('q', 256)`}},
	{"deletions", `(engine, serial) values (1, 1)`, nil},
	{"engines", `(token, instance, host, boot_id, pid, pid_started, version, queues, kinds, slots, ttl)
		values (1, 'i', 'h', 'b', 1, 1, 'v', '{}', '{}', 1, 1)`, []string{`slots = 0`, `ttl = 0`}},
	{"engine_history", `(token, instance, host, pid, version, joined) values (1, 'i', 'h', 1, 'v', now())`, nil},
	{"beats", `(token) values (1)`, nil},
	{"kinds", `(kind, queue, priority, tags) values ('k', 'q', 0, '{}')`, []string{`start_within = 0`, `max_losses = -1`}},
	{"schedules", `(name, recurrence, zone, job, overlap, missed) values ('s', '@daily', 'UTC', '{}', false, 'one')`, []string{`name = ''`, `name = repeat('s', 256)`}},
	{"leases", `(name) values ('l')`, []string{
		`name = ''`, `name = repeat('l', 256)`,
		`engine = 1, renewed = now(), expires = now() + interval '1 second'`, // held since never
		`engine = 1, acquired = now(), renewed = now(), expires = now()`,     // over when it was asked for
	}},
	{"leases", `(name, engine, acquired, renewed, expires) values ('l', 1, now(), now(), now() + interval '1 second')`, nil},
	{"limits", `(name, declared) values ('l', '3')`, []string{`name = ''`, `name = repeat('l', 401)`}},
	{"limit_pauses", `(gate, until, trial) values ('g', now(), false)`, []string{`gate = ''`, `gate = repeat('g', 401)`}},
	{"permits", `(gate, n, engine, engines, held, asked, since) values ('g', 1, 1, '{1}', '{1}', '{0}', '{null}')`, []string{
		`n = 0`, `held = '{}'`, `asked = '{1, 1}'`, `since = '{}'`,
	}},
	{"reruns", `(gate, job, failed) values ('g', 1, false)`, nil},
	{"metrics", `(instance, since, engine, figures) values ('i', now(), 1, '{}')`, nil},
	{"changes", `(n, way, operation) values (1, 'api', 'pause')`, []string{
		`way = ''`, `operation = ''`, `details = '[]'`,
		`problem = 'bad'`, // of what has not ended
	}},
	{"changes", `(n, way, operation, ended, problem) values (1, 'api', 'pause', now(), 'bad')`, nil},
	{"error_groups", `(key, state) values ('0123456789abcdef', 'muted')`, []string{`key = ''`, `key = '0123456789ABCDEF'`, `key = '0123456789abcdef0'`, `state = 'open'`}},
	{"saved_filters", `(name, query) values ('n', 'kind=k')`, []string{`name = ''`, `query = ''`}},
	{"stats", `(minutes, start, kind, queue, outcome, n, ran, total, waited) values (1, now(), 'k', 'q', 1, 1, 1, 1, 1), (60, now(), 'k', 'q', 1, 1, 1, 1, 1)`, []string{`minutes = 2`}},
	{"summed", "", []string{`one = false`}},
}

// U36: an impossible state cannot be stored, whoever tries, nor what is there twice.
func TestImpossibleStatesCannotBeStored(t *testing.T) {
	const refused, twice = "23514", "23505" // check violation, unique violation
	s := newStore(t)
	for _, c := range impossible {
		table := "stint." + c.table
		tx, err := s.pool.Begin(t.Context())
		must(t, err)
		if c.row != "" {
			if _, err := tx.Exec(t.Context(), "insert into "+table+" "+c.row); err != nil {
				must(t, tx.Rollback(t.Context())) // or the end of the test would wait for it
				t.Fatalf("%s %s\n  gives %v", table, c.row, err)
			}
		}
		try := func(text, code string) {
			err := pgx.BeginFunc(t.Context(), tx, func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), text)
				return err
			})
			if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != code {
				t.Errorf("%s %s\n%s\n  gives %v, want %s", table, c.row, text, err, code)
			}
		}
		for _, wrong := range c.wrong {
			try("update "+table+" set "+wrong, refused)
		}
		try("insert into "+table+" select * from "+table, twice)
		must(t, tx.Rollback(t.Context()))
	}
}

// The last line: no occurrence of a schedule has two jobs.
func TestNoOccurrenceIsStoredTwice(t *testing.T) {
	s := newStore(t)
	const text = `insert into stint.entries (lane, queue, kind, args, schedule, nth, occurrence) values (1, 'q', 'k', '{}', 's', `
	for _, c := range []struct {
		values string
		ok     bool
	}{{`1, '2026-01-01')`, true}, {`2, '2026-01-01')`, false}, {`2, '2026-01-02')`, true}, {`3, null)`, true}, {`4, null)`, true}} {
		_, err := s.pool.Exec(t.Context(), text+c.values)
		if pg, _ := errors.AsType[*pgconn.PgError](err); (err == nil) != c.ok || err != nil && pg.Code != "23505" {
			t.Errorf("%s%s\n  gives %v", text, c.values, err)
		}
	}
}

// U3: people find jobs by what is in their arguments, wherever a job is in its
// life, and never meet a null.
func TestArgumentsAreFoundBySQLAndAreNeverNull(t *testing.T) {
	s := verified(t)
	client := stint.NewClient(s)
	enqueue := func(args string, opts ...stint.Option) stint.ID {
		id, err := client.Enqueue(t.Context(), stint.KindInfo{Name: "k"}.Job(json.RawMessage(args), opts...))
		must(t, err)
		return id
	}
	bench := &bench{t, s, nil}
	w := bench.join()
	fails := enqueue(`{"customer": "ann", "n": 9007199254740993}`)
	w.Finish(store.Result{Outcome: stint.OutcomeFailed, Err: errors.New("no")}, w.ClaimAll()...)
	done := enqueue(`{"customer": "ben"}`)
	w.Complete(w.ClaimAll()...)
	later := enqueue(`{"customer": "cy"}`, stint.Delay(time.Hour))
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
	enqueue(`null`, stint.Delay(time.Hour))
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
