package engine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// slowLooks is a store with so many lanes that each look takes 20 ms.
type slowLooks struct {
	*sqlite.Store
	looks, claims atomic.Int32
}

func (s *slowLooks) Look(ctx context.Context, known store.LaneHints) ([]store.LaneHead, error) {
	s.looks.Add(1)
	time.Sleep(20 * time.Millisecond)
	return s.Store.Look(ctx, known)
}

func (s *slowLooks) Claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	s.claims.Add(1)
	return s.Store.Claim(ctx, req)
}

func (s *slowLooks) ClaimLanes(ctx context.Context, req store.ClaimRequest, lanes []store.LaneHead) ([]store.Claim, error) {
	s.claims.Add(1)
	return s.Store.ClaimLanes(ctx, req, lanes)
}

func TestManyLanesTakeFewLooksAndFewClaims(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		const queues = 400
		c := &slowLooks{Store: s}
		for i := range queues {
			fill(t, s, "k", 2, fmt.Sprint("queue-", i))
		}
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
		stop := start(t, c, mux, engine.Config{Slots: 50})
		time.Sleep(time.Second)
		if counts, err := s.Counts(t.Context()); err != nil || counts[stint.Completed] != 2*queues {
			t.Errorf("after a second counts are %v, %v", counts, err)
		}
		if looks, claims := c.looks.Load(), c.claims.Load(); looks > 20 || claims > 2*queues/10 {
			t.Errorf("%d jobs of %d queues took %d looks and %d claims", 2*queues, queues, looks, claims)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Beside many lanes a look costs more; an idle engine makes fewer of them.
func TestAnIdleEngineLooksLessOftenTheMoreLanesThereAre(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		const queues = 1000 // for each of which it waits 0.2 ms
		l := &looks{Store: s}
		for i := range queues {
			fill(t, s, "k", 1, fmt.Sprint("queue-", i))
		}
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
		stop := start(t, silent{l}, mux, engine.Config{Slots: 50, Poll: 50 * time.Millisecond})
		time.Sleep(10 * time.Second)
		l.gaps()
		time.Sleep(10 * time.Second)
		for _, gap := range l.gaps() {
			if gap < 200 || gap > 250 {
				t.Errorf("it looked again after %d ms, want 200", gap)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// manifold is a store whose looks are counted and may be impaired.
type manifold struct {
	*drowsy
	all, since atomic.Int32
	blind      atomic.Bool  // nothing new is seen
	broken     atomic.Int32 // so many claims fail
}

func (m *manifold) Look(ctx context.Context, known store.LaneHints) ([]store.LaneHead, error) {
	m.all.Add(1)
	return m.drowsy.Look(ctx, known)
}

func (m *manifold) LookSince(ctx context.Context, since store.Mark) (store.Appended, error) {
	m.since.Add(1)
	a, err := m.drowsy.LookSince(ctx, since)
	if m.blind.Load() && since.Set {
		a.Heads, a.All = nil, false
	}
	return a, err
}

func (m *manifold) ClaimLanes(ctx context.Context, req store.ClaimRequest, lanes []store.LaneHead) ([]store.Claim, error) {
	if m.broken.Add(-1) >= 0 {
		return nil, errors.New("the disk is full")
	}
	return m.drowsy.ClaimLanes(ctx, req, lanes)
}

// lookAtAll has an idle engine look at all lanes. Then it need not for a while.
func (m *manifold) lookAtAll() {
	m.bell <- struct{}{}
	time.Sleep(time.Millisecond)
	m.all.Store(0)
}

// ran is what ran, in order.
type ran struct {
	mu     sync.Mutex
	queues []string
}

func (r *ran) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	queues := r.queues
	r.queues = nil
	return queues
}

const manyQueues = 1000 // at all of which an idle engine looks every 200 ms at most

// amongMany runs an engine that knows many lanes and is idle.
func amongMany(t *testing.T, c engine.Config, do func(t *testing.T, m *manifold, r *ran)) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		m, r := &manifold{drowsy: newDrowsy(s)}, new(ran)
		for i := range manyQueues {
			fill(t, s, "k", 1, fmt.Sprint("queue-", i))
		}
		mux := stint.NewMux()
		handle(mux, "k", func(_ context.Context, job *stint.Job) error {
			r.mu.Lock()
			r.queues = append(r.queues, job.Queue)
			r.mu.Unlock()
			time.Sleep(10 * time.Millisecond)
			return nil
		})
		c.Poll = cmp.Or(c.Poll, time.Minute)
		stop := start(t, m, mux, c)
		time.Sleep(time.Minute)
		if n := len(r.take()); n != manyQueues {
			t.Errorf("%d jobs ran, want %d", n, manyQueues)
		}
		m.all.Store(0)
		m.since.Store(0)
		do(t, m, r)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestANotificationAmongManyLanesLooksAtWhatIsNew(t *testing.T) {
	amongMany(t, engine.Config{Slots: 1}, func(t *testing.T, m *manifold, r *ran) {
		m.lookAtAll()
		for i := range 10 {
			queue := fmt.Sprint("queue-", 7*i)
			enqueue(t, m, "k", `{}`, stint.Queue(queue))
			m.bell <- struct{}{}
			time.Sleep(11 * time.Millisecond)
			if got := r.take(); !slices.Equal(got, []string{queue}) {
				t.Errorf("of a job in %s ran %v", queue, got)
			}
		}
		if all := m.all.Load(); all > 0 {
			t.Errorf("it looked at all lanes %d times", all)
		}
	})
}

func TestAmongManyLanesWhatIsNotSeenAsNewIsFoundByALookAtAll(t *testing.T) {
	amongMany(t, engine.Config{Slots: 1, Poll: 50 * time.Millisecond}, func(t *testing.T, m *manifold, r *ran) {
		m.blind.Store(true)
		enqueue(t, m, "k", `{}`, stint.Queue("queue-5"))
		time.Sleep(300 * time.Millisecond)
		if got := r.take(); len(got) != 1 {
			t.Errorf("ran %v, want one job", got)
		}
	})
}

func TestAmongManyLanesABurstIsFoundByALookAtAll(t *testing.T) {
	amongMany(t, engine.Config{Slots: 1000}, func(t *testing.T, m *manifold, r *ran) {
		m.lookAtAll()
		for i := range 5 * manyQueues {
			fill(t, m, "k", 1, fmt.Sprint("queue-", i%manyQueues))
		}
		m.bell <- struct{}{}
		time.Sleep(150 * time.Millisecond)
		if n := len(r.take()); n != 5*manyQueues {
			t.Errorf("%d jobs ran, want %d", n, 5*manyQueues)
		}
		if all := m.all.Load(); all > 5 {
			t.Errorf("it looked at all lanes %d times", all)
		}
	})
}

func TestAmongManyLanesAMoreUrgentJobComesFirst(t *testing.T) {
	amongMany(t, engine.Config{Slots: 1}, func(t *testing.T, m *manifold, r *ran) {
		for i := range 60 {
			fill(t, m, "k", 1, fmt.Sprint("queue-", i))
		}
		m.bell <- struct{}{}
		time.Sleep(25 * time.Millisecond)
		r.take()
		m.all.Store(0)
		enqueue(t, m, "k", `{}`, stint.Queue("queue-900"))
		enqueue(t, m, "k", `{}`, stint.Queue("urgent"), stint.Priority(-1))
		time.Sleep(150 * time.Millisecond) // behind what is claimed already
		if got, all := r.take(), m.all.Load(); !slices.Contains(got, "urgent") || all > 0 {
			t.Errorf("before the more urgent job ran %v, and there were %d looks at all lanes", got, all)
		}
		time.Sleep(time.Second)
		if got := r.take(); !slices.Contains(got, "queue-900") || len(got) < 10 {
			t.Errorf("after it ran %v", got)
		}
	})
}

func TestAmongManyLanesNothingIsLostByAClaimThatFails(t *testing.T) {
	amongMany(t, engine.Config{Slots: 5}, func(t *testing.T, m *manifold, r *ran) {
		m.broken.Store(1)
		fill(t, m, "k", 1, "queue-1", "queue-2", "queue-3")
		m.bell <- struct{}{}
		time.Sleep(5 * time.Second) // the next poll would be in a minute
		if got := r.take(); len(got) != 3 {
			t.Errorf("ran %v, want three jobs", got)
		}
	})
}

func TestAmongManyLanesResumedWorkIsFoundAtOnce(t *testing.T) {
	amongMany(t, engine.Config{Slots: 5}, func(t *testing.T, m *manifold, r *ran) {
		m.lookAtAll()
		pause(t, m.Store, "queue-1")
		enqueue(t, m, "k", `{}`, stint.Queue("queue-1"))
		m.bell <- struct{}{}
		time.Sleep(60 * time.Millisecond)
		if got := r.take(); len(got) != 0 {
			t.Errorf("while it is paused ran %v", got)
		}
		resume(t, m.Store, "queue-1")
		m.bell <- struct{}{}
		time.Sleep(60 * time.Millisecond)
		if got := r.take(); len(got) != 1 {
			t.Errorf("after it was resumed ran %v, want one job", got)
		}
	})
}

func TestAmongManyLanesWorkOfAFullQueueWaitsForItsSlots(t *testing.T) {
	c := engine.Config{QueueSlots: map[string]int{"queue-1": 1, "*": 2}}
	amongMany(t, c, func(t *testing.T, m *manifold, r *ran) {
		fill(t, m, "k", 5, "queue-1")
		m.bell <- struct{}{}
		for i := range 10 {
			enqueue(t, m, "k", `{}`, stint.Queue(fmt.Sprint("queue-", 10+i)))
			m.bell <- struct{}{}
			time.Sleep(4 * time.Millisecond)
		}
		time.Sleep(time.Second)
		if got := r.take(); len(got) != 15 {
			t.Errorf("%d jobs ran: %v, want 15", len(got), got)
		}
	})
}

// dear is a store at which a look at all lanes takes long, once it does.
type dear struct {
	*drowsy
	slow atomic.Bool
}

func (d *dear) Look(ctx context.Context, known store.LaneHints) ([]store.LaneHead, error) {
	heads, err := d.drowsy.Look(ctx, known)
	if d.slow.Load() {
		time.Sleep(20 * time.Millisecond)
	}
	return heads, err
}

// The first look at what is new says only that all lanes have to be looked at.
func TestWhereLooksBecomeDearAQueueThatIsFullHoldsUpNoOther(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		d, release := &dear{drowsy: newDrowsy(s)}, make(chan struct{})
		mux := stint.NewMux()
		handle(mux, "stuck", func(context.Context, *stint.Job) error { <-release; return nil })
		handle(mux, "quick", func(context.Context, *stint.Job) error { return nil })
		fill(t, s, "stuck", 50, "slow")
		stop := start(t, d, mux, engine.Config{QueueSlots: map[string]int{"slow": 2, "fast": 1}, Poll: time.Hour})
		time.Sleep(time.Second)
		d.slow.Store(true)
		d.bell <- struct{}{}
		time.Sleep(10 * time.Millisecond) // in the middle of a look
		id := enqueue(t, s, "quick", `{}`, stint.Queue("fast"))
		d.bell <- struct{}{}
		time.Sleep(time.Second)
		if job, err := s.Job(t.Context(), id); err != nil || job.State != stint.Completed {
			t.Errorf("a second after it was enqueued the job is %s, %v", job.State, err)
		}
		close(release)
		time.Sleep(time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// contended is a store at which other engines always claim from each lane, until one waits for them.
type contended struct{ *slowLooks }

func (c contended) Claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	if !req.Wait {
		return store.Claim{}, store.ErrLaneBusy
	}
	return c.slowLooks.Claim(ctx, req)
}

// Where looks are dear, a lane that is not in the list of lanes with work is found again much later.
func TestALaneThatWasWaitedForIsClaimedFromAgain(t *testing.T) {
	for name, options := range map[string][]stint.Option{"without limits": nil, "of a limit": {stint.Limited("one")}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
				const jobs = 100
				mux := stint.NewMux()
				mux.Limit("one", stint.LimitRule{AtOnce: 1})
				handle(mux, "k", func(context.Context, *stint.Job) error { time.Sleep(10 * time.Millisecond); return nil })
				for range jobs {
					enqueue(t, s, "k", `{}`, options...)
				}
				stop := start(t, contended{&slowLooks{Store: s}}, mux, engine.Config{Slots: 1})
				time.Sleep(3 * time.Second)
				if counts, err := s.Counts(t.Context()); err != nil || counts[stint.Completed] != jobs {
					t.Errorf("after three seconds counts of %d jobs of 10 ms are %v, %v", jobs, counts, err)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
