//go:build unix

package chaos_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/postgres"
)

// behind puts a proxy between a process and the world's server.
func (w *world) behind() *chaos.Proxy { return chaos.NewProxy(w.t, w.addr) }

func TestALostMessageOrAnswerOfAnEngineLosesAndDoublesNothing(t *testing.T) {
	for name, match := range few(2, maps.All(map[string]func(chaos.Message) bool{
		"a claim": chaos.ClaimCommits, "a flush": chaos.FinishCommits, "a beat": chaos.BeatCommits,
	})) {
		for how, fate := range few(1, maps.All(map[string]chaos.Fate{
			"its answer": chaos.Mute, "half of it": chaos.Halve, "it": chaos.Cut, "it by a reset": chaos.Reset,
		})) {
			t.Run(name+" loses "+how, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, pgtest.New(t))
				proxy := w.behind()
				worker := w.Start(chaos.Worker{Name: "worker", DB: proxy.URL(w.url), Slots: 4, TimeToLive: pace.Of(4 * time.Second)})
				w.Await("worker", event.EventJoined, 1, time.Minute)
				w.enqueue("before", 0, 20, quick)
				met := proxy.Once(1, match, func() chaos.Fate { return fate })
				w.enqueue("while", 0, 200, quick)
				within(t, 10*time.Second, "the message passes", met)
				w.enqueue("behind", 0, 20, quick)
				w.Drain(t.Context(), w.store, 10*time.Second)
				if err := worker.Stop(); err != nil {
					t.Error(err)
				}
				if n := w.Burials(t.Context(), w.ground); n > 0 {
					t.Errorf("the engine was buried for it, %d times", n)
				}
				t.Log(w.Judge(t.Context(), w.ground))
			})
		}
	}
}

// within waits for a channel to be closed.
func within(t *testing.T, d time.Duration, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(pace.Of(d)):
		t.Fatalf("waited in vain until %s", what)
	}
}

// A producer that gets no answer to its commit cannot know. Both is right, but
// nothing else: whatever of it is there must be there as a whole and run.
func TestAProducersCommitWithoutAnAnswerIsAllOrNothing(t *testing.T) {
	for name, commit := range few(1, maps.All(map[string]func(chaos.Message) bool{"in a transaction": chaos.TxCommits, "at once": chaos.EnqueueLands})) {
		for how, fate := range few(1, maps.All(map[string]chaos.Fate{"lost answer": chaos.Mute, "half a message": chaos.Halve, "reset": chaos.Reset})) {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, pgtest.New(t))
				proxy := w.behind()
				store, pool := w.connect(proxy.URL(w.url))
				w.Start(chaos.Worker{Name: "worker", DB: w.url, Slots: 4})
				met := proxy.Once(1, commit, func() chaos.Fate { return fate })
				const n = 50
				jobs, intent := w.intend("doubtful", 0, n, quick)
				_, err := enqueueIn(t.Context(), store, pool, name == "in a transaction", jobs)
				if err == nil {
					t.Error("there was an answer")
				}
				intent.Unknown()
				within(t, 10*time.Second, "the commit passes", met)
				w.enqueue("other", 0, 20, quick)
				w.Drain(t.Context(), w.store, time.Minute)
				report := w.Judge(t.Context(), w.ground)
				switch {
				case fate == chaos.Mute && report.UnknownCommitted != n:
					t.Errorf("%d of %d jobs were committed", report.UnknownCommitted, n)
				case fate != chaos.Mute && report.UnknownCommitted != 0:
					t.Errorf("%d jobs were committed", report.UnknownCommitted)
				}
			})
		}
	}
}

// connect opens a store and a pool by a URL.
func (w *world) connect(url string) (*postgres.Store, *pgxpool.Pool) {
	w.t.Helper()
	store, err := postgres.Open(w.t.Context(), url)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(store.Close)
	pool, err := pgxpool.New(w.t.Context(), url)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(pool.Close)
	return store, pool
}

// intend makes jobs numbered from a first one and logs that they are about to
// be enqueued.
func (w *world) intend(name string, first, n int, args func(i int) chaos.Args, opts ...stint.Option) ([]stint.NewJob, check.Intent) {
	w.t.Helper()
	keys, jobs := make([]string, n), make([]stint.NewJob, n)
	for i := range jobs {
		a := args(first + i)
		a.Key = fmt.Sprintf("%s-%d", name, first+i)
		job, err := chaos.Kind.New(a, opts...)
		if err != nil {
			w.t.Fatal(err)
		}
		keys[i], jobs[i] = a.Key, job
	}
	return jobs, w.History.Intend(keys...)
}

func enqueueIn(ctx context.Context, store *postgres.Store, pool *pgxpool.Pool, inTx bool, jobs []stint.NewJob) ([]stint.ID, error) {
	client := stint.NewClient(store)
	if !inTx {
		return client.EnqueueMany(ctx, jobs)
	}
	tx, err := pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	ids, err := client.With(postgres.Tx(tx)).EnqueueMany(ctx, jobs)
	if err != nil {
		return nil, err
	}
	return ids, tx.Commit(ctx)
}
