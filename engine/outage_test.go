package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// unreachable is a store that nobody can reach at times, and that vouches for nobody.
type unreachable struct{ *ailing }

func (*unreachable) Vouches(store.EngineID, time.Time) time.Time { return time.Time{} }

func (c *unreachable) Release(engine store.EngineID) {
	if l, ok := c.anyStore.(store.LivenessLocker); ok {
		l.Release(engine)
	}
}

func (c *unreachable) Claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	if err := ails(&c.all, ctx); err != nil {
		return store.Claim{}, err
	}
	return c.anyStore.Claim(ctx, req)
}

func (c *unreachable) Finish(ctx context.Context, e store.EngineID, claims []store.ClaimRef, done []store.Completion) (int, error) {
	if err := ails(&c.all, ctx); err != nil {
		return 0, err
	}
	return c.anyStore.Finish(ctx, e, claims, done)
}

func (c *unreachable) Bury(ctx context.Context, b store.Burial, judge func(*store.Entry, bool) store.Completion) (int, error) {
	if err := ails(&c.all, ctx); err != nil {
		return 0, err
	}
	return c.anyStore.Bury(ctx, b, judge)
}

func (c *unreachable) Join(ctx context.Context, e store.EngineInfo, kinds []stint.KindInfo) error {
	if err := ails(&c.all, ctx); err != nil {
		return err
	}
	return c.anyStore.Join(ctx, e, kinds)
}

// An engine that had to give up what it ran knows best what became of that, and says it when it is
// back: nobody else could.
func TestAnEngineThatGaveUpItsPlaceSaysItselfWhatBecameOfItsJobs(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		var mu sync.Mutex // guards runs
		runs := map[stint.ID]int{}
		begins := func(job *stint.Job) {
			mu.Lock()
			defer mu.Unlock()
			runs[job.ID]++
		}
		var mayHaveRun []bool
		handle(mux, "short", func(_ context.Context, job *stint.Job) error {
			begins(job)
			time.Sleep(2 * time.Second)
			return nil
		})
		handle(mux, "long", func(ctx context.Context, job *stint.Job) error {
			mayHaveRun = append(mayHaveRun, job.MayHaveRun)
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(20 * time.Second):
				return nil
			}
		})
		handle(mux, "once", func(ctx context.Context, job *stint.Job) error {
			begins(job)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		var (
			settled event.Event
			told    journal
		)
		store := &unreachable{&ailing{anyStore: s}}
		e := newEngine(t, store, mux, engine.Config{Slots: 3, OnEvent: func(ev event.Event) {
			switch {
			case ev.Type == event.EventSettled:
				settled = ev
			case ev.Type == event.EventBurial:
				t.Errorf("its own session counts as an engine that died: %+v", ev)
			case ev.Type == event.EventEnded && ev.Attempt.Outcome == stint.OutcomeCompleted, ev.Type == event.EventFailed:
				told.note(ev.Job.ID, "%s", ev.Type)
			}
		}})
		short := enqueue(t, s, "short", `{}`, stint.Retry(retry.None()))
		long := enqueue(t, s, "long", `{}`)
		once := enqueue(t, s, "once", `{}`, stint.MaxLosses(0))
		after := enqueue(t, s, "short", `{}`)
		stop, wait := running(t, e)
		time.Sleep(time.Second)
		store.all.Store(&away)
		time.Sleep(10 * time.Second)
		store.all.Store(nil)
		untilHere(t, s, long)
		untilHere(t, s, after)
		stop()
		if err := wait(); err != nil {
			t.Error(err)
		}
		// It ended before the engine gave up, and could not be recorded then.
		job := untilHere(t, s, short)
		if runs[short] != 1 || len(job.Attempts) != 1 || job.Attempts[0].Slot == 0 {
			t.Errorf("what had ended ran %d times: %+v", runs[short], job.Attempts)
		}
		job = untilHere(t, s, long)
		if len(job.Attempts) != 2 || job.Losses != 1 || job.Attempts[0].Outcome != stint.OutcomeLost {
			t.Errorf("what was cut short has the attempts %+v", job.Attempts)
		}
		if len(mayHaveRun) != 2 || mayHaveRun[0] || !mayHaveRun[1] {
			t.Errorf("whether it may have run before it is told %v", mayHaveRun)
		}
		if job := untilHere(t, s, once); runs[once] != 1 || job.Attempts[0].Outcome != stint.OutcomeLost {
			t.Errorf("what was to run at most once ran %d times: %+v", runs[once], job.Attempts)
		}
		if settled.Count < 3 || settled.Begun != 3 {
			t.Errorf("its former session is reported as %+v", settled)
		}
		for id, want := range map[stint.ID]string{short: "ended", long: "ended", once: "failed"} {
			if got := told.of(id); got != want {
				t.Errorf("of job %d the events %q are told, want %q", id, got, want)
			}
		}
	})
}

// An engine dies: of what it held others know what it had announced, and no more.
func TestWhatADeadEngineHadNotAnnouncedMayHaveBegun(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var told []bool
		mux := stint.NewMux()
		failed := false
		handle(mux, "work", func(_ context.Context, job *stint.Job) error {
			if told = append(told, job.MayHaveRun); !failed {
				failed = true
				return errors.New("no")
			}
			return nil
		})
		id := enqueue(t, s, "work", `{}`, stint.Retry(retry.Fixed(1, 10*time.Millisecond)))
		const dead store.EngineID = 4711
		if err := s.Join(t.Context(), store.EngineInfo{Token: dead, Instance: "dead", Slots: 2, TimeToLive: time.Second}, nil); err != nil {
			t.Fatal(err)
		}
		lane := store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "")
		if c, err := s.Claim(t.Context(), store.ClaimRequest{Engine: dead, Serial: 1, Nonce: 1, Lane: lane.ID, Max: 10, Wait: true}); err != nil || len(c.Positions) != 1 {
			t.Fatal(c, err)
		}
		if h, ok := s.(store.LivenessLocker); ok {
			h.Release(dead)
		}
		stop := start(t, s, mux, engine.Config{Slots: 1})
		job := until(t, s, id, stint.Completed)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if first := job.Attempts[0]; first.Outcome != stint.OutcomeReturned || first.Reason != retry.ReasonMayHaveBegun {
			t.Errorf("the first attempt is recorded as %s: %s", first.Outcome, first.Reason)
		}
		if len(told) != 2 || !told[0] || told[1] {
			t.Errorf("the handler is told %v; want that it may have run before, until an attempt ended", told)
		}
	})
}

// A handler that has run for a while is announced before its engine beats again.
func TestAHandlerThatRunsForAWhileIsAnnounced(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "long", func(context.Context, *stint.Job) error { time.Sleep(10 * time.Second); return nil })
		e := newEngine(t, s, mux, engine.Config{Slots: 1})
		stop, wait := running(t, e)
		time.Sleep(20*time.Second + 100*time.Millisecond) // right after a beat
		enqueue(t, s, "long", `{}`)
		time.Sleep(750 * time.Millisecond)
		roster, err := s.Engines(t.Context())
		if err != nil || len(roster) != 1 || len(roster[0].Running) != 1 {
			t.Errorf("the roster says %+v, %v", roster, err)
		}
		stop()
		if err := wait(); err != nil {
			t.Error(err)
		}
	})
}

// amnesic is a store that acknowledges outcomes and loses them, as a server does that fails over
// to a standby which lagged.
type amnesic struct {
	*unreachable
	loses atomic.Bool
}

func (f *amnesic) Finish(ctx context.Context, engine store.EngineID, claims []store.ClaimRef, done []store.Completion) (int, error) {
	if f.loses.Load() {
		return len(done), nil
	}
	return f.unreachable.Finish(ctx, engine, claims, done)
}

func TestOfAnOutcomeThatTheServerLostNobodySaysThatItNeverBegan(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		f := &amnesic{unreachable: &unreachable{&ailing{anyStore: s}}}
		f.loses.Store(true)
		var mayHaveRun []bool
		mux := stint.NewMux()
		handle(mux, "work", func(_ context.Context, job *stint.Job) error {
			mayHaveRun = append(mayHaveRun, job.MayHaveRun)
			return nil
		})
		id := enqueue(t, s, "work", `{}`)
		stop, wait := running(t, newEngine(t, f, mux, engine.Config{Slots: 1}))
		time.Sleep(time.Second)
		f.loses.Store(false)
		f.all.Store(&away)
		time.Sleep(10 * time.Second)
		f.all.Store(nil)
		job := untilHere(t, s, id)
		if len(job.Attempts) != 2 || job.Attempts[0].Outcome != stint.OutcomeReturned || job.Attempts[0].Reason != retry.ReasonMayHaveBegun {
			t.Errorf("the attempts are %+v", job.Attempts)
		}
		if !slices.Equal(mayHaveRun, []bool{false, true}) {
			t.Errorf("whether it may have run before it is told %v", mayHaveRun)
		}
		stop()
		if err := wait(); err != nil {
			t.Error(err)
		}
	})
}
