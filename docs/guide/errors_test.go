package guide

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/stinttest"
)

var (
	NoRows  = retry.ErrorClass("no_rows", sql.ErrNoRows)
	Network = retry.ErrorClassOf[*net.OpError]("network")
)

type Payment struct {
	Order  int64  `json:"order"`
	Why    string `json:"why"`
	Amount int    `json:"amount"`
}

var Charge = stint.NewKind[Payment]("charge", stint.Retry(retry.ByError(
	retry.On(NoRows, retry.None()),                                         // nothing will change
	retry.On(Network, retry.Forever(30*time.Second).Deadline(6*time.Hour)), // it comes back, sooner or later
	retry.Otherwise(retry.Exponential(8, time.Second).Jitter(0.2).MaxDelay(time.Hour)),
)))

type unavailable struct{ after time.Duration }

func (*unavailable) Error() string { return "the bank is closed" }

func TestErrors(t *testing.T) {
	tries := 0
	bank := func(p Payment) error {
		switch p.Why {
		case "closed":
			if tries++; tries == 1 {
				return &unavailable{time.Hour}
			}
		case "refused":
			return errRefused
		case "gone":
			return fmt.Errorf("load order %d: %w", p.Order, sql.ErrNoRows)
		case "broken":
			return errors.New("500")
		}
		return nil
	}
	mux := stint.NewMux()

	stint.Handle(mux, Charge, func(ctx context.Context, job *stint.Job, in Payment) error {
		if in.Amount == 0 {
			return stint.Cancel("nothing to pay") // it ends as cancelled
		}
		err := bank(in)
		if closed, ok := errors.AsType[*unavailable](err); ok {
			return stint.Snooze(closed.after) // again later; this attempt does not count
		}
		if errors.Is(err, errRefused) {
			return stint.NoRetry(err) // it ends as failed, whatever its policy says
		}
		if err != nil && job.Last() {
			return fmt.Errorf("after this nobody tries again: %w", err)
		}
		return err // its retry policy decides
	})

	w := stinttest.New(t, mux)
	for _, c := range []struct {
		in      Payment
		state   stint.State
		reason  string
		charged int
	}{
		{Payment{Amount: 0}, stint.Cancelled, "nothing to pay", 1},
		{Payment{Amount: 1, Why: "closed"}, stint.Completed, "done", 1},
		{Payment{Amount: 1, Why: "refused"}, stint.Failed, "error not retriable", 1},
		{Payment{Amount: 1, Why: "gone"}, stint.Failed, "no retries", 1},
		{Payment{Amount: 1, Why: "broken"}, stint.Failed, "retries exhausted", 9},
	} {
		id, err := Charge.Enqueue(t.Context(), w.Client(), c.in)
		must(t, err)
		w.Drain()
		job := shown(t.Context(), t, w.Client(), id)
		if job.State != c.state || job.Reason != c.reason || job.Attempt != c.charged {
			t.Errorf("%+v: %s, %q, attempt %d", c.in, job.State, job.Reason, job.Attempt)
		}
	}
}

var errRefused = errors.New("the card is refused")

func TestStopsAndLosses(t *testing.T) {
	mux := stint.NewMux()
	charge := stint.NewKind[Payment]("charge", stint.Timeout(50*time.Millisecond), stint.Retry(retry.None()), stint.MaxLosses(0))
	var why error
	askTheBank := func(ctx context.Context, _ Payment) error {
		<-ctx.Done()
		why = context.Cause(ctx)
		return ctx.Err()
	}

	stint.Handle(mux, charge, func(ctx context.Context, job *stint.Job, in Payment) error {
		if job.MayHaveRun {
			return stint.NoRetry(errors.New("an engine died with this payment: look before it is paid twice"))
		}
		err := askTheBank(ctx, in) // it heeds the context
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, stint.ErrTimeout): // longer than stint.Timeout
		case errors.Is(cause, stint.ErrCancelled): // somebody cancelled the job
		case errors.Is(cause, stint.ErrStopping): // the engine stops, and its grace is over: the job runs again, uncharged
		case errors.Is(cause, stint.ErrFenced): // others count this engine as dead: nothing that it says counts any more
		}
		return err
	})

	w := stinttest.New(t, mux)
	run := stinttest.Perform(w, charge, Payment{Order: 1, Amount: 1})
	if !errors.Is(why, stint.ErrTimeout) || !run.Final {
		t.Errorf("the cause is %v, and the run %v", why, run)
	}
}

func TestTheWorkAndItsOutcomeTogether(t *testing.T) {
	store, url := openPostgres(t)
	db, err := sql.Open("pgx", url)
	must(t, err)
	defer db.Close()
	exec(t, db, `create table payments (ord bigint primary key, amount int)`)
	mux := stint.NewMux()

	stint.Handle(mux, Charge, func(ctx context.Context, job *stint.Job, in Payment) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, `insert into payments values ($1, $2)`, in.Order, in.Amount); err != nil {
			return err
		}
		return engine.CompleteTx(ctx, postgres.SQLTx(tx), nil) // commits the row and the job's end, both or neither
	})

	w := stinttest.On(t, store, mux)
	_, err = Charge.Enqueue(t.Context(), w.Client(), Payment{Order: 7, Amount: 900})
	must(t, err)
	w.Drain(stinttest.FailOnError())
	var n int
	must(t, db.QueryRowContext(t.Context(), `select count(*) from payments`).Scan(&n))
	if n != 1 {
		t.Errorf("there are %d payments", n)
	}
}

func TestARetryFunction(t *testing.T) {
	mux := stint.NewMux()
	errQuota := errors.New("quota used up")

	mux.RetryFunc("by-quota", func(cause error, f retry.Failure) retry.Decision {
		switch {
		case errors.Is(cause, errQuota):
			return retry.At(f.Now.Truncate(24 * time.Hour).Add(24 * time.Hour)).To("bulk") // at midnight, in another queue
		case f.Charged > 5:
			return retry.Final("the customer left")
		}
		return retry.Again(time.Minute)
	})
	report := stint.NewKind[string]("report", stint.Retry(retry.Function("by-quota")))

	first := true
	stint.Handle(mux, report, func(context.Context, *stint.Job, string) error {
		defer func() { first = false }()
		if first {
			return errQuota
		}
		return nil
	})
	w := stinttest.New(t, mux)
	id, err := report.Enqueue(t.Context(), w.Client(), "May")
	must(t, err)
	w.Drain()
	if job := shown(t.Context(), t, w.Client(), id); job.State != stint.Completed || job.Queue != "bulk" {
		t.Errorf("the job is %s in %s", job.State, job.Queue)
	}
}
