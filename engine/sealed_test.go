package engine_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/seal"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// keyRing is a ring of keys with these names.
func keyRing(t testing.TB, ids ...string) *seal.Ring {
	t.Helper()
	var keys []seal.Key
	for _, id := range ids {
		keys = append(keys, seal.Key{ID: id, Secret: bytes.Repeat([]byte(id[:1]), 32)})
	}
	r, err := seal.NewRing(keys[0], keys[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// secret is what a sealed job carries.
type secret struct {
	Open   string `json:"open"`
	Secret string `json:"secret"`
}

var (
	sealedPart  = stint.NewResultKind[secret, secret]("part", stint.Sealed("/secret"), soon)
	sealedWhole = stint.NewResultKind[secret, secret]("whole", stint.Sealed(), soon)
)

// secrets are handlers that have secrets in arguments, results and steps, and check that they see these in clear.
func secrets(t *testing.T, canary string) *stint.Mux {
	mux := stint.NewMux()
	mux.Use(func(next stint.Handler) stint.Handler {
		return func(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
			if !strings.Contains(string(job.Args), canary) || stint.JobFrom(ctx) != job {
				t.Errorf("middleware sees %s", job.Args)
			}
			return next(ctx, job)
		}
	})
	check := func(args secret) {
		if args != (secret{"open", canary}) {
			t.Errorf("a handler gets %+v", args)
		}
	}
	stint.HandleResult(mux, sealedPart, func(ctx context.Context, job *stint.Job, args secret) (secret, error) {
		check(args)
		for range 2 { // the second is the first one's
			got, err := stint.Step(ctx, "reads", func(context.Context) (string, error) { return canary, nil })
			if err == nil && job.Attempt == 1 {
				err = errors.New("once more")
			}
			if err != nil {
				return secret{}, err
			}
			if got != canary {
				t.Errorf("a step is said to have come to %q", got)
			}
			if job.Attempt > 1 {
				break
			}
		}
		called, err := sealedWhole.Call(ctx, "calls", args)
		if err != nil {
			return secret{}, err
		}
		check(called)
		return args, nil
	})
	stint.HandleResult(mux, sealedWhole, func(ctx context.Context, _ *stint.Job, args secret) (secret, error) {
		check(args)
		return secret{}, stint.SetResult(ctx, args)
	})
	needs := stint.NewKind[secret]("needs", stint.Sealed(), soon)
	stint.Handle(mux, needs, func(ctx context.Context, job *stint.Job, _ secret) error {
		n := 0
		for got, err := range sealedWhole.Needed(ctx) {
			if n++; err != nil {
				return err
			}
			check(got)
		}
		got, err := sealedWhole.FromFlow(ctx, "first")
		if err != nil {
			return err
		}
		if check(got); n != 1 {
			t.Errorf("it needs %d jobs", n)
		}
		if job.Attempt == 1 {
			_ = stint.SetResult(ctx, canary)
			return stint.SetError(ctx, errors.New("once more"), true)
		}
		last, err := job.Previous(ctx)
		if err != nil || string(last.Result) != `"`+canary+`"` {
			t.Errorf("the run before is %+v, %v", last, err)
		}
		return err
	})
	many := stint.NewKind[secret]("many", stint.Sealed())
	stint.HandleMany(mux, many, stint.Gather(2, 0), func(_ context.Context, jobs []stint.BatchJob[secret]) error {
		for _, job := range jobs {
			check(job.Args)
		}
		return nil
	})
	return mux
}

// Whatever a job of a sealed kind carries, only its key shows it.
func TestHandlersSeeInClearWhatIsStoredSealed(t *testing.T) {
	try := func(t *testing.T, s anyStore, dir string) {
		canary := "CANARY" + rand.Text()
		client := stint.NewClient(s).Seal(keyRing(t, "k"))
		e := newEngine(t, s, secrets(t, canary), engine.Config{Client: client})
		run(t, e)
		args := secret{"open", canary}
		id, err := sealedPart.Enqueue(t.Context(), client, args, stint.IdempotencyKey("a"))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := sealedPart.EnqueueReceipt(t.Context(), client, args, stint.IdempotencyKey("a")); err != nil || !again.Duplicate || again.ID != id {
			t.Errorf("the same once more is answered with %+v, %v", again, err)
		}
		flow := stint.NewFlow("flow")
		first, err := sealedWhole.New(args)
		if err != nil {
			t.Fatal(err)
		}
		next, err := stint.NewKind[secret]("needs", stint.Sealed(), soon).New(args)
		if err != nil {
			t.Fatal(err)
		}
		node := flow.Add("first", first)
		last := flow.Add("next", next, stint.Needs(node))
		if _, err := flow.Enqueue(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		batch, err := stint.NewKind[secret]("many", stint.Sealed()).Enqueue(t.Context(), client, args)
		if err != nil {
			t.Fatal(err)
		}
		got, err := sealedPart.Await(t.Context(), client, id)
		if err != nil || got != args {
			t.Errorf("who waits gets %+v, %v", got, err)
		}
		all := []stint.ID{id, node.ID(), last.ID(), batch}
		for _, id := range all {
			until(t, s, id, stint.Completed)
			if job, err := client.Job(t.Context(), id); err != nil || !strings.Contains(string(job.Args), canary) {
				t.Errorf("a client with keys is shown %+v, %v", job, err)
			}
		}
		now, err := sealedWhole.New(args)
		if err != nil {
			t.Fatal(err)
		}
		if x, err := e.RunNow(t.Context(), now); err != nil || !strings.Contains(string(x.Result), canary) {
			t.Errorf("a run now returns %s, %v", x.Result, err)
		} else {
			until(t, s, x.Job, stint.Completed)
		}
		without := stint.NewClient(s)
		if _, err := sealedPart.Await(t.Context(), without, id); !errors.Is(err, stint.ErrNoKey) {
			t.Errorf("who waits without keys gets %v", err)
		}
		listed, err := s.Jobs(t.Context(), store.Filter{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := json.Marshal(listed); len(listed) < 6 || bytes.Contains(text, []byte(canary)) || !bytes.Contains(text, []byte(`"open":"open"`)) {
			t.Errorf("the store shows of %d jobs %s", len(listed), text)
		}
		steps, err := s.(store.StepReader).Steps(t.Context(), id)
		if err != nil || len(steps) != 2 {
			t.Fatalf("the steps are %v, %v", steps, err)
		}
		for _, step := range steps {
			if bytes.Contains(step.Result, []byte(canary)) {
				t.Errorf("the step %s is stored as %s", step.Name, step.Result)
			}
		}
		if found := holding(t, dir, canary); found != "" {
			t.Errorf("the database has the secret in %s", found)
		}
		// Otherwise it would not be found anywhere.
		enqueue(t, s, "plain", `{"secret":"`+canary+`"}`)
		if found := holding(t, dir, canary); found == "" {
			t.Error("what is not sealed is not found either")
		}
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		s, err := sqlite.Open(t.Context(), filepath.Join(dir, "jobs.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		t.Cleanup(func() { storetest.Verify(t, s) })
		try(t, s, dir)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		pool, s := openPool(t)
		var dir string
		if err := pool.QueryRow(t.Context(), `select setting from pg_settings where name = 'data_directory'`).Scan(&dir); err != nil || dir == "" {
			t.Fatalf("nobody says where the data are: %v", err)
		}
		try(t, s, dir)
	})
}

// holding names a file below a directory that has a text; empty if none has.
func holding(t *testing.T, dir, text string) (found string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !d.Type().IsRegular() {
			return nil // other tests work there
		} else if err != nil {
			return err
		}
		all, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if bytes.Contains(all, []byte(text)) {
			found = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// An engine that does not have the key leaves the job, uncharged, to one that has it.
func TestAJobIsLeftToAnEngineWithItsKey(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		kind := stint.NewKind[secret]("k", stint.Sealed(), stint.Retry(retry.None()))
		mux := func(ran chan<- int) *stint.Mux {
			mux := stint.NewMux()
			stint.Handle(mux, kind, func(_ context.Context, job *stint.Job, _ secret) error { ran <- job.Attempt; return nil })
			return mux
		}
		if _, err := engine.New(s, mux(nil), engine.Config{}); !errors.Is(err, stint.ErrNoKey) || !strings.Contains(err.Error(), "the kind k is sealed") {
			t.Errorf("an engine without keys is made with %v", err)
		}
		client := stint.NewClient(s)
		id, err := kind.Enqueue(t.Context(), client.Seal(keyRing(t, "new")), secret{Secret: "s"})
		if err != nil {
			t.Fatal(err)
		}
		ran := make(chan int, 1)
		stop := run(t, newEngine(t, s, mux(ran), engine.Config{Client: client.Seal(keyRing(t, "old"))}))
		var job *stint.JobInfo
		eventually(t, "the job is put off", func() bool {
			job, err = s.Job(t.Context(), id)
			return err == nil && job.State == stint.Scheduled
		})
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		x := job.Attempts[0]
		if wait := job.Due.Sub(x.Finished); x.Outcome != stint.OutcomeSnoozed || !strings.Contains(x.Reason, `"new"`) || job.Attempt != 1 || wait < 5*time.Second || wait > 15*time.Second {
			t.Errorf("it waits %v after %+v", wait, x)
		}
		if _, err := client.Retry(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		run(t, newEngine(t, s, mux(ran), engine.Config{Client: client.Seal(keyRing(t, "old", "new"))}))
		if attempt := <-ran; attempt != 1 {
			t.Errorf("attempt %d runs", attempt)
		}
		until(t, s, id, stint.Completed)
	})
}

// Keys that are changed under load stop no job, as long as those that open them know the new one first.
func TestAChangeOfKeysStopsNoJob(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		kind := stint.NewKind[secret]("k", stint.Sealed("/secret"))
		mux := stint.NewMux()
		stint.Handle(mux, kind, func(_ context.Context, _ *stint.Job, args secret) error {
			if args.Secret != "s" {
				return errors.New("not in clear")
			}
			return nil
		})
		old, turned := keyRing(t, "old"), keyRing(t, "new", "old")
		both, err := old.AlsoOpens(seal.Key{ID: "new", Secret: bytes.Repeat([]byte("n"), 32)})
		if err != nil {
			t.Fatal(err)
		}
		trouble := make(chan event.Event, 100)
		begin := func(keys seal.Keys) func() error {
			return run(t, newEngine(t, s, mux, engine.Config{Client: stint.NewClient(s).Seal(keys), OnEvent: func(e event.Event) {
				if e.Type == event.EventTrouble || e.Type == event.EventEnded && e.Attempt.Outcome != stint.OutcomeCompleted {
					select {
					case trouble <- e:
					default:
					}
				}
			}}))
		}
		var ids []stint.ID
		put := func(keys seal.Keys) {
			for range 50 {
				id, err := kind.Enqueue(t.Context(), stint.NewClient(s).Seal(keys), secret{Secret: "s"})
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
			}
		}
		stop := begin(old)
		put(old)
		if err := stop(); err != nil { // a rolling deployment: one engine after the other
			t.Fatal(err)
		}
		put(old)
		begin(both)
		put(both)
		put(turned)
		begin(turned)
		put(turned)
		for _, id := range ids {
			job := until(t, s, id, stint.Completed)
			for _, x := range job.Attempts {
				if x.Outcome != stint.OutcomeCompleted && x.Outcome != stint.OutcomeReturned { // by the stop
					t.Errorf("an attempt of job %d: %+v", id, x)
				}
			}
		}
		select {
		case e := <-trouble:
			t.Errorf("an engine reports %+v", e)
		default:
		}
	})
}

// What a handler completes in its transaction is sealed as well.
func TestCompleteTxSeals(t *testing.T) {
	pool, s := openPool(t)
	kind := stint.NewResultKind[secret, string]("k", stint.Sealed())
	mux := stint.NewMux()
	stint.Handle(mux, kind.Kind, func(ctx context.Context, _ *stint.Job, _ secret) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if err := engine.CompleteTx(ctx, postgres.Tx(tx), "CANARY"); err != nil {
				return err
			}
			return pgx.ErrTxClosed // it is committed
		})
	})
	client := stint.NewClient(s).Seal(keyRing(t, "k"))
	run(t, newEngine(t, s, mux, engine.Config{Client: client}))
	id, err := kind.Enqueue(t.Context(), client, secret{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := kind.Await(t.Context(), client, id); err != nil || got != "CANARY" {
		t.Errorf("the result is %q, %v", got, err)
	}
	if job := info(t, s, id); bytes.Contains(job.Attempts[0].Result, []byte("CANARY")) {
		t.Errorf("it is stored as %s", job.Attempts[0].Result)
	}
}

// A program that does not know yet, or not any more, that a kind is sealed runs its jobs with what was sealed, or not at all.
func TestWhatIsSealedIsNeverTakenForArguments(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		open, plain := stint.NewKind[secret]("k"), stint.NewKind[string]("text")
		ran := make(chan string, 2)
		mux := stint.NewMux()
		stint.Handle(mux, open, func(_ context.Context, _ *stint.Job, args secret) error { ran <- args.Secret; return nil })
		stint.Handle(mux, plain, func(_ context.Context, _ *stint.Job, args string) error { ran <- args; return nil })
		client := stint.NewClient(s).Seal(keyRing(t, "k"))
		id, err := open.Enqueue(t.Context(), client, secret{Secret: "s"}, stint.Sealed())
		if err != nil {
			t.Fatal(err)
		}
		without := start(t, s, mux, engine.Config{})
		until(t, s, id, stint.Scheduled)
		const quotes = `says "$sealed"`
		if _, err := plain.Enqueue(t.Context(), stint.NewClient(s), quotes); err != nil {
			t.Fatal(err)
		}
		if got := <-ran; got != quotes {
			t.Errorf("what only quotes the mark runs with %q", got)
		}
		if err := without(); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Retry(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		start(t, s, mux, engine.Config{Client: client})
		if got := <-ran; got != "s" {
			t.Errorf("it runs with %q", got)
		}
		until(t, s, id, stint.Completed)
	})
}

// troubled are keys of a service that fails in a way of its own.
type troubled struct {
	*seal.Ring
	seal, open func() error
}

func (k *troubled) Seal(ctx context.Context, plain, bound []byte) (string, []byte, error) {
	if err := k.seal(); err != nil {
		return "", nil, err
	}
	return k.Ring.Seal(ctx, plain, bound)
}

func (k *troubled) Open(ctx context.Context, key string, sealed, bound []byte) ([]byte, error) {
	if err := k.open(); err != nil {
		return nil, err
	}
	return k.Ring.Open(ctx, key, sealed, bound)
}

func TestKeysThatFailLeaveNothingInClear(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		const canary = "CANARY"
		kind := stint.NewResultKind[secret, string]("k", stint.Sealed(), stint.Retry(retry.None()))
		mux := stint.NewMux()
		stint.HandleResult(mux, kind, func(context.Context, *stint.Job, secret) (string, error) { return canary, nil })
		fine := func() error { return nil }
		ring := keyRing(t, "k")
		outcome := func(keys *troubled, state stint.State) *stint.JobInfo {
			t.Helper()
			client := stint.NewClient(s)
			id, err := kind.Enqueue(t.Context(), client.Seal(ring), secret{})
			if err != nil {
				t.Fatal(err)
			}
			keys.Ring = ring
			stop := start(t, s, mux, engine.Config{Client: client.Seal(keys)})
			job := until(t, s, id, state)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if text, _ := json.Marshal(info(t, s, id)); bytes.Contains(text, []byte(canary)) {
				t.Errorf("it is stored as %s", text)
			}
			return job
		}
		away := errors.New("the service is away")
		if job := outcome(&troubled{seal: fine, open: func() error { return away }}, stint.Scheduled); job.Attempt != 1 || !strings.Contains(job.Attempts[0].Reason, away.Error()) {
			t.Errorf("a job that cannot be opened is %+v", job)
		}
		if job := outcome(&troubled{seal: fine, open: func() error { return seal.ErrForged }}, stint.Failed); job.Reason != retry.ReasonNotRetriable {
			t.Errorf("what was forged failed as %+v", job)
		}
		times := 0
		again := &troubled{open: fine, seal: func() error {
			if times++; times < 3 {
				return away
			}
			return nil
		}}
		if job := outcome(again, stint.Completed); len(job.Attempts) != 1 || times != 3 {
			t.Errorf("a service that was away for a moment was asked %d times: %+v", times, job)
		}
		outcome(&troubled{open: fine, seal: func() error { panic("no service") }}, stint.Failed)
	})
}

func TestNoErrorQuotesWhatIsSealed(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		const canary = "CANARY"
		kind := stint.NewResultKind[secret, string]("k", stint.Sealed(), stint.Retry(retry.Fixed(1, 0)))
		numbers := stint.NewResultKind[secret, int]("k", stint.Sealed())
		mux := stint.NewMux()
		stint.HandleResult(mux, kind, func(ctx context.Context, job *stint.Job, args secret) (string, error) {
			if args.Open == "result" {
				return canary, nil
			}
			if job.Attempt == 1 {
				_, err := stint.Step(ctx, "step", func(context.Context) (string, error) { return canary, nil })
				return "", cmp.Or(err, errors.New("once more"))
			}
			_, err := stint.Step(ctx, "step", func(context.Context) (int, error) { return 1, nil })
			return "", err
		})
		client := stint.NewClient(s).Seal(keyRing(t, "k"))
		start(t, s, mux, engine.Config{Client: client})
		id, err := kind.Enqueue(t.Context(), client, secret{})
		if err != nil {
			t.Fatal(err)
		}
		job := until(t, s, id, stint.Failed)
		if text, _ := json.Marshal(job); bytes.Contains(text, []byte(canary)) || !bytes.Contains(text, []byte("the recorded step is of another type")) {
			t.Errorf("it is stored as %s", text)
		}
		if id, err = kind.Enqueue(t.Context(), client, secret{Open: "result"}); err != nil {
			t.Fatal(err)
		}
		if _, err := numbers.Await(t.Context(), client, id); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("a result of another type is %v", err)
		}
		limited := stint.NewKind[secret]("k", stint.Sealed("/secret"), stint.LimitedBy("tenant", "/secret"))
		if _, err := limited.Enqueue(t.Context(), client, secret{Secret: canary + "\a"}); !errors.Is(err, stint.ErrInvalid) || strings.Contains(err.Error(), canary) {
			t.Errorf("a bad key of a limit is %v", err)
		}
	})
}
