package engine_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/outside"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// large is what is kept outside.
type large struct {
	N    int    `json:"n"`
	Text string `json:"text"`
}

var (
	largeKind   = stint.NewResultKind[large, large]("large", soon)
	largeSealed = stint.NewResultKind[large, large]("hidden", stint.Sealed(), soon)
)

// outsiders are handlers with large arguments, results and steps, which check that they see these as they were.
func outsiders(t *testing.T, canary string) *stint.Mux {
	mux := stint.NewMux()
	is := func(got large) {
		if got.Text != canary {
			t.Errorf("a handler gets %.100s…", got.Text)
		}
	}
	stint.HandleResult(mux, largeKind, func(ctx context.Context, job *stint.Job, args large) (large, error) {
		is(args)
		got, err := stint.Step(ctx, "reads", func(context.Context) (large, error) { return args, nil })
		if is(got); err == nil && job.Attempt == 1 {
			err = errors.New("once more")
		}
		if err != nil {
			return large{}, err
		}
		called, err := largeSealed.Call(ctx, "calls", args)
		if err != nil {
			return large{}, err
		}
		is(called)
		return args, nil
	})
	stint.HandleResult(mux, largeSealed, func(_ context.Context, _ *stint.Job, args large) (large, error) {
		is(args)
		return args, nil
	})
	return mux
}

// onBothStores runs a test on each kind of store.
func onBothStores(t *testing.T, try func(t *testing.T, s anyStore)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		t.Cleanup(func() { storetest.Verify(t, s) })
		try(t, s)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		_, s := openPool(t)
		try(t, s)
	})
}

func TestHandlersSeeAsItWasWhatIsKeptOutside(t *testing.T) {
	onBothStores(t, func(t *testing.T, s anyStore) {
		canary := strings.Repeat("CANARY"+rand.Text(), 400)
		dir := t.TempDir()
		client := stint.NewClient(s).Seal(keyRing(t, "k")).Outside(outside.Dir(dir), 2<<10)
		// What is sealed is sealed outside, too: its arguments and its result.
		other := t.TempDir()
		elsewhere := client.Outside(outside.Dir(other), 2<<10)
		hidden, err := largeSealed.Enqueue(t.Context(), elsewhere, large{3, canary})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newEngine(t, s, outsiders(t, canary), engine.Config{Client: elsewhere}).RunReady(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		until(t, s, hidden, stint.Completed)
		files, err := filepath.Glob(filepath.Join(other, "*", "*"))
		if err != nil || len(files) != 2 || holding(t, other, canary) != "" {
			t.Errorf("what is sealed stands outside in %q", files)
		}
		e := newEngine(t, s, outsiders(t, canary), engine.Config{Client: client})
		run(t, e)
		id, err := largeKind.Enqueue(t.Context(), client, large{1, canary})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := largeKind.Await(t.Context(), client, id); err != nil || got.Text != canary {
			t.Errorf("who waits gets %.100s…, %v", got.Text, err)
		}
		if job, err := client.Job(t.Context(), id); err != nil || !strings.Contains(string(job.Args), canary) {
			t.Errorf("a client with blobs is shown %+v, %v", job, err)
		}
		if _, err := largeKind.Await(t.Context(), stint.NewClient(s), id); !errors.Is(err, outside.ErrNoBlobs) {
			t.Errorf("who waits without blobs gets %v", err)
		}
		now, err := largeKind.New(large{2, canary})
		if err != nil {
			t.Fatal(err)
		}
		if x, err := e.RunNow(t.Context(), now); err != nil || x.Outcome != stint.OutcomeFailed {
			t.Errorf("a run now ends as %+v, %v", x, err)
		} else {
			until(t, s, x.Job, stint.Completed)
		}
		listed, err := s.Jobs(t.Context(), store.Filter{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		job, err := s.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		steps, err := s.(store.StepReader).Steps(t.Context(), id)
		if err != nil || len(steps) != 2 {
			t.Fatalf("the steps are %v, %v", steps, err)
		}
		text, _ := json.Marshal([]any{listed, job, steps})
		if len(listed) < 4 || bytes.Contains(text, []byte(canary)) || bytes.Count(text, []byte(`"$outside"`)) < 7 || len(text) > 20_000 {
			t.Errorf("the store shows of %d jobs, in %d bytes with %d envelopes, %.3000s", len(listed), len(text), bytes.Count(text, []byte(`"$outside"`)), text)
		}
		if holding(t, dir, canary) == "" {
			t.Error("the values are not outside")
		}
	})
}

func TestLargeJobsAreComparedAndLimitedByWhatTheyWere(t *testing.T) {
	onBothStores(t, func(t *testing.T, s anyStore) {
		client := stint.NewClient(s).Outside(outside.Dir(t.TempDir()), 1<<10)
		text := strings.Repeat("x", 1<<10)
		kept := func(id stint.ID) bool {
			job, err := s.Job(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return outside.Is(job.Args)
		}
		add := func(args string, opts ...stint.Option) (stint.Receipt, error) {
			return client.EnqueueReceipt(t.Context(), stint.KindInfo{Name: "k"}.Job(json.RawMessage(args), opts...))
		}
		a, b := `{"n": 1, "tenant": "acme", "text": "`+text+`"}`, `{"text":"`+text+`","tenant":"acme","n":1}`
		first, err := add(a, stint.IdempotencyKey("a"), stint.LimitedBy("tenant", "/tenant"))
		if err != nil || !kept(first.ID) {
			t.Fatalf("it is stored as %+v, %v", first, err)
		}
		if job, err := s.Job(t.Context(), first.ID); err != nil || strings.Join(job.Limits, " ") != "tenant=acme" {
			t.Errorf("its limits are %q, %v", job.Limits, err)
		}
		if again, err := add(b, stint.IdempotencyKey("a"), stint.LimitedBy("tenant", "/tenant")); err != nil || again.ID != first.ID || !again.Duplicate {
			t.Errorf("the same once more is %+v, %v", again, err)
		}
		if _, err := add(strings.Replace(a, "1", "2", 1), stint.IdempotencyKey("a")); !errors.Is(err, stint.ErrKeyConflict) {
			t.Errorf("another one under the key is %v", err)
		}
		only, err := add(a, stint.UniqueUntilEnded())
		if err != nil || !kept(only.ID) {
			t.Fatalf("it is stored as %+v, %v", only, err)
		}
		if again, err := add(b, stint.UniqueUntilEnded()); err != nil || again.ID != only.ID {
			t.Errorf("an equal one is %+v, %v", again, err)
		}
		byPart, err := add(a, stint.UniqueUntilEnded(stint.By("/n")))
		if err != nil || kept(byPart.ID) {
			t.Errorf("one that is unique by a part is %+v, %v", byPart, err)
		}
		if again, err := add(`{"n":1}`, stint.UniqueUntilEnded(stint.By("/n"))); err != nil || again.ID != byPart.ID {
			t.Errorf("one that is equal in this part is %+v, %v", again, err)
		}
		small, err := add(`{"n":1}`)
		if err != nil || kept(small.ID) {
			t.Errorf("a small one is %+v, %v", small, err)
		}
		huge := `{"n":7,"text":"` + strings.Repeat("x", 2<<20) + `"}`
		if r, err := add(huge); err != nil || !kept(r.ID) {
			t.Errorf("a job of 2 MiB is %+v, %v", r, err)
		}
		if _, err := add(huge, stint.UniqueUntilEnded(stint.By("/n"))); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("a job of 2 MiB that stays in the database is %v", err)
		}
	})
}

// flaky are blobs that are away, or have lost everything.
type flaky struct {
	outside.Dir
	away, lost, changed atomic.Bool
	got                 atomic.Int32
}

func (f *flaky) Put(ctx context.Context, key string, value []byte) error {
	if f.away.Load() {
		return errors.New("away")
	}
	return f.Dir.Put(ctx, key, value)
}

func (f *flaky) Get(ctx context.Context, key string) ([]byte, error) {
	f.got.Add(1)
	switch value, err := f.Dir.Get(ctx, key); {
	case f.away.Load():
		return nil, errors.New("away")
	case f.lost.Load():
		if err := os.RemoveAll(filepath.Join(string(f.Dir), key[:2])); err != nil {
			return nil, err
		}
		return f.Dir.Get(ctx, key)
	case f.changed.Load():
		return append(value, ' '), err
	default:
		return value, err
	}
}

func TestAJobWhoseArgumentsAreAwayWaitsAndOneWhoseAreLostFails(t *testing.T) {
	onBothStores(t, func(t *testing.T, s anyStore) {
		keep := &flaky{Dir: outside.Dir(t.TempDir())}
		client := stint.NewClient(s).Outside(keep, 1<<10)
		kind := stint.NewKind[large]("k", soon)
		mux := stint.NewMux()
		stint.Handle(mux, kind, func(context.Context, *stint.Job, large) error { return nil })
		id, err := kind.Enqueue(t.Context(), client, large{1, strings.Repeat("x", 1<<10)})
		if err != nil {
			t.Fatal(err)
		}
		keep.away.Store(true)
		if _, err := kind.Enqueue(t.Context(), client, large{2, strings.Repeat("x", 1<<10)}); err == nil || !strings.Contains(err.Error(), "away") {
			t.Errorf("a job whose arguments cannot be put gives %v", err)
		}
		ready := func(c *stint.Client) *stint.JobInfo {
			t.Helper()
			if _, err := newEngine(t, s, mux, engine.Config{Client: c}).RunReady(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			job, err := s.Job(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return job
		}
		job := ready(client)
		if x := job.Attempts; job.State.Final() || len(x) != 1 || x[0].Outcome != stint.OutcomeSnoozed || !strings.Contains(x[0].Reason+job.Reason, "away") && x[0].Error == nil {
			t.Errorf("while the arguments are away the job is %+v", job)
		}
		if job.Attempt != 1 || time.Until(job.Due) > time.Minute {
			t.Errorf("it waits until %v, in attempt %d", job.Due, job.Attempt)
		}
		keep.away.Store(false)
		fresh := func(n int) {
			t.Helper()
			r, err := kind.EnqueueReceipt(t.Context(), client, large{n, strings.Repeat("x", 1<<10)})
			if err != nil {
				t.Fatal(err)
			}
			id = r.ID
		}
		fresh(3)
		if job := ready(stint.NewClient(s)); job.State.Final() || len(job.Attempts) != 1 {
			t.Errorf("without blobs the job is %+v", job)
		}
		for n, f := range []*atomic.Bool{&keep.changed, &keep.lost} {
			fresh(4 + n)
			f.Store(true)
			if job := ready(client); job.State != stint.Failed || len(job.Attempts) != 1 || job.Attempts[0].Outcome != stint.OutcomeFailed {
				t.Errorf("with what is lost or changed (%d) the job is %+v", n, job)
			}
			f.Store(false)
		}
		fresh(6)
		if job := ready(client); job.State != stint.Completed {
			t.Errorf("with its arguments the job is %+v", job)
		}
	})
}
