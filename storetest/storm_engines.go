package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// work is one engine of a storm, or rather a row of them: it joins anew each
// time that it finds itself buried.
func (s *storm) work(i int) {
	rng := s.seed.Rand(fmt.Sprint("engine ", i))
	for s.blows() {
		w := NewWorker(s, s.stores[i%2], "k")
		if err := w.TryJoin(s.ctx); err != nil {
			s.Errorf("join: %v", err)
			return
		}
		s.stand(w.Info.Token, true)
		var held []store.Entry // claimed and not finished yet
		for s.blows() {
			err := s.turn(w, rng, &held)
			if errors.Is(err, store.ErrBuried) {
				s.count("engines that met their burial", 1)
				break
			}
			if err != nil {
				s.Errorf("engine %d: %v", i, err)
				return
			}
		}
	}
}

func (s *storm) stand(token store.EngineID, stands bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stands {
		s.standing[token] = true
	} else {
		delete(s.standing, token)
	}
}

// take notes that an engine has an entry, which nobody may have had before.
func (s *storm) take(w *Worker, e store.Entry) {
	var args struct{ Key int }
	expect(s, json.Unmarshal(e.Args, &args) == nil && args.Key != 0, "job %d has the arguments %s", e.ID, e.Args)
	s.mu.Lock()
	defer s.mu.Unlock()
	first, twice := s.taken[e.Pos]
	expect(s, !twice, "position %d of job %d was claimed by engine %d and again by engine %d", e.Pos, e.ID, first, w.Info.Token)
	s.taken[e.Pos] = w.Info.Token
	s.latest[len(s.taken)%len(s.latest)] = e.ID
	s.seen[args.Key] = true
}

// turn looks, claims, and finishes some of what is held.
func (s *storm) turn(w *Worker, rng *rand.Rand, held *[]store.Entry) error {
	if rng.IntN(10) == 0 {
		var running []store.Position
		for _, e := range *held {
			if rng.IntN(2) == 0 {
				running = append(running, e.Pos)
			}
		}
		if _, err := w.Store.Heartbeat(s.ctx, w.Info.Token, store.Heartbeat{Running: running}); err != nil {
			return err
		}
	}
	sights, err := w.Store.Look(s.ctx, store.LaneHints{})
	if err != nil {
		return err
	}
	if len(sights) == 0 {
		time.Sleep(time.Millisecond)
	} else if err := s.claim(w, rng, sights[rng.IntN(len(sights))], held); err != nil {
		return err
	}
	if rng.IntN(4) == 0 {
		time.Sleep(time.Duration(rng.IntN(5)) * time.Millisecond)
	}
	var later []store.Entry
	var done []store.Completion
	for i, e := range *held {
		if rng.IntN(8) == 0 {
			later = append(later, e)
			continue
		}
		if i == 0 && rng.IntN(3) == 0 && !e.Cancelled {
			if err := s.completeTx(w, e); err != nil {
				return err
			}
			continue
		}
		done = append(done, s.conclude(w, rng, e))
	}
	*held = later
	return s.finish(w, rng, done)
}

func (s *storm) claim(w *Worker, rng *rand.Rand, sight store.LaneHead, held *[]store.Entry) error {
	c, err := w.TryClaim(s.ctx, store.ClaimRequest{
		Lane: sight.Lane, Max: 1 + rng.IntN(40), Wait: rng.IntN(2) == 0, Settle: sight.Settle,
	})
	if errors.Is(err, store.ErrLaneBusy) {
		s.count("claims that found the lane busy", 1)
		return nil
	}
	for _, e := range c.Entries {
		s.take(w, e)
	}
	*held = append(*held, c.Entries...)
	return err
}

// conclude draws how an attempt ended.
func (s *storm) conclude(w *Worker, rng *rand.Rand, e store.Entry) store.Completion {
	soon := time.Duration(rng.IntN(8)) * time.Millisecond
	draw := rng.IntN(10)
	if e.Cancelled {
		draw = rng.IntN(4) // all but a success is the end of it
	}
	switch draw {
	case 0:
		x := w.Conclude(e, store.Result{Outcome: stint.OutcomeFailed, Err: errors.New("no luck")})
		if x.Next != nil {
			x.Next.Delay = soon
		}
		return x
	case 1:
		return w.Conclude(e, store.Result{Outcome: stint.OutcomeSnoozed, Snooze: soon})
	case 2:
		parts := []store.Part{store.PartFront, store.PartKind, store.PartNormal}
		return w.Conclude(e, store.Result{Outcome: stint.OutcomeReturned, Part: parts[rng.IntN(3)]})
	case 3:
		return w.Conclude(e, cancelled)
	}
	return w.Conclude(e, completed)
}

// finish records a batch, sometimes in two parts of which the second repeats
// the first, as after an answer that was lost.
func (s *storm) finish(w *Worker, rng *rand.Rand, done []store.Completion) error {
	first := 0
	if len(done) > 1 && rng.IntN(4) == 0 {
		first = rng.IntN(len(done))
		n, err := w.TryFinish(s.ctx, done[:first]...)
		if err != nil {
			return err
		}
		equal(s, n, first, "%d outcomes were new of %d")
		s.count("batches repeated", 1)
	}
	n, err := w.TryFinish(s.ctx, done...)
	expect(s, err != nil || n == len(done)-first, "%d outcomes were new of %d, %d of them recorded before", n, len(done), first)
	return err
}

// completeTx completes an entry in a transaction that enqueues another job.
func (s *storm) completeTx(w *Worker, e store.Entry) error {
	f, ok := w.Store.(store.TxFinisher)
	if !ok {
		return s.finish(w, nil, []store.Completion{w.Conclude(e, completed)})
	}
	tx := s.beginToFinish()
	b := s.batch(1)
	err := b.enqueue(stint.NewClient(w.Store).With(tx.Tx()))
	if err == nil {
		err = f.FinishTx(s.ctx, tx.Tx(), w.Info.Token, w.taken[e.Pos], w.Conclude(e, completed))
	}
	b.decided(err == nil)
	s.count("completed in a transaction", 1)
	return err
}

// promote is one promoter, which remembers how far it came and looks behind
// itself only now and then.
func (s *storm) promote(i int) {
	rng := s.seed.Rand(fmt.Sprint("promoter ", i))
	var from time.Time
	for s.blows() {
		p, err := s.stores[i].Promote(s.ctx, from, 1+rng.IntN(40))
		if err != nil {
			s.Errorf("promote: %v", err)
			return
		}
		s.count("promoted", p.Moved)
		if p.Moved > 0 {
			from = p.Until
		}
		if rng.IntN(10) == 0 {
			from = time.Time{}
		}
		time.Sleep(time.Duration(rng.IntN(4)) * time.Millisecond)
	}
}

// bury kills an engine at random, again and again.
func (s *storm) bury() {
	rng := s.seed.Rand("burier")
	for s.blows() {
		time.Sleep(time.Duration(30+rng.IntN(100)) * time.Millisecond)
		token, ok := s.victim()
		if !ok {
			continue
		}
		n, err := Bury(s.ctx, s.stores[rng.IntN(2)], store.Burial{Engine: token, Why: "storm"}, Judge)
		if err != nil {
			s.Errorf("bury: %v", err)
			return
		}
		s.count("entries of the buried", n)
		s.stand(token, false)
	}
}

// victim is any engine of the roster.
func (s *storm) victim() (store.EngineID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for token := range s.standing {
		return token, true
	}
	return 0, false
}

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
