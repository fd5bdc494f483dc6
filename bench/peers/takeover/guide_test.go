package takeover

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertest"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/stinttest"
)

// The code of docs/guide/from-river.md, of both sides.

func send(context.Context, string) error { return nil }

type SendArgs struct {
	To string `json:"to"`
}

func (SendArgs) Kind() string { return "send" }

type SendWorker struct {
	river.WorkerDefaults[SendArgs]
}

func (*SendWorker) Timeout(*river.Job[SendArgs]) time.Duration { return 30 * time.Second }

func (*SendWorker) Work(ctx context.Context, job *river.Job[SendArgs]) error {
	return send(ctx, job.Args.To)
}

var Send = stint.NewKind[SendArgs]("send", stint.Timeout(30*time.Second), stint.Retry(retry.Exponential(10, time.Minute)))

func handlers() *stint.Mux {
	mux := stint.NewMux()
	stint.Handle(mux, Send, func(ctx context.Context, job *stint.Job, in SendArgs) error {
		return send(ctx, in.To)
	})
	return mux
}

func riverProgram(ctx context.Context, pool *pgxpool.Pool) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &SendWorker{})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Workers: workers,
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}, "mail": {MaxWorkers: 5}},
		PeriodicJobs: []*river.PeriodicJob{
			river.NewPeriodicJob(river.PeriodicInterval(15*time.Minute), func() (river.JobArgs, *river.InsertOpts) {
				return SendArgs{To: "ops"}, nil
			}, nil),
		},
	})
	if err != nil {
		return nil, err
	}
	return client, client.Start(ctx)
}

func stintProgram(ctx context.Context, url string) error {
	store, err := postgres.Open(ctx, url, postgres.Config{})
	if err != nil {
		return err
	}
	defer store.Close()
	mux := handlers()
	mux.Schedule(Send.Schedule("ops", cron.Every(15*time.Minute), SendArgs{To: "ops"}))
	worker, err := engine.New(store, mux, engine.Config{QueueSlots: map[string]int{"mail": 5, "*": 100}})
	if err != nil {
		return err
	}
	return worker.Run(ctx)
}

func riverInserts(ctx context.Context, client *river.Client[pgx.Tx], tx pgx.Tx) error {
	_, err := client.InsertTx(ctx, tx, SendArgs{To: "ada"}, &river.InsertOpts{
		Queue:       "mail",
		ScheduledAt: time.Now().Add(time.Hour),
		UniqueOpts:  river.UniqueOpts{ByArgs: true, ByPeriod: 24 * time.Hour},
	})
	return err
}

func stintEnqueues(ctx context.Context, client *stint.Client, tx pgx.Tx) error {
	_, err := Send.Enqueue(ctx, client.With(postgres.Tx(tx)), SendArgs{To: "ada"},
		stint.Queue("mail"), stint.Delay(time.Hour), stint.UniqueSlot(24*time.Hour))
	return err
}

func riverTest(t *testing.T, pool *pgxpool.Pool) {
	rivertest.RequireInserted(t.Context(), t, riverpgxv5.New(pool), SendArgs{}, nil)
}

func TestTheCodeOfTheGuideForTestsPasses(t *testing.T) {
	w := stinttest.New(t, handlers())
	if _, err := Send.Enqueue(t.Context(), w.Client(), SendArgs{To: "ada"}); err != nil {
		t.Fatal(err)
	}
	stinttest.Enqueued(t, w.Store(), Send)
	w.Drain(stinttest.FailOnError())
}

// The compiler checks what is here, and this that it is what the page shows.
func TestTheCodeOfTheGuideIsThatOfThisFile(t *testing.T) {
	here, err := os.ReadFile("guide_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/guide/from-river.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	for _, block := range blocks {
		for part := range strings.SplitSeq(block[1], "\n\n") {
			if !strings.Contains(unindented(string(here)), unindented(part)) {
				t.Errorf("not in guide_test.go:\n%s", part)
			}
		}
	}
	if len(blocks) < 8 {
		t.Errorf("the page has %d blocks of code", len(blocks))
	}
}

// unindented has the words of a text, and the ends of its lines.
func unindented(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if words := strings.Join(strings.Fields(line), " "); words != "" {
			lines = append(lines, words)
		}
	}
	return strings.Join(lines, "\n")
}

// They are there to be compiled.
var _, _, _, _, _ = riverProgram, stintProgram, riverInserts, stintEnqueues, riverTest
