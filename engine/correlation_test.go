package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
)

// A chain of jobs, each enqueued by the one before, by whatever client.
func TestWhatAHandlerEnqueuesBelongsToItsJob(t *testing.T) {
	onEach(t, func(t *testing.T, s store) {
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
			found, err := s.Jobs(t.Context(), stint.Filter{Correlation: want})
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
		if found, err := s.Jobs(t.Context(), stint.Filter{Correlation: "another"}); err != nil || len(found) != 2 {
			t.Errorf("%d jobs were given an id of their own, error %v; want 2", len(found), err)
		}
	})
}

func TestAHandlerSeesTheMetadata(t *testing.T) {
	onEach(t, func(t *testing.T, s store) {
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
