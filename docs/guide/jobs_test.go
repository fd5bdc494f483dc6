package guide

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/observe"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/stinttest"
)

type Invoice struct {
	Customer int64  `json:"customer"`
	Currency string `json:"currency"`
}

var SendInvoice = stint.NewKind[Invoice]("send_invoice",
	stint.Queue("mail"),
	stint.Timeout(30*time.Second),
	stint.Retry(retry.Exponential(10, time.Minute)),
)

type Image struct {
	File  string `json:"file"`
	Width int    `json:"width"`
}

var Resize = stint.NewResultKind[Image, int]("resize_image")

type Doc struct{ ID int64 }

var IndexDoc = stint.NewKind[Doc]("index_doc")

type mailer struct{ sent []Invoice }

func (m *mailer) Send(_ context.Context, in Invoice) error {
	m.sent = append(m.sent, in)
	return nil
}

type index struct{ calls int }

func (x *index) Add(context.Context, []Doc) error {
	x.calls++
	return nil
}

func TestJobs(t *testing.T) {
	mail, search := &mailer{}, &index{}

	mux := stint.NewMux()
	stint.Handle(mux, SendInvoice, func(ctx context.Context, job *stint.Job, in Invoice) error {
		if in.Currency == "" {
			in.Currency = "EUR" // jobs of before there was a currency
		}
		return mail.Send(ctx, in)
	})

	stint.HandleResult(mux, Resize, func(ctx context.Context, job *stint.Job, in Image) (int, error) {
		return len(in.File) * in.Width, nil // any value that encoding/json can write
	})

	stint.HandleMany(mux, IndexDoc, stint.Gather(500, 2*time.Second),
		func(ctx context.Context, jobs []stint.BatchJob[Doc]) error {
			docs := make([]Doc, len(jobs))
			for i, j := range jobs {
				docs[i] = j.Args
			}
			return search.Add(ctx, docs) // or stint.PerJob(errs), one error for each job
		})

	mux.Use(func(next stint.Handler) stint.Handler {
		return func(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
			began := time.Now()
			result, err := next(ctx, job)
			slog.Debug("a job ended", "kind", job.Kind, "attempt", job.Attempt, "took", time.Since(began), "error", err)
			return result, err
		}
	})

	mux.Hook(stint.Hooks{AfterLastFailure: func(ctx context.Context, job *stint.Job, x *stint.Attempt) error {
		slog.Error("a job has failed for good", "job", job.ID, "why", x.Error.Message)
		return nil
	}})

	w := stinttest.New(t, mux)
	ctx, client := t.Context(), w.Client()
	_, err := SendInvoice.Enqueue(ctx, client, Invoice{Customer: 42})
	must(t, err)
	id, err := Resize.Enqueue(ctx, client, Image{"a.png", 100})
	must(t, err)
	for n := range int64(3) {
		_, err = IndexDoc.Enqueue(ctx, client, Doc{n})
		must(t, err)
	}
	w.Drain(stinttest.FailOnError())
	if len(mail.sent) != 1 || mail.sent[0].Currency != "EUR" {
		t.Errorf("sent was %v", mail.sent)
	}
	if search.calls != 1 {
		t.Errorf("three documents took %d calls", search.calls)
	}
	size, err := Resize.Await(ctx, client, id)
	if size != 500 || err != nil {
		t.Errorf("the result is %d, %v", size, err)
	}
}

func TestRunAnEngine(t *testing.T) {
	store := openSQLite(t)
	mux := stint.NewMux()
	stint.Handle(mux, SendInvoice, func(context.Context, *stint.Job, Invoice) error { return nil })

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	worker, err := engine.New(store, mux, engine.Config{
		Slots:   50,                          // jobs at once; the default is four for each processor
		Grace:   20 * time.Second,            // how long running jobs may go on after a stop
		OnEvent: observe.Log(slog.Default()), // log lines; without it an engine says nothing
	})
	must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }() // until the context ends, and what runs has ended

	client := stint.NewClient(store)
	id, err := SendInvoice.Enqueue(ctx, client, Invoice{Customer: 42})
	must(t, err)
	job, err := client.Await(ctx, id)
	must(t, err)
	if job.State != stint.Completed || job.Queue != "mail" {
		t.Errorf("the job is %s in %s", job.State, job.Queue)
	}
	stop()
	must(t, <-ended)
}

func work(url string, mux *stint.Mux) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	store, err := postgres.Open(ctx, url)
	if err != nil {
		return err
	}
	defer store.Close()
	worker, err := engine.New(store, mux, engine.Config{OnEvent: observe.Log(slog.Default())})
	if err != nil {
		return err
	}
	return worker.Run(ctx)
}

func bill(ctx context.Context, url string, customer int64) (stint.ID, error) {
	store, err := postgres.Open(ctx, url)
	if err != nil {
		return 0, err
	}
	defer store.Close()
	return SendInvoice.Enqueue(ctx, stint.NewClient(store), Invoice{Customer: customer})
}

func TestAProcessOfItsOwn(t *testing.T) {
	store, url := openPostgres(t)
	mux := stint.NewMux()
	stint.Handle(mux, SendInvoice, func(context.Context, *stint.Job, Invoice) error { return nil })
	ended := make(chan error, 1)
	go func() { ended <- work(url, mux) }()
	id, err := bill(t.Context(), url, 42)
	must(t, err)
	job, err := stint.NewClient(store).Await(t.Context(), id)
	must(t, err)
	if job.State != stint.Completed {
		t.Errorf("the job is %s", job.State)
	}
	self, err := os.FindProcess(os.Getpid())
	must(t, err)
	must(t, self.Signal(syscall.SIGTERM)) // as a service manager does; it is caught, since a job has run
	must(t, <-ended)
}

func TestLookAndChange(t *testing.T) {
	mux := stint.NewMux()
	stint.HandleResult(mux, Resize, func(context.Context, *stint.Job, Image) (int, error) {
		return 0, stint.NoRetry(errors.New("no such file"))
	})
	w := stinttest.New(t, mux)
	ctx, client := t.Context(), w.Client()
	id, err := Resize.Enqueue(ctx, client, Image{"a.png", 100}, stint.Delay(time.Hour))
	must(t, err)

	job, err := client.Job(ctx, id) // its state, and every attempt
	must(t, err)
	fmt.Println(job.State, job.Attempts)

	answers, err := client.Cancel(ctx, id) // ends one that waits, and asks a running handler to stop
	must(t, err)
	fmt.Println(answers[id]) // "cancelled", "asked", "too late" or "not found"

	again, err := client.Retry(ctx, id) // as a new job, if it had ended
	must(t, err)
	fmt.Println(again[id].ID)

	w.Drain()
	size, err := Resize.Await(ctx, client, again[id].ID)
	if failed, ok := errors.AsType[*stint.JobError](err); ok {
		fmt.Println(size, failed.Reason)
	}
	if err == nil {
		t.Error("it has not failed")
	}
}
