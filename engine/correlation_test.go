package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/store"
)

// A chain of jobs, each enqueued by the one before, by whatever client.
func TestWhatAHandlerEnqueuesBelongsToItsJob(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		shared := stint.NewClient(s)
		var (
			mu   sync.Mutex
			seen = map[stint.ID]string{}
			ids  []stint.ID
		)
		note := func(job *stint.Job) {
			mu.Lock()
			defer mu.Unlock()
			seen[job.ID] = job.Correlation
			ids = append(ids, job.ID)
		}
		mux := stint.NewMux()
		handle(mux, "first", func(ctx context.Context, job *stint.Job) error {
			note(job)
			_, err := shared.Enqueue(ctx, stint.NewJob{Kind: "second"})
			return err
		})
		handle(mux, "second", func(ctx context.Context, job *stint.Job) error {
			note(job)
			within, cancel := context.WithCancel(ctx)
			defer cancel()
			_, err := stint.NewClient(s).EnqueueMany(within, []stint.NewJob{{Kind: "third"}, {Kind: "third", Correlation: "another"}})
			return err
		})
		handle(mux, "third", func(_ context.Context, job *stint.Job) error { note(job); return nil })
		start(t, s, mux, engine.Config{})
		root := enqueue(t, s, "first", `{}`)
		named := enqueue(t, s, "first", `{}`, stint.Correlation("order 7"))
		eventually(t, "all have run", func() bool { mu.Lock(); defer mu.Unlock(); return len(ids) == 8 })
		for id, want := range map[stint.ID]string{root: root.String(), named: "order 7"} {
			found, err := s.Jobs(t.Context(), store.Filter{Correlation: want})
			if err != nil {
				t.Fatal(err)
			}
			var kinds []string
			for _, j := range found {
				kinds = append(kinds, j.Kind)
				if seen[j.ID] != want {
					t.Errorf("the handler of job %d saw the correlation id %q, want %q", j.ID, seen[j.ID], want)
				}
			}
			slices.Sort(kinds)
			if !slices.Equal(kinds, []string{"first", "second", "third"}) || found[len(found)-1].ID != id {
				t.Errorf("%q is found as %v, the first as job %d, want %d", want, kinds, found[len(found)-1].ID, id)
			}
		}
		if found, err := s.Jobs(t.Context(), store.Filter{Correlation: "another"}); err != nil || len(found) != 2 {
			t.Errorf("%d jobs were given an id of their own, error %v; want 2", len(found), err)
		}
	})
}

// By whatever way a job reaches the store while another one runs, it belongs to
// that one: by the context's client, run at once, from a hook.
func TestEveryWayToEnqueueFromAHandlerHandsTheCorrelationOn(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var guest *engine.Engine
		mux := stint.NewMux()
		root := handle(mux, "root", func(ctx context.Context, job *stint.Job) error {
			if _, err := stint.ClientFrom(ctx).Enqueue(ctx, stint.NewJob{Kind: "context"}); err != nil {
				return err
			}
			_, err := guest.RunNow(ctx, stint.NewJob{Kind: "now"})
			return err
		})
		root.Hook(stint.Hooks{AfterSuccess: func(ctx context.Context, _ *stint.Job, _ *stint.Attempt) error {
			_, err := stint.ClientFrom(ctx).Enqueue(ctx, stint.NewJob{Kind: "hook"})
			return err
		}})
		handle(mux, "now", func(ctx context.Context, _ *stint.Job) error {
			_, err := stint.ClientFrom(ctx).Enqueue(ctx, stint.NewJob{Kind: "of now"})
			return err
		})
		for _, kind := range []string{"context", "of now", "hook"} {
			handle(mux, kind, func(context.Context, *stint.Job) error { return nil })
		}
		guest = newEngine(t, s, mux, engine.Config{})
		start(t, s, mux, engine.Config{})
		for _, opt := range [][]stint.Option{nil, {stint.Correlation("order 7")}} {
			id := enqueue(t, s, "root", `{}`, opt...)
			want := info(t, s, id).Correlation
			if (want == "order 7") != (opt != nil) {
				t.Errorf("job %d has the correlation id %q", id, want)
			}
			var kinds []string
			eventually(t, "all are there", func() bool {
				found, err := s.Jobs(t.Context(), store.Filter{Correlation: want, States: []stint.State{stint.Completed}})
				if err != nil {
					t.Fatal(err)
				}
				kinds = nil
				for _, j := range found {
					kinds = append(kinds, j.Kind)
				}
				return len(kinds) >= 5
			})
			slices.Sort(kinds)
			if !slices.Equal(kinds, []string{"context", "hook", "now", "of now", "root"}) {
				t.Errorf("%q is found as %q", want, kinds)
			}
		}
	})
}

func TestWhatAHandlerEnqueuesInItsTransactionBelongsToItsJob(t *testing.T) {
	pool, s := openPool(t)
	mux := stint.NewMux()
	handle(mux, "parent", func(ctx context.Context, _ *stint.Job) error {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback(context.WithoutCancel(ctx))
		if _, err := stint.ClientFrom(ctx).With(postgres.Tx(tx)).Enqueue(ctx, stint.NewJob{Kind: "child", Queue: "nobody's"}); err != nil {
			return err
		}
		return engine.CompleteTx(ctx, postgres.Tx(tx), nil)
	})
	start(t, s, mux, engine.Config{Queues: []string{stint.DefaultQueue}})
	parent := enqueue(t, s, "parent", `{}`)
	until(t, s, parent, stint.Completed)
	found, err := s.Jobs(t.Context(), store.Filter{Correlation: parent.String()})
	if err != nil || len(found) != 2 || found[0].Kind != "child" {
		t.Errorf("what belongs to the job is %+v, error %v; want it and its child", found, err)
	}
}

func TestWhatACallerEnqueuesToRunNowBelongsToItsRequest(t *testing.T) {
	seen := make(chan string, 1)
	fill := func(mux *stint.Mux) {
		handle(mux, "work", func(_ context.Context, job *stint.Job) error { seen <- job.Correlation; return nil })
	}
	onEachNow(t, fill, func(t *testing.T, s anyStore, e *engine.Engine) {
		x, err := e.RunNow(stint.WithCorrelation(t.Context(), "request 9"), newJob("work", `{}`))
		if err != nil {
			t.Fatal(err)
		}
		if got, shown := <-seen, info(t, s, x.Job).Correlation; got != "request 9" || shown != "request 9" {
			t.Errorf("the handler saw the correlation id %q, and people see %q", got, shown)
		}
	})
}

func TestAHandlerSeesTheMetadata(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		got := make(chan json.RawMessage, 1)
		mux := stint.NewMux()
		handle(mux, "k", func(_ context.Context, job *stint.Job) error { got <- job.Metadata; return nil })
		start(t, s, mux, engine.Config{})
		enqueue(t, s, "k", `{}`, stint.Metadata(json.RawMessage(`{"trace":"00-abc"}`)))
		var m struct{ Trace string }
		if err := json.Unmarshal(<-got, &m); err != nil || m.Trace != "00-abc" {
			t.Errorf("it saw %+v, error %v", m, err)
		}
	})
}
