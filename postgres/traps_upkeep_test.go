package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// upkeepTraps are about leases and retention.
var upkeepTraps = []trap{
	{"Changes go when they are old, some at a time, and young ones stay", func(b *bench) error {
		exec(b, b.s, `
			insert into stint.changes (at, way, operation)
			select clock_timestamp() - interval '91 days' + i * interval '1 hour', 'api', 'x' from generate_series(1, 7) i
			union all select clock_timestamp() - interval '89 days', 'api', 'x' from generate_series(1, 2)`)
		for _, want := range []store.Retained{{Deleted: 5, More: true}, {Deleted: 2}, {}} {
			done, err := b.s.Retain(b.Context(), store.RetainStep{Part: store.RetainChanges, Limit: 5})
			b.must(err)
			if done != want {
				return fmt.Errorf("a step says %+v, want %+v", done, want)
			}
		}
		if n := value[int](b, b.s.pool, b.s.sql.in(`select count(*) from stint.changes`)); n != 2 {
			return fmt.Errorf("%d changes are left, want the 2 young ones", n)
		}
		return nil
	}},
	{"Who joined and took a lease while another one waited for it keeps it", func(b *bench) error {
		waits := b.join()
		exec(b, b.s, `insert into stint.leases (name) values ('x')`)
		tx := begin(b, b.s)
		_, err := tx.Exec(b.Context(), `select from stint.leases for share`)
		b.must(err)
		answer := make(chan store.Lease, 1)
		go func() {
			l, err := b.s.Acquire(b.Context(), "x", waits.Info.Token, time.Hour)
			if err != nil {
				l.Name = err.Error()
			}
			answer <- l
		}()
		if err := b.blocked(); err != nil {
			return err
		}
		has := b.join()
		_, err = tx.Exec(b.Context(), `
			update stint.leases set engine = $1, acquired = now(), renewed = now(), expires = now() + interval '1 hour'`, has.Info.Token)
		b.must(err)
		b.must(tx.Commit(b.Context()))
		if l := <-answer; l.Engine != has.Info.Token || l.Name != "x" {
			return fmt.Errorf("it says %+v, want it to be held by %s", l, has.Info.Instance)
		}
		return nil
	}},
	{"What is done under a lease ends before another engine has it", func(b *bench) error {
		had, wants := b.join(), b.join()
		_, err := b.s.Acquire(b.Context(), "x", had.Info.Token, time.Second)
		b.must(err)
		tx := begin(b, b.s)
		_, err = tx.Exec(b.Context(), `select stint.under('x', $1)`, had.Info.Token)
		b.must(err)
		next := make(chan error, 1)
		go func() {
			time.Sleep(time.Second) // its time is over, and it is at work
			for {
				l, err := b.s.Acquire(b.Context(), "x", wants.Info.Token, time.Hour)
				if err != nil || l.Engine == wants.Info.Token {
					next <- err
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		if err := b.blocked(); err != nil {
			return errors.New("another engine has the lease while something is done under it")
		}
		b.must(tx.Commit(b.Context()))
		return <-next
	}},
	{"What was in progress is claimed, whatever retention deleted meanwhile", func(b *bench) error {
		tx := begin(b, b.s)
		late := b.enqueueIn(Tx(tx), 3)
		w := b.join()
		// Others in this cluster, whose transactions come and go, are in progress too.
		const pointsSQL = `select pending_n is not null from stint.claims order by n desc limit 1`
		until := time.Now().Add(patience)
		for n := 0; n < 4 || !value[bool](b, b.s.pool, b.s.sql.in(pointsSQL)); n++ {
			b.enqueue(1)
			w.Complete(w.Claim(normal, 1)...)
			if time.Now().After(until) {
				return errors.New("no claim points to the one before it")
			}
		}
		w.Leave()
		if err := b.retain(); err != nil {
			return err
		}
		if n := value[int](b, b.s.pool, `select count(*) from stint.entries`); n != 0 {
			return fmt.Errorf("%d entries are left", n)
		}
		b.must(tx.Commit(b.Context()))
		return b.take(b.join(), 2, nil, late)
	}},
	{"A lane's claims go on behind the newest, whatever retention deleted", func(b *bench) error {
		w := b.join()
		for n := range int64(3) {
			b.enqueue(1)
			c, err := w.TryClaim(b.Context(), store.ClaimRequest{Lane: normal, Max: 10, Wait: true})
			b.must(err)
			if c.N != n+1 {
				return fmt.Errorf("claim %d follows %d", c.N, n)
			}
			w.Complete(c.Entries...)
			_, err = b.s.Heartbeat(b.Context(), w.Info.Token, store.Heartbeat{Number: n + 1, Low: n + 2})
			b.must(err)
			if err := b.retain(); err != nil {
				return err
			}
		}
		return nil
	}},
	{"A claim is there as long as its engine may name it", func(b *bench) error {
		w := b.join()
		b.enqueue(2)
		e := w.Claim(normal, 1)[0]
		x := w.Conclude(e, store.Result{Outcome: stint.OutcomeCompleted})
		_, err := w.TryFinish(b.Context(), x)
		b.must(err)
		w.Complete(w.Claim(normal, 1)...)
		b.longAgo()
		// What others in this cluster did meanwhile may have the second claim point to the first.
		exec(b, b.s, `update stint.claims set pending_n = null, pending_xid = null, pending_pos = null`)
		if err := b.retain(); err != nil {
			return err
		}
		// It is told only now that all is recorded.
		if n, err := w.TryFinish(b.Context(), x); n != 0 || err != nil {
			return fmt.Errorf("the repetition recorded %d, error %v", n, err)
		}
		return nil
	}},
	{"What retention deleted is not brought back by an engine that repeats it", func(b *bench) error {
		w := b.join()
		b.enqueue(2)
		entries := w.Claim(normal, 2)
		x := w.Conclude(entries[0], store.Result{Outcome: stint.OutcomeCompleted})
		_, err := w.TryFinish(b.Context(), x) // and the other one still runs
		b.must(err)
		b.longAgo()
		if err := b.retain(); err != nil {
			return err
		}
		if n, err := w.TryFinish(b.Context(), x); n != 0 || err != nil {
			return fmt.Errorf("the repetition recorded %d, error %v", n, err)
		}
		w.Complete(entries[1])
		return nil
	}},
	{"Engines pay nothing for the retention of what they recorded long ago", func(b *bench) error {
		w := b.join()
		b.enqueue(2)
		w.Complete(w.Claim(normal, 1)...)
		b.longAgo()
		w.Claim(normal, 1) // it is at work, and has been told of all that it recorded
		_, err := b.s.Heartbeat(b.Context(), w.Info.Token, store.Heartbeat{Number: 1, Low: 2})
		b.must(err)
		if err := b.retain(); err != nil {
			return err
		}
		if n := value[int](b, b.s.pool, `select count(*) from stint.deletions`); n != 0 {
			return fmt.Errorf("%d engines are noted", n)
		}
		return nil
	}},
	{"What came while the clock was ahead keeps nothing behind it", func(b *bench) error {
		w := b.join()
		for range 2 {
			b.enqueue(1)
			w.Complete(w.Claim(normal, 1)...)
		}
		b.enqueue(1)
		w.Claim(normal, 1)
		_, err := b.s.Heartbeat(b.Context(), w.Info.Token, store.Heartbeat{Low: 1 << 40})
		b.must(err)
		b.longAgo()
		exec(b, b.s, `update stint.entries set created = created + interval '10 years' where pos = (select min(pos) from stint.entries)`)
		exec(b, b.s, `update stint.executions set finished = finished + interval '10 years' where pos = (select min(pos) from stint.executions)`)
		exec(b, b.s, `update stint.claims set made = made + interval '10 years' where n = 1`)
		// What writers of other databases had open meanwhile keeps claims, which is another matter.
		exec(b, b.s, `update stint.claims set pending = null, pending_n = null, pending_xid = null, pending_pos = null`)
		r := store.RetainStep{Part: store.RetainJobs, Limit: 100, Keep: store.Retention{KeepFor: store.KeepFor{All: time.Minute}}, Age: time.Minute}
		done, err := b.s.Retain(b.Context(), r)
		if b.must(err); done.Deleted != 1 || done.Young != (store.RetainMark{}) {
			return fmt.Errorf("of the jobs it says %+v", done)
		}
		r.Part, r.Age = store.RetainClaims, 0
		if done, err = b.s.Retain(b.Context(), r); err != nil || done.Deleted != 1 {
			return fmt.Errorf("of the claims it says %+v, error %v", done, err)
		}
		return nil
	}},
	{"What has no entry ends no pass", func(b *bench) error {
		w := b.join()
		ids := b.enqueue(3)
		w.Complete(w.Claim(normal, 3)...)
		b.longAgo()
		_, err := b.s.pool.Exec(b.Context(), b.s.sql.in(`delete from stint.entries where pos = $1`), ids[0])
		b.must(err)
		r := store.RetainStep{Part: store.RetainJobs, Limit: 2, Keep: store.Retention{KeepFor: store.KeepFor{All: time.Minute}}}
		done, err := b.s.Retain(b.Context(), r)
		if b.must(err); done.Deleted != 1 || !done.More {
			return fmt.Errorf("of two executions, one without an entry, it says %+v", done)
		}
		r.From = done.Next
		if done, err = b.s.Retain(b.Context(), r); err != nil || done.Deleted != 1 || done.More {
			return fmt.Errorf("of what is behind them it says %+v, error %v", done, err)
		}
		return nil
	}},
	{"A beat does not wait for whoever deletes", func(b *bench) error {
		ids := b.enqueue(1)
		w := b.join()
		w.Complete(w.Claim(normal, 1)...)
		_, err := b.s.pool.Exec(b.Context(), b.s.sql.in(`insert into stint.deletions (engine, serial, at) values ($1, 0, now() - interval '1 hour')`), w.Info.Token)
		b.must(err)
		tx := begin(b, b.s)
		_, err = tx.Exec(b.Context(), b.s.sql.in(`select stint.erase($1)`), ids)
		b.must(err)
		beat := func(ctx context.Context) error {
			_, err := b.s.Heartbeat(ctx, w.Info.Token, store.Heartbeat{Low: 1 << 40})
			return err
		}
		if err := b.soon("a beat beside a deletion", beat); err != nil {
			return err
		}
		b.must(tx.Commit(b.Context()))
		b.must(beat(b.Context()))
		if n := value[int](b, b.s.pool, b.s.sql.in(`select count(*) from stint.deletions`)); n != 1 {
			return fmt.Errorf("an engine that may repeat what was deleted just now is in %d notes", n)
		}
		exec(b, b.s, `update stint.deletions set at = now() - interval '1 hour'`)
		b.must(beat(b.Context()))
		if n := value[int](b, b.s.pool, b.s.sql.in(`select count(*) from stint.deletions`)); n != 0 {
			return fmt.Errorf("%d notes are left", n)
		}
		return nil
	}},
	{"Dead claims are not stepped over to find a lane's frontier", func(b *bench) error {
		w := b.join()
		exec(b, b.s, `alter table stint.claims set (autovacuum_enabled = off)`)
		b.enqueue(1)
		w.Complete(w.Claim(normal, 1)...)
		exec(b, b.s, `insert into stint.claims (lane, n, nonce, engine, serial, xid, pos, positions)
			select lane, i, i, engine, 1000 + i, xid, pos, '{}' from stint.claims, generate_series(2, 20000) i`)
		pin, err := connect(b, b.s).BeginTx(b.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead}) // a snapshot that keeps them
		b.must(err)
		_, err = pin.Exec(b.Context(), `select from stint.claims limit 1`)
		b.must(err)
		defer pin.Rollback(b.Context())
		exec(b, b.s, `delete from stint.claims where n < 20000`)
		cost := b.blocks(func(tx pgx.Tx) {
			_, err := tx.Exec(b.Context(), `select * from stint.frontiers()`)
			b.must(err)
		}, "stint.claims", "stint.claims_pkey")
		if cost > 100 {
			return fmt.Errorf("finding it asks for %d blocks", cost)
		}
		return nil
	}},
}

// longAgo has everything that was recorded and claimed so far lie an hour back.
func (b *bench) longAgo() {
	b.Helper()
	exec(b, b.s, `update stint.executions set started = started - interval '1 hour', finished = finished - interval '1 hour'`)
	exec(b, b.s, `update stint.claims set made = made - interval '1 hour'`)
	exec(b, b.s, `update stint.entries set created = created - interval '1 hour'`)
}

// retain goes through everything, and keeps nothing.
func (b *bench) retain() error {
	b.Helper()
	time.Sleep(2 * time.Millisecond)
	for _, part := range store.RetainParts {
		r := store.RetainStep{Part: part, Limit: 100, Keep: store.Retention{KeepFor: store.KeepFor{All: time.Microsecond}}}
		for more := true; more; {
			done, err := b.s.Retain(b.Context(), r)
			if err != nil {
				return err
			}
			r.From, more = done.Next, done.More
		}
	}
	return nil
}
