package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// summed makes sums as often as that takes them further, and compares how many
// attempts there are.
func (b *bench) summed(want int64) error {
	b.Helper()
	for range 10 {
		if _, err := b.s.SumUp(b.Context()); err != nil {
			return err
		}
	}
	list, err := b.s.Stats(b.Context(), report.StatsFilter{})
	if err != nil {
		return err
	}
	n := int64(0)
	for _, s := range list {
		n += s.Attempts
	}
	if n != want {
		return fmt.Errorf("the sums are of %d attempts, want %d", n, want)
	}
	return nil
}

// further takes sums on until they have come so far. Transactions of others in
// this cluster may hold them up.
func (b *bench) further(upto string) {
	b.Helper()
	for until := time.Now().Add(30 * time.Second); !value[bool](b, b.s.pool, b.s.sql.in(`select until > now() - $1::interval from stint.summed`), upto); time.Sleep(2 * time.Millisecond) {
		_, err := b.s.SumUp(b.Context())
		if b.must(err); time.Now().After(until) {
			b.Fatal("the sums get nowhere")
		}
	}
}

var sumTraps = []trap{
	{"What a transaction records that began before the sums went on is in them", func(b *bench) error {
		exec(b, b.s, sumAtOnceSQL)
		b.enqueue(1)
		w := b.join()
		c, err := w.TryClaim(b.Context(), store.ClaimRequest{Lane: normal, Max: 1, Wait: true})
		b.must(err)
		tx := begin(b, b.s)
		e := c.Entries[0]
		_, err = tx.Exec(b.Context(), b.s.sql.in(`select stint.complete($1, $2, $3, $4, $5, $6, 1, 1, 1000, null)`),
			w.Info.Token, c.Lane, c.N, c.Nonce, e.Pos, e.ID)
		b.must(err)
		if err := b.summed(0); err != nil {
			return err
		}
		b.must(tx.Commit(b.Context()))
		return b.summed(1)
	}},
	{"What is recorded long after it ended is in the sums", func(b *bench) error {
		exec(b, b.s, sumAtOnceSQL)
		b.enqueue(2)
		w := b.join()
		done := conclude(w, completed, w.Claim(normal, 2))
		b.further("10 minutes")
		for i := range done {
			done[i].Ended = time.Now().Add(-30 * time.Minute)
			done[i].Started = done[i].Ended.Add(-time.Second)
			if _, err := w.TryFinish(b.Context(), done[i]); err != nil {
				return err
			}
			if err := b.summed(int64(i + 1)); err != nil {
				return err
			}
		}
		return nil
	}},
	{"What is recorded when the clock was set back is in the sums", func(b *bench) error {
		ids := b.enqueue(2)
		w := b.join()
		done := conclude(w, completed, w.Claim(normal, 2))
		// As if that had been done while the clock was an hour ahead.
		_, err := b.s.pool.Exec(b.Context(), b.s.sql.in(`update stint.summed set until = clock_timestamp() + interval '1 hour', aim = null`))
		b.must(err)
		for i := range done {
			if _, err := w.TryFinish(b.Context(), done[i]); err != nil {
				return err
			}
		}
		if _, err := b.s.Delete(b.Context(), ids[:1]); err != nil {
			return err
		}
		return b.summed(2)
	}},
	{"Who records late waits for whoever sums up, and is counted once", func(b *bench) error {
		exec(b, b.s, sumAtOnceSQL)
		b.enqueue(1)
		w := b.join()
		done := conclude(w, completed, w.Claim(normal, 1))
		done[0].Ended = time.Now().Add(-55 * time.Minute) // in the first step of the sums
		done[0].Started = done[0].Ended
		var tx pgx.Tx
		for until := time.Now().Add(30 * time.Second); ; time.Sleep(2 * time.Millisecond) {
			tx = begin(b, b.s)
			if value[bool](b, tx, b.s.sql.in(`select stint.sum_up()`)) {
				break // a step is taken, and not yet committed
			}
			if b.must(tx.Commit(b.Context())); time.Now().After(until) {
				return fmt.Errorf("the sums get nowhere")
			}
		}
		recorded := make(chan error, 1)
		go func() {
			_, err := w.TryFinish(b.Context(), done...)
			recorded <- err
		}()
		if err := b.blocked(); err != nil {
			return err
		}
		b.must(tx.Commit(b.Context()))
		b.must(<-recorded)
		return b.summed(1)
	}},
	{"An attempt is in the sums when its job is deleted before they come to it", func(b *bench) error {
		ids := b.enqueue(1)
		w := b.join()
		w.Complete(w.Claim(normal, 1)...)
		if _, err := b.s.Delete(b.Context(), ids); err != nil {
			return err
		}
		return b.summed(1)
	}},
	{"Who deletes and waits for the sums holds no engine up", func(b *bench) error {
		ids := b.enqueue(1)
		w := b.join()
		w.Complete(w.Claim(normal, 1)...)
		_, err := b.s.pool.Exec(b.Context(), b.s.sql.in(`insert into stint.deletions (engine, serial) values ($1, 0)`), w.Info.Token)
		b.must(err)
		tx := begin(b, b.s)
		_, err = tx.Exec(b.Context(), b.s.sql.in(`select from stint.summed for update`))
		b.must(err)
		deleted := make(chan error, 1)
		go func() {
			_, err := b.s.Delete(b.Context(), ids)
			deleted <- err
		}()
		if err := b.blocked(); err != nil {
			return err
		}
		free := value[int](b, b.s.pool, b.s.sql.in(`with free as (select from stint.deletions for update skip locked) select count(*) from free`))
		b.must(tx.Commit(b.Context()))
		b.must(<-deleted)
		if free != 1 {
			return errors.New("the note of an engine is locked")
		}
		return nil
	}},
	{"A step of the sums ends soon, however much there is to sum up", func(b *bench) error {
		exec(b, b.s, sumAtOnceSQL)
		exec(b, b.s, `create or replace function stint.add_sums(p_from timestamptz, p_to timestamptz, p_pos bigint[] default null) returns void language sql
			as $$ select pg_sleep(0.6) $$`)
		const until = `select until from stint.summed`
		began := value[time.Time](b, b.s.pool, b.s.sql.in(until))
		for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
			more, err := b.s.SumUp(b.Context())
			if b.must(err); more {
				break
			} else if time.Now().After(end) {
				return errors.New("the sums get nowhere")
			}
		}
		if got := value[time.Time](b, b.s.pool, b.s.sql.in(until)).Sub(began); got <= 0 || got > time.Minute {
			return fmt.Errorf("a step of more than a second takes them on by %v", got)
		}
		return nil
	}},
	{"Minutes that are not told any more go, some at a time, and hours stay", func(b *bench) error {
		exec(b, b.s, `
			insert into stint.stats
			select m, now() - interval '49 hours' - i * interval '1 minute', 'k', 'q', 1, 1, 1, 1, 1, 1, 1, now(), 1
			from generate_series(1, 15000) i, unnest('{1,60}'::smallint[]) m`)
		left := func(minutes, hours int) error {
			for m, want := range map[int]int{1: minutes, 60: hours} {
				if n := value[int](b, b.s.pool, b.s.sql.in(`select count(*) from stint.stats where minutes = $1`), m); n != want {
					return fmt.Errorf("%d sums of %d minutes are left, want %d", n, m, want)
				}
			}
			return nil
		}
		more, err := b.s.SumUp(b.Context())
		b.must(err)
		if !more {
			return errors.New("nothing more is to be done")
		}
		if err := left(5000, 15000); err != nil {
			return err
		}
		_, err = b.s.SumUp(b.Context())
		b.must(err)
		return left(0, 15000)
	}},
	{"Who sums up while somebody else does finds nothing to do", func(b *bench) error {
		exec(b, b.s, sumAtOnceSQL)
		if _, err := b.s.SumUp(b.Context()); err != nil {
			return err
		}
		tx := begin(b, b.s)
		value[bool](b, tx, b.s.sql.in(`select stint.sum_up()`))
		err := b.soon("who sums up beside another one", func(ctx context.Context) error {
			more, err := b.s.SumUp(ctx)
			if more {
				return fmt.Errorf("it did something")
			}
			return err
		})
		b.must(tx.Rollback(b.Context()))
		return err
	}},
	// Its engine must be able to renew its lease, and people to change what becomes of jobs.
	{"Retention that waits for the sums holds nothing", func(b *bench) error {
		w := b.join()
		b.enqueue(1)
		w.Complete(w.Claim(normal, 1)...)
		renew := func(ctx context.Context) error {
			_, err := b.s.Acquire(ctx, store.LeaseRetention, w.Info.Token, time.Minute)
			return err
		}
		b.must(renew(b.Context()))
		sums := begin(b, b.s)
		_, err := sums.Exec(b.Context(), b.s.sql.in(`select from stint.summed for update`))
		b.must(err)
		deleted := make(chan error, 1)
		go func() {
			done, err := b.s.Retain(b.Context(), store.RetainStep{Part: store.RetainJobs, Limit: 10, Keep: store.Retention{KeepFor: store.KeepFor{All: time.Microsecond}},
				Under: store.LeaseGuard{Lease: store.LeaseRetention, Engine: w.Info.Token}})
			if err == nil && done.Deleted != 1 {
				err = fmt.Errorf("it deleted %d jobs", done.Deleted)
			}
			deleted <- err
		}()
		if err := b.blocked(); err != nil {
			return err
		}
		err = errors.Join(b.soon("a renewal", renew), b.soon("who repeats a job", func(ctx context.Context) error {
			_, err := b.s.Retry(ctx, []stint.ID{1 << 40}, stint.RerunOptions{})
			return err
		}))
		b.must(sums.Rollback(b.Context()))
		return errors.Join(err, <-deleted)
	}},
}
