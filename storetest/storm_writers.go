package storetest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stint-go/stint"
)

// write is one writer of a storm. Writers differ in their habits, so that all
// kinds of transactions are under way at any moment.
func (s *storm) write(i int) {
	rng := s.seed.Rand(fmt.Sprint("writer ", i))
	habits := []struct {
		name string
		do   func(*rand.Rand) error
	}{
		{"single enqueues", s.writeOne},
		{"bulk enqueues", s.writeMany},
		{"transactions", s.writeTx},
		{"transactions with savepoints", s.writeSavepoints},
		{"prepared transactions", s.writePrepared},
		{"transactions larger than a claim", s.writeLarge},
	}
	h := habits[i%len(habits)]
	for s.blows() && s.room() {
		if err := h.do(rng); err != nil {
			s.Errorf("%s: %v", h.name, err)
			return
		}
		s.count(h.name, 1)
		time.Sleep(time.Duration(rng.IntN(15_000)) * time.Microsecond)
	}
}

func (s *storm) room() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys < s.limit
}

// batch is jobs of one transaction, or of one part of it that is rolled back
// by itself. It knows them by keys, since IDs are not known when they fail.
type batch struct {
	s    *storm
	jobs []stint.NewJob
	keys []int
	ids  []stint.ID
}

// batch makes n jobs in various lanes, some for later.
func (s *storm) batch(n int) *batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &batch{s: s}
	for range n {
		s.keys++
		j := job("k", stint.Queue(fmt.Sprint("q", s.keys%3)), stint.Priority(s.keys%2))
		j.Args = fmt.Appendf(nil, `{"key":%d}`, s.keys)
		if s.keys%7 == 0 {
			j.Delay = time.Duration(1+s.keys%40) * time.Millisecond
		}
		b.jobs, b.keys = append(b.jobs, j), append(b.keys, s.keys)
	}
	return b
}

func (b *batch) enqueue(c *stint.Client) error {
	ids, err := c.EnqueueMany(b.s.ctx, b.jobs)
	b.ids = ids
	return err
}

// decided notes what became of the batch.
func (b *batch) decided(committed bool) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	for i, key := range b.keys {
		if committed {
			b.s.committed[key] = b.ids[i]
		} else {
			b.s.undone[key] = true
		}
	}
}

// finish ends the transaction that the batch was enqueued in.
func (b *batch) finish(tx Tx, commit bool) error {
	end := tx.Rollback
	if commit {
		end = tx.Commit
	}
	err := end()
	if err == nil {
		b.decided(commit)
	}
	return err
}

func (s *storm) writeOne(rng *rand.Rand) error {
	return s.writeAlone(rng, 1)
}

func (s *storm) writeMany(rng *rand.Rand) error {
	return s.writeAlone(rng, 1+rng.IntN(30))
}

func (s *storm) writeAlone(rng *rand.Rand, n int) error {
	b := s.batch(n)
	err := b.enqueue(stint.NewClient(s.stores[rng.IntN(2)]))
	if err == nil {
		b.decided(true)
	}
	return err
}

// stall keeps a transaction open for a while, where that hinders nobody.
func (s *storm) stall(rng *rand.Rand) {
	if !s.SingleWriter {
		time.Sleep(time.Duration(rng.IntN(40)) * time.Millisecond)
	}
}

func (s *storm) writeTx(rng *rand.Rand) error {
	return s.inTx(rng, 1+rng.IntN(5), rng.IntN(10) < 6)
}

func (s *storm) writeLarge(rng *rand.Rand) error {
	time.Sleep(100 * time.Millisecond)
	return s.inTx(rng, 120, rng.IntN(10) < 8)
}

func (s *storm) inTx(rng *rand.Rand, n int, commit bool) error {
	tx, err := s.Begin(s.T.T, s.Store)
	if err != nil {
		return err
	}
	b := s.batch(n)
	if err := b.enqueue(stint.NewClient(s.Store).With(tx.Tx())); err != nil {
		_ = tx.Rollback()
		return err
	}
	s.stall(rng)
	return b.finish(tx, commit)
}

func (s *storm) writeSavepoints(rng *rand.Rand) error {
	tx, err := s.Begin(s.T.T, s.Store)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	sp, ok := tx.(Savepointer)
	c := stint.NewClient(s.Store).With(tx.Tx())
	var kept []*batch
	for i := range 3 {
		b := s.batch(1 + rng.IntN(4))
		name := fmt.Sprint("sp", i)
		if ok {
			if err := sp.Savepoint(name); err != nil {
				return err
			}
		}
		if err := b.enqueue(c); err != nil {
			return err
		}
		s.stall(rng)
		if ok && rng.IntN(2) == 0 {
			if err := sp.RollbackTo(name); err != nil {
				return err
			}
			b.decided(false)
			continue
		}
		kept = append(kept, b)
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	for _, b := range kept {
		b.decided(true)
	}
	return nil
}

func (s *storm) writePrepared(rng *rand.Rand) error {
	tx, err := s.Begin(s.T.T, s.Store)
	if err != nil {
		return err
	}
	h := tx.Tx()
	h.Quiet = true
	b := s.batch(1 + rng.IntN(5))
	if err := b.enqueue(stint.NewClient(s.Store).With(h)); err != nil {
		_ = tx.Rollback()
		return err
	}
	if p, ok := tx.(Preparer); ok {
		if err := p.Prepare(); err != nil {
			_ = tx.Rollback()
			return err
		}
	}
	s.stall(rng)
	return b.finish(tx, rng.IntN(10) < 6)
}
