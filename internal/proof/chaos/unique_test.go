//go:build unix

package chaos_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/internal/proof/pgtest"
)

// asked is a request for a unique job: when it was made, and the job that the answer named.
type asked struct {
	at      check.Instant
	job     stint.ID
	unknown bool
}

// insist has producers ask again and again for unique jobs of a few keys, one at a time and in bulk, while
// workers are killed and sessions are ended, and returns what each was answered.
func (w *world) insist(producers, keys, n, work int, unique ...stint.Option) (all []asked) {
	w.t.Helper()
	keepers := w.keepFour(10)
	var mu sync.Mutex
	var ask sync.WaitGroup
	done := make(chan struct{})
	for i := range producers {
		dice, client := w.dice(uint64(100+i)), stint.NewClient(w.store)
		ask.Go(func() {
			for left := n / producers; left > 0; {
				size := 1
				if dice.IntN(4) == 0 {
					size = 1 + dice.IntN(min(50, left))
				}
				left -= size
				jobs := make([]stint.NewJob, size)
				for j, key := range dice.Perm(keys)[:size] {
					job, err := chaos.Kind.New(chaos.Args{Key: fmt.Sprint("key-", key), Work: work}, unique...)
					if err != nil {
						w.t.Error(err)
						return
					}
					jobs[j] = job
				}
				at := check.Now()
				receipts, err := client.EnqueueReceipts(w.t.Context(), jobs)
				mu.Lock()
				for j := range jobs {
					if err != nil {
						all = append(all, asked{at: at, unknown: true})
					} else {
						all = append(all, asked{at: at, job: receipts[j].ID})
					}
				}
				mu.Unlock()
			}
		})
	}
	go func() { ask.Wait(); close(done) }()
	for dice := w.dice(99); ; {
		select {
		case <-done:
			w.Drain(w.t.Context(), w.store, 2*time.Minute)
			stopAll(keepers)
			return all
		default:
			keepers[dice.IntN(len(keepers))].Process().Kill()
			w.endSessions(500 * time.Millisecond)
		}
	}
}

// Producers ask for jobs of a thousand keys that are unique until they have ended.
func TestOfAUniqueKeyThereAreNeverTwoUnfinishedJobsWhoeverIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	over, looked := make(chan struct{}), make(chan struct{})
	looks := 0
	go func() {
		defer close(looked)
		for !closed(over) {
			var n int
			began := time.Now()
			err := w.pool.QueryRow(t.Context(), `
				select count(*) from (
				  select from stint.jobs where state not in ('completed', 'failed', 'cancelled') group by args ->> 'key' having count(*) > 1) k`).Scan(&n)
			if looks++; n > 0 || err != nil {
				t.Errorf("%d keys have two jobs that have not ended, %v", n, err)
				return
			}
			time.Sleep(max(100*time.Millisecond, 4*time.Since(began))) // each reads all jobs
		}
	}()
	all := w.insist(16, 1000, jobs(t, 4000), 0, stint.UniqueUntilEnded(stint.By("/key")))
	close(over)
	<-looked
	stored := w.number(`select count(*) from stint.jobs`)
	together := w.number(`
		select count(*) filter (where started < before) from (
		  select started, max(finished) over (partition by args ->> 'key' order by started rows between unbounded preceding and 1 preceding) as before
		  from stint.jobs) j`)
	t.Logf("%d requests stored %d jobs; %d looks", len(all), stored, looks)
	if together > 0 || stored < 900 || stored >= len(all) || looks < 10 {
		t.Errorf("of %d jobs %d began before another one of their key had ended", stored, together)
	}
}

// One runs at a time, and one more waits: whoever asks is told of a job that begins after that.
func TestOneMoreAfterTheCurrentRunsAfterTheLastRequestWhoeverIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	if err := w.store.SetLimit(t.Context(), "key", stint.LimitRule{AtOnce: 1}, "", ""); err != nil {
		t.Fatal(err)
	}
	all := w.insist(16, 100, jobs(t, 4000), 30, stint.UniqueUntilStarted(stint.By("/key")), stint.LimitedBy("key", "/key"))
	history, err := check.Read(w.Dir)
	if err != nil {
		t.Fatal(err)
	}
	began := map[stint.ID]check.Instant{}
	for _, r := range history.Runs {
		began[stint.ID(r.Job)] = max(began[stint.ID(r.Job)], r.Start)
	}
	early, unknown := 0, 0
	for _, a := range all {
		if a.unknown {
			unknown++
		} else if began[a.job] < a.at {
			if early++; early <= 5 {
				t.Errorf("who asked at %v was told of job %d, which began at %v", a.at, a.job, began[a.job])
			}
		}
	}
	t.Logf("%d requests, of which %d have no answer, made %d jobs run", len(all), unknown, len(began))
	if early > 0 || len(began) < 100 || unknown > len(all)/2 {
		t.Errorf("%d of %d requests were told of a job that had begun before", early, len(all))
	}
}
