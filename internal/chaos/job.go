//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/check"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/retry"
)

// Args are what a job of the workload is told to do.
type Args struct {
	Key  string `json:"key"`            // its name in the history
	Work int    `json:"work,omitempty"` // milliseconds to be busy
	Fail int    `json:"fail,omitempty"` // attempts that end in an error
	Oops int    `json:"oops,omitempty"` // attempts that panic, after those
	Nap  bool   `json:"nap,omitempty"`  // snooze once, at the first attempt
	Exit bool   `json:"exit,omitempty"` // end the process, each time
	Tx   bool   `json:"tx,omitempty"`   // leave an effect in a transaction that completes the job
}

// retries is the policy of the workload: more than any job is told to fail.
const retries = 8

// Kind is the kind of every job of the workload.
var Kind = stint.NewKind[Args]("chaos", stint.Retry(retry.Fixed(retries, 20*time.Millisecond)))

// errTold is how an attempt fails that was told to.
var errTold = errors.New("told to fail")

// effects is where jobs with Tx leave their effect. It has no key: what is done
// twice shows.
const effects = `create table if not exists chaos_effects (job bigint not null)`

// complete does the work of a job with Tx.
func complete(ctx context.Context, pool *pgxpool.Pool, job *stint.Job) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	if _, err := tx.Exec(ctx, `insert into chaos_effects (job) values ($1)`, job.ID); err != nil {
		return err
	}
	return engine.CompleteTx(ctx, postgres.Tx(tx), nil)
}

// handler logs the start and the end of each attempt around its work.
func handler(w *check.Writer, pool *pgxpool.Pool, engines *sync.Map) stint.Handler {
	return func(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
		var args Args
		if err := json.Unmarshal(job.Args, &args); err != nil {
			return nil, err
		}
		who, _ := engines.LoadAndDelete(job.ID)
		token, _ := who.(stint.Token)
		run := w.Start(check.Run{Job: int64(job.ID), Attempt: job.Attempt, Engine: int64(token)})
		if args.Exit {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		how, cause := check.Panic, error(nil)
		defer func() { run.End(how, fmt.Sprint(cause)) }()
		if args.Work > 0 {
			select {
			case <-time.After(time.Duration(args.Work) * time.Millisecond):
			case <-ctx.Done():
				how, cause = check.Cancelled, context.Cause(ctx)
				return nil, cause
			}
		}
		switch {
		case args.Nap && job.Attempt == 1 && job.Created.Equal(job.Due) && time.Since(job.Created) < 300*time.Millisecond:
			how = check.Snooze
			return nil, stint.Snooze(300 * time.Millisecond)
		case job.Attempt-job.Losses <= args.Fail:
			how, cause = check.Error, errTold
			return nil, errTold
		case job.Attempt-job.Losses <= args.Fail+args.Oops:
			panic("told to panic")
		case args.Tx:
			if err := complete(ctx, pool, job); err != nil {
				how, cause = check.Error, err
				if ctx.Err() != nil {
					how = check.Cancelled
				}
				return nil, err
			}
		}
		how = check.OK
		return nil, nil
	}
}
