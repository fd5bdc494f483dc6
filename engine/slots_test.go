package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// crowd counts how many jobs of each queue run at once.
type crowd struct {
	mu        sync.Mutex
	now, most map[string]int
	ended     map[string]int
}

func newCrowd() *crowd {
	return &crowd{now: map[string]int{}, most: map[string]int{}, ended: map[string]int{}}
}

// handler makes jobs of the kind take a while.
func (c *crowd) handler(mux *stint.Mux, kind string, takes time.Duration) {
	handle(mux, kind, func(_ context.Context, job *stint.Job) error {
		c.add(job.Queue, 1)
		time.Sleep(takes)
		c.add(job.Queue, -1)
		return nil
	})
}

func (c *crowd) add(queue string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now[queue] += n
	c.most[queue] = max(c.most[queue], c.now[queue])
	if n < 0 {
		c.ended[queue]++
	}
}

func (c *crowd) have(ended int, queues ...string) func() bool {
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, q := range queues {
			if c.ended[q] < ended {
				return false
			}
		}
		return true
	}
}

// fill enqueues n jobs into each of the queues.
func fill(t *testing.T, s stint.Enqueuer, kind string, n int, queues ...string) {
	t.Helper()
	var jobs []stint.NewJob
	for range n {
		for _, q := range queues {
			jobs = append(jobs, stint.NewJob{Kind: kind, Queue: q})
		}
	}
	if _, err := stint.NewClient(s).EnqueueMany(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
}

func TestSlotsOfQueuesGiveExactlyThatParallelism(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux, c := stint.NewMux(), newCrowd()
		c.handler(mux, "work", 10*time.Millisecond)
		fill(t, s, "work", 60, "a", "b", "c")
		start(t, s, mux, engine.Config{QueueSlots: map[string]int{"a": 4, "b": 2, "c": 1}})
		eventually(t, "all have run", c.have(60, "a", "b", "c"))
		for queue, want := range map[string]int{"a": 4, "b": 2, "c": 1} {
			if c.most[queue] != want {
				t.Errorf("%d of the queue %s ran at once, want %d", c.most[queue], queue, want)
			}
		}
	})
}

func TestJobsThatTakeNoTimeStayWithinTheSlotsOfTheirQueueToo(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux, c := stint.NewMux(), newCrowd()
		c.handler(mux, "work", 0) // so fast that entries are prefetched
		fill(t, s, "work", 2000, "a", "b")
		start(t, s, mux, engine.Config{QueueSlots: map[string]int{"a": 2, "b": 1}})
		eventually(t, "all have run", c.have(2000, "a", "b"))
		if c.most["a"] > 2 || c.most["b"] != 1 {
			t.Errorf("%v ran at once, want 2 and 1", c.most)
		}
	})
}

func TestAQueueThatIsFullHoldsUpNoOtherAndTakesNoMoreThanItCanRun(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		release := make(chan struct{})
		handle(mux, "stuck", func(context.Context, *stint.Job) error { <-release; return nil })
		handle(mux, "quick", func(context.Context, *stint.Job) error { return nil })
		fill(t, s, "stuck", 50, "slow")
		stop := start(t, s, mux, engine.Config{QueueSlots: map[string]int{"slow": 2, "fast": 1}, Poll: time.Minute})
		eventually(t, "the slow queue is full", func() bool {
			counts, err := s.Counts(t.Context())
			return err == nil && counts[stint.Running] == 2
		})
		// Each one is noticed when it comes, not at the next poll, though the
		// queue that is full has work all the time.
		for range 5 {
			job := until(t, s, enqueue(t, s, "quick", `{}`, stint.Queue("fast")), stint.Completed)
			if wait := job.Started.Sub(job.Created); wait > 8*time.Second {
				t.Errorf("it waited %v", wait)
			}
		}
		counts, err := s.Counts(t.Context())
		if err != nil || counts[stint.Running] != 2 || counts[stint.Available] != 48 {
			t.Errorf("counts are %v, %v; want 2 running and 48 for others", counts, err)
		}
		close(release)
		eventually(t, "the rest has run", func() bool {
			counts, err := s.Counts(t.Context())
			return err == nil && counts[stint.Completed] == 55
		})
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestTheStarStandsForAllQueuesThatAreNotNamed(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux, c := stint.NewMux(), newCrowd()
		c.handler(mux, "work", 5*time.Millisecond)
		handle(mux, "other", func(_ context.Context, job *stint.Job) error {
			c.add("others", 1)
			time.Sleep(5 * time.Millisecond)
			c.add("others", -1)
			return nil
		})
		fill(t, s, "work", 40, "mail")
		fill(t, s, "other", 20, "x", "y")
		start(t, s, mux, engine.Config{QueueSlots: map[string]int{"mail": 1, "*": 3}})
		eventually(t, "all have run", c.have(40, "mail", "others"))
		if c.most["mail"] != 1 || c.most["others"] != 3 {
			t.Errorf("%v ran at once, want 1 of mail and 3 of the others together", c.most)
		}
	})
}

func TestWithoutTheStarOtherQueuesAreLeftAlone(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		handle(mux, "any", func(context.Context, *stint.Job) error { return nil })
		start(t, s, mux, engine.Config{QueueSlots: map[string]int{"mail": 1, "default": 1}})
		other := enqueue(t, s, "any", `{}`, stint.Queue("other"))
		until(t, s, enqueue(t, s, "any", `{}`, stint.Queue("mail")), stint.Completed)
		until(t, s, enqueue(t, s, "any", `{}`), stint.Completed)
		time.Sleep(50 * time.Millisecond)
		if job := until(t, s, other, stint.Available); len(job.Attempts) != 0 {
			t.Errorf("the other queue's job has %d executions", len(job.Attempts))
		}
		roster, err := s.Engines(t.Context())
		if err != nil || len(roster) != 1 || roster[0].Slots != 2 || fmt.Sprint(roster[0].Queues) != "[default mail]" {
			t.Errorf("the roster shows %+v, %v", roster, err)
		}
	})
}

func TestWhatIsToBeRunAloneIsAloneInAllQueues(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		// An engine dies twice with two jobs in its hands: each is suspected
		// of it, and is run with nothing else that is.
		a := enqueue(t, s, "work", `{}`, stint.Queue("a"))
		b := enqueue(t, s, "work", `{}`, stint.Queue("b"))
		for round := range 2 {
			part := store.PartNormal
			if round > 0 {
				part = store.PartFront
			}
			w := storetest.Join(t, s, "work")
			w.Claim(store.LaneOf("a", 0, part, "").ID, 1)
			w.Claim(store.LaneOf("b", 0, part, "").ID, 1)
			_, err := s.Bury(t.Context(), store.Burial{Engine: w.Info.Token, Why: "test"}, func(e *store.Entry, _ bool) store.Completion {
				return store.Conclude(e, store.Result{Outcome: stint.OutcomeReturned, Part: store.PartFront, Suspect: round + 1}, time.Now(), 0)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		mux, c := stint.NewMux(), newCrowd()
		handle(mux, "work", func(context.Context, *stint.Job) error {
			c.add("both", 1)
			time.Sleep(300 * time.Millisecond)
			c.add("both", -1)
			return nil
		})
		start(t, s, mux, engine.Config{QueueSlots: map[string]int{"a": 2, "b": 2}})
		until(t, s, a, stint.Completed)
		until(t, s, b, stint.Completed)
		if c.most["both"] != 1 {
			t.Errorf("%d suspects ran at once", c.most["both"])
		}
	})
}

func TestSlotsThatMakeNoSenseAreRefused(t *testing.T) {
	for want, c := range map[string]engine.Config{
		"not both":                        {Slots: 3, QueueSlots: map[string]int{"a": 1}},
		"0 of the queue a is not between": {QueueSlots: map[string]int{"a": 0}},
		"40000 of the queue a is not":     {QueueSlots: map[string]int{"a": 40000}},
		"is not between 1 and 32000":      {QueueSlots: map[string]int{"a": 20000, "b": 20000}},
		`" a" has space at an end`:        {QueueSlots: map[string]int{" a": 1}},
		"there are none for the queue b":  {Queues: []string{"a", "b"}, QueueSlots: map[string]int{"a": 1}},
		"there are none for the queue *":  {Queues: []string{"*"}, QueueSlots: map[string]int{"a": 1}},
		"the queue a is not one to work":  {Queues: []string{"b"}, QueueSlots: map[string]int{"a": 1, "*": 1}},
	} {
		_, err := engine.New(nil, stint.NewMux(), c)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("%+v: the error is %v, want %s", c.QueueSlots, err, want)
		}
	}
	for _, c := range []engine.Config{
		{QueueSlots: map[string]int{"a": 1, "*": 1}},
		{Queues: []string{"*"}, QueueSlots: map[string]int{"a": 1, "*": 1}},
		{Queues: []string{"a", "b"}, QueueSlots: map[string]int{"a": 1, "*": 1}},
	} {
		if _, err := engine.New(nil, stint.NewMux(), c); err != nil {
			t.Errorf("%v %v: %v", c.Queues, c.QueueSlots, err)
		}
	}
}

func TestTheStarIsEveryQueue(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		for _, queues := range [][]string{nil, {"*"}, {"mail", "*"}} {
			mux := stint.NewMux()
			handle(mux, "any", func(context.Context, *stint.Job) error { return nil })
			stop := start(t, s, mux, engine.Config{Queues: queues})
			for _, queue := range []string{"mail", "default", "a queue of its own"} {
				until(t, s, enqueue(t, s, "any", `{}`, stint.Queue(queue)), stint.Completed)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
		if _, err := engine.New(s, stint.NewMux(), engine.Config{Queues: []string{"a\nb"}}); err == nil || !strings.Contains(err.Error(), `queues: "a\nb" has a control character`) {
			t.Errorf("the error of a bad name is %v", err)
		}
	})
}
