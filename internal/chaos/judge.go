//go:build unix

package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/check"
	"github.com/stint-go/stint/storetest"
)

// Drain waits until every job is final.
func (f *Fleet) Drain(ctx context.Context, store stint.Inspector, within time.Duration) {
	f.t.Helper()
	for until := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		counts, err := store.Counts(ctx)
		open := int64(0)
		for state, n := range counts {
			if !state.Final() {
				open += n
			}
		}
		if err == nil && open == 0 {
			return
		}
		if time.Now().After(until) {
			f.t.Fatalf("after %v the states are %v, %v", within, counts, err)
		}
	}
}

// Prepare makes what the workload needs beside stint's own schema.
func Prepare(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, effects)
	return err
}

// checkEffects makes sure that a job with Tx has exactly one effect when it
// completed, and none otherwise.
func checkEffects(ctx context.Context, pool *pgxpool.Pool) error {
	var wrong int
	var first *int64
	err := pool.QueryRow(ctx, `
		with effect as (select job, count(*) as n from chaos_effects group by job),
		     told as (select id, state from stint.jobs where args->>'tx' = 'true')
		select count(*), min(coalesce(id, job)) from told full join effect on id = job
		where id is null or coalesce(n, 0) <> (state = 'completed')::integer`).Scan(&wrong, &first)
	switch {
	case err != nil:
		return fmt.Errorf("read the effects: %w", err)
	case wrong > 0:
		return fmt.Errorf("%d jobs that complete in a transaction have not as many effects as they should; the first is %d", wrong, *first)
	}
	return nil
}

// Judge compares the history with the database and fails the test at any
// violation. Every process must have ended, or idle, and every job be final.
func (f *Fleet) Judge(ctx context.Context, store stint.Auditor, pool *pgxpool.Pool) *check.Report {
	f.t.Helper()
	return f.judge(ctx, store, pool, check.Options{Drained: true})
}

// JudgeAmid does the same while there is work left that nobody does.
func (f *Fleet) JudgeAmid(ctx context.Context, store stint.Auditor, pool *pgxpool.Pool) *check.Report {
	f.t.Helper()
	return f.judge(ctx, store, pool, check.Options{})
}

func (f *Fleet) judge(ctx context.Context, store stint.Auditor, pool *pgxpool.Pool, options check.Options) *check.Report {
	f.t.Helper()
	ledger, err := store.Audit(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	all := storetest.Facts(ledger)
	if err := addKeys(ctx, pool, all); err != nil {
		f.t.Fatal(err)
	}
	history, err := check.Read(f.Dir)
	if err != nil {
		f.t.Fatal(err)
	}
	options.CompleteTx, options.Clean = true, f.left()
	f.mu.Lock()
	options.Disturbances = f.done
	f.mu.Unlock()
	report := check.Compare(history, all, options)
	if err := report.Err(); err != nil {
		f.t.Errorf("%v\n%v", err, report)
		for _, v := range report.Violations {
			f.tell(v.Job, history, all)
		}
	}
	if err := checkEffects(ctx, pool); err != nil {
		f.t.Error(err)
	}
	return report
}

// left lists the engines that left in good order.
func (f *Fleet) left() []int64 {
	f.mu.Lock()
	workers := slices.Clone(f.workers)
	f.mu.Unlock()
	var all []int64
	for _, name := range workers {
		for _, e := range f.Events(name) {
			if e.Type == stint.EventLeft {
				all = append(all, int64(e.Engine))
			}
		}
	}
	return all
}

// tell says all that both accounts know of a job.
func (f *Fleet) tell(job int64, history *check.History, facts *check.Facts) {
	f.t.Helper()
	holder := map[int64]int64{}
	for _, c := range facts.Claims {
		for _, pos := range c.Positions {
			holder[pos] = c.Engine
		}
	}
	for _, e := range facts.Entries {
		if e.Job == job {
			f.t.Logf("job %d: entry %d, attempt %d, claimed by %d, who was buried at %v", job, e.Pos, e.Attempt, holder[e.Pos], facts.Buried[holder[e.Pos]])
		}
	}
	for _, x := range facts.Executions {
		if x.Job == job {
			f.t.Logf("job %d: execution %+v", job, x)
		}
	}
	for _, r := range history.Runs {
		if r.Job == job {
			f.t.Logf("job %d: run on %s %+v", job, history.Processes[r.Process].Name, r)
		}
	}
}

// addKeys reads the workload's names of jobs from their arguments.
func addKeys(ctx context.Context, pool *pgxpool.Pool, facts *check.Facts) error {
	rows, err := pool.Query(ctx, `select id, args->>'key' from stint.jobs`)
	if err != nil {
		return fmt.Errorf("read the keys: %w", err)
	}
	keys := map[int64]string{}
	var (
		id  int64
		key string
	)
	if _, err := pgx.ForEachRow(rows, []any{&id, &key}, func() error { keys[id] = key; return nil }); err != nil {
		return fmt.Errorf("read the keys: %w", err)
	}
	for i := range facts.Jobs {
		j := &facts.Jobs[i]
		j.Key, j.ChargedMax, j.LossesMax = keys[j.ID], retries+1, stint.DefaultMaxLosses
	}
	return nil
}
