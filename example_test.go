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
	"github.com/stint-go/stint/store"
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
	job, _ := welcome.New(Welcome{7}, stint.Delay(time.Hour), stint.Tag("user:7"))
	fmt.Println(job.Kind, string(job.Args), job.Queue, job.Delay, job.Tags, job.Retry)
	// Output: welcome {"User":7} mail 1h0m0s [onboarding user:7] fixed:3:10s
}

// A program may wait for what a job comes to, in any process.
func ExampleResultKind_Await() {
	resize := stint.NewResultKind[string, int]("resize")
	thumbnail := func(ctx context.Context, client *stint.Client, file string) (bytes int, err error) {
		id, err := resize.Enqueue(ctx, client, file)
		if err != nil {
			return 0, err
		}
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		bytes, err = resize.Await(ctx, client, id)
		if failed, ok := errors.AsType[*stint.JobError](err); ok {
			return 0, fmt.Errorf("%s cannot be resized (%s): %w", file, failed.Reason, err)
		}
		return bytes, err
	}
	bytes, err := thumbnail(context.Background(), stint.NewClient(printer{}), "a.png")
	fmt.Println(bytes, err)
	// Output:
	// resize "a.png"
	// 4711 <nil>
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

// Without By all arguments are the unique key.
func ExampleBy() {
	type Reindex struct{ Tenant, Doc int }

	for _, by := range []stint.UniqueOption{
		stint.By("/Tenant"), // one of each tenant
		stint.By(),          // one of the kind, whatever its arguments
	} {
		reindex := stint.NewKind[Reindex]("reindex", stint.UniqueUntilEnded(by))
		job, _ := reindex.New(Reindex{7, 1})
		fmt.Println(job.Unique)
	}
	// Output:
	// until-ended,by=/Tenant
	// until-ended,by=none
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

func ExampleStartWithin() {
	// A code to sign in with is of no use later: whoever waits asks for another.
	signIn := stint.NewKind[string]("send_sign_in_code", stint.StartWithin(5*time.Minute))
	job, err := signIn.New("+43 1 23456")
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(job.Kind, "begins within", job.StartWithin)

	// Each attempt counts, so a retry that would come too late is not waited for.
	now := time.Now()
	e := &store.Entry{Job: stint.Job{ID: 1, Attempt: 1, Retry: retry.Fixed(3, 10*time.Minute), StartBy: now.Add(5 * time.Minute)}}
	x := store.Conclude(e, store.Result{Outcome: stint.OutcomeFailed, Err: errors.New("no signal")}, now, 0)
	fmt.Println("final:", x.Final, x.Reason)
	// Output:
	// send_sign_in_code begins within 5m0s
	// final: true expired
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
	_, err := stint.NewClient(store).Enqueue(context.Background(), stint.KindInfo{Name: "charge"}.Job(nil,
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
	entry := &store.Entry{Job: stint.Job{ID: 1, Kind: "report", Queue: "default", Attempt: 2, Retry: retry.Fixed(5, time.Minute)}}
	x := store.Conclude(entry, store.Result{Outcome: stint.OutcomeFailed, Err: fmt.Errorf("no paper")}, time.Now(), 0)
	fmt.Println(x.Outcome, x.Error.Message, "→", x.Next.Why, "in", x.Next.Delay, "as attempt", x.Next.Attempt)
	// Output: failed no paper → retrying in 1m0s as attempt 3
}

// A line for people is shown in lists and on pages.
func ExampleDescription() {
	remind := stint.NewKind[string]("remind")
	job, _ := remind.New("42", stint.Description("invoice of May for Miller"))
	text, _ := json.Marshal(job)
	fmt.Println(string(text))
	// Output: {"kind":"remind","args":"42","description":"invoice of May for Miller"}
}

// A customer leaves: the reminder is cancelled, unless it was sent already.
func ExampleClient_Cancel() {
	forget := func(ctx context.Context, client *stint.Client, reminder stint.ID) error {
		results, err := client.Cancel(ctx, reminder)
		if err != nil {
			return err
		}
		if results[reminder] == stint.CancelTooLate {
			fmt.Println("it was sent already")
		}
		return nil
	}
	_ = forget
}

// The cause of a failure was fixed: the job runs again, as a new one if it had ended.
func ExampleClient_Retry() {
	again := func(ctx context.Context, client *stint.Client, failed stint.ID) (stint.ID, error) {
		results, err := client.Retry(ctx, failed)
		if err != nil {
			return 0, err
		}
		return results[failed].ID, nil
	}
	_ = again
}

// A function of the program decides about failures.
func ExampleMux_RetryFunc() {
	quota := errors.New("quota used up")
	mux := stint.NewMux()
	mux.RetryFunc("quota", func(cause error, f retry.Failure) retry.Decision {
		switch {
		case errors.Is(cause, quota):
			midnight := f.Now.Truncate(24 * time.Hour).Add(24 * time.Hour)
			return retry.At(midnight).To("bulk")
		case f.Charged > 5:
			return retry.Final("customer left")
		}
		return retry.Again(time.Minute)
	})
	report := stint.NewKind[string]("report", stint.Retry(retry.Function("quota").Deadline(72*time.Hour)))

	// What an engine does with it:
	now := time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC)
	entry := &store.Entry{Job: stint.Job{Kind: "report", Queue: "default", Attempt: 1, Due: now, Retry: report.Declaration().Retry}}
	x := store.ConcludeWith(mux.RetryFuncs(), entry, store.Result{Outcome: stint.OutcomeFailed, Err: quota}, now, 0)
	fmt.Println(x.Next.Why, "in", x.Next.Delay, "in queue", x.Next.Queue)
	// And where the function is not at hand:
	x = store.Conclude(entry, store.Result{Outcome: stint.OutcomeFailed, Err: quota}, now, 0)
	fmt.Println(x.Next.Why, "when", x.Next.Func, "has decided")
	// Output:
	// retrying in 2h0m0s in queue bulk
	// retrying when quota has decided
}

// A failure that an engine left is judged later, by one that has the function.
func ExamplePendingRetry_Conclude() {
	var funcs retry.Registry
	err := funcs.Register("quota", func(_ error, f retry.Failure) retry.Decision {
		if slices.Contains(f.Classes, "no_rows") {
			return retry.Final("customer left")
		}
		return retry.Again(time.Minute)
	})
	if err != nil {
		panic(err)
	}
	u := store.PendingRetry{
		Job:   stint.Job{ID: 7, Kind: "report", Queue: "default", Attempt: 2, Retry: retry.Function("quota")},
		Func:  "quota",
		Error: stint.Failure{Class: "no_rows", Message: "load customer 42: sql: no rows in result set"},
	}
	x, err := u.Conclude(&funcs, time.Now(), 0)
	fmt.Println(x.Job, x.Outcome, x.Final, x.Reason, err)
	// Output: 7 failed true customer left <nil>
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

// Await tells that every job has completed.
func (printer) Await(_ context.Context, id stint.ID) (*stint.JobInfo, error) {
	last := stint.Attempt{Outcome: stint.OutcomeCompleted, Final: true, Result: json.RawMessage("4711")}
	return &stint.JobInfo{ID: id, Kind: "resize", State: stint.Completed, Attempts: []stint.Attempt{last}}, nil
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

// What failed last night runs again: each job once, in batches that keep
// nobody waiting.
func ExampleFindEach() {
	rerun := func(ctx context.Context, st store.Operator) (n int, err error) {
		failed := store.Filter{
			States:   []stint.State{stint.Failed},
			Kind:     "send_invoice",
			Finished: store.TimeRange{From: time.Now().Add(-12 * time.Hour)},
		}
		for ids, err := range store.FindEach(ctx, st, failed, 500) {
			if err != nil {
				return n, err
			}
			answers, err := st.Retry(ctx, ids, stint.RerunOptions{Once: true})
			if err != nil {
				return n, err
			}
			for _, a := range answers {
				if a.Answer.Done() {
					n++
				}
			}
		}
		return n, nil
	}
	_ = rerun
}

// Three kinds of job call one API, which lets its customers make ten calls at once and sixty a minute.
// The limit counts over all of them, and over all engines.
func ExampleLimited() {
	type Order struct{ ID int }
	push := stint.NewKind[Order]("push_order", stint.Limited("erp"))
	fetch := stint.NewKind[Order]("fetch_order", stint.Limited("erp"))
	mux := &stint.Mux{}
	mux.Limit("erp", stint.LimitRule{AtOnce: 10, Starts: 60, Per: time.Minute, Burst: 10})

	for _, kind := range []stint.Kind[Order]{push, fetch} {
		job, err := kind.New(Order{42})
		fmt.Println(job.Kind, "waits for", job.Limits, err)
	}
	fmt.Println("erp:", mux.Limits()["erp"])
	// Output:
	// push_order waits for [erp] <nil>
	// fetch_order waits for [erp] <nil>
	// erp: 10,60/1m,burst=10
}

// The changes of an account run in order: one that is to be retried holds up those after it.
func ExampleLimitRule_order() {
	type Change struct {
		Account int `json:"account"`
	}
	apply := stint.NewKind[Change]("apply", stint.LimitedBy("account", "/account"))
	mux := &stint.Mux{}
	mux.Limit("account", stint.LimitRule{AtOnce: 1, InOrder: true, Halt: true})

	job, err := apply.New(Change{7})
	if err != nil {
		fmt.Println(err)
	}
	keys, err := job.LimitKeys()
	fmt.Println(keys, mux.Limits()["account"], err)
	// Output: account=7 1,in-order,halt <nil>
}

// A mail to three people is three of the hundred that the server takes a minute.
func ExampleLimited_cost() {
	type Mail struct {
		To []string `json:"to"`
	}
	send := stint.NewKind[Mail]("send", stint.Limited("smtp"))
	mux := &stint.Mux{}
	mux.Limit("smtp", stint.LimitRule{Starts: 100, Per: time.Minute})

	mail := Mail{To: []string{"ada", "grace", "joan"}}
	job, err := send.New(mail, stint.Limited(fmt.Sprintf("%d*smtp", len(mail.To))))
	fmt.Println(job.Limits, err)

	cost, limit := stint.LimitCost(job.Limits[0])
	fmt.Println(cost, limit)
	// Output:
	// [3*smtp] <nil>
	// 3 smtp
}

// Two imports of each tenant at once, and twenty of all.
func ExampleLimitedBy() {
	type Rows struct {
		Tenant string `json:"tenant"`
	}
	imports := stint.NewKind[Rows]("import", stint.Limited("imports"), stint.LimitedBy("tenant", "/tenant"))
	mux := &stint.Mux{}
	mux.Limit("imports", stint.LimitRule{AtOnce: 20})
	mux.Limit("tenant", stint.LimitRule{AtOnce: 2})

	job, err := imports.New(Rows{"acme"})
	if err != nil {
		fmt.Println(err)
	}
	keys, err := job.LimitKeys()
	fmt.Printf("%q %v\n", keys, err)

	// A job without a tenant cannot be counted, and is refused.
	job, _ = imports.New(Rows{})
	_, err = job.LimitKeys()
	fmt.Println(err)
	// Output:
	// "imports\ntenant=acme" <nil>
	// limits: the string at /tenant of the arguments is empty
}
