package postgres

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

const batch = 500

// BenchmarkEnqueueBulk stores 5,000 jobs at a time.
func BenchmarkEnqueueBulk(b *testing.B) {
	s := newStore(b)
	jobs := make([]stint.NewJob, 5000)
	for i := range jobs {
		jobs[i] = stint.KindInfo{Name: "k"}.Job([]byte(`{"n":1}`))
	}
	for b.Loop() {
		if _, err := stint.NewClient(s).EnqueueMany(b.Context(), jobs); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*len(jobs))/b.Elapsed().Seconds(), "jobs/s")
}

// filled is a store with enough to claim.
func filled(b *testing.B) (*storetest.Worker, *Store) {
	s := newStore(b)
	exec(b, s, `insert into stint.entries (lane, queue, kind, args) select $1, 'default', 'k', '{"n":1}' from generate_series(1, $2::int)`,
		int64(normal), (b.N+2)*batch)
	return storetest.Join(b, s, "k"), s
}

// BenchmarkClaim claims 500 jobs at a time, with their contents.
func BenchmarkClaim(b *testing.B) {
	w, _ := filled(b)
	b.ResetTimer()
	for range b.N {
		w.Claim(normal, batch)
	}
	b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkFinish records 500 completed jobs at a time.
func BenchmarkFinish(b *testing.B) {
	w, _ := filled(b)
	var all [][]store.Completion
	for range b.N {
		all = append(all, conclude(w, completed, w.Claim(normal, batch)))
	}
	b.ResetTimer()
	for _, done := range all {
		if n, err := w.TryFinish(b.Context(), done...); err != nil || n != batch {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkEnqueueOne stores one job at a time from eight stores at once, as
// many processes do, while an engine sleeps or does not.
func BenchmarkEnqueueOne(b *testing.B) {
	for _, asleep := range []bool{true, false} {
		b.Run(fmt.Sprintf("asleep=%v", asleep), func(b *testing.B) {
			s := newStore(b)
			w := storetest.Join(b, s, "k")
			must(b, s.Asleep(b.Context(), w.Info.Token, asleep))
			go func() { _ = s.Listen(b.Context(), func(store.News) {}) }()
			var all sync.WaitGroup
			b.ResetTimer()
			for range 8 {
				client := stint.NewClient(openStore(b, s.url()))
				all.Go(func() {
					for range b.N {
						if _, err := client.Enqueue(b.Context(), stint.NewJob{Kind: "k"}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(8*b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// BenchmarkRetain deletes jobs that are old, by the size of a step, on a store
// whose sums have come to them.
func BenchmarkRetain(b *testing.B) {
	for _, limit := range []int{500, 2000, 10_000} {
		b.Run(fmt.Sprintf("limit=%d", limit), func(b *testing.B) {
			s := newStore(b)
			n := b.N * limit
			exec(b, s, `insert into stint.entries (lane, queue, kind, args, created) select $1, 'default', 'k', '{"n":1}', clock_timestamp() - interval '1 hour' from generate_series(1, $2::int)`, int64(normal), n)
			exec(b, s, `insert into stint.executions (pos, nonce, engine, started, finished, attempt, slot, outcome, final)
				select e.pos, 1, 1, e.created, e.created, 1, 1, 1, true from stint.entries e order by e.pos`)
			exec(b, s, `update stint.summed set until = clock_timestamp()`)
			exec(b, s, `vacuum analyze stint.entries, stint.executions`)
			step := store.RetainStep{Part: store.RetainJobs, Limit: limit, Keep: store.Retention{KeepFor: store.KeepFor{All: time.Minute}}}
			b.ResetTimer()
			for range b.N {
				done, err := s.Retain(b.Context(), step)
				if err != nil || done.Deleted != limit {
					b.Fatal(done, err)
				}
				step.From = done.Next
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}
