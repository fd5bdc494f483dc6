package sqlite

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// The benchmarks tell jobs per second, as docs/design quotes them:
//
//	go test -run '^$' -bench . -benchtime 3s ./sqlite

func perJob(b *testing.B, jobs int) {
	b.ReportMetric(float64(jobs)/b.Elapsed().Seconds(), "jobs/s")
}

func someJobs(n int) []stint.NewJob {
	all := make([]stint.NewJob, n)
	for i := range all {
		all[i] = stint.NewJob{Kind: "noop", Queue: stint.DefaultQueue, Args: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))}
	}
	return all
}

func enqueue(b testing.TB, s *Store, jobs []stint.NewJob) {
	if _, err := s.Enqueue(b.Context(), stint.Tx{}, jobs); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkEnqueue(b *testing.B) {
	for _, size := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "jobs.db"))
			jobs, n := someJobs(size), 0
			for b.Loop() {
				enqueue(b, s, jobs)
				n += size
			}
			perJob(b, n)
		})
	}
	b.Run("producers=50", func(b *testing.B) {
		s := open(b, filepath.Join(b.TempDir(), "jobs.db"))
		b.SetParallelism(25)
		b.RunParallel(func(pb *testing.PB) {
			jobs := someJobs(1)
			for pb.Next() {
				enqueue(b, s, jobs)
			}
		})
		perJob(b, b.N)
	})
	b.Run("tx", func(b *testing.B) {
		s := open(b, filepath.Join(b.TempDir(), "jobs.db"))
		db := database(b, s.path)
		jobs, n := someJobs(10_000), 0
		for b.Loop() {
			tx, err := db.Begin()
			if err != nil {
				b.Fatal(err)
			}
			if _, err := s.Enqueue(b.Context(), Tx(tx), jobs); err != nil {
				b.Fatal(err)
			}
			if err := tx.Commit(); err != nil {
				b.Fatal(err)
			}
			n += len(jobs)
		}
		perJob(b, n)
	})
}

// work claims and completes everything, size entries at a time.
func work(b testing.TB, s *Store, size int, serial *int64, token store.EngineID) (worked int) {
	lane := store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "").ID
	for {
		*serial++
		c, err := s.Claim(b.Context(), store.ClaimRequest{Engine: token, Serial: *serial, Nonce: store.Nonce(rand.Int64()), Lane: lane, Max: size})
		if err != nil {
			b.Fatal(err)
		}
		if len(c.Entries) == 0 {
			return worked
		}
		now := time.Now()
		done := make([]store.Completion, len(c.Entries))
		for i := range c.Entries {
			done[i] = store.Conclude(&c.Entries[i], store.Result{Outcome: stint.OutcomeCompleted}, now, 0)
			done[i].Nonce, done[i].Slot, done[i].Started, done[i].Ended = c.Nonce, 1, now, now
		}
		n, err := s.Finish(b.Context(), token, []store.ClaimRef{c.ClaimRef}, done)
		if err != nil || n != len(done) {
			b.Fatal(n, err)
		}
		worked += n
	}
}

func join(b testing.TB, s *Store) store.EngineID {
	token := store.EngineID(rand.Int64())
	if err := s.Join(b.Context(), store.EngineInfo{Token: token, Instance: "bench", Slots: 1, TimeToLive: time.Minute}, nil); err != nil {
		b.Fatal(err)
	}
	return token
}

func BenchmarkWork(b *testing.B) {
	for _, size := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("claim=%d", size), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "jobs.db"))
			token, serial, n := join(b, s), int64(0), 0
			jobs := someJobs(size * 10)
			for b.Loop() {
				b.StopTimer()
				enqueue(b, s, jobs)
				b.StartTimer()
				n += work(b, s, size, &serial, token)
			}
			perJob(b, n)
		})
	}
}

func BenchmarkPromote(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "jobs.db"))
	jobs, n := someJobs(1000), 0
	for i := range jobs {
		jobs[i].Delay = time.Microsecond
	}
	for b.Loop() {
		b.StopTimer()
		enqueue(b, s, jobs)
		b.StartTimer()
		p, err := s.Promote(b.Context(), time.Time{}, 1000)
		if err != nil {
			b.Fatal(err)
		}
		n += p.Moved
	}
	perJob(b, n)
}

func BenchmarkLook(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "jobs.db"))
	enqueue(b, s, someJobs(1000))
	var serial int64
	work(b, s, 1000, &serial, join(b, s))
	for b.Loop() {
		if _, err := s.Look(b.Context(), store.LaneHints{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRetain deletes jobs that are old, by the size of a step.
func BenchmarkRetain(b *testing.B) {
	for _, limit := range []int{500, 2000, 10_000} {
		b.Run(fmt.Sprintf("limit=%d", limit), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "jobs.db"))
			var serial int64
			token := join(b, s)
			jobs := someJobs(min(limit, 10_000))
			for range b.N {
				enqueue(b, s, jobs)
				work(b, s, 1000, &serial, token)
			}
			for more := true; more; {
				var err error
				if more, err = s.SumUp(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			step := store.RetainStep{Part: store.RetainJobs, Limit: limit, Keep: store.Retention{KeepFor: store.KeepFor{All: time.Microsecond}}}
			b.ResetTimer()
			for range b.N {
				done, err := s.Retain(b.Context(), step)
				if err != nil || done.Deleted != limit {
					b.Fatal(done, err)
				}
				step.From = done.Next
			}
			b.ReportMetric(float64(b.N*limit)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}
