package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

var keyTraps = []trap{
	{"A key whose first holder commits meanwhile is answered with that job", func(b *bench) error {
		tx := begin(b, b.s)
		first := b.enqueueIn(Tx(tx), 1, stint.IdempotencyKey("a"))[0]
		answer := b.receipts(stint.Tx{}, "a", "b")
		if err := b.blocked(); err != nil {
			return err
		}
		b.must(tx.Commit(b.Context()))
		if r := <-answer; r.err != nil || r.list[0] != (stint.Receipt{ID: first, Duplicate: true}) {
			return fmt.Errorf("answered with %+v, want a duplicate of job %d", r, first)
		}
		return b.count(2)
	}},
	{"A key that is forgotten while somebody asks for it is taken anew", func(b *bench) error {
		old := b.enqueue(1, stint.IdempotencyKey("a"))[0]
		// Stop it between the statement that finds the key taken and the next.
		exec(b, b.s, `create function stint.stop_here() returns trigger language plpgsql as $$
			begin perform pg_advisory_lock_shared(7); perform pg_advisory_unlock_shared(7); return null; end $$`)
		exec(b, b.s, `create trigger stop_here after insert on stint.idempotency for each statement execute function stint.stop_here()`)
		gate := connect(b, b.s)
		_, err := gate.Exec(b.Context(), `select pg_advisory_lock(7)`)
		b.must(err)
		answer := b.receipts(stint.Tx{}, "a")
		if err := b.blocked(); err != nil {
			return err
		}
		exec(b, b.s, `delete from stint.idempotency`)
		_, err = gate.Exec(b.Context(), `select pg_advisory_unlock(7)`)
		b.must(err)
		fresh := <-answer
		if fresh.err != nil || fresh.list[0].Duplicate || fresh.list[0].ID == old {
			return fmt.Errorf("answered with %+v, want a new job", fresh)
		}
		again := <-b.receipts(stint.Tx{}, "a")
		if again.err != nil || again.list[0] != (stint.Receipt{ID: fresh.list[0].ID, Duplicate: true}) {
			return fmt.Errorf("and then with %+v, want a duplicate of job %d", again, fresh.list[0].ID)
		}
		return nil
	}},
	{"A key that was forgotten behind the caller's snapshot is that of the job that is stored under it", func(b *bench) error {
		var problems []error
		for _, isolation := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
			for way, check := range map[string]func(tx pgx.Tx) error{"go": b.takenAnewByGo, "sql": b.takenAnewBySQL} {
				b.enqueue(1, stint.IdempotencyKey("a"))
				b.enqueue(1, stint.IdempotencyKey("other"))
				exec(b, b.s, `update stint.idempotency set fingerprint = '' where key = 'other'`)
				tx := begin(b, b.s, pgx.TxOptions{IsoLevel: isolation})
				value[int](b, tx, `select 1 from pg_class limit 1`)
				exec(b, b.s, `delete from stint.idempotency`)
				if err := check(tx); err != nil {
					problems = append(problems, fmt.Errorf("%s, %s: %w", way, isolation, err))
				}
				b.must(tx.Rollback(b.Context()))
			}
		}
		return errors.Join(problems...)
	}},
	{"A conflict under a key that was forgotten behind the caller's snapshot leaves his transaction as it was", func(b *bench) error {
		b.enqueue(1, stint.IdempotencyKey("a"))
		tx := begin(b, b.s, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		value[int](b, tx, `select 1 from pg_class limit 1`)
		exec(b, b.s, `delete from stint.idempotency`)
		other := b.job(stint.IdempotencyKey("a"))
		other.Args = []byte(`{"n": 1}`)
		jobs := []stint.NewJob{b.job(stint.IdempotencyKey("a")), other}
		if _, err := stint.NewClient(b.s).With(Tx(tx)).EnqueueMany(b.Context(), jobs); !errors.Is(err, stint.ErrKeyConflict) {
			return fmt.Errorf("answered with %v, want a conflict", err)
		}
		if r := <-b.receipts(Tx(tx), "b"); r.err != nil || r.list[0].Duplicate {
			return fmt.Errorf("and then with %+v, want a new job", r)
		}
		b.must(tx.Commit(b.Context()))
		return b.count(2)
	}},
	{"Batches with the same keys in another order do not wait for each other crosswise", func(b *bench) error {
		tx := begin(b, b.s)
		b.enqueueIn(Tx(tx), 1, stint.IdempotencyKey("m"))
		one, two := b.receipts(stint.Tx{}, "a", "m", "z"), b.receipts(stint.Tx{}, "z", "m", "a")
		if err := b.blockedMany(2); err != nil {
			return err
		}
		b.must(tx.Rollback(b.Context()))
		x, y := <-one, <-two
		if x.err != nil || y.err != nil {
			return fmt.Errorf("one says %v, the other %v", x.err, y.err)
		}
		for i := range x.list {
			if x.list[i].ID != y.list[2-i].ID || x.list[i].Duplicate == y.list[2-i].Duplicate {
				return fmt.Errorf("one is answered with %+v, the other with %+v", x.list, y.list)
			}
		}
		return b.count(3)
	}},
	{"Nobody waits for a transaction that only repeated a key", func(b *bench) error {
		b.enqueue(1, stint.IdempotencyKey("a"))
		one, two := begin(b, b.s), begin(b, b.s)
		b.enqueueIn(Tx(one), 1, stint.IdempotencyKey("a"))
		return b.soon("another producer", func(ctx context.Context) error {
			if _, err := two.Exec(ctx, `select stint.enqueue('k', idempotency_key => 'a')`); err != nil {
				return err
			}
			_, err := stint.NewClient(b.s).Enqueue(ctx, stint.KindInfo{Name: "k"}.Job(nil, stint.IdempotencyKey("a")))
			return err
		})
	}},
	{"A claim that was outrun while it took its key does not move the frontier back", func(b *bench) error {
		slow, fast := b.join(), b.join()
		gate := begin(b, b.s)
		_, err := gate.Exec(b.Context(), `select pg_advisory_xact_lock($1)`, slow.Info.Token)
		b.must(err)
		answer := make(chan error, 1)
		go func() { answer <- b.now(slow, stint.IdempotencyKey("a")) }()
		// It has taken its key, and with that its transaction number.
		if err := b.blocked(); err != nil {
			return err
		}
		b.must(b.now(fast))
		b.must(gate.Rollback(b.Context()))
		b.must(<-answer)
		if n := value[int](b, b.s.pool, `select count(*) from stint.jobs where state <> 'running'`); n != 0 {
			return fmt.Errorf("%d of the jobs are not running", n)
		}
		return nil
	}},
	{"Who waits for a key holds up neither the lane nor a burial", func(b *bench) error {
		tx := begin(b, b.s)
		b.enqueueIn(Tx(tx), 1, stint.IdempotencyKey("a"))
		w, other := b.join(), b.join()
		answer := make(chan error, 1)
		go func() { answer <- b.now(w, stint.IdempotencyKey("a")) }()
		if err := b.blocked(); err != nil {
			return err
		}
		err := b.soon("another claim", func(ctx context.Context) error {
			_, err := b.s.EnqueueClaimed(ctx, b.job(), b.request(other))
			return err
		})
		if err != nil {
			return err
		}
		err = b.soon("a burial", func(ctx context.Context) error {
			free := false
			conn := connect(b, b.s)
			if err := conn.QueryRow(ctx, `select pg_try_advisory_xact_lock($1)`, w.Info.Token).Scan(&free); err != nil || free {
				return err
			}
			return errors.New("its engine is held")
		})
		if err != nil {
			return err
		}
		b.must(tx.Rollback(b.Context()))
		return <-answer
	}},
	{"A key is remembered for as long as its job is kept", func(b *bench) error {
		w := b.join()
		ended := b.enqueue(2, stint.Queue("q"))
		w.Complete(w.ClaimAll()...)
		exec(b, b.s, `insert into stint.idempotency (key, job, fingerprint, expires)
			select 'ended ' || i, j, stint.fingerprint('k', '{}'), now() from unnest($1::bigint[]) with ordinality as u(j, i)`, ended)
		exec(b, b.s, `update stint.executions set started = now() - interval '121 hours', finished = now() - interval '121 hours' where pos = $1`, ended[1])
		b.enqueue(1, stint.IdempotencyKey("ready"))
		b.enqueue(1, stint.IdempotencyKey("waiting"), stint.Delay(1000*time.Hour))
		exec(b, b.s, `insert into stint.idempotency (key, job, fingerprint, expires) values ('gone', 999999, '', now())`)
		b.enqueue(1, stint.IdempotencyKey("young and gone"))
		exec(b, b.s, `update stint.idempotency set job = 999998 where key = 'young and gone'`)
		exec(b, b.s, `update stint.idempotency set expires = now() where key in ('ready', 'waiting')`)
		for range 2 {
			_, err := b.s.Retain(b.Context(), store.RetainStep{Part: store.RetainKeys, Limit: 3})
			b.must(err)
		}
		left := value[string](b, b.s.pool, `select string_agg(key, ', ' order by key) from stint.idempotency`)
		if want := "ended 1, ready, waiting, young and gone"; left != want {
			return fmt.Errorf("%s are left, want %s", left, want)
		}
		if n := value[int](b, b.s.pool, `select count(*) from stint.idempotency where expires < now() + interval '23 hours'`); n != 0 {
			return fmt.Errorf("%d keys are looked at again too early", n)
		}
		return nil
	}},
}

const storedNowSQL = `select exists (select from stint.entries where pos = $1 and xid = pg_current_xact_id())`

// takenAnewByGo enqueues under keys of which "a" and "other" were forgotten behind
// the snapshot of tx.
func (b *bench) takenAnewByGo(tx pgx.Tx) error {
	var list []stint.Receipt
	for _, keys := range [][]string{{"a", "x", "a", "y"}, {"other", "z", "a"}} {
		r := <-b.receipts(Tx(tx), keys...)
		if r.err != nil {
			return r.err
		}
		if len(r.list) != len(keys) {
			return fmt.Errorf("%d jobs are answered with %+v", len(keys), r.list)
		}
		list = append(list, r.list...)
	}
	for i, first := range []int{0, 1, 0, 3, 4, 5, 0} {
		if list[i] != (stint.Receipt{ID: list[first].ID, Duplicate: first != i}) {
			return fmt.Errorf("the jobs are answered with %+v", list)
		}
		if !value[bool](b, tx, storedNowSQL, list[i].ID) {
			return fmt.Errorf("answered with job %d, which was not stored now", list[i].ID)
		}
	}
	return nil
}

// takenAnewBySQL is the same by calls of stint.enqueue.
func (b *bench) takenAnewBySQL(tx pgx.Tx) error {
	for _, key := range []string{"a", "other"} {
		var ids [2]stint.ID
		for i := range ids {
			if err := tx.QueryRow(b.Context(), `select stint.enqueue('k', idempotency_key => $1)`, key).Scan(&ids[i]); err != nil {
				return fmt.Errorf("call %d under %s: %w", i, key, err)
			}
			if !value[bool](b, tx, storedNowSQL, ids[i]) {
				return fmt.Errorf("call %d under %s answered with job %d, which was not stored now", i, key, ids[i])
			}
		}
		if ids[0] != ids[1] {
			return fmt.Errorf("the key %s has the jobs %d", key, ids)
		}
	}
	return nil
}

// now enqueues a job in a worker's hands.
func (b *bench) now(w *storetest.Worker, opts ...stint.Option) error {
	_, err := b.s.EnqueueClaimed(b.Context(), b.job(opts...), b.request(w))
	return err
}

// job is one as a client hands it on.
func (b *bench) job(opts ...stint.Option) stint.NewJob {
	return stint.KindInfo{Name: "k", Queue: stint.DefaultQueue}.Job([]byte(`{}`), opts...)
}

func (b *bench) request(w *storetest.Worker) store.ClaimRequest {
	return store.ClaimRequest{Engine: w.Info.Token, Serial: 1_000_000, Nonce: 1}
}

// said is what a producer was told.
type said struct {
	list []stint.Receipt
	err  error
}

// receipts enqueues a job under each of the keys, in one batch, beside.
func (b *bench) receipts(tx stint.Tx, keys ...string) <-chan said {
	jobs := make([]stint.NewJob, len(keys))
	for i, key := range keys {
		jobs[i] = stint.KindInfo{Name: "k"}.Job(nil, stint.IdempotencyKey(key))
	}
	answer := make(chan said, 1)
	go func() {
		list, err := stint.NewClient(b.s).With(tx).EnqueueReceipts(b.Context(), jobs)
		answer <- said{list, err}
	}()
	return answer
}

func (b *bench) count(want int) error {
	if n := value[int](b, b.s.pool, `select count(*) from stint.entries`); n != want {
		return fmt.Errorf("%d jobs were stored, want %d", n, want)
	}
	return nil
}
