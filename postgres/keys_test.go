package postgres

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// There is no order that two callers' transactions could be held to; the server
// ends one of them, and with it the wait.
func TestOfTwoTransactionsThatTakeKeysCrosswiseOneGoesOn(t *testing.T) {
	s := newStore(t)
	b := &bench{t, s, nil}
	one, two := begin(t, s), begin(t, s)
	b.enqueueIn(Tx(one), 1, stint.IdempotencyKey("a"))
	b.enqueueIn(Tx(two), 1, stint.IdempotencyKey("z"))
	x := b.receipts(Tx(one), "z")
	must(t, b.blocked())
	y := b.receipts(Tx(two), "a")
	// The server ends either, and with it the other's wait.
	failed, left, rest := <-x, <-y, two
	if failed.err == nil {
		failed, left, rest = left, failed, one
	}
	var pg *pgconn.PgError
	if !errors.As(failed.err, &pg) || pg.Code != "40P01" {
		t.Errorf("the one says %v, want a deadlock", failed.err)
	}
	if left.err != nil || left.list[0].Duplicate {
		t.Errorf("the other says %+v, want a new job", left)
	}
	must(t, rest.Commit(t.Context()))
	must(t, b.count(2))
}

// Its snapshot cannot see the job that it would have to answer with.
func TestATransactionOfOldSnapshotDoesNotDoubleAKey(t *testing.T) {
	s := newStore(t)
	b := &bench{t, s, nil}
	for _, isolation := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		key := string(isolation)
		tx := begin(t, s, pgx.TxOptions{IsoLevel: isolation})
		value[int](t, tx, `select 1 from pg_class limit 1`)
		first := b.enqueue(1, stint.IdempotencyKey(key))[0]
		r := <-b.receipts(Tx(tx), key)
		var pg *pgconn.PgError
		if !errors.As(r.err, &pg) || pg.Code != "40001" {
			t.Errorf("%s: answered with %+v, want a failure to serialize", isolation, r)
		}
		must(t, tx.Rollback(t.Context()))
		fresh := begin(t, s, pgx.TxOptions{IsoLevel: isolation})
		if r := <-b.receipts(Tx(fresh), key, key+" new"); r.err != nil || r.list[0].ID != first || !r.list[0].Duplicate || r.list[1].Duplicate {
			t.Errorf("%s: answered with %+v, want a duplicate of job %d and a new one", isolation, r, first)
		}
		must(t, fresh.Commit(t.Context()))
	}
	must(t, b.count(4))
}

func TestSQLAndGoShareKeys(t *testing.T) {
	s := newStore(t)
	var notices []string
	config := s.pool.Config().ConnConfig.Copy()
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { notices = append(notices, n.Message) }
	conn, err := pgx.ConnectConfig(t.Context(), config)
	must(t, err)
	defer conn.Close(t.Context())
	client := stint.NewClient(s)

	first := value[stint.ID](t, conn, `select stint.enqueue('k', '{"b": "é", "a": 1}', idempotency_key => 'sql')`)
	r, err := client.EnqueueReceipt(t.Context(), stint.NewJob{Kind: "k", Args: []byte(`{"a":1,"b":"\u00e9"}`), IdempotencyKey: "sql"})
	if err != nil || r != (stint.Receipt{ID: first, Duplicate: true}) {
		t.Errorf("Go is answered with %+v, error %v; want a duplicate of job %d", r, err, first)
	}
	for _, args := range []string{"", ", '{}'", ", null", ", 'null'"} {
		r, err := client.EnqueueReceipt(t.Context(), stint.NewJob{Kind: "k", IdempotencyKey: "go"})
		must(t, err)
		if id := value[stint.ID](t, conn, `select stint.enqueue('k'`+args+`, idempotency_key => 'go')`); id != r.ID {
			t.Errorf("with the arguments %q SQL is answered with job %d, want %d", args, id, r.ID)
		}
	}
	if len(notices) != 4 || !strings.Contains(notices[0], "a duplicate of job") {
		t.Errorf("the notices are %q", notices)
	}
	for _, call := range []string{`stint.enqueue('other', idempotency_key => 'go')`, `stint.enqueue('k', '{"n": 1}', idempotency_key => 'go')`} {
		_, err := conn.Exec(t.Context(), "select "+call)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "ST005" || !errors.Is(translate(err), stint.ErrKeyConflict) {
			t.Errorf("%s gives %v, want a conflict", call, err)
		}
	}
	for _, call := range []string{
		`stint.enqueue('k', idempotency_key => '')`, `stint.enqueue('k', idempotency_key => repeat('x', 256))`,
		`stint.enqueue('k', idempotency_key => ' a')`, `stint.enqueue('k', correlation => E'a\nb')`,
	} {
		_, err := conn.Exec(t.Context(), "select "+call)
		if err == nil || !strings.Contains(err.Error(), "is no name") {
			t.Errorf("%s gives %v", call, err)
		}
	}
	must(t, (&bench{t, s, nil}).count(2))
}

func TestSQLSaysWhatAJobBelongsTo(t *testing.T) {
	s := newStore(t)
	root := value[stint.ID](t, s.pool, `select stint.enqueue('k', source => 'sql', urn => 'u')`)
	child := value[stint.ID](t, s.pool, `select stint.enqueue('k', correlation => $1, metadata => '{"m": 1}')`, root.String())
	for _, f := range []store.Filter{{Correlation: root.String()}, {Source: "sql"}, {URN: "u"}} {
		found, err := s.Jobs(t.Context(), f)
		must(t, err)
		if want := f.Correlation == ""; (len(found) == 1) != want || found[len(found)-1].ID != root {
			t.Errorf("%+v shows %d jobs, the first %d", f, len(found), found[len(found)-1].ID)
		}
	}
	shown := value[[]string](t, s.pool, `select array_agg(correlation order by id) from stint.jobs`)
	if !slices.Equal(shown, []string{root.String(), root.String()}) {
		t.Errorf("the view shows %q", shown)
	}
	bare := value[stint.ID](t, s.pool, `select stint.enqueue('k', tags => '{}', metadata => 'null')`)
	if !value[bool](t, s.pool, `select tags is null and metadata is null and correlation is null from stint.entries where pos = $1`, bare) {
		t.Error("what is empty is stored")
	}
	if j, err := s.Job(t.Context(), child); err != nil || string(j.Metadata) != `{"m": 1}` {
		t.Errorf("the child is %+v, error %v", j, err)
	}
}

// Keys are looked up, taken and indexed for those that have some.
func TestJobsWithoutKeysPayNothingForThem(t *testing.T) {
	s := newStore(t)
	job := func(opts ...stint.Option) stint.NewJob {
		return stint.KindInfo{Name: "k", Queue: "q"}.Job([]byte(`{}`), opts...)
	}
	for _, c := range []struct {
		jobs  []stint.NewJob
		keyed bool
	}{
		{[]stint.NewJob{job()}, false},
		{[]stint.NewJob{job(), job(stint.Correlation("a"))}, false},
		{[]stint.NewJob{job(stint.Delay(time.Hour), stint.Tag("t")), job()}, false},
		{[]stint.NewJob{job(stint.IdempotencyKey("a")), job()}, true},
		{[]stint.NewJob{job(), job(stint.IdempotencyKey("a"))}, true},
	} {
		stmts, columns := s.enqueueStatements(c.jobs, nil, dictionary{}, false)
		if keyed := strings.Contains(stmts[0].text, "take_keys"); len(stmts) != 1 || keyed != c.keyed || (columns == keyedColumns) != c.keyed {
			t.Errorf("%+v are enqueued by %d statements, the first\n%s", c.jobs, len(stmts), stmts[0].text)
		}
	}
	full := value[[]string](t, s.pool, `
		select array_agg(i.indexrelid::regclass::text order by i.indexrelid::regclass::text) from pg_index i
		where i.indrelid = 'stint.entries'::regclass and i.indpred is null`)
	if want := []string{"stint.entries_lane", "stint.entries_pkey"}; !slices.Equal(full, want) {
		t.Errorf("every job is in the indexes %q, want %q", full, want)
	}
}
