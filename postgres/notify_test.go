package postgres

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

func TestManyEnqueuesAtOnceRingFewTimesAndAlwaysBehindTheLast(t *testing.T) {
	s := newStore(t)
	must(t, s.Asleep(t.Context(), storetest.Join(t, s, "k").Info.Token, true))
	ctx, stop := context.WithCancel(t.Context())
	var rings atomic.Int32
	var last atomic.Int64
	listening := make(chan struct{})
	var once sync.Once
	var listener sync.WaitGroup
	listener.Go(func() {
		err := s.Listen(ctx, func(store.News) {
			once.Do(func() { close(listening) })
			rings.Add(1)
			last.Store(time.Now().UnixNano())
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-listening
	const producers, each = 8, 100
	var all sync.WaitGroup
	var ended atomic.Int64
	for range producers {
		all.Go(func() {
			for range each {
				if _, err := stint.NewClient(s).Enqueue(ctx, stint.NewJob{Kind: "k"}); err != nil {
					t.Error(err)
				}
				ended.Store(time.Now().UnixNano())
			}
		})
	}
	all.Wait()
	s.notifier.wait()
	for until := time.Now().Add(5 * time.Second); last.Load() < ended.Load()-int64(100*time.Millisecond) && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	if last.Load() < ended.Load()-int64(100*time.Millisecond) {
		t.Error("nothing rang behind the last enqueue")
	}
	if n := rings.Load(); n > producers*each*3/4 {
		t.Errorf("%d rings for %d enqueues", n, producers*each)
	}
	stop()
	listener.Wait()
}

func TestAnEnqueueThatIsFollowedByNothingHasRungWhenTheStoreIsClosed(t *testing.T) {
	var sent atomic.Int32
	n := notifier{send: func(context.Context, bool) (bool, error) {
		time.Sleep(10 * time.Millisecond)
		sent.Add(1)
		return true, nil
	}}
	n.asked.Store(time.Now().UnixNano())
	if !n.begin() || n.begin() {
		t.Fatal("only the first is alone")
	}
	n.end(false, false)
	n.end(true, false)
	n.wait()
	if sent.Load() != 1 || n.under.Load() != 0 {
		t.Errorf("%d rings, %d under way", sent.Load(), n.under.Load())
	}
}

func TestNobodyIsRungForReadyJobsWhileNobodySleeps(t *testing.T) {
	s := newStore(t)
	w := storetest.Join(t, s, "k")
	listening, heard := make(chan struct{}), make(chan struct{}, 1000)
	var once sync.Once
	var listener sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	listener.Go(func() {
		if err := s.Listen(ctx, func(store.News) { once.Do(func() { close(listening) }); heard <- struct{}{} }); err != nil {
			t.Error(err)
		}
	})
	<-listening
	enqueue := func(opts ...stint.Option) {
		t.Helper()
		_, err := stint.NewClient(s).Enqueue(t.Context(), stint.KindInfo{Name: "k"}.Job(nil, opts...))
		must(t, err)
	}
	rings := func() int {
		s.notifier.wait()
		// What was sent before this is heard before it.
		exec(t, s, s.sql.notify)
		<-heard
		time.Sleep(20 * time.Millisecond)
		n := len(heard)
		for range n {
			<-heard
		}
		return n
	}
	enqueue() // finds out that nobody sleeps
	rings()
	for range 50 {
		enqueue()
	}
	if n := rings(); n > 1 {
		t.Errorf("%d rings while nobody slept", n)
	}
	enqueue(stint.Delay(time.Hour))
	if n := rings(); n < 1 {
		t.Error("no ring for a job that has a time")
	}
	must(t, s.Asleep(t.Context(), w.Info.Token, true))
	for i := range 3 {
		enqueue()
		if n := rings(); n < 1 {
			t.Errorf("no ring for enqueue %d after the engine fell asleep", i)
		}
	}
	stop()
	listener.Wait()
}

func TestWhileNobodySleepsThatIsNotAskedWithoutABreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		n := notifier{send: func(context.Context, bool) (bool, error) {
			asked.Add(1)
			return false, nil
		}}
		const enqueues, apart = 100, askPause / 10
		for range enqueues {
			n.end(n.begin(), false)
			time.Sleep(apart)
		}
		n.wait()
		if most := int32(enqueues*apart/askPause) + 2; asked.Load() < 2 || asked.Load() > most {
			t.Errorf("asked %d times behind %d enqueues, want 2 to %d", asked.Load(), enqueues, most)
		}
	})
}

func TestAnEngineSaysOnlyOfItselfWhetherItSleeps(t *testing.T) {
	s := newStore(t)
	b := &bench{t, s, nil}
	sleeps, works := b.join(), b.join()
	asleep := func(w *storetest.Worker) bool {
		return value[bool](t, s.pool, `select asleep from stint.beats where token = $1`, w.Info.Token)
	}
	must(t, s.Asleep(t.Context(), sleeps.Info.Token, true))
	if !asleep(sleeps) || asleep(works) {
		t.Errorf("the one that sleeps: %v, the other: %v", asleep(sleeps), asleep(works))
	}
	must(t, s.Asleep(t.Context(), works.Info.Token, false))
	if !asleep(sleeps) {
		t.Error("that another one works wakes it")
	}
}

// An enqueue says of what it rings: jobs that are ready are news for few engines, and however many one
// transaction enqueues, they are one notification.
func TestANotificationTellsWhatItIsAbout(t *testing.T) {
	s := newStore(t)
	w := storetest.Join(t, s, "k")
	must(t, s.Asleep(t.Context(), w.Info.Token, true))
	heard := make(chan store.News, 1000)
	ctx, stop := context.WithCancel(t.Context())
	var listener sync.WaitGroup
	listener.Go(func() {
		if err := s.Listen(ctx, func(news store.News) { heard <- news }); err != nil {
			t.Error(err)
		}
	})
	defer func() { stop(); listener.Wait() }()
	if news := <-heard; news != (store.News{}) {
		t.Errorf("at the beginning %+v", news)
	}
	client, job := stint.NewClient(s), stint.KindInfo{Name: "k"}
	one := func(opts ...stint.Option) func() error {
		return func() error { _, err := client.Enqueue(ctx, job.Job(nil, opts...)); return err }
	}
	many := func(n int) func() error {
		return func() error {
			jobs := make([]stint.NewJob, n)
			for i := range jobs {
				jobs[i] = job.Job(nil)
			}
			_, err := client.EnqueueMany(ctx, jobs)
			return err
		}
	}
	sql := func(text string) func() error {
		return func() error { _, err := s.pool.Exec(ctx, s.sql.in(text)); return err }
	}
	ready, due := store.News{Ready: true}, store.News{Due: true}
	for what, c := range map[string]struct {
		enqueue func() error
		news    store.News // without its number
	}{
		"one":          {one(), ready},
		"several":      {many(3), ready},
		"by COPY":      {many(copyFrom), ready},
		"a key":        {one(stint.IdempotencyKey("key")), ready},
		"a delay":      {one(stint.Delay(time.Hour)), due},
		"SQL":          {sql(`select stint.enqueue('k') from generate_series(1, 50)`), ready},
		"SQL, delayed": {sql(`select stint.enqueue('k', delay => '1 hour')`), due},
		// A handler may have to stop.
		"cancels another": {one(stint.UniqueUntilEnded(stint.OrCancelOld())), store.News{}},
		"a flow that cancels another": {func() error {
			f := stint.NewFlow("f", stint.UniqueUntilEnded(stint.OrCancelOld()))
			stint.NewKind[struct{}]("k").Add(f, "a", struct{}{})
			_, err := f.Enqueue(ctx, client)
			return err
		}, store.News{}},
		"SQL, cancels another": {sql(`select stint.enqueue('k', uniqueness => 'until-ended,cancel-old')`), store.News{}},
		"a Tx": {func() error {
			tx, err := s.pool.Begin(ctx)
			if err != nil {
				return err
			}
			for range 50 {
				if _, err := client.With(Tx(tx)).Enqueue(ctx, job.Job(nil)); err != nil {
					return err
				}
			}
			return tx.Commit(ctx)
		}, ready},
	} {
		must(t, c.enqueue())
		s.notifier.wait()
		exec(t, s, `select pg_notify('stint', 'work')`)
		var all []store.News
		for news := range heard {
			if news == (store.News{Ready: true}) {
				break
			}
			all = append(all, news)
		}
		// A second one comes of the question whether somebody sleeps, which is asked now and then.
		about := func(n store.News) bool {
			numbered := n.Lot != 0
			n.Lot = 0
			return n == c.news && numbered == (n != store.News{})
		}
		if len(all) == 0 || len(all) > 2 || !slices.ContainsFunc(all, about) {
			t.Errorf("%s: %+v", what, all)
		}
	}
}

// Who passes work on wakes nobody where nobody sleeps: notifications take a lock of the whole cluster.
func TestWorkIsPassedOnToThoseThatSleep(t *testing.T) {
	s := newStore(t)
	w := storetest.Join(t, s, "k")
	heard := make(chan store.News, 1000)
	ctx, stop := context.WithCancel(t.Context())
	var listener sync.WaitGroup
	listener.Go(func() {
		if err := s.Listen(ctx, func(news store.News) { heard <- news }); err != nil {
			t.Error(err)
		}
	})
	defer func() { stop(); listener.Wait() }()
	<-heard
	for _, asleep := range []bool{false, true, false} {
		must(t, s.Asleep(ctx, w.Info.Token, asleep))
		must(t, s.Ring(ctx))
		exec(t, s, s.sql.notify)
		if news := <-heard; asleep != (news == store.News{Ready: true}) {
			t.Errorf("asleep %v: it hears %+v", asleep, news)
		} else if asleep {
			<-heard
		}
	}
}
