package postgres

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/store"
)

// ear hears of queries.
type ear struct {
	mu  sync.Mutex
	all []event.Query
}

func (e *ear) hear(q event.Query) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, q)
	panic("a listener is no part of the store")
}

// of returns what was told of statements that have a part.
func (e *ear) of(part string) (some []event.Query) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, q := range e.all {
		if strings.Contains(q.Text, part) {
			some = append(some, q)
		}
	}
	return some
}

// work has one job enqueued, claimed and finished.
func work(t *testing.T, s *Store) {
	client := stint.NewClient(s)
	_, err := client.Enqueue(t.Context(), stint.NewJob{Kind: "kind", Args: []byte(`"a secret"`)})
	must(t, err)
	token := store.EngineID(77)
	must(t, s.Join(t.Context(), store.EngineInfo{Token: token, Instance: "one", Slots: 1, TimeToLive: time.Minute}, []stint.KindInfo{{Name: "kind"}}))
	sights, err := s.Look(t.Context(), store.LaneHints{})
	must(t, err)
	if len(sights) == 0 {
		t.Fatal("there is nothing to claim")
	}
	claim, err := s.Claim(t.Context(), store.ClaimRequest{Engine: token, Serial: 1, Nonce: 1, Lane: sights[0].Lane, Max: 1, Wait: true})
	must(t, err)
	done := store.Conclude(&claim.Entries[0], store.Result{Outcome: stint.OutcomeCompleted}, time.Now(), 0)
	done.Nonce, done.Started, done.Ended = claim.Nonce, time.Now(), time.Now()
	_, err = s.Finish(t.Context(), token, []store.ClaimRef{claim.ClaimRef}, []store.Completion{done})
	must(t, err)
}

func TestEachStatementIsToldWithItsTimeAndRowsAndWithoutItsArguments(t *testing.T) {
	var e ear
	s := openStore(t, pgtest.New(t), Config{OnQuery: e.hear})
	work(t, s)
	// The hot ones do not go through the driver's tracers.
	for _, part := range []string{"stint.claim(", "stint.barrier(", "stint.finish("} {
		told := e.of(part)
		if len(told) != 1 {
			t.Errorf("of %s it was told %d times", part, len(told))
			continue
		}
		if q := told[0]; q.Took <= 0 || q.Rows < 1 || q.Err != nil {
			t.Errorf("of %s it was told %+v", part, q)
		}
	}
	if len(e.of("default_transaction_isolation")) != 1 {
		t.Errorf("of opening it was told %v", e.of("default_transaction_isolation"))
	}
	if len(e.of("a secret")) > 0 {
		t.Error("an argument was told")
	}
	if len(e.of("entries")) == 0 {
		t.Error("of the enqueue nothing was told")
	}
}

func TestAStatementThatFailsIsToldWithItsErrorAndTheNextOnesOfItsTransactionAreNot(t *testing.T) {
	var e ear
	s := openStore(t, pgtest.New(t), Config{OnQuery: e.hear})
	_, err := s.Claim(t.Context(), store.ClaimRequest{Engine: 1, Serial: 1, Nonce: 1, Lane: 1, Max: 1})
	if err == nil {
		t.Fatal("nobody's claim was made")
	}
	if told := e.of("stint.claim("); len(told) == 0 || told[0].Err == nil {
		t.Errorf("of the claim it was told %+v", told)
	}
}

// counting counts what it is asked to trace.
type counting struct{ n *int }

func (c counting) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	*c.n++
	return ctx
}
func (counting) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestOfAProgramsPoolTheEnginesStatementsAreToldOnceAndItsOwnTracerGoesOn(t *testing.T) {
	config, err := pgxpool.ParseConfig(pgtest.New(t))
	must(t, err)
	n := 0
	config.ConnConfig.Tracer = counting{&n}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	must(t, err)
	defer pool.Close()
	var e ear
	s, err := New(t.Context(), pool, Config{OnQuery: e.hear})
	must(t, err)
	defer s.Close()
	before := n
	work(t, s)
	if len(e.of("stint.claim(")) != 1 || len(e.of("w.name")) != 1 {
		t.Errorf("of the engine's statements it was told %+v", e.of(""))
	}
	if n == before || len(e.of("show default_transaction_isolation")) > 0 {
		t.Errorf("the program's own tracer was asked %d times, and then %d", before, n)
	}
}

// Each statement of a pipeline is told with the time that it took itself, and what a batch
// waited for is told of one of its statements.
func TestAStatementWithinAPipelineIsToldWithItsOwnTime(t *testing.T) {
	const long = 300 * time.Millisecond
	var e ear
	s := openStore(t, pgtest.New(t), Config{OnQuery: e.hear})
	must(t, s.pool.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error {
		texts := []string{`select 'first'`, `select 'second', pg_sleep(0.3)`, `select 'third'`}
		p, err := s.pipeline(t.Context(), conn.Conn(), texts...)
		must(t, err)
		for _, text := range texts {
			p.send(text)
		}
		must(t, p.Sync())
		must(t, p.part(func([][]byte) {}))
		return p.Close()
	}))
	for part, sleeps := range map[string]bool{"'first'": false, "'second'": true, "'third'": false} {
		if told := e.of(part); len(told) != 1 || told[0].Took >= long != sleeps || told[0].Err != nil {
			t.Errorf("of %s it was told %+v", part, told)
		}
	}
	batch := &pgx.Batch{}
	batch.Queue(`select 'one of a batch'`)
	batch.Queue(`select 'one of a batch', pg_sleep(0.3)`)
	must(t, s.pool.SendBatch(t.Context(), batch).Close())
	var took time.Duration
	for _, q := range e.of("one of a batch") {
		took += q.Took
	}
	if took < long {
		t.Errorf("the statements of a batch took %v", took)
	}
}
