package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// odd is a policy that no other test stores.
var odd = retry.Fixed(7, 13*time.Second)

var past time.Time

var enqueueTraps = []trap{
	{"Producers of a new lane and policy do not wait for each other's commits", func(b *bench) error {
		one, two := begin(b, b.s), begin(b, b.s)
		a := []stint.Option{stint.Queue("a"), stint.Retry(odd)}
		z := []stint.Option{stint.Queue("z"), stint.Retry(retry.Fixed(8, time.Second))}
		all := b.enqueueIn(Tx(one), 1, a...)
		all = append(all, b.enqueueIn(Tx(two), 1, z...)...)
		err := b.soon("a producer", func(ctx context.Context) error {
			// Crosswise, and outside of any transaction.
			for _, tx := range []stint.Tx{Tx(one), Tx(two), {}} {
				for _, opts := range [][]stint.Option{z, a} {
					id, err := stint.NewClient(b.s).With(tx).Enqueue(ctx, stint.KindInfo{Name: "k"}.Job(nil, opts...))
					if err != nil {
						return err
					}
					all = append(all, id)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		b.must(one.Commit(b.Context()))
		b.must(two.Commit(b.Context()))
		got := b.join().ClaimAll()
		if len(got) != len(all) {
			return fmt.Errorf("%d jobs were claimed, want %d", len(got), len(all))
		}
		return nil
	}},
	{"A job that SQL enqueues keeps no list of jobs from being shown", func(b *bench) error {
		for _, depth := range []int{200, 12_000} { // the latter is more than Go reads, and less than PostgreSQL does
			for _, opt := range []string{`args => $1`, `metadata => jsonb_build_object('a', $1::jsonb)`} {
				deep := strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1)
				_, err := b.s.pool.Exec(b.Context(), `select stint.enqueue('k', `+opt+`)`, deep)
				if depth == 200 {
					b.must(err)
				}
			}
		}
		list, err := b.s.Jobs(b.Context(), store.Filter{})
		b.must(err)
		if _, err := json.Marshal(list); err != nil || len(list) != 2 {
			return fmt.Errorf("%d jobs cannot be shown: %w", len(list), err)
		}
		return nil
	}},
	{"What a transaction that rolled back said first is said again", func(b *bench) error {
		tx := begin(b, b.s)
		b.enqueueIn(Tx(tx), 1, stint.Queue("new"), stint.Retry(odd))
		b.must(tx.Rollback(b.Context()))
		b.enqueue(1, stint.Queue("new"), stint.Retry(odd))
		got := b.join().ClaimAll()
		if len(got) != 1 || got[0].Retry != odd || got[0].Queue != "new" {
			return fmt.Errorf("claimed %+v", got)
		}
		return nil
	}},
	{"A policy that the database lost travels with the job", func(b *bench) error {
		b.enqueue(1, stint.Retry(odd))
		exec(b, b.s, `truncate stint.policies, stint.entries`)
		b.enqueue(2, stint.Retry(odd))
		fresh := openStore(b, b.s.url())
		got, err := fresh.Fetch(b.Context(), value[[]store.Position](b, b.s.pool, `select array_agg(pos) from stint.entries`))
		b.must(err)
		if len(got) != 2 || got[0].Retry != odd || got[1].Retry != odd {
			return fmt.Errorf("read %+v", got)
		}
		return nil
	}},
	{"A program of many policies reads each as it is", func(b *bench) error {
		var all []stint.NewJob
		for i := range 30 {
			all = append(all, stint.KindInfo{Name: "k"}.Job(nil, stint.Retry(retry.Fixed(i, time.Minute))))
		}
		_, err := stint.NewClient(b.s).EnqueueMany(b.Context(), all)
		b.must(err)
		fresh := openStore(b, b.s.url())
		for i := range maxKnownPolicies - 5 {
			fresh.policies.add(int64(-i-1), odd)
		}
		got, err := fresh.Fetch(b.Context(), value[[]store.Position](b, b.s.pool, `select array_agg(pos order by pos) from stint.entries`))
		b.must(err)
		for i, e := range got {
			if e.Retry != all[i].Retry {
				return fmt.Errorf("job %d is read with %v, want %v", i, e.Retry, all[i].Retry)
			}
		}
		return nil
	}},
	{"A delay counts from the enqueue", func(b *bench) error {
		const idle, delay = 60 * time.Millisecond, time.Minute
		tx := begin(b, b.s)
		start := value[time.Time](b, tx, `select now()`)
		time.Sleep(idle)
		b.enqueueIn(Tx(tx), 1, stint.Delay(delay))
		b.enqueueIn(Tx(tx), 2, stint.Delay(delay))
		value[int64](b, tx, `select stint.enqueue('k', delay => '1 min')`)
		b.must(tx.Commit(b.Context()))
		for _, due := range value[[]time.Time](b, b.s.pool, `select array_agg(due) from stint.waiting`) {
			if due.Sub(start) < idle+delay {
				return fmt.Errorf("a job in %v, enqueued after %v, is due %v after the begin", delay, idle, due.Sub(start))
			}
		}
		if n := value[int64](b, b.s.pool, `select count(*) from stint.waiting`); n != 4 {
			return fmt.Errorf("%d jobs wait, want 4", n)
		}
		return nil
	}},
	{"A caller's transaction needs no connection of the pool", func(b *bench) error {
		one := limited(b, b.s, 1)
		return b.soon("the enqueue", func(ctx context.Context) error {
			tx, err := one.pool.Begin(ctx)
			if err != nil {
				return err
			}
			defer tx.Rollback(ctx)
			_, err = stint.NewClient(one).With(Tx(tx)).Enqueue(ctx, stint.NewJob{Kind: "k", Retry: odd, Tags: []string{"t"}, Delay: time.Hour})
			return err
		})
	}},
	{"SQL and Go name the same lanes and store the same policies", func(b *bench) error {
		text, err := json.Marshal(odd)
		b.must(err)
		b.enqueue(1, stint.Retry(odd), stint.Queue("q"), stint.Priority(-3))
		value[int64](b, b.s.pool, `select stint.enqueue('k', queue => 'q', priority => -3, retry => $1)`, string(text))
		var lanes, policies []int64
		b.must(b.s.pool.QueryRow(b.Context(), `select array_agg(lane), array_agg(policy) from stint.entries`).Scan(&lanes, &policies))
		if len(slices.Compact(lanes)) != 1 || len(slices.Compact(policies)) != 1 {
			return fmt.Errorf("lanes %v, policies %v", lanes, policies)
		}
		return nil
	}},
}
