package engine_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// returned enqueues a job that an engine hands back, with a level of suspicion, before
// anybody else sees it.
func returned(t *testing.T, s *sqlite.Store, job stint.NewJob, suspect int) stint.ID {
	t.Helper()
	w := storetest.Join(t, s, job.Kind)
	defer w.Leave()
	c, err := s.EnqueueClaimed(t.Context(), job, store.ClaimRequest{Engine: w.Info.Token, Serial: 1, Nonce: 1})
	if err != nil {
		t.Fatal(err)
	}
	x := store.Conclude(&c.Entries[0], store.Result{Outcome: stint.OutcomeReturned, Part: store.PartFront, Suspect: suspect}, time.Now(), 0)
	x.Nonce, x.Started, x.Ended = c.Nonce, time.Now(), time.Now()
	if _, err := s.Finish(t.Context(), w.Info.Token, []store.ClaimRef{c.ClaimRef}, []store.Completion{x}); err != nil {
		t.Fatal(err)
	}
	return c.Entries[0].ID
}

// suspects enqueues jobs that are each to be run alone.
func suspects(t *testing.T, s *sqlite.Store, n int, queue string) (ids []stint.ID) {
	t.Helper()
	for range n {
		ids = append(ids, returned(t, s, newJob("suspect", `{}`, stint.Queue(queue)), 2))
	}
	return ids
}

// gates are handlers that go on until the test lets them.
type gates struct {
	mu   sync.Mutex
	open map[stint.ID]chan struct{}
	at   map[stint.ID]string // the engine where it runs
	slot map[int]stint.ID    // the job that began there last
}

func newGates() *gates {
	return &gates{open: map[stint.ID]chan struct{}{}, at: map[stint.ID]string{}, slot: map[int]stint.ID{}}
}

// start runs an engine for jobs of the kinds gated, which wait, and quick, which do
// not.
func (g *gates) start(t *testing.T, s store.Store, c engine.Config) (stop func() error) {
	t.Helper()
	mux := stint.NewMux()
	for _, kind := range []string{"gated", "suspect"} {
		handle(mux, kind, func(ctx context.Context, job *stint.Job) error {
			gate := make(chan struct{})
			g.mu.Lock()
			g.open[job.ID], g.at[job.ID] = gate, c.Instance
			g.mu.Unlock()
			select {
			case <-gate:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}
	handle(mux, "quick", func(context.Context, *stint.Job) error { return nil })
	c.OnEvent = func(e event.Event) {
		if e.Type == event.EventStarted {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.slot[e.Slot] = e.Job.ID
		}
	}
	return start(t, s, mux, c)
}

// let ends the handlers of jobs.
func (g *gates) let(ids ...stint.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range ids {
		if gate := g.open[id]; gate != nil {
			close(gate)
			delete(g.open, id)
		}
	}
}

// running are those jobs of the list that run on an engine.
func (g *gates) running(instance string, of []stint.ID) (list []stint.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range of {
		if g.open[id] != nil && g.at[id] == instance {
			list = append(list, id)
		}
	}
	return list
}

// finish lets everything end, however often something new begins.
func (g *gates) finish(t *testing.T, s *sqlite.Store, all ...stint.ID) {
	t.Helper()
	for range 1000 {
		g.let(all...)
		passes(time.Second)
		if counts, err := s.Counts(t.Context()); err == nil && counts[stint.Available]+counts[stint.Running] == 0 {
			return
		}
	}
	counts, err := s.Counts(t.Context())
	t.Errorf("in the end the counts are %v, %v", counts, err)
}

func TestWhatIsToBeRunAloneRunsInAnySlotThatIsFree(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		for slot := 1; slot <= 2; slot++ {
			g := newGates()
			stop := g.start(t, s, engine.Config{Slots: 2, Instance: "one"})
			long := []stint.ID{enqueue(t, s, "gated", `{}`), enqueue(t, s, "gated", `{}`)}
			passes(2 * time.Second)
			g.let(g.slot[slot]) // and nothing but the other slot is busy
			passes(time.Second)
			id := suspects(t, s, 1, stint.DefaultQueue)
			passes(2 * time.Second)
			if got := g.running("one", id); len(got) != 1 || g.slot[slot] != id[0] {
				t.Errorf("with nothing in slot %d it does not run there", slot)
			}
			g.let(id...)
			g.let(long...)
			passes(2 * time.Second)
			isNow(t, s, id[0], stint.Completed)
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestWhatIsToBeRunAloneRunsElsewhereWhileItsTurnHereIsNotToBeSeen(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		g := newGates()
		ids := suspects(t, s, 2, stint.DefaultQueue)
		stops := []func() error{g.start(t, s, engine.Config{Slots: 2, Instance: "one"})}
		passes(100 * time.Millisecond)
		if got := g.running("one", ids); len(got) != 1 {
			t.Fatalf("%v run on the only engine, want one of the two", got)
		}
		stops = append(stops, g.start(t, s, engine.Config{Slots: 2, Instance: "two"}))
		passes(3 * time.Second)
		got := g.running("two", ids)
		if len(got) != 1 || len(g.running("one", ids)) != 1 {
			t.Fatalf("%v run on the other engine, want one", got)
		}
		// It is told to be neither charged nor cleared by its way there.
		if job := isNow(t, s, got[0], stint.Running); job.Attempt != 1 || job.Losses != 0 || len(job.Attempts) > 3 {
			t.Errorf("it runs at attempt %d with %d losses, after %d executions", job.Attempt, job.Losses, len(job.Attempts))
		}
		g.finish(t, s, ids...)
		for _, stop := range stops {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestWhatWaitsToBeRunAloneKeepsOtherJobsFromNoSlot(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		g := newGates()
		ids := suspects(t, s, 10, stint.DefaultQueue)
		var others []stint.ID
		for range 20 {
			others = append(others, enqueue(t, s, "quick", `{}`))
		}
		stop := g.start(t, s, engine.Config{Slots: 10, Instance: "one"})
		passes(300 * time.Millisecond)
		for _, id := range others {
			isNow(t, s, id, stint.Completed)
		}
		passes(3 * time.Second)
		for range 8 {
			others = append(others, enqueue(t, s, "gated", `{}`))
		}
		passes(time.Second)
		if got := g.running("one", others); len(got) != 8 {
			t.Errorf("beside a suspect %d other jobs run in ten slots, want the eight that there are", len(got))
		}
		if got := g.running("one", ids); len(got) != 1 {
			t.Errorf("%d suspects run at once", len(got))
		}
		g.finish(t, s, append(others, ids...)...)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Where no other engine takes it, an entry that waits for its turn comes back to
// the same one: less and less often, and what came back with it is not held up.
func TestWhatWaitsForItsTurnForLongIsSeldomHandedBack(t *testing.T) {
	inBubble(t, 3*time.Hour, func(t *testing.T, s *sqlite.Store) {
		g := newGates()
		ids := suspects(t, s, 10, stint.DefaultQueue)
		stop := g.start(t, s, engine.Config{Slots: 10, Instance: "one"})
		passes(10 * time.Minute)
		back := returned(t, s, newJob("quick", `{}`, stint.Queue(stint.DefaultQueue)), 0)
		passes(2 * time.Second)
		isNow(t, s, back, stint.Completed)
		for _, id := range ids {
			if job, err := s.Job(t.Context(), id); err != nil || len(job.Attempts) > 30 || job.Attempt != 1 {
				t.Errorf("in ten minutes job %d has %d executions, and is at attempt %d, %v", id, len(job.Attempts), job.Attempt, err)
			}
		}
		g.finish(t, s, ids...)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAStopHandsBackWhatWaitsToBeRunAlone(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		for wait := range 5 {
			g := newGates()
			ids := suspects(t, s, 5, stint.DefaultQueue)
			stop := g.start(t, s, engine.Config{Slots: 3, Instance: "one"})
			passes(time.Duration(wait)*700*time.Millisecond + 100*time.Millisecond)
			first := g.running("one", ids)
			if len(first) != 1 {
				t.Fatalf("%v run", first)
			}
			time.AfterFunc(time.Second, func() { g.let(first...) })
			if err := stop(); err != nil {
				t.Error(err)
			}
			for _, id := range ids {
				if id == first[0] {
					isNow(t, s, id, stint.Completed)
				} else if job := isNow(t, s, id, stint.Available); job.Attempt != 1 || job.Losses != 0 {
					t.Errorf("it is at attempt %d with %d losses", job.Attempt, job.Losses)
				}
			}
			stop = g.start(t, s, engine.Config{Slots: 3, Instance: "next"})
			g.finish(t, s, ids...)
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestAQueueIsNotHeldUpByWhatWaitsForATurnInAnother(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		g := newGates()
		a := suspects(t, s, 1, "a")
		stop := g.start(t, s, engine.Config{QueueSlots: map[string]int{"a": 1, "b": 1}, Instance: "one"})
		passes(100 * time.Millisecond)
		if got := g.running("one", a); len(got) != 1 {
			t.Fatalf("%v run", got)
		}
		b := suspects(t, s, 3, "b")
		passes(5 * time.Second)
		id := enqueue(t, s, "quick", `{}`, stint.Queue("b"))
		passes(2 * time.Second)
		isNow(t, s, id, stint.Completed)
		other := g.start(t, s, engine.Config{QueueSlots: map[string]int{"a": 1, "b": 1}, Instance: "two"})
		passes(15 * time.Second)
		if one, two := g.running("one", b), g.running("two", b); len(one) != 0 || len(two) != 1 {
			t.Errorf("of the other queue %v run here and %v elsewhere", one, two)
		}
		g.finish(t, s, append(a, b...)...)
		for _, stop := range []func() error{stop, other} {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
	})
}
