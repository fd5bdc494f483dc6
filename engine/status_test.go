package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// ailing is a store that fails, or does not answer at all, while it is told to.
type ailing struct {
	anyStore
	joins, looks, all atomic.Pointer[func(ctx context.Context) error]
}

func ails(p *atomic.Pointer[func(context.Context) error], ctx context.Context) error {
	if f := p.Load(); f != nil {
		return (*f)(ctx)
	}
	return nil
}

func (a *ailing) Join(ctx context.Context, e store.EngineInfo, kinds []stint.KindInfo) error {
	if err := ails(&a.joins, ctx); err != nil {
		return err
	}
	return a.anyStore.Join(ctx, e, kinds)
}

func (a *ailing) Look(ctx context.Context, known store.LaneHints) ([]store.LaneHead, error) {
	if err := errors.Join(ails(&a.looks, ctx), ails(&a.all, ctx)); err != nil {
		return nil, err
	}
	return a.anyStore.Look(ctx, known)
}

func (a *ailing) Engines(ctx context.Context) ([]store.EngineInfo, error) {
	if err := ails(&a.all, ctx); err != nil {
		return nil, err
	}
	return a.anyStore.Engines(ctx)
}

func (a *ailing) Heartbeat(ctx context.Context, e store.EngineID, b store.Heartbeat) (store.HeartbeatReply, error) {
	if err := ails(&a.all, ctx); err != nil {
		return store.HeartbeatReply{}, err
	}
	return a.anyStore.Heartbeat(ctx, e, b)
}

// Vouches and Release say that nobody need fear for an engine that cannot beat.
func (*ailing) Vouches(store.EngineID, time.Time) time.Time { return time.Now().Add(time.Hour) }
func (*ailing) Release(store.EngineID)                      {}

var (
	errAway = errors.New("the server is away")

	away = func(context.Context) error { return errAway }

	// swallowed is a call whose packets are swallowed on the way.
	swallowed = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
)

// condition is what an engine says that does not hold.
func condition(err error) string {
	if err == nil {
		return ""
	}
	u, _ := errors.AsType[*event.UnreadyError](err)
	return u.Condition
}

// running runs an engine; wait returns what Run returned.
func running(t *testing.T, e *engine.Engine) (stop context.CancelFunc, wait func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	wait = sync.OnceValue(func() error { return <-done })
	t.Cleanup(func() { cancel(); _ = wait() })
	return cancel, wait
}

func TestAnEngineSaysWhetherItWorksAndWhatOfThatDoesNotHold(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		release := make(chan struct{})
		mux := stint.NewMux()
		handle(mux, "waits", func(context.Context, *stint.Job) error { <-release; return nil })
		sick := &ailing{anyStore: s}
		e := newEngine(t, sick, mux, engine.Config{})
		says := func(when, ready string, alive bool) {
			t.Helper()
			synctest.Wait()
			if got := condition(e.Ready(t.Context())); got != ready {
				t.Errorf("%s: it says that %q does not hold, want %q", when, got, ready)
			}
			if err := e.Alive(); (err == nil) != alive {
				t.Errorf("%s: alive is %v", when, err)
			}
		}
		says("before the start", event.ConditionRunning, true)
		sick.joins.Store(&away)
		if err := e.Run(t.Context()); !errors.Is(err, errAway) {
			t.Errorf("without a server Run returned %v", err)
		}
		says("after it could not join", event.ConditionRunning, false)
		sick.joins.Store(nil)

		stop, wait := running(t, e)
		says("at work", "", true)
		if now := e.Status(); !now.Running || now.Engine == 0 || now.Joined.IsZero() || now.Leaving || now.Jobs != 0 {
			t.Errorf("at work it stands as %+v", now)
		}
		sick.all.Store(&away)
		says("when the database went away", event.ConditionDatabase, true)
		refused := func(context.Context) error { return store.ErrLogin }
		sick.all.Store(&refused)
		if err := e.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "it refuses the login") {
			t.Errorf("when the database refuses its login it says %v", err)
		}
		sick.all.Store(&swallowed)
		before := time.Now()
		says("when it does not answer", event.ConditionDatabase, true)
		if took := time.Since(before); took > 3*time.Second {
			t.Errorf("to say so took %v", took)
		}
		time.Sleep(time.Minute) // the process holds its place in the roster, so nothing fences it
		says("after a minute of that", event.ConditionBeat, true)
		sick.all.Store(nil)
		time.Sleep(10 * time.Second)
		says("when it is back", "", true)

		id := enqueue(t, s, "waits", `{}`)
		time.Sleep(2 * time.Second)
		if n := e.Status().Jobs; n != 1 {
			t.Errorf("%d jobs run, want 1", n)
		}
		stop()
		says("while it stops", event.ConditionTaking, true)
		close(release)
		if err := wait(); err != nil {
			t.Error(err)
		}
		says("after the end", event.ConditionRunning, false)
		until(t, s, id, stint.Completed)
	})
}

func TestAnEngineThatTheRosterDoesNotHaveIsNotReady(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		e := newEngine(t, s, stint.NewMux(), engine.Config{TimeToLive: 3 * time.Minute}) // so that no beat finds out
		running(t, e)
		synctest.Wait()
		if err := e.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := engine.Bury(t.Context(), s, e.Status().Engine, "test"); err != nil {
			t.Fatal(err)
		}
		if got := condition(e.Ready(t.Context())); got != event.ConditionRoster {
			t.Errorf("it says that %q does not hold", got)
		}
	})
}

func TestAClaimStageThatIsStuckIsNoticed(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		sick, free := &ailing{anyStore: s}, make(chan struct{})
		stuck := func(context.Context) error { <-free; return nil } // it does not even heed its context
		sick.looks.Store(&stuck)
		e := newEngine(t, sick, stint.NewMux(), engine.Config{})
		stop, wait := running(t, e)
		time.Sleep(30 * time.Second)
		if err := e.Alive(); err != nil {
			t.Errorf("too early: %v", err)
		}
		time.Sleep(30 * time.Second)
		if err := e.Alive(); condition(err) != event.ConditionRunning || condition(e.Ready(t.Context())) != event.ConditionRunning {
			t.Errorf("it is alive: %v", err)
		}
		sick.looks.Store(nil)
		close(free)
		time.Sleep(2 * time.Second)
		if err := e.Alive(); err != nil {
			t.Error(err)
		}
		stop()
		_ = wait()
	})
}

func TestADrainLetsWhatRunsEndAndRunReturnsWhy(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		release, begun := make(chan struct{}), make(chan struct{})
		mux := stint.NewMux()
		handle(mux, "waits", func(ctx context.Context, _ *stint.Job) error {
			close(begun)
			<-release
			return context.Cause(ctx)
		})
		var told atomic.Pointer[event.Event]
		e := newEngine(t, s, mux, engine.Config{Slots: 1, Grace: time.Millisecond, OnEvent: func(ev event.Event) {
			if ev.Type == event.EventDraining {
				told.Store(&ev)
			}
		}})
		e.Drain(errors.New("nobody works")) // takes no notice
		_, wait := running(t, e)
		runs, later := enqueue(t, s, "waits", `{}`), enqueue(t, s, "waits", `{}`)
		<-begun
		why := errors.New("enough")
		e.Drain(why)
		e.Drain(errors.New("the first call counts"))
		eventually(t, "it is told", func() bool { return told.Load() != nil })
		time.Sleep(20 * time.Millisecond) // longer than the grace, which is not for this
		close(release)
		if err := wait(); err != why {
			t.Errorf("Run returned %v", err)
		}
		if told.Load().Err != why {
			t.Errorf("the event says %v", told.Load().Err)
		}
		until(t, s, runs, stint.Completed)
		until(t, s, later, stint.Available)
		if roster, err := s.Engines(t.Context()); err != nil || len(roster) > 0 {
			t.Errorf("in the roster are %v, %v", roster, err)
		}
		// It may be run again.
		stop, wait := running(t, e)
		eventually(t, "it works again", func() bool { return e.Ready(t.Context()) == nil })
		stop()
		if err := wait(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnEngineThatIsTooLargeLeavesAndSaysHowLargeItIs(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		release := make(chan struct{})
		mux := stint.NewMux()
		handle(mux, "waits", func(context.Context, *stint.Job) error { <-release; return nil })
		e := newEngine(t, s, mux, engine.Config{MemoryLimit: 1 << 20})
		_, wait := running(t, e)
		id := enqueue(t, s, "waits", `{}`)
		time.Sleep(5 * time.Second)
		if got := condition(e.Ready(t.Context())); got != event.ConditionTaking {
			t.Errorf("it says that %q does not hold", got)
		}
		close(release)
		large, ok := errors.AsType[*engine.MemoryError](wait())
		if !ok || large.Limit != 1<<20 || large.Used < 2<<20 {
			t.Errorf("Run returned %+v", large)
		}
		until(t, s, id, stint.Completed)
	})
}

func TestAnEngineBelowItsMemoryLimitStays(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		e := newEngine(t, s, stint.NewMux(), engine.Config{MemoryLimit: 1 << 40})
		running(t, e)
		time.Sleep(10 * time.Second)
		if err := e.Ready(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A start must neither hang on a server that swallows what is sent to it, nor go
// on when nobody wants it any more.
func TestAStartNeverHangsWhileTheDatabaseIsDown(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		sick := &ailing{anyStore: s}
		sick.joins.Store(&swallowed)
		sick.all.Store(&swallowed)
		for _, strict := range []bool{false, true} {
			e := newEngine(t, sick, stint.NewMux(), engine.Config{Instance: "one", StrictInstance: strict})
			before := time.Now()
			limit, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := e.Run(limit); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("strict %v: Run returned %v", strict, err)
			}
			if took := time.Since(before); took > 20*time.Second {
				t.Errorf("strict %v: that took %v", strict, took)
			}
			for name, end := range map[string]func(stop context.CancelFunc){
				"a stop":  func(stop context.CancelFunc) { stop() },
				"a drain": func(context.CancelFunc) { e.Drain(nil) },
			} {
				stop, wait := running(t, e)
				synctest.Wait()
				before := time.Now()
				end(stop)
				_ = wait()
				if took := time.Since(before); took > time.Second {
					t.Errorf("strict %v: %s took %v", strict, name, took)
				}
			}
		}
	})
}

// deafly is a store that cannot be listened to: whoever tries hangs.
type deafly struct{ anyStore }

func (deafly) Listen(ctx context.Context, _ func()) error { <-ctx.Done(); return nil }

func TestAListenerThatHangsHoldsUpNeitherStartNorStop(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		handle(mux, "fine", func(context.Context, *stint.Job) error { return nil })
		stop := start(t, deafly{s}, mux, engine.Config{})
		until(t, s, enqueue(t, s, "fine", `{}`), stint.Completed)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAListenerToEventsThatPanicsHarmsNoJobAndIsTold(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var told atomic.Int32
		mux := stint.NewMux()
		handle(mux, "fine", func(context.Context, *stint.Job) error { return nil })
		stop := start(t, s, mux, engine.Config{OnEvent: func(ev event.Event) {
			if p, ok := errors.AsType[*stint.PanicError](ev.Err); ok && ev.Type == event.EventTrouble && p.Value == "no room" {
				told.Add(1)
			}
			panic("no room")
		}})
		until(t, s, enqueue(t, s, "fine", `{}`), stint.Completed)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if told.Load() < 4 { // joined, started, ended, left
			t.Errorf("it was told %d times", told.Load())
		}
	})
}
