package guide

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/stinttest"
)

// The kinds that the pages "Coming from …" show.

type ForUser struct {
	User int64 `json:"user"`
}

var SendWelcome = stint.NewKind[ForUser]("welcome_mail",
	stint.Queue("mail"),
	stint.Retry(retry.Exponential(5, time.Minute)),
	stint.Timeout(time.Minute),
)

var SyncUser = stint.NewKind[ForUser]("sync_user", stint.UniqueUntilEnded(stint.By("/user")))

var CallCRM = stint.NewKind[ForUser]("call_crm", stint.Limited("crm"), stint.LimitedBy("user", "/user"))

var Digest = stint.NewKind[struct{}]("digest")

var (
	Render = stint.NewResultKind[ForUser, string]("render_invoice")
	Bundle = stint.NewKind[struct{}]("bundle_invoices")
)

var errNoUser = errors.New("there is no such user")

type welcomes struct{ sent []int64 }

func (w *welcomes) Welcome(_ context.Context, user int64) error {
	if user == 0 {
		return errNoUser
	}
	w.sent = append(w.sent, user)
	return nil
}

// comingMux has handlers for all of them.
func comingMux(mail *welcomes) *stint.Mux {
	mux := stint.NewMux()
	stint.Handle(mux, SendWelcome, func(ctx context.Context, job *stint.Job, in ForUser) error {
		err := mail.Welcome(ctx, in.User)
		if errors.Is(err, errNoUser) {
			return stint.NoRetry(err) // it ends as failed
		}
		return err // again after 1, 2, 4, 8 and 16 minutes
	})

	mux.Limit("crm", stint.LimitRule{AtOnce: 5, Starts: 100, Per: time.Minute}) // over all engines
	mux.Limit("user", stint.LimitRule{AtOnce: 1, InOrder: true})                // one at a time, in order, for each user

	mux.Schedule(Digest.Schedule("digest", cron.MustParse("0 8 * * *"), struct{}{}, stint.Zone("Europe/Berlin")))

	stint.HandleResult(mux, Render, func(ctx context.Context, job *stint.Job, in ForUser) (string, error) {
		return "invoice.pdf", nil
	})
	stint.Handle(mux, Bundle, func(ctx context.Context, job *stint.Job, _ struct{}) error {
		for file, err := range Render.Needed(ctx) { // the result of each job that this one needs
			if err != nil {
				return err
			}
			job.Tags = append(job.Tags, file)
		}
		return nil
	})

	nothing := func(context.Context, *stint.Job, ForUser) error { return nil }
	stint.Handle(mux, SyncUser, nothing)
	stint.Handle(mux, CallCRM, nothing)
	stint.Handle(mux, Digest, func(context.Context, *stint.Job, struct{}) error { return nil })
	return mux
}

func TestComingFromElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mail := &welcomes{}
		mux := comingMux(mail)
		w := stinttest.New(t, mux)
		ctx, client := t.Context(), w.Client()

		id, err := SendWelcome.Enqueue(ctx, client, ForUser{42})
		must(t, err)
		if job := shown(ctx, t, client, id); job.State != stint.Available || job.Queue != "mail" {
			t.Errorf("the job is %s in %s", job.State, job.Queue)
		}

		id, err = SendWelcome.Enqueue(ctx, client, ForUser{42}, stint.Delay(time.Hour))
		must(t, err)
		stinttest.Enqueued(t, w.Store(), SendWelcome, stinttest.DueIn(time.Hour))
		delayed := id

		id, err = SendWelcome.Enqueue(ctx, client, ForUser{42}, stint.Source("sign-up"), stint.Priority(0))
		must(t, err)
		if job := shown(ctx, t, client, id); job.Source != "sign-up" {
			t.Errorf("the job comes from %q", job.Source)
		}

		for range 2 {
			receipt, err := SyncUser.EnqueueReceipt(ctx, client, ForUser{42}) // receipt.Duplicate: one is there already
			must(t, err)
			if receipt.Duplicate != (receipt.State != "") {
				t.Errorf("the receipt is %+v", receipt)
			}
		}
		_, err = CallCRM.Enqueue(ctx, client, ForUser{42})
		must(t, err)

		f := stint.NewFlow("monthly")
		parts := Render.Each(f, []ForUser{{1}, {2}, {3}})                // a job for each
		Bundle.Add(f, "bundle", struct{}{}, stint.Needs(parts...))       // when all have completed
		SendWelcome.Add(f, "tell", ForUser{1}, stint.NeedsEnd(parts...)) // however they ended
		flow, err := f.Enqueue(ctx, client)
		must(t, err)

		// A job that waits elsewhere, copied under a key, so that the copy may be repeated.
		old, due, in := "8f14e45f", time.Now().Add(3*time.Hour), ForUser{7}
		for range 2 {
			_, err = SendWelcome.Enqueue(ctx, client, in, stint.RunAt(due), stint.IdempotencyKey("asynq:"+old))
			must(t, err)
		}

		w.Drain(stinttest.FailOnError(), stinttest.Within(48*time.Hour))
		if job := shown(ctx, t, client, flow); job.State != stint.Completed {
			t.Errorf("the flow is %s", job.State)
		}
		if job := shown(ctx, t, client, delayed); job.State != stint.Completed {
			t.Errorf("the delayed job is %s", job.State)
		}
		if len(mail.sent) != 5 { // three, one of the flow, and one that was copied
			t.Errorf("mails went to %v", mail.sent)
		}

		if run := stinttest.Perform(w, SendWelcome, ForUser{0}); !run.Failed() || !run.Final {
			t.Errorf("a user that is not there: %v", run)
		}
	})
}

func TestComingRunsAnEngine(t *testing.T) {
	store := openSQLite(t)
	mux := comingMux(&welcomes{})
	ctx, stop := context.WithCancel(t.Context())

	worker, err := engine.New(store, mux, engine.Config{QueueSlots: map[string]int{"mail": 6, "*": 4}})

	must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	client := stint.NewClient(store)

	job, err := SendWelcome.New(ForUser{42})
	must(t, err)
	done, err := worker.RunNow(ctx, job) // in this process, and in the background if it fails

	must(t, err)
	if job := shown(ctx, t, client, done.Job); job.State != stint.Completed {
		t.Errorf("the job is %s", job.State)
	}
	stop()
	must(t, <-ended)
}

func TestComingWithAPolicyOfBefore(t *testing.T) {
	var (
		LikeSidekiq  = stint.Retry(retry.Exponential(25, 15*time.Second).MaxDelay(48 * time.Hour).Jitter(0.1)) // 25 in about four weeks
		LikeGraphile = stint.Retry(retry.Exponential(24, 3*time.Second).MaxDelay(6 * time.Hour))
		LikeCelery   = stint.Retry(retry.Fixed(3, 3*time.Minute))
	)
	for name, option := range map[string]stint.Option{"sidekiq": LikeSidekiq, "graphile": LikeGraphile, "celery": LikeCelery} {
		if _, err := SendWelcome.New(ForUser{1}, option); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestComingInATransaction(t *testing.T) {
	store, url := openPostgres(t)
	ctx, client := t.Context(), stint.NewClient(store)
	conn, err := pgx.Connect(ctx, url)
	must(t, err)
	defer conn.Close(context.WithoutCancel(ctx))
	tx, err := conn.Begin(ctx)
	must(t, err)

	id, err := SendWelcome.Enqueue(ctx, client.With(postgres.Tx(tx)), ForUser{42}) // it exists if tx commits

	must(t, err)
	must(t, tx.Rollback(ctx))
	if _, err := client.Job(ctx, id); !errors.Is(err, stint.ErrNotFound) {
		t.Errorf("the job of a transaction that was rolled back: %v", err)
	}
}

// What the handlers and engines of the three engines before could say.
func TestComingFromTheEnginesBefore(t *testing.T) {
	mux := stint.NewMux()
	tries := 0
	push := stint.NewKind[ForUser]("push_order", stint.Retry(retry.Fixed(2, time.Second).Faulty(1)))
	stint.Handle(mux, push, func(ctx context.Context, job *stint.Job, in ForUser) error {
		if tries++; in.User == 0 {
			return stint.SetError(ctx, errNoUser, false) // an error, and no retry: it counts instead of what is returned
		}
		return errors.New("try again")
	})

	nightly := stint.NewKind[struct{}]("nightly", stint.Retry(retry.ByError(
		retry.On(NoRows, retry.None()),
		retry.On(Network, retry.Forever(30*time.Second)),
		retry.Otherwise(retry.Fixed(3, 10*time.Second)),
	)))
	stint.Handle(mux, nightly, func(context.Context, *stint.Job, struct{}) error { return nil })

	w := stinttest.New(t, mux)
	if run := stinttest.Perform(w, push, ForUser{0}); !run.Final || tries != 1 {
		t.Errorf("after %d tries: %v", tries, run)
	}
	id, err := push.Enqueue(t.Context(), w.Client(), ForUser{1})
	must(t, err)
	w.Drain()
	if job := shown(t.Context(), t, w.Client(), id); job.State != stint.Failed || job.Attempt != 3 {
		t.Errorf("the job is %s after %d attempts", job.State, job.Attempt)
	}

	store := openSQLite(t)
	worker, err := engine.New(store, mux, engine.Config{
		Instance:       "mailer-1",
		StrictInstance: true, // it does not start while an engine of this name has unfinished jobs
	})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	id, err = nightly.Enqueue(ctx, stint.NewClient(store), struct{}{})
	must(t, err)
	_, err = stint.NewClient(store).Await(ctx, id)
	must(t, err)
	stop()
	must(t, <-ended)
}

var sqlBlocks = regexp.MustCompile("(?ms)^```sql\n(.*?)^```$")

// sqlOf is the block of SQL of a page that has a word.
func sqlOf(t *testing.T, page, word string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	must(t, err)
	for _, block := range sqlBlocks.FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(block[1], word) {
			return block[1]
		}
	}
	t.Fatalf("%s has no SQL with %q", page, word)
	return ""
}

// The statements that take over what waits elsewhere in the same database, on tables like those of the others.
func TestComingTakesOverWhatWaits(t *testing.T) {
	store, url := openPostgres(t)
	db, err := sql.Open("pgx", url)
	must(t, err)
	defer db.Close()
	exec(t, db,
		`create type oban_job_state as enum ('available', 'scheduled', 'executing', 'retryable', 'completed', 'discarded', 'cancelled')`,
		`create table oban_jobs (id bigserial primary key, state oban_job_state, queue text, worker text, args jsonb, scheduled_at timestamp)`,
		`insert into oban_jobs (state, queue, worker, args, scheduled_at) values
			('available', 'mail', 'Shop.Welcome', '{"user": 1}', now() at time zone 'UTC'),
			('scheduled', 'mail', 'Shop.Welcome', '{"user": 2}', now() at time zone 'UTC' + interval '1 hour'),
			('executing', 'mail', 'Shop.Welcome', '{"user": 3}', now() at time zone 'UTC'),
			('available', 'mail', 'Shop.Other', '{"user": 4}', now() at time zone 'UTC')`,
		`create schema graphile_worker`,
		`create table graphile_worker._private_tasks (id serial primary key, identifier text)`,
		`create table graphile_worker._private_jobs (id bigserial primary key, task_id int, payload json, run_at timestamptz,
			attempts int default 0, max_attempts int default 25, locked_at timestamptz)`,
		`insert into graphile_worker._private_tasks (identifier) values ('welcome'), ('other')`,
		`insert into graphile_worker._private_jobs (task_id, payload, run_at, locked_at) values
			(1, '{"user": 5}', now(), null), (1, '{"user": 6}', now() + interval '1 hour', null),
			(1, '{"user": 7}', now(), now()), (2, '{"user": 8}', now(), null)`,
	)
	exec(t, db, sqlOf(t, "from-oban.md", "oban_jobs"), sqlOf(t, "from-graphile-worker.md", "_private_jobs"))

	counts, err := store.Counts(t.Context())
	must(t, err)
	if counts[stint.Available] != 2 || counts[stint.Scheduled] != 2 {
		t.Errorf("the jobs are %v", counts)
	}
	var left int
	must(t, db.QueryRowContext(t.Context(), `select (select count(*) from oban_jobs) + (select count(*) from graphile_worker._private_jobs)`).Scan(&left))
	if left != 4 {
		t.Errorf("%d are left with the others", left)
	}
	exec(t, db, sqlOf(t, "from-taskengine.md", "stint.attempts"))

	var args string
	must(t, db.QueryRowContext(t.Context(), `select stint.enqueue('WelcomeJob', '[42]', queue => 'ruby')`).Scan(new(int64)))
	must(t, db.QueryRowContext(t.Context(), `select args from stint.jobs where kind = 'WelcomeJob'`).Scan(&args))
	if args != "[42]" {
		t.Errorf("the arguments are %s", args)
	}
}
