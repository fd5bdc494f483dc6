package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

type Invoice struct{ Customer int64 }

// Declared once, where producers and handlers both see it.
var SendInvoice = stint.NewKind[Invoice]("send_invoice", stint.Retry(retry.Exponential(10, time.Minute)))

// From nothing to a job that ran.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	store, err := sqlite.Open(ctx, filepath.Join(tempDir(), "jobs.db")) // or postgres.Open(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	mux := stint.NewMux()
	stint.Handle(mux, SendInvoice, func(ctx context.Context, job *stint.Job, in Invoice) error {
		fmt.Println("invoice for customer", in.Customer)
		stop() // enough for an example
		return nil
	})
	if _, err := SendInvoice.Enqueue(ctx, stint.NewClient(store), Invoice{42}); err != nil {
		log.Fatal(err)
	}
	worker, err := engine.New(store, mux, engine.Config{Slots: 50})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("stopped:", worker.Run(ctx))
	// Output:
	// invoice for customer 42
	// stopped: <nil>
}

// Whoever wants to see a job done runs it at once; the background takes over
// when that fails.
func ExampleEngine_RunNow() {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, filepath.Join(tempDir(), "jobs.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	mux := stint.NewMux()
	stint.Handle(mux, SendInvoice, func(ctx context.Context, job *stint.Job, in Invoice) error {
		if in.Customer == 13 {
			return errors.New("the mail server is away")
		}
		return nil
	})
	worker, err := engine.New(store, mux, engine.Config{})
	if err != nil {
		log.Fatal(err)
	}
	for _, customer := range []int64{42, 13} {
		job, err := SendInvoice.New(Invoice{customer})
		if err != nil {
			log.Fatal(err)
		}
		x, err := worker.RunNow(ctx, job)
		switch {
		case err != nil:
			log.Fatal(err) // not run, or not recorded
		case x.Outcome == stint.OutcomeCompleted:
			fmt.Println("sent")
		case x.Final:
			fmt.Println("it will never be sent:", x.Error.Message)
		default:
			fmt.Println("it will be sent later:", x.Error.Message)
		}
	}
	// Output:
	// sent
	// it will be sent later: the mail server is away
}

// Queues with slots of their own do not wait for each other.
func Example_slots() {
	var store store.Store
	_, err := engine.New(store, stint.NewMux(), engine.Config{
		QueueSlots: map[string]int{
			"mail":    4,
			"reports": 1,  // one at a time
			"*":       20, // all other queues together
		},
	})
	fmt.Println(err)
	// Output: <nil>
}

// A handler says with its error what becomes of the job.
func Example_outcomes() {
	mux := stint.NewMux()
	mux.Add(stint.KindInfo{Name: "import"}, func(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
		var args struct{ File string }
		if err := json.Unmarshal(job.Args, &args); err != nil {
			return nil, stint.NoRetry(err) // it would fail the same way each time
		}
		switch _, err := os.Stat(args.File); {
		case errors.Is(err, os.ErrNotExist) && job.Attempt > 3:
			return nil, stint.Cancel("nobody delivered " + args.File)
		case errors.Is(err, os.ErrNotExist):
			return nil, stint.Snooze(time.Minute) // not charged
		case err != nil:
			return nil, err // the job's retry policy decides
		}
		return json.RawMessage(`{"rows": 12}`), nil // kept with the execution
	})
}

// Hooks are called when the outcome of an attempt is recorded.
func Example_hooks() {
	ctx, stop := context.WithCancel(context.Background())
	store, err := sqlite.Open(ctx, filepath.Join(tempDir(), "jobs.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	mux := stint.NewMux()
	once := stint.NewKind[Invoice]("once", stint.Retry(retry.None()))
	stint.Handle(mux, once, func(context.Context, *stint.Job, Invoice) error {
		return errors.New("no paper")
	}).Hook(stint.Hooks{
		AfterFailure: func(_ context.Context, job *stint.Job, x *stint.Attempt) error {
			fmt.Println("attempt", x.Attempt, x.Outcome, "for", x.Error.Message)
			return nil
		},
		AfterLastFailure: func(_ context.Context, job *stint.Job, x *stint.Attempt) error {
			fmt.Println(job.Kind, "has failed for good:", x.Reason)
			return nil
		},
		Finally: func(context.Context, *stint.Job, *stint.Attempt) error {
			fmt.Println("finally")
			stop() // enough for an example
			return nil
		},
	})
	if _, err := once.Enqueue(ctx, stint.NewClient(store), Invoice{42}); err != nil {
		log.Fatal(err)
	}
	worker, err := engine.New(store, mux, engine.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if err := worker.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// attempt 1 failed for no paper
	// once has failed for good: no retries
	// finally
}

// Events are how an engine is watched: it neither logs nor counts by itself.
func Example_events() {
	var store store.Store
	_, _ = engine.New(store, stint.NewMux(), engine.Config{
		Queues: []string{"mail", "default"},
		OnEvent: func(ev event.Event) {
			switch ev.Type {
			case event.EventEnded:
				log.Println(ev.Job.Kind, ev.Job.ID, ev.Attempt.Outcome, ev.Attempt.Ended.Sub(ev.Attempt.Started))
			case event.EventFailed:
				log.Println(ev.Job.Kind, ev.Job.ID, "has failed for good:", ev.Attempt.Reason, ev.Job.Tags)
			case event.EventTrouble:
				log.Println("cannot", ev.Doing, ev.Err)
			}
		},
	})
}

// Jobs that ended are deleted after five days, unless somebody says otherwise.
func Example_retention() {
	var st store.Store
	_, _ = engine.New(st, stint.NewMux(), engine.Config{
		Retention: store.Retention{
			KeepFor: store.KeepFor{Failed: 30 * 24 * time.Hour}, // people may want to see these
			Queues: map[string]store.KeepFor{
				"mail":  {Completed: time.Hour},
				"audit": {All: store.Forever},
			},
		},
	})
}

func tempDir() string {
	dir, err := os.MkdirTemp("", "stint")
	if err != nil {
		log.Fatal(err)
	}
	return dir
}

// What an engine counts: to look at, and to send where you like.
func Example_metrics() {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, filepath.Join(tempDir(), "jobs.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	mux := stint.NewMux()
	stint.Handle(mux, SendInvoice, func(context.Context, *stint.Job, Invoice) error { return nil })
	worker, err := engine.New(store, mux, engine.Config{
		Instance:       "mail-1",
		MetricsEvery:   time.Minute, // and once more when it stops
		MetricsWriters: []report.MetricsWriter{console{}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for customer := range int64(3) {
		job, err := SendInvoice.New(Invoice{customer})
		if err != nil {
			log.Fatal(err)
		}
		if _, err := worker.RunNow(ctx, job); err != nil {
			log.Fatal(err)
		}
	}
	m := worker.Metrics()
	fmt.Println(m.Instance, m.Workers.Run, m.Workers.Succeeded, m.Kinds["send_invoice"].Count)
	// Output: mail-1 3 3 3
}

// console is a writer of metrics.
type console struct{}

// WriteMetrics implements [report.MetricsWriter].
func (console) WriteMetrics(_ context.Context, m report.Metrics) error {
	_, err := fmt.Println(m.Instance, "has run", m.Workers.Run)
	return err
}

// A job that fails and is retried holds up those after it that have the same key.
func ExampleEngine_Run_order() {
	ctx, stop := context.WithCancel(context.Background())
	store, err := sqlite.Open(ctx, filepath.Join(tempDir(), "jobs.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	type Change struct {
		Account, N int
	}
	apply := stint.NewKind[Change]("apply", stint.LimitedBy("account", "/Account"), stint.Retry(retry.Fixed(3, 10*time.Millisecond)))
	mux := stint.NewMux()
	mux.Limit("account", stint.LimitRule{AtOnce: 1, InOrder: true})
	stint.Handle(mux, apply, func(ctx context.Context, job *stint.Job, c Change) error {
		fmt.Println("change", c.N, "attempt", job.Attempt)
		if c.N == 1 && job.Attempt < 3 {
			return errors.New("the account is locked")
		}
		if c.N == 3 {
			stop() // enough for an example
		}
		return nil
	})
	for n := range 3 {
		if _, err := apply.Enqueue(ctx, stint.NewClient(store), Change{7, n + 1}); err != nil {
			log.Fatal(err)
		}
	}
	worker, err := engine.New(store, mux, engine.Config{})
	if err != nil {
		log.Fatal(err)
	}
	_ = worker.Run(ctx)
	// Output:
	// change 1 attempt 1
	// change 1 attempt 2
	// change 1 attempt 3
	// change 2 attempt 1
	// change 3 attempt 1
}
