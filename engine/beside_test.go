package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/store"
)

// hosted starts an engine without kinds, for others to be beside.
func hosted(t *testing.T, s store.Store) *engine.Engine {
	host := newEngine(t, s, stint.NewMux(), engine.Config{ClaimsNothing: true})
	run(t, host)
	eventually(t, "the host has joined", func() bool { return host.Status().Engine != 0 })
	t.Cleanup(func() {
		if host.Status().Engine == 0 {
			t.Error("the host did not stay")
		}
	})
	return host
}

// keepBeating has an engine beat until the test ends.
func keepBeating(t *testing.T, e *engine.Engine) {
	tick := time.NewTicker(200 * time.Millisecond)
	ctx := t.Context()
	go func() {
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = e.Beat(ctx)
			case <-ctx.Done():
				return
			}
		}
	}()
}

func TestAnEngineBesideAnotherLivesForAsLongAsItIsMadeToBeat(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		began := make(chan struct{}, 2)
		handle(mux, "long", func(ctx context.Context, _ *stint.Job) error {
			began <- struct{}{}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		host := hosted(t, s)
		e := newEngine(t, s, mux, engine.Config{Beside: host, TimeToLive: 2 * time.Second, Host: "elsewhere", PID: 7})
		if err := e.Beat(t.Context()); !errors.Is(err, store.ErrBuried) {
			t.Errorf("a heartbeat before it runs: %v", err)
		}
		if err := host.Beat(t.Context()); !errors.Is(err, engine.ErrNotBeside) {
			t.Errorf("a heartbeat of the host: %v", err)
		}
		ended := make(chan error, 1)
		go func() { ended <- e.Run(context.WithoutCancel(t.Context())) }()
		id := enqueue(t, s, "long", `{}`)
		<-began
		for until := time.Now().Add(5 * time.Second); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
			if err := e.Beat(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		roster, err := s.Engines(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(roster) != 2 || roster[1].Host != "elsewhere" || roster[1].PID != 7 || !roster[1].ByBeats() || roster[1].Held {
			t.Errorf("the roster is %+v", roster)
		}
		silent := time.Now()
		if err := <-ended; !errors.Is(err, store.ErrBuried) {
			t.Errorf("after it was silent Run returned %v", err)
		}
		if took := time.Since(silent); took > 30*time.Second {
			t.Errorf("and that after %v", took)
		}
		eventually(t, "the host has buried it", func() bool {
			roster, err := s.Engines(t.Context())
			return err == nil && len(roster) == 1
		})
		if job := info(t, s, id); len(job.Attempts) != 1 || job.Attempts[0].Outcome != stint.OutcomeLost {
			t.Errorf("its job has the attempts %+v", job.Attempts)
		}
	})
}

func TestAnAbandonedEngineStaysInTheRosterAndRecordsNothing(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		began := make(chan struct{}, 2)
		handle(mux, "long", func(ctx context.Context, _ *stint.Job) error {
			began <- struct{}{}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), stint.ErrFenced) {
				t.Errorf("its handler ends with %v", context.Cause(ctx))
			}
			return nil
		})
		e := newEngine(t, s, mux, engine.Config{Beside: hosted(t, s), TimeToLive: time.Minute})
		e.Abandon() // which has no effect on one that does not run
		ended := make(chan error, 1)
		go func() { ended <- e.Run(context.WithoutCancel(t.Context())) }()
		id := enqueue(t, s, "long", `{}`)
		<-began
		token := e.Status().Engine
		e.Abandon()
		if err := <-ended; !errors.Is(err, store.ErrBuried) {
			t.Errorf("Run returned %v", err)
		}
		if job := info(t, s, id); job.State != stint.Running || len(job.Attempts) != 0 {
			t.Errorf("its job is %s, with %+v", job.State, job.Attempts)
		}
		if n, err := engine.BuryDead(t.Context(), s, token, time.Minute); !errors.Is(err, store.ErrAlive) {
			t.Errorf("it is buried before its time: %d, %v", n, err)
		}
		if n, err := engine.Bury(t.Context(), s, token, "test"); err != nil || n != 1 {
			t.Errorf("burying it gives %d, %v", n, err)
		}
	})
}

func TestAnEngineThatIsToClaimNothingDoesNot(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		hosted(t, s)
		id := enqueue(t, s, "unknown", `{}`)
		time.Sleep(300 * time.Millisecond)
		if job := info(t, s, id); job.State != stint.Available || len(job.Attempts) != 0 {
			t.Errorf("the job is %s, with %+v", job.State, job.Attempts)
		}
	})
}

// What waits for a guest keeps nothing else waiting, and a host passes on nothing that a guest would take.
func TestAHostLeavesToItsGuestsWhatOnlyTheyPerform(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		hosts, guests := stint.NewMux(), stint.NewMux()
		handle(hosts, "hosts", func(context.Context, *stint.Job) error { return nil })
		handle(guests, "guests", func(context.Context, *stint.Job) error { return nil })
		host := newEngine(t, s, hosts, engine.Config{Slots: 1})
		run(t, host)
		eventually(t, "the host has joined", func() bool { return host.Status().Engine != 0 })
		guest := newEngine(t, s, guests, engine.Config{Beside: host, Queues: []string{"own"}, TimeToLive: time.Minute, PollTo: 20 * time.Millisecond})
		run(t, guest)
		keepBeating(t, guest)
		eventually(t, "the guest has joined", func() bool { return guest.Status().Engine != 0 })
		first := enqueue(t, s, "guests", `{}`) // of a queue that the guest does not work on
		until(t, s, enqueue(t, s, "hosts", `{}`), stint.Completed)
		if job := info(t, s, first); job.State != stint.Available {
			t.Errorf("a job that nobody here performs is %s", job.State)
		}
		for range 5 {
			id := enqueue(t, s, "guests", `{}`, stint.Queue("own"))
			if job := until(t, s, id, stint.Completed); len(job.Attempts) != 1 {
				t.Errorf("a job of the guest was passed on: %+v", job.Attempts)
			}
		}
	})
}

func TestWhoIsNotPresentGetsNoJobs(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
		var present atomic.Bool
		e := newEngine(t, s, mux, engine.Config{Beside: hosted(t, s), Present: present.Load, TimeToLive: time.Minute})
		run(t, e)
		id := enqueue(t, s, "k", `{}`)
		once := enqueue(t, s, "k", `{}`, stint.MaxLosses(0))
		time.Sleep(500 * time.Millisecond)
		for _, one := range []stint.ID{id, once} {
			if job := info(t, s, one); job.State != stint.Available || len(job.Attempts) != 0 {
				t.Errorf("job %d is %s, with %+v", one, job.State, job.Attempts)
			}
		}
		present.Store(true)
		until(t, s, id, stint.Completed)
		until(t, s, once, stint.Completed)
	})
}

// Of kinds that have no handler: one that other engines passed on, and one that is passed to nobody.
func TestAHandlerOfAnyKindPerformsWhatHasNoOther(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		var any, own, hooked atomic.Int32
		mux.Hook(stint.Hooks{AfterSuccess: func(context.Context, *stint.Job, *stint.Attempt) error { hooked.Add(1); return nil }})
		mux.Add(stint.KindInfo{Name: stint.AnyKind, Queue: "elsewhere"}, func(_ context.Context, job *stint.Job) (json.RawMessage, error) {
			any.Add(1)
			return json.RawMessage(`"` + job.Kind + `"`), nil
		})
		handle(mux, "own", func(context.Context, *stint.Job) error { own.Add(1); return nil })
		others := stint.NewMux()
		handle(others, "other", func(context.Context, *stint.Job) error { return nil })
		passes := newEngine(t, s, others, engine.Config{Slots: 1, Queues: []string{"q"}})
		run(t, passes)
		passed := enqueue(t, s, "unknown", `{}`, stint.Queue("q"))
		eventually(t, "an engine has passed it on", func() bool { return len(info(t, s, passed).Attempts) > 0 })
		e := newEngine(t, s, mux, engine.Config{Slots: 2})
		run(t, e)
		if job := until(t, s, passed, stint.Completed); string(job.Attempts[len(job.Attempts)-1].Result) != `"unknown"` {
			t.Errorf("its attempts are %+v", job.Attempts)
		}
		until(t, s, enqueue(t, s, "own", `{}`), stint.Completed)
		until(t, s, enqueue(t, s, "new", `{}`), stint.Completed)
		if done, err := e.RunNow(t.Context(), stint.NewJob{Kind: "now"}); errors.Is(err, engine.ErrNoImmediate) {
			any.Add(1)
			hooked.Add(1)
		} else if err != nil || string(done.Result) != `"now"` {
			t.Errorf("a run now answered %s, %v", done.Result, err)
		}
		eventually(t, "the hooks were called", func() bool { return hooked.Load() == 4 })
		if any.Load() != 3 || own.Load() != 1 {
			t.Errorf("the handlers were called %d and %d times", any.Load(), own.Load())
		}
		roster, err := s.Engines(t.Context())
		if err != nil || !roster[1].Performs("whatever") || roster[0].Performs("whatever") {
			t.Errorf("the roster is %+v (%v)", roster, err)
		}
		declared, err := s.(store.Inspector).Kinds(t.Context())
		if err != nil || len(declared) != 2 {
			t.Errorf("declared are %v (%v)", declared, err)
		}
	})
}

// It takes what it is asked for, and notices at once when that is more.
func TestAnEngineTakesJobsOnDemandInAnOrderOfQueues(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		began := make(chan string, 10)
		handle(mux, "k", func(ctx context.Context, job *stint.Job) error {
			began <- job.Queue
			<-ctx.Done()
			return context.Cause(ctx)
		})
		var most atomic.Int32
		var order atomic.Pointer[[]string]
		order.Store(&[]string{"b", "c"})
		e := newEngine(t, s, mux, engine.Config{
			Beside: hosted(t, s), TimeToLive: time.Minute, Slots: 5, Grace: 1,
			AtOnce: func() int { return int(most.Load()) }, QueueOrder: func() []string { return *order.Load() },
		})
		run(t, e)
		for i, queue := range []string{"a", "a", "b", "c", "c"} {
			enqueue(t, s, "k", `{}`, stint.Queue(queue), stint.Priority(i))
		}
		for i, want := range []string{"b", "c", "a", "c"} {
			if i == 2 {
				order.Store(&[]string{"a"})
			}
			if i == 3 {
				order.Store(&[]string{"d", "c"})
			}
			time.Sleep(200 * time.Millisecond)
			if len(began) > 0 {
				t.Fatalf("a job of %s began that nobody asked for", <-began)
			}
			most.Add(1)
			e.LookAgain()
			select {
			case got := <-began:
				if got != want {
					t.Errorf("a job of %s began, want one of %s", got, want)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("no job began")
			}
		}
	})
}

// Guests do not look by themselves here, so all that they do is by what the host hears and sees.
func TestEnginesBesideAnotherHearWhatItHears(t *testing.T) {
	_, s := openPool(t)
	host := hosted(t, s)
	eventually(t, "the host listens", func() bool { return host.Metrics().Listener.Notifications > 0 || enqueue(t, s, "other", `{}`) > 0 })
	mux := stint.NewMux()
	handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
	handle(mux, "other", func(context.Context, *stint.Job) error { return nil })
	for range 2 {
		e := newEngine(t, s, mux, engine.Config{Beside: host, TimeToLive: time.Minute, Poll: time.Hour, Slots: 2})
		run(t, e)
		keepBeating(t, e)
	}
	until(t, s, enqueue(t, s, "k", `{}`), stint.Completed)
	if _, err := s.Pause(t.Context(), stint.DefaultQueue, "test", ""); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	id := enqueue(t, s, "k", `{}`)
	time.Sleep(500 * time.Millisecond)
	if job := info(t, s, id); job.State != stint.Available {
		t.Errorf("a job of a paused queue is %s", job.State)
	}
	if _, err := s.Resume(t.Context(), stint.DefaultQueue); err != nil {
		t.Fatal(err)
	}
	until(t, s, id, stint.Completed)
	if err := s.SetLimit(t.Context(), "one", stint.LimitRule{AtOnce: 1}, "test", ""); err != nil {
		t.Fatal(err)
	}
	until(t, s, enqueue(t, s, "k", `{}`, stint.Limited("one")), stint.Completed)
}

// A thousand idle workers are not to ask the database a thousand times for one job.
func TestOfManyEnginesBesideAnotherFewLook(t *testing.T) {
	var looks atomic.Int64
	url := migrated.New(t)
	s, err := postgres.Open(t.Context(), url, postgres.Config{OnQuery: func(q event.Query) {
		if strings.Contains(q.Text, "stint.look(") {
			looks.Add(1)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	host := hosted(t, s)
	mux := stint.NewMux()
	handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
	const many = 40
	for range many {
		e := newEngine(t, s, mux, engine.Config{Beside: host, TimeToLive: time.Minute, Poll: time.Hour, Slots: 1})
		run(t, e)
	}
	time.Sleep(9 * time.Second) // until none counts as new
	before := looks.Load()
	const jobs = 10
	for range jobs {
		until(t, s, enqueue(t, s, "k", `{}`), stint.Completed)
		time.Sleep(50 * time.Millisecond)
	}
	if n := looks.Load() - before; n > 6*jobs {
		t.Errorf("%d engines looked %d times for %d jobs", many, n, jobs)
	}
}
