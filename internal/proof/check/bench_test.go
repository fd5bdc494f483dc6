package check

import (
	"math/rand/v2"
	"testing"
	"time"
)

// million is a right history of n jobs, a tenth of them run twice, in a
// random order.
func million(n int) *world {
	w := newWorld()
	for i := range n {
		id := int64(i + 1)
		key := "job-" + number(id)
		at := Instant(i) * Instant(time.Millisecond)
		w.h.Enqueues = append(w.h.Enqueues, Enqueue{Key: key, Job: id, Fate: Committed, At: at})
		w.f.Jobs = append(w.f.Jobs, Job{ID: id, Key: key, State: StateCompleted, Final: true, ChargedMax: 3, LossesMax: 3})
		w.attempt(id, id, 1, at, i%10 != 0)
		if i%10 == 0 {
			w.attempt(id, int64(n)+id, 2, at.Add(time.Second), true)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(w.f.Jobs), func(i, k int) { w.f.Jobs[i], w.f.Jobs[k] = w.f.Jobs[k], w.f.Jobs[i] })
	random.Shuffle(len(w.h.Runs), func(i, k int) { w.h.Runs[i], w.h.Runs[k] = w.h.Runs[k], w.h.Runs[i] })
	return w
}

// attempt adds a whole attempt; fifty positions share a claim.
func (w *world) attempt(id, pos int64, attempt int, at Instant, ok bool) {
	if n := len(w.f.Claims); n == 0 || len(w.f.Claims[n-1].Positions) == 50 {
		w.f.Claims = append(w.f.Claims, Claim{Lane: 7, N: int64(n), Nonce: int64(n + 1), Engine: 1})
	}
	c := &w.f.Claims[len(w.f.Claims)-1]
	c.Positions = append(c.Positions, pos)
	w.f.Entries = append(w.f.Entries, Entry{Pos: pos, Job: id, Lane: 7, Attempt: attempt, Behind: true})
	r := Run{Job: id, Attempt: attempt, Slot: 1, Start: at, End: at + 1, How: OK}
	x := Execution{Pos: pos, Job: id, Attempt: attempt, Outcome: OutcomeCompleted, Final: true, Engine: 1, Nonce: c.Nonce, Finished: w.wall(at)}
	if !ok {
		r.How = Error
		x.Outcome, x.Final, x.Charged = OutcomeFailed, false, true
	}
	w.h.Runs = append(w.h.Runs, r)
	w.f.Executions = append(w.f.Executions, x)
}

func BenchmarkCompareAMillionJobs(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		w := million(1_000_000)
		b.StartTimer()
		if err := Compare(&w.h, &w.f, Options{Drained: true}).Err(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWriteStartAndEnd(b *testing.B) {
	w := begin(b, b.TempDir(), "one")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			w.Start(Run{Job: 123456, Pos: 123456, Engine: 1 << 60, Attempt: 1, Slot: 17}).End(OK, "")
		}
	})
}

func BenchmarkReadAMillionJobs(b *testing.B) {
	dir := b.TempDir()
	for _, name := range []string{"one", "two"} {
		w := begin(b, dir, name)
		keys, ids := make([]string, 100), make([]int64, 100)
		for i := range int64(500_000) {
			keys[i%100], ids[i%100] = "job-"+number(i), i+1
			if i%100 == 99 {
				w.Intend(keys...).Committed(ids...)
			}
			w.Start(Run{Job: i + 1, Pos: i + 1, Engine: 1 << 60, Attempt: 1, Slot: 17}).End(OK, "")
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if h, err := Read(dir); err != nil || len(h.Runs) != 1_000_000 {
			b.Fatal(len(h.Runs), err)
		}
	}
}
