package stint_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

// A kind is declared once. Its options are the defaults of its jobs.
func ExampleNewKind() {
	type Welcome struct{ User int64 }

	welcome := stint.NewKind[Welcome]("welcome",
		stint.Queue("mail"),
		stint.Timeout(30*time.Second),
		stint.Retry(retry.Fixed(3, 10*time.Second)),
		stint.Tag("onboarding"),
	)
	job, _ := welcome.New(Welcome{7}, stint.In(time.Hour), stint.Tag("user:7"))
	fmt.Println(job.Kind, string(job.Args), job.Queue, job.Delay, job.Tags, job.Retry)
	// Output: welcome {"User":7} mail 1h0m0s [onboarding user:7] fixed:3:10s
}

// Many jobs are stored together: all of them or none.
func ExampleClient_EnqueueMany() {
	resize := stint.NewKind[string]("resize")
	send := func(ctx context.Context, client *stint.Client, files []string) ([]stint.ID, error) {
		jobs := make([]stint.NewJob, len(files))
		for i, file := range files {
			var err error
			if jobs[i], err = resize.New(file); err != nil {
				return nil, err
			}
		}
		return client.EnqueueMany(ctx, jobs)
	}
	ids, _ := send(context.Background(), stint.NewClient(printer{}), []string{"a.png", "b.png"})
	fmt.Println(ids)
	// Output:
	// resize "a.png"
	// resize "b.png"
	// [1 2]
}

// A producer that does not know whether its enqueue arrived enqueues again.
func ExampleIdempotencyKey() {
	type Reminder struct{ Invoice int64 }
	remind := stint.NewKind[Reminder]("remind")
	client := stint.NewClient(&memory{})
	ctx := context.Background()
	for range 2 {
		r, err := remind.EnqueueReceipt(ctx, client, Reminder{42}, stint.IdempotencyKey("invoice:42:reminder"))
		fmt.Println("job", r.ID, "duplicate:", r.Duplicate, err)
	}
	_, err := remind.Enqueue(ctx, client, Reminder{43}, stint.IdempotencyKey("invoice:42:reminder"))
	fmt.Println(errors.Is(err, stint.ErrKeyConflict), err)
	// Output:
	// job 1 duplicate: false <nil>
	// job 1 duplicate: true <nil>
	// true idempotency key "invoice:42:reminder": job 1 has it, with another kind or other arguments
}

// Of many jobs, the receipts tell which are new.
func ExampleClient_EnqueueReceipts() {
	client := stint.NewClient(&memory{})
	job := stint.NewJob{Kind: "import", IdempotencyKey: "file:7"}
	receipts, _ := client.EnqueueReceipts(context.Background(), []stint.NewJob{job, {Kind: "import"}, job})
	for _, r := range receipts {
		fmt.Println(r.ID, r.Duplicate)
	}
	// Output:
	// 1 false
	// 2 false
	// 1 true
}

// What is enqueued for a request belongs together, and so does all that comes
// of it: the context of a handler hands the id on.
func ExampleWithCorrelation() {
	store := &memory{}
	client := stint.NewClient(store)
	ctx := stint.WithCorrelation(context.Background(), "request:9f2c")
	_, _ = client.Enqueue(ctx, stint.NewJob{Kind: "charge"})
	_, _ = client.Enqueue(ctx, stint.NewJob{Kind: "audit", Correlation: "audit:2026"})
	for _, j := range store.jobs {
		fmt.Println(j.Kind, j.Correlation)
	}
	// Output:
	// charge request:9f2c
	// audit audit:2026
}

// Metadata travels beside the arguments: a handler that does not know of it is
// not disturbed.
func ExampleMetadata() {
	store := &memory{}
	_, err := stint.NewClient(store).Enqueue(context.Background(), stint.Declaration{Name: "charge"}.Job(nil,
		stint.Metadata(json.RawMessage(`{"traceparent": "00-4bf9"}`))))
	fmt.Println(string(store.jobs[0].Metadata), err)
	_, err = stint.NewClient(store).Enqueue(context.Background(), stint.NewJob{Kind: "charge", Metadata: json.RawMessage(`[]`)})
	fmt.Println(err)
	// Output:
	// {"traceparent": "00-4bf9"} <nil>
	// metadata: it must be a JSON object
}

// An input that can never be right says what is wrong, and where.
func ExampleNewJob_Check() {
	job := stint.NewJob{Kind: "report", Queue: "two\nlines"}
	fmt.Println(job.Check(stint.Limits{}))
	// Output: queue: "two\nlines" has a control character at byte 3
}

// What follows from the end of an attempt is a pure function.
func ExampleConclude() {
	entry := &stint.Entry{Job: stint.Job{ID: 1, Kind: "report", Queue: "default", Attempt: 2, Retry: retry.Fixed(5, time.Minute)}}
	x := stint.Conclude(entry, stint.Ending{Outcome: stint.OutcomeFailed, Err: fmt.Errorf("no paper")}, time.Now(), 0)
	fmt.Println(x.Outcome, x.Error.Message, "→", x.Next.Why, "in", x.Next.Delay, "as attempt", x.Next.Attempt)
	// Output: failed no paper → retrying in 1m0s as attempt 3
}

// printer stands for a store.
type printer struct{}

func (printer) Enqueue(_ context.Context, _ stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
	receipts := make([]stint.Receipt, len(jobs))
	for i, j := range jobs {
		fmt.Println(j.Kind, string(j.Args))
		receipts[i].ID = stint.ID(i + 1)
	}
	return receipts, nil
}

// memory stands for a store that remembers keys.
type memory struct{ jobs []stint.NewJob }

func (m *memory) Enqueue(_ context.Context, _ stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
	receipts := make([]stint.Receipt, len(jobs))
	for i, j := range jobs {
		at := slices.IndexFunc(m.jobs, func(o stint.NewJob) bool { return j.IdempotencyKey != "" && o.IdempotencyKey == j.IdempotencyKey })
		switch {
		case at < 0:
			m.jobs = append(m.jobs, j)
			at = len(m.jobs) - 1
		case m.jobs[at].Fingerprint() != j.Fingerprint():
			return nil, &stint.KeyConflictError{Key: j.IdempotencyKey, ID: stint.ID(at + 1)}
		default:
			receipts[i].Duplicate = true
		}
		receipts[i].ID = stint.ID(at + 1)
	}
	return receipts, nil
}
