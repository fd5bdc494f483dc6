package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

func TestAnIdleEngineBeginsAJobLongBeforeItsNextPoll(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		start(t, s, mux, engine.Config{Poll: time.Hour})
		for range 5 {
			time.Sleep(50 * time.Millisecond) // it is idle
			job := until(t, s, enqueue(t, s, "work", `{}`), stint.Completed)
			if wait := job.Started.Sub(job.Created); wait > 5*time.Second {
				t.Errorf("it waited %v", wait)
			}
		}
	})
}

// counted counts what an engine asks for.
type counted struct {
	*drowsy
	looks, claims, positions, promotions atomic.Int32
}

func (c *counted) Promote(ctx context.Context, from time.Time, limit int) (store.Promotion, error) {
	c.promotions.Add(1)
	return c.drowsy.Promote(ctx, from, limit)
}

func (c *counted) Look(ctx context.Context, known store.LaneHints) ([]store.LaneHead, error) {
	c.looks.Add(1)
	return c.drowsy.Look(ctx, known)
}

func (c *counted) Claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	c.claims.Add(1)
	got, err := c.drowsy.Claim(ctx, req)
	c.positions.Add(int32(len(got.Positions)))
	return got, err
}

// However many slots are idle, a ring makes one stage look, and the slots that
// get nothing sleep on.
func TestOneJobDoesNotWakeEverySlot(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		c := &counted{drowsy: newDrowsy(s)}
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
		stop := start(t, c, mux, engine.Config{Poll: time.Hour, Slots: 500})
		time.Sleep(time.Second)
		looks, claims := c.looks.Load(), c.claims.Load()
		enqueue(t, s, "k", `{}`)
		c.bell <- struct{}{}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if c.positions.Load() != 1 {
			t.Errorf("%d jobs were claimed", c.positions.Load())
		}
		if looks, claims = c.looks.Load()-looks, c.claims.Load()-claims; looks > 3 || claims > 2 {
			t.Errorf("one job took %d looks and %d claims", looks, claims)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestABulkEnqueueWakesAsManyEnginesAsItHasWorkFor(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		const engines, slots = 3, 4
		var running atomic.Int32
		release := make(chan struct{})
		for range engines {
			mux := stint.NewMux()
			handle(mux, "work", func(context.Context, *stint.Job) error {
				running.Add(1)
				<-release
				return nil
			})
			start(t, s, mux, engine.Config{Slots: slots, Poll: time.Hour})
		}
		eventually(t, "all have joined", func() bool {
			roster, err := s.Engines(t.Context())
			return err == nil && len(roster) == engines
		})
		time.Sleep(100 * time.Millisecond) // and are idle
		fill(t, s, "work", engines*slots, stint.DefaultQueue)
		eventually(t, "all of them run at once", func() bool { return running.Load() == engines*slots })
		close(release)
		eventually(t, "all have ended", func() bool {
			counts, err := s.Counts(t.Context())
			return err == nil && counts[stint.Completed] == engines*slots
		})
	})
}

// Two engines that do not know a third do not pass on to it what is too much for them.
func TestAnEngineThatOthersMayNotKnowYetLooksAtEveryEnqueue(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		join := func() *counted {
			c := &counted{drowsy: newDrowsy(s)}
			mux := stint.NewMux()
			handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
			start(t, c, mux, engine.Config{Poll: 10 * time.Minute})
			return c
		}
		for range 5 {
			join()
		}
		time.Sleep(20 * time.Second)
		newcomer := join()
		time.Sleep(time.Second / 2)
		hear := func(lot uint64) bool {
			before := newcomer.looks.Load() + newcomer.claims.Load()
			newcomer.draws <- store.News{Ready: true, Lot: lot}
			time.Sleep(20 * time.Millisecond)
			return newcomer.looks.Load()+newcomer.claims.Load() > before
		}
		for lot := range uint64(20) {
			if !hear(lot + 1) {
				t.Errorf("it slept on at number %d, half a second after it joined", lot+1)
			}
		}
		time.Sleep(20 * time.Second)
		heard := 0
		for lot := range uint64(20) {
			if hear(lot + 1) {
				heard++
			}
		}
		if heard == 20 {
			t.Error("it looks at every enqueue, though the others know it now")
		}
	})
}

// Of a change of what waits two engines of a fleet look at what is due, and nobody looks for work.
func TestOfAChangeOfWhatWaitsTwoOfAFleetLookAtIt(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		var fleet []*counted
		for range 20 {
			c := &counted{drowsy: newDrowsy(s)}
			mux := stint.NewMux()
			handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
			start(t, c, mux, engine.Config{Poll: 10 * time.Minute})
			fleet = append(fleet, c)
		}
		time.Sleep(20 * time.Second) // they know each other, and sleep
		did := func(n int, news func(lot uint64) *store.News) (promotions, looks int32) {
			for _, c := range fleet {
				promotions, looks = promotions-c.promotions.Load(), looks-c.looks.Load()-c.claims.Load()
			}
			for lot := range uint64(n) {
				for _, c := range fleet {
					if say := news(lot + 1); say != nil {
						c.draws <- *say
					}
				}
				time.Sleep(100 * time.Millisecond)
			}
			for _, c := range fleet {
				promotions, looks = promotions+c.promotions.Load(), looks+c.looks.Load()+c.claims.Load()
			}
			return promotions, looks
		}
		usual, _ := did(100, func(uint64) *store.News { return nil })
		promotions, looks := did(100, func(lot uint64) *store.News { return &store.News{Due: true, Lot: lot} })
		if more := promotions - usual; more < 100 || more > 300 || looks > 10 {
			t.Errorf("of 100 changes the fleet looked %d times more at what is due, and %d times for work", more, looks)
		}
	})
}

// Which of a fleet an enqueue wakes is drawn by a number, which all engines hear. Those that are woken
// in vain, or have their hands full, wake the others.
func TestAnEnqueueWakesTwoOfAnIdleFleet(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		const engines = 20
		var fleet []*counted
		release := make(chan struct{})
		for range engines {
			c := &counted{drowsy: newDrowsy(s)}
			mux := stint.NewMux()
			handle(mux, "quick", func(context.Context, *stint.Job) error { return nil })
			handle(mux, "long", func(context.Context, *stint.Job) error { <-release; return nil })
			start(t, c, mux, engine.Config{Poll: 10 * time.Minute, Slots: 2})
			fleet = append(fleet, c)
		}
		time.Sleep(20 * time.Second) // they know each other, and sleep
		lot := uint64(0)
		// notify has all hear of jobs that are ready, and returns how many engines asked for them, and
		// how many said that it is too much for them.
		notify := func() (woken, rung int) {
			lot++
			was := make([]int32, 2*engines)
			for i, c := range fleet {
				was[2*i], was[2*i+1] = c.looks.Load()+c.claims.Load(), c.rung.Load()
			}
			for _, c := range fleet {
				c.draws <- store.News{Ready: true, Lot: lot}
			}
			time.Sleep(100 * time.Millisecond)
			for i, c := range fleet {
				woken += min(1, int(c.looks.Load()+c.claims.Load()-was[2*i]))
				rung += int(c.rung.Load() - was[2*i+1])
			}
			return woken, rung
		}
		// Those that were woken in vain take turns like the others where all are notified.
		for range 50 {
			notify()
		}
		time.Sleep(time.Second)
		looks := func() (n int32) {
			for _, c := range fleet {
				n += c.looks.Load() + c.claims.Load()
			}
			return n
		}
		before := looks()
		for _, c := range fleet {
			c.draws <- store.News{Ready: true}
		}
		time.Sleep(time.Millisecond)
		if n := looks() - before; n > engines/4 {
			t.Errorf("%d of %d engines looked at once", n, engines)
		}
		time.Sleep(time.Second)

		who := map[int]bool{}
		for range 20 {
			id := enqueue(t, s, "quick", `{}`)
			if woken, rung := notify(); woken != 2 || rung != 0 {
				t.Errorf("one job woke %d engines, and %d woke others", woken, rung)
			}
			job, err := s.Job(t.Context(), id)
			if err != nil || job.State != stint.Completed {
				t.Fatalf("it is %v, error %v", job, err)
			}
			for i, c := range fleet {
				if c.positions.Load() > 0 {
					who[i] = true
				}
			}
		}
		if len(who) < 5 {
			t.Errorf("20 jobs were run by %d of %d engines", len(who), engines)
		}

		fill(t, s, "long", 2*engines, stint.DefaultQueue)
		if woken, rung := notify(); woken != 2 || rung != 2 {
			t.Errorf("%d jobs woke %d engines, and %d woke others", 2*engines, woken, rung)
		}
		for _, c := range fleet {
			c.draws <- store.News{Ready: true}
		}
		time.Sleep(time.Second)
		enqueue(t, s, "long", `{}`)
		if _, rung := notify(); rung != 2 {
			t.Errorf("of a fleet that has no slot free, %d engines woke others", rung)
		}
		close(release)
		time.Sleep(time.Second)
	})
}
