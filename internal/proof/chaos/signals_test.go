//go:build unix

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/retry"
)

// Signals come from many senders, half of them in transactions that stay open for a while, while engines are
// killed and sessions ended: each is taken once, and no job waits for one that is there.
func TestNoSignalIsLost(t *testing.T) {
	t.Parallel()
	const signals, senders = 8, 8
	w := newWorld(t, pgtest.New(t))
	keepers := w.keepFour(10)
	ids := w.enqueue("awaiting", 0, jobs(t, 100), func(int) chaos.Args {
		return chaos.Args{Awaits: signals, Work: 2, Grant: -1}
	}, stint.Retry(retry.Forever(20*time.Millisecond)), stint.MaxLosses(1000))

	store, pool := w.connect(w.url)
	var sending sync.WaitGroup
	var sent atomic.Int32
	dice := w.dice(7)
	dice.Shuffle(len(ids), func(i, k int) { ids[i], ids[k] = ids[k], ids[i] })
	for s := range senders {
		own := rand.New(rand.NewPCG(w.seed, uint64(s)))
		sending.Go(func() {
			for round := s; round < signals*len(ids); round += senders {
				id, key := ids[round%len(ids)], fmt.Sprint(round)
				// Every second signal of a job finds it waiting, however slow the engines are.
				for (round/len(ids))%2 == 1 && !isBlocked(t.Context(), store, id) && t.Context().Err() == nil {
					time.Sleep(10 * time.Millisecond)
				}
				for err := errors.New("not yet"); err != nil && t.Context().Err() == nil; {
					err = signal(t.Context(), store, pool, id, key, own)
				}
				sent.Add(1)
				time.Sleep(pace.Of(time.Duration(own.IntN(50)) * time.Millisecond))
			}
		})
	}
	kills := w.killUntilCompleted(keepers)
	stopAll(keepers)
	sending.Wait()
	store, _ = w.connect(w.url) // whose sessions nobody ends
	for _, id := range ids {
		all, err := store.Signals(t.Context(), id)
		taken := map[string]bool{}
		for _, s := range all {
			taken[s.Step] = true
		}
		if err != nil || len(all) != signals || len(taken) != signals || taken[""] {
			t.Errorf("job %d got %d signals, taken by %v; %v", id, len(all), taken, err)
		}
	}
	waits := w.number(`select count(*) from stint.attempts where outcome = 'snoozed'`)
	t.Logf("%d kills; %d jobs took %d signals, and waited %d times", kills, len(ids), signals, waits)
	if kills < 4 || waits < 2*len(ids) {
		t.Error("too little happened to prove anything")
	}
	w.apart()
}

func isBlocked(ctx context.Context, store *postgres.Store, id stint.ID) bool {
	job, err := store.Job(ctx, id)
	return err == nil && job.State == stint.Blocked
}

// signal sends one, now and then in a transaction that commits late. An error may mean that it was sent.
func signal(ctx context.Context, store *postgres.Store, pool *pgxpool.Pool, id stint.ID, key string, dice *rand.Rand) error {
	return nowOrLater(ctx, store, pool, dice, func(client *stint.Client) error {
		return client.SignalOnce(ctx, id, key, chaos.SignalName, 1)
	})
}

// nowOrLater lets a client do something, now and then in a transaction that commits late.
func nowOrLater(ctx context.Context, store *postgres.Store, pool *pgxpool.Pool, dice *rand.Rand, do func(client *stint.Client) error) error {
	client := stint.NewClient(store)
	if dice.IntN(2) == 0 {
		return do(client)
	}
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	err = do(client.With(postgres.Tx(tx)))
	time.Sleep(time.Duration(dice.IntN(50)) * time.Millisecond)
	if err != nil {
		return errors.Join(err, tx.Rollback(ctx))
	}
	return tx.Commit(ctx)
}
