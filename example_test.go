package stint_test

import (
	"context"
	"fmt"
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
