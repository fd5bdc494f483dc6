package stint_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// Middleware wraps the handlers of all kinds, or of one.
func ExampleMux_Use() {
	mux := stint.NewMux()
	mux.Use(func(next stint.Handler) stint.Handler {
		return func(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
			fmt.Println("begin", job.Kind)
			result, err := next(ctx, job)
			fmt.Println("end", job.Kind, err)
			return result, err
		}
	})
	onlyByDay := func(next stint.Handler) stint.Handler {
		return func(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
			if job.Started.Hour() < 8 {
				return nil, stint.Snooze(time.Hour)
			}
			return next(ctx, job)
		}
	}
	stint.Handle(mux, stint.NewKind[string]("call"), func(_ context.Context, _ *stint.Job, who string) error {
		fmt.Println("calling", who)
		return nil
	}).Use(onlyByDay)

	run(mux, "call", `"Ada"`) // as an engine would
	// Output:
	// begin call
	// end call stint: run again in 1h0m0s
	// stint: run again in 1h0m0s
}

// Hooks are called after an attempt, once its outcome is recorded.
func ExampleRegistration_Hook() {
	mux := stint.NewMux()
	charge := stint.NewKind[int]("charge", stint.Retry(retry.Fixed(5, time.Minute)))
	stint.Handle(mux, charge, func(_ context.Context, _ *stint.Job, cents int) error {
		return errors.New("the card was refused")
	}).Hook(stint.Hooks{
		AfterLastFailure: func(ctx context.Context, job *stint.Job, x *stint.Attempt) error {
			return tell("job %d failed after %d attempts: %s", job.ID, x.Attempt, x.Error.Message)
		},
	})
}

// A client's middleware may change jobs before they are stored, refuse them,
// and see what came of it.
func ExampleClient_Use() {
	client := stint.NewClient(printer{}).Use(func(next stint.EnqueueFunc) stint.EnqueueFunc {
		return func(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
			for i := range jobs {
				if parent := stint.JobFrom(ctx); parent != nil {
					stint.Source("job " + parent.ID.String())(&jobs[i])
				}
			}
			receipts, err := next(ctx, tx, jobs)
			for _, r := range receipts {
				fmt.Printf("job %d, a duplicate: %t\n", r.ID, r.Duplicate)
			}
			return receipts, err
		}
	})
	_, _ = client.Enqueue(context.Background(), stint.NewJob{Kind: "report"})
	// Output:
	// report {}
	// job 1, a duplicate: false
}

// A handler reaches a client by its context.
func ExampleClientFrom() {
	thumbnail := stint.NewKind[string]("thumbnail")
	mux := stint.NewMux()
	stint.Handle(mux, stint.NewKind[[]string]("import"), func(ctx context.Context, _ *stint.Job, files []string) error {
		for _, file := range files {
			if _, err := thumbnail.Enqueue(ctx, stint.ClientFrom(ctx), file); err != nil {
				return err
			}
		}
		return nil
	})
	run(mux, "import", `["a.png"]`)
	// Output: thumbnail "a.png"
}

// The previous run says what went wrong.
func ExampleJob_Previous() {
	mux := stint.NewMux()
	stint.Handle(mux, stint.NewKind[string]("fetch"), func(ctx context.Context, job *stint.Job, url string) error {
		before, err := job.Previous(ctx)
		if err != nil {
			return err
		}
		patience := time.Second
		if before != nil && before.Outcome == stint.OutcomeFailed && before.Error.Class == "timeout" {
			patience = 10 * time.Second
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return fetch(ctx, url)
	})
}

// A handler knows when there will be no other attempt.
func ExampleJob_Last() {
	for attempt := 1; attempt <= 3; attempt++ {
		job := &stint.Job{Attempt: attempt, Retry: retry.Fixed(2, time.Minute)}
		fmt.Println(attempt, job.Last())
	}
	// Output:
	// 1 false
	// 2 false
	// 3 true
}

// A result that is set counts instead of what the handler returns.
func ExampleSetResult() {
	mux := stint.NewMux()
	stint.Handle(mux, stint.NewKind[int]("count"), func(ctx context.Context, _ *stint.Job, n int) error {
		return stint.SetResult(ctx, map[string]int{"counted": n})
	})
	run(mux, "count", `3`)
	// Output: {"counted":3} <nil>
}

// An error that is set says by itself whether it is retriable.
func ExampleSetError() {
	mux := stint.NewMux()
	stint.Handle(mux, stint.NewKind[string]("parse"), func(ctx context.Context, _ *stint.Job, text string) error {
		if text == "" {
			return stint.SetError(ctx, errors.New("there is nothing to parse"), false)
		}
		return nil
	})
	run(mux, "parse", `""`)
	// Output: there is nothing to parse
}

// letter is made for each run: what it gathers in its fields is its own.
type letter struct {
	print func(...any) (int, error)
	lines []any
}

func (l *letter) Run(_ context.Context, _ *stint.Job, name string) error {
	l.lines = append(l.lines, "Dear "+name)
	_, err := l.print(l.lines...)
	return err
}

// Each run gets a fresh handler, built with what it depends on.
func ExampleHandleNew() {
	mux := stint.NewMux()
	stint.HandleNew(mux, stint.NewKind[string]("letter"), func(context.Context, *stint.Job) (*letter, error) {
		return &letter{print: fmt.Println}, nil
	})
	run(mux, "letter", `"Ada"`)
	run(mux, "letter", `"Grace"`)
	// Output:
	// Dear Ada
	// Dear Grace
}

// A handler gets many jobs in one call. It says of each how it ended.
func ExampleHandleMany() {
	mux := stint.NewMux()
	index := stint.NewKind[string]("index")
	stint.HandleMany(mux, index, stint.Gather(500, 2*time.Second), func(ctx context.Context, jobs []stint.BatchJob[string]) error {
		errs := make([]error, len(jobs))
		for i, job := range jobs {
			if job.Args == "" {
				errs[i] = stint.NoRetry(errors.New("nothing to index"))
				continue
			}
			fmt.Println("index", job.Args, "of job", job.ID)
		}
		return stint.PerJob(errs) // or one error for all
	})
	run(mux, "index", `"a.txt"`)
	run(mux, "index", `""`)
	// Output:
	// index a.txt of job 1
	// nothing to index
}

// A group is a kind with several operations.
func ExampleNewGroup() {
	invoice := stint.NewGroup("invoice", stint.Queue("accounting"))
	send := stint.NewOperation[string](invoice, "send", stint.Timeout(time.Minute))
	void := stint.NewOperation[int](invoice, "void")

	client := stint.NewClient(printer{}).Declare(invoice)
	ctx := context.Background()
	_, _ = send.Enqueue(ctx, client, "ada@example.com")
	_, _ = void.Enqueue(ctx, client, 7)
	_, err := client.Enqueue(ctx, stint.NewJob{Kind: "invoice.sent"})
	fmt.Println(err)
	// Output:
	// invoice.send "ada@example.com"
	// invoice.void 7
	// kind: "invoice.sent" is no operation of invoice, which has: send, void
}

// The test of a handler gives it the context that an engine would.
func ExampleAttempt() {
	handler := func(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
		_, err := stint.ClientFrom(ctx).Enqueue(ctx, stint.NewJob{Kind: "next"})
		return nil, err
	}
	job := &stint.Job{ID: 1, Kind: "first", Attempt: 1}
	a := &stint.Run{Job: job, Client: stint.NewClient(printer{})}
	_, err := a.Settle(handler(a.Context(context.Background()), job))
	fmt.Println(err)
	// Output:
	// next {}
	// <nil>
}

// run stands for an engine, and prints what a job came to if it came to
// something.
func run(mux *stint.Mux, kind, args string) {
	job := &stint.Job{ID: 1, Kind: kind, Args: json.RawMessage(args), Attempt: 1}
	a := &stint.Run{Job: job, Client: stint.NewClient(printer{})}
	result, err := a.Settle(mux.Handler(kind)(a.Context(context.Background()), job))
	if result != nil {
		fmt.Println(string(result), err)
	} else if err != nil {
		fmt.Println(err)
	}
}

// drain performs one job to its end, and prints what its runs came to.
func drain(mux *stint.Mux, kind, args string) {
	ctx := context.Background()
	db, err := sqlite.Open(ctx, sqlite.Memory)
	if err != nil {
		panic(err)
	}
	defer db.Close()
	id, err := stint.NewClient(db).Enqueue(ctx, stint.NewJob{Kind: kind, Args: json.RawMessage(args), Retry: retry.Fixed(3, time.Hour)})
	if err != nil {
		panic(err)
	}
	e, err := engine.New(db, mux, engine.Config{})
	if err != nil {
		panic(err)
	}
	for {
		if _, err := e.RunReady(ctx, func(job *stint.Job, x store.Completion) bool {
			fmt.Print(job.Kind, " ", x.Outcome)
			if x.Error != nil {
				fmt.Print(": ", x.Error.Message)
			}
			fmt.Println()
			return true
		}); err != nil {
			panic(err)
		}
		// What waits is run before its time.
		if again, err := db.Retry(ctx, []stint.ID{id}, stint.RerunOptions{}); err != nil || again[id].Answer != stint.RerunReady {
			return
		}
	}
}

func tell(format string, args ...any) error { _, err := fmt.Printf(format+"\n", args...); return err }

func fetch(context.Context, string) error { return nil }

// An API that answers 429 is left alone by all engines for as long as it says.
func ExampleDefer() {
	type Call struct{ URL string }
	mux := stint.NewMux()
	call := stint.NewKind[Call]("call", stint.Limited("api"))
	stint.Handle(mux, call, func(ctx context.Context, _ *stint.Job, c Call) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, nil)
		if err != nil {
			return stint.NoRetry(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusTooManyRequests {
			return stint.Defer("api", 30*time.Second)
		}
		return nil
	})
	// When it fails five times in a row, it is left alone for a minute, and then tried by one job.
	mux.Limit("api", stint.LimitRule{AtOnce: 10, TripAfter: 5, TripFor: time.Minute})
	fmt.Println(mux.Limits()["api"])
	// Output: 10,trip=5/1m
}

// The first run charges and then fails; the second does not charge again.
func ExampleStep() {
	mux := stint.NewMux()
	stint.Handle(mux, stint.NewKind[int]("order"), func(ctx context.Context, job *stint.Job, total int) error {
		ref, err := stint.Step(ctx, "charge", func(context.Context) (string, error) {
			fmt.Println("charges", total)
			return "ref-1", nil
		})
		if err != nil {
			return err
		}
		_, err = stint.Step(ctx, "ship", func(context.Context) (any, error) {
			if job.Attempt == 1 {
				return nil, errors.New("the warehouse is closed")
			}
			fmt.Println("ships for", ref)
			return nil, nil
		})
		return err
	})
	drain(mux, "order", `30`)
	// Output:
	// charges 30
	// order failed: the warehouse is closed
	// ships for ref-1
	// order completed
}

// What a step writes in its transaction is there exactly once.
func ExampleStepTx() {
	var db *sql.DB // of the application
	mux := stint.NewMux()
	stint.Handle(mux, stint.NewKind[string]("book"), func(ctx context.Context, _ *stint.Job, seat string) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		_, err = stint.StepTx(ctx, sqlite.Tx(tx), "book", func(ctx context.Context) (any, error) {
			_, err := tx.ExecContext(ctx, `insert into bookings (seat) values (?)`, seat)
			return nil, err
		})
		return err
	})
}

// A sleep takes no slot, however long it is.
func ExampleSleep() {
	mux := stint.NewMux()
	stint.Handle(mux, stint.NewKind[string]("trial"), func(ctx context.Context, _ *stint.Job, customer string) error {
		if err := stint.Sleep(ctx, "trial period", 14*24*time.Hour); err != nil {
			return err
		}
		fmt.Println("the trial of", customer, "is over")
		return nil
	})
	drain(mux, "trial", `"ada"`)
	// Output:
	// trial snoozed
	// the trial of ada is over
	// trial completed
}

// A job waits for a decision of people without a slot.
func ExampleAwait() {
	type Decision struct {
		By string
		OK bool
	}
	ctx := context.Background()
	db, err := sqlite.Open(ctx, sqlite.Memory)
	if err != nil {
		panic(err)
	}
	defer db.Close()
	mux := stint.NewMux()
	order := stint.NewKind[string]("order")
	stint.Handle(mux, order, func(ctx context.Context, _ *stint.Job, what string) error {
		d, err := stint.Await[Decision](ctx, "approved", 72*time.Hour)
		if errors.Is(err, stint.ErrNoSignal) {
			return stint.Cancel("nobody approved it")
		} else if err != nil {
			return err
		}
		fmt.Println(what, "is approved by", d.By)
		return nil
	})
	client := stint.NewClient(db)
	id, err := order.Enqueue(ctx, client, "a desk")
	if err != nil {
		panic(err)
	}
	// Whoever decides: before the handler waits, or days after that.
	if err := client.Signal(ctx, id, "approved", Decision{By: "ada", OK: true}); err != nil {
		panic(err)
	}
	e, err := engine.New(db, mux, engine.Config{})
	if err != nil {
		panic(err)
	}
	if _, err := e.RunReady(ctx, nil); err != nil {
		panic(err)
	}
	// Output:
	// a desk is approved by ada
}

// A handler calls another job, and goes on with its result.
func ExampleResultKind_Call() {
	ctx := context.Background()
	db, err := sqlite.Open(ctx, sqlite.Memory)
	if err != nil {
		panic(err)
	}
	defer db.Close()
	mux := stint.NewMux()
	square := stint.NewResultKind[int, int]("square")
	stint.HandleResult(mux, square, func(_ context.Context, _ *stint.Job, n int) (int, error) { return n * n, nil })
	area := stint.NewKind[int]("area")
	stint.Handle(mux, area, func(ctx context.Context, _ *stint.Job, side int) error {
		n, err := square.Call(ctx, "square", side) // ends the run until the job has ended
		if err != nil {
			return err
		}
		fmt.Println("the area is", n)
		return nil
	})
	if _, err := area.Enqueue(ctx, stint.NewClient(db), 12); err != nil {
		panic(err)
	}
	e, err := engine.New(db, mux, engine.Config{})
	if err != nil {
		panic(err)
	}
	for range 3 {
		if _, err := e.RunReady(ctx, nil); err != nil {
			panic(err)
		}
		if _, err := db.Promote(ctx, time.Time{}, 10); err != nil {
			panic(err)
		}
	}
	// Output: the area is 144
}

// A job asks people, and holds no slot until one of them answers.
func ExampleAsk() {
	ctx := context.Background()
	db, err := sqlite.Open(ctx, sqlite.Memory)
	if err != nil {
		panic(err)
	}
	defer db.Close()
	mux := stint.NewMux()
	order := stint.NewKind[int]("order")
	stint.Handle(mux, order, func(ctx context.Context, _ *stint.Job, total int) error {
		a, err := stint.Ask(ctx, "approve", fmt.Sprintf("Pay %d EUR to ACME?", total), 72*time.Hour, "pay", "refuse")
		switch {
		case errors.Is(err, stint.ErrNoAnswer):
			return stint.Cancel("nobody answered")
		case err != nil:
			return err
		case a.Choice == "refuse":
			return stint.Cancel(a.By + " refused it")
		}
		fmt.Println(a.By, "has", total, "EUR paid")
		return nil
	})
	client := stint.NewClient(db)
	id, err := order.Enqueue(ctx, client, 900)
	if err != nil {
		panic(err)
	}
	e, err := engine.New(db, mux, engine.Config{})
	if err != nil {
		panic(err)
	}
	run := func() {
		if _, err := db.Promote(ctx, time.Time{}, 10); err != nil {
			panic(err)
		}
		if _, err := e.RunReady(ctx, nil); err != nil {
			panic(err)
		}
	}
	run()
	open, err := db.Questions(ctx, store.QuestionFilter{})
	if err != nil {
		panic(err)
	}
	fmt.Println(open[0].Text, open[0].Choices)
	// Days later, by a button, a link, the command line or a program:
	fmt.Println(client.Answer(ctx, id, "approve", stint.Answer{Choice: "pay", By: "ada"}))
	fmt.Println(client.Answer(ctx, id, "approve", stint.Answer{Choice: "refuse", By: "bob"}))
	run()
	// Output:
	// Pay 900 EUR to ACME? [pay refuse]
	// <nil>
	// answer the question "approve" of job 1: stint: the question "approve" was answered by ada: pay
	// ada has 900 EUR paid
}

// A handler says how far it is, and logs lines that people see with the job.
func ExampleSetProgress() {
	load := func(ctx context.Context, _ *stint.Job, pages int) error {
		for page := range pages {
			stint.SetProgress(ctx, float64(page)/float64(pages), fmt.Sprintf("page %d of %d", page+1, pages))
			stint.Logger(ctx).Info("a page is loaded", "page", page+1)
		}
		return nil
	}

	// An engine calls it; so can a test.
	job := &stint.Job{ID: 1}
	run := &stint.Run{Job: job}
	err := load(run.Context(context.Background()), job, 4)
	said := run.Log()
	fmt.Println(said.Progress.Fraction, said.Progress.Text, err)
	for _, line := range said.Lines {
		fmt.Println(line.Level, line.Text)
	}
	// Output:
	// 0.75 page 4 of 4 <nil>
	// INFO a page is loaded page=1
	// INFO a page is loaded page=2
	// INFO a page is loaded page=3
	// INFO a page is loaded page=4
}
