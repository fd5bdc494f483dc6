package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// sqlWorker is a worker that has nothing but SQL.
type sqlWorker struct {
	t    *testing.T
	pool *pgxpool.Pool
	id   int64
}

// sqlJob is what it is given.
type sqlJob struct {
	receipt    string
	id         stint.ID
	kind       string
	queue      string
	args       string
	attempt    int
	mayHaveRun bool
}

// besideSQL opens a store with an engine that has no kinds, for what is not a worker's.
func besideSQL(t *testing.T) (*pgxpool.Pool, *postgres.Store) {
	pool, s := openPool(t)
	hosted(t, s)
	return pool, s
}

func joinSQL(t *testing.T, pool *pgxpool.Pool, args string) *sqlWorker {
	t.Helper()
	w := &sqlWorker{t: t, pool: pool}
	if err := pool.QueryRow(t.Context(), `select stint.worker_join(`+args+`)`).Scan(&w.id); err != nil {
		t.Fatal(err)
	}
	return w
}

type asker interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func (w *sqlWorker) tryClaim(ctx context.Context, conn asker, most int) ([]sqlJob, error) {
	rows, err := conn.Query(ctx, `select receipt, job, kind, queue, args::text, attempt, may_have_run from stint.worker_claim($1, $2)`, w.id, most)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (j sqlJob, err error) {
		err = row.Scan(&j.receipt, &j.id, &j.kind, &j.queue, &j.args, &j.attempt, &j.mayHaveRun)
		return j, err
	})
}

func (w *sqlWorker) claim(most int) []sqlJob {
	w.t.Helper()
	jobs, err := w.tryClaim(w.t.Context(), w.pool, most)
	if err != nil {
		w.t.Fatal(err)
	}
	return jobs
}

// awaits claims until it is given a job.
func (w *sqlWorker) awaits() (j sqlJob) {
	w.t.Helper()
	eventually(w.t, "there is a job", func() bool {
		for _, j = range w.claim(1) {
			return true
		}
		return false
	})
	return j
}

// finish says how a job ended by an argument such as "error => 'x'", and returns what that came to.
func (w *sqlWorker) finish(receipt, ending string) string {
	w.t.Helper()
	var came string
	if err := w.pool.QueryRow(w.t.Context(), `select stint.worker_finish($1, $2, `+ending+`)`, w.id, receipt).Scan(&came); err != nil {
		w.t.Fatal(err)
	}
	return came
}

// refused checks with which error the server answers a statement.
func refused(t *testing.T, pool *pgxpool.Pool, code, says, sql string, args ...any) {
	t.Helper()
	_, err := pool.Exec(t.Context(), sql, args...)
	if failed, ok := errors.AsType[*pgconn.PgError](err); !ok || failed.Code != code || !strings.Contains(failed.Message, says) {
		t.Errorf("%s: %v, want %s with %q", sql, err, code, says)
	}
}

func TestAWorkerBySQLDoesJobs(t *testing.T) {
	t.Parallel()
	pool, s := besideSQL(t)
	low := enqueue(t, s, "a", `{"n": 1}`, stint.Priority(5))
	high := enqueue(t, s, "b", `{"n": 2}`, stint.Priority(-5))
	enqueue(t, s, "a", `{"n": 3}`, stint.Priority(9))
	w := joinSQL(t, pool, `'{a,b}', slots => 2, instance => 'cron'`)
	first, second := w.awaits(), w.awaits()
	if first.id != high || second.id != low || first.args != `{"n": 2}` || first.attempt != 1 || first.queue != "default" || first.mayHaveRun {
		t.Errorf("it was given %+v and %+v", first, second)
	}
	if job := info(t, s, high); job.State != stint.Running {
		t.Errorf("a job that was given out is %s", job.State)
	}
	if more := w.claim(9); len(more) > 0 {
		t.Errorf("without a free slot it was given %v", more)
	}
	if came := w.finish(first.receipt, `'{"sum": 3}'`); came != "completed" {
		t.Errorf("it came to %q", came)
	}
	job := info(t, s, high)
	if job.State != stint.Completed || string(job.Attempts[0].Result) != `{"sum": 3}` || job.Attempts[0].Instance != "cron" {
		t.Errorf("the job is %s, its attempts are %+v", job.State, job.Attempts)
	}
	refused(t, pool, "ST032", "recorded already", `select stint.worker_finish($1, $2)`, w.id, first.receipt)
	w.finish(second.receipt, `null`)
	if got := info(t, s, low); got.State != stint.Completed {
		t.Errorf("without a result the job is %s", got.State)
	}
}

// Each way in which an attempt may end.
func TestAWorkerBySQLSaysHowJobsEnd(t *testing.T) {
	t.Parallel()
	pool, s := besideSQL(t)
	w := joinSQL(t, pool, `'{a}', slots => 10`)
	does := func(id stint.ID, ending, came string) {
		t.Helper()
		j := w.awaits()
		if got := w.finish(j.receipt, ending); j.id != id || got != came {
			t.Errorf("job %d by %s came to %q, want job %d, %q", j.id, ending, got, id, came)
		}
	}
	twice := stint.Retry(retry.Fixed(1, 10*time.Millisecond))

	id := enqueue(t, s, "a", `1`, twice)
	does(id, `error => 'down', class => 'Timeout'`, "failed")
	does(id, `error => 'down again'`, "failed")
	job := until(t, s, id, stint.Failed)
	if a := job.Attempts[0]; job.Attempt != 3 || a.Error.Class != "Timeout" || a.Error.Message != "down" {
		t.Errorf("after all retries it is %+v, first %+v", job, a.Error)
	}

	id = enqueue(t, s, "a", `1`, stint.Retry(retry.Fixed(5, 10*time.Millisecond).Only("Timeout")))
	does(id, `error => 'x', class => 'Other'`, "failed")
	until(t, s, id, stint.Failed)

	id = enqueue(t, s, "a", `1`, twice)
	does(id, `error => 'bad', retry => false`, "failed")
	if job := info(t, s, id); job.State != stint.Failed || len(job.Attempts) != 1 {
		t.Errorf("what is not to be retried is %s after %d attempts", job.State, len(job.Attempts))
	}

	id = enqueue(t, s, "a", `1`)
	does(id, `snooze => '50 ms'`, "snoozed")
	does(id, `hand_back => true`, "returned")
	does(id, `cancel => 'not needed'`, "cancelled")
	if job := info(t, s, id); job.State != stint.Cancelled || job.Attempt != 1 || job.Reason != "not needed" {
		t.Errorf("snoozed, returned and cancelled it is %+v", job)
	}
}

// What a job did and that it ended are one transaction: a worker that lost the job changes nothing.
func TestAWorkerBySQLFinishesInItsTransaction(t *testing.T) {
	t.Parallel()
	pool, s := besideSQL(t)
	if _, err := pool.Exec(t.Context(), `create table paid (job bigint)`); err != nil {
		t.Fatal(err)
	}
	w := joinSQL(t, pool, `'{a}', slots => 2`)
	pays := func(j sqlJob, end string) error {
		_, err := pool.Exec(t.Context(), fmt.Sprintf(`begin; insert into paid values (%d); select stint.worker_finish(%d, '%s'); %s`, j.id, w.id, j.receipt, end))
		_, _ = pool.Exec(t.Context(), `rollback`)
		return err
	}
	paid := func() (n int) {
		if err := pool.QueryRow(t.Context(), `select count(*) from paid`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	a, b := enqueue(t, s, "a", `1`), enqueue(t, s, "a", `2`)
	jobs := []sqlJob{w.awaits(), w.awaits()}
	if err := pays(jobs[0], "rollback"); err != nil || info(t, s, a).State != stint.Running || paid() != 0 {
		t.Errorf("after a rollback: %v, %s, paid %d", err, info(t, s, a).State, paid())
	}
	if err := pays(jobs[0], "commit"); err != nil || info(t, s, a).State != stint.Completed || paid() != 1 {
		t.Errorf("after a commit: %v, %s, paid %d", err, info(t, s, a).State, paid())
	}
	if _, err := engine.Bury(t.Context(), s, store.EngineID(w.id), "by a test"); err != nil {
		t.Fatal(err)
	}
	if err := pays(jobs[1], "commit"); err == nil || !strings.Contains(err.Error(), "ST002") || paid() != 1 {
		t.Errorf("a worker that is buried: %v, paid %d", err, paid())
	}
	if job := info(t, s, b); job.State == stint.Completed {
		t.Error("a worker that is buried completed a job")
	}
	refused(t, pool, "ST002", "not in the roster", `select stint.worker_claim($1)`, w.id)
	refused(t, pool, "ST002", "not in the roster", `select stint.worker_beat($1)`, w.id)
}

func TestAWorkerBySQLHoldsWhatItWasGivenOnly(t *testing.T) {
	t.Parallel()
	pool, s := besideSQL(t)
	enqueue(t, s, "a", `1`)
	w, other := joinSQL(t, pool, `'{a}'`), joinSQL(t, pool, `'{a}'`)
	j := w.awaits()
	refused(t, pool, "ST031", "does not hold", `select stint.worker_finish($1, $2)`, other.id, j.receipt)
	part := strings.Split(j.receipt, ".")
	refused(t, pool, "ST031", "does not hold", `select stint.worker_finish($1, $2)`, w.id, part[0]+"."+part[1]+".1")
	refused(t, pool, "ST031", "does not hold", `select stint.worker_finish($1, $2)`, w.id, part[0]+".999."+part[2])
	refused(t, pool, "22023", "no receipt", `select stint.worker_finish($1, $2)`, w.id, "x")
	refused(t, pool, "22023", "one ending", `select stint.worker_finish($1, $2, error => 'a', cancel => 'b')`, w.id, j.receipt)
	refused(t, pool, "22023", "class", `select stint.worker_finish($1, $2, error => 'a', class => 'fmt.wrapError')`, w.id, j.receipt)
	refused(t, pool, "22023", "snooze", `select stint.worker_finish($1, $2, snooze => '-1 s')`, w.id, j.receipt)
	for args, says := range map[string]string{
		`'{}'`: "which kinds", `null`: "which kinds", `'{a}', slots => 0`: "slots", `'{a}', time_to_live => '1 s'`: "time to live", `'{""}'`: "no name", `'{a}', queues => '{null}'`: "no name",
	} {
		refused(t, pool, "22023", says, `select stint.worker_join(`+args+`)`)
	}
	engineID := store.EngineID(0)
	if err := pool.QueryRow(t.Context(), `select token from stint.engines where version <> 'SQL'`).Scan(&engineID); err != nil {
		t.Fatal(err)
	}
	refused(t, pool, "22023", "no worker by SQL", `select stint.worker_claim($1)`, engineID)
	w.finish(j.receipt, `null`)
}

// A worker that is silent is buried like an engine, and what it ran runs elsewhere, charged.
func TestAWorkerBySQLThatDies(t *testing.T) {
	t.Parallel()
	pool, s := besideSQL(t)
	id := enqueue(t, s, "a", `1`)
	w := joinSQL(t, pool, `'{a}', time_to_live => '5 s'`)
	w.awaits()
	second := joinSQL(t, pool, `'{a}'`)
	j := second.awaits()
	if j.id != id || j.attempt != 2 || !j.mayHaveRun {
		t.Errorf("the next worker was given %+v", j)
	}
	second.finish(j.receipt, `null`)
	if job := info(t, s, id); job.State != stint.Completed || job.Attempts[0].Outcome != stint.OutcomeLost {
		t.Errorf("the job is %s after %+v", job.State, job.Attempts)
	}
}

func TestAWorkerBySQLHearsInItsHeartbeats(t *testing.T) {
	t.Parallel()
	pool, s := besideSQL(t)
	first, second := enqueue(t, s, "a", `1`), enqueue(t, s, "a", `2`, stint.Timeout(time.Minute))
	w := joinSQL(t, pool, `'{a}', slots => 2, time_to_live => '10 s'`)
	jobs := []sqlJob{w.awaits(), w.awaits()}
	beat := func(running string) (drain bool, cancel []string) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), `select * from stint.worker_beat($1, `+running+`)`, w.id).Scan(&drain, &cancel); err != nil {
			t.Fatal(err)
		}
		return drain, cancel
	}
	if drain, cancel := beat("null"); drain || len(cancel) > 0 {
		t.Errorf("it is told %v, %v", drain, cancel)
	}
	if _, err := stint.NewClient(s).Cancel(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); time.Since(begun) < 12*time.Second; time.Sleep(time.Second) {
		if _, cancel := beat("null"); !slices.Equal(cancel, []string{jobs[0].receipt}) {
			t.Errorf("it is told to end %v, want %v", cancel, jobs[0].receipt)
		}
	}
	// It lives longer than its time to live. What it does not list it was just given, perhaps.
	beat("'{}'")
	if job := info(t, s, second); job.State != stint.Running {
		t.Errorf("what it was given just now is %s", job.State)
	}
	if _, err := pool.Exec(t.Context(), `update stint.claims set made = made - interval '1 minute'`); err != nil {
		t.Fatal(err)
	}
	if _, cancel := beat("null"); len(cancel) != 2 {
		t.Errorf("of one that was cancelled and one that ran for too long it is told %v", cancel)
	}
	if _, cancel := beat("array['" + jobs[0].receipt + "']"); len(cancel) != 1 {
		t.Errorf("it is told to end %v", cancel)
	}
	if j := w.awaits(); j.id != second || j.attempt != 1 {
		t.Errorf("what it never got came back as %+v", j)
	} else {
		w.finish(j.receipt, `null`)
	}
	if came := w.finish(jobs[0].receipt, `error => 'stopped'`); came != "cancelled" {
		t.Errorf("a job that was cancelled and failed is %s", came)
	}
	if err := s.Drain(t.Context(), store.EngineID(w.id)); err != nil {
		t.Fatal(err)
	}
	enqueue(t, s, "a", `3`)
	if drain, _ := beat("null"); !drain || len(w.claim(1)) > 0 {
		t.Error("a worker that is drained is not told, or is given jobs")
	}
}

// A heartbeat beside a claim does not take back what that says the worker runs: a job that may not begin twice would.
func TestAHeartbeatWaitsForTheClaimOfItsWorker(t *testing.T) {
	t.Parallel()
	pool, s := openPool(t)
	id := enqueue(t, s, "a", `1`, stint.MaxLosses(0))
	w := joinSQL(t, pool, `'{a}'`)
	beaten := make(chan error, 1)
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if jobs, err := w.tryClaim(t.Context(), tx, 1); err != nil || len(jobs) != 1 {
			return fmt.Errorf("it was given %v, %w", jobs, err)
		}
		go func() {
			_, err := pool.Exec(t.Context(), `select stint.worker_beat($1)`, w.id)
			beaten <- err
		}()
		eventually(t, "the heartbeat waits", func() (waits bool) {
			err := pool.QueryRow(t.Context(), `
				select exists (select from pg_stat_activity where datname = current_database() and query like '%worker_beat%' and wait_event_type = 'Lock')`).Scan(&waits)
			return err == nil && waits
		})
		return nil
	})
	if err := errors.Join(err, <-beaten); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Bury(t.Context(), s, store.EngineID(w.id), "by a test"); err != nil {
		t.Fatal(err)
	}
	if job := info(t, s, id); job.State != stint.Failed || job.Attempts[0].Outcome != stint.OutcomeLost {
		t.Errorf("a job that may not begin twice is %s after its worker died, by %s", job.State, job.Attempts[0].Outcome)
	}
}

func TestAWorkerBySQLTakesItsJobsOnly(t *testing.T) {
	t.Parallel()
	pool, s := besideSQL(t)
	if _, err := s.Pause(t.Context(), "paused", "", ""); err != nil {
		t.Fatal(err)
	}
	stays := []stint.ID{
		enqueue(t, s, "a", `1`, stint.Queue("other")),
		enqueue(t, s, "a", `1`, stint.Queue("paused")),
		enqueue(t, s, "a", `1`, stint.Queue("mine"), stint.Limited("slow")),
	}
	unknown := enqueue(t, s, "b", `1`, stint.Queue("mine"))
	mine := enqueue(t, s, "a", `1`, stint.Queue("mine"))
	w := joinSQL(t, pool, `'{a}', queues => '{mine,paused}', slots => 9`)
	j := w.awaits()
	if j.id != mine || len(w.claim(9)) > 0 {
		t.Errorf("it was given %+v", j)
	}
	w.finish(j.receipt, `null`)
	for _, id := range stays {
		if job := info(t, s, id); job.State != stint.Available {
			t.Errorf("job %d is %s", id, job.State)
		}
	}
	if j := joinSQL(t, pool, `'{b}'`).awaits(); j.id != unknown || j.attempt != 1 {
		t.Errorf("what it does not know came as %+v", j)
	}
}

// A job may be cancelled, or come too late, just before it is claimed.
func TestAWorkerBySQLIsGivenNothingThatIsOver(t *testing.T) {
	t.Parallel()
	pool, s := openPool(t)
	cancelled, late, good := enqueue(t, s, "a", `1`), enqueue(t, s, "a", `2`, stint.StartWithin(time.Millisecond)), enqueue(t, s, "a", `3`)
	if _, err := pool.Exec(t.Context(), `insert into stint.cancellations (job, why) values ($1, 'enough')`, cancelled); err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Millisecond)
	w := joinSQL(t, pool, `'{a}', slots => 3`)
	jobs := w.claim(3)
	if len(jobs) != 1 || jobs[0].id != good {
		t.Fatalf("it was given %v", jobs)
	}
	w.finish(jobs[0].receipt, `null`)
	if job := info(t, s, cancelled); job.State != stint.Cancelled || job.Reason != "enough" {
		t.Errorf("the job that was cancelled is %s: %s", job.State, job.Reason)
	}
	if job := info(t, s, late); job.State != stint.Failed || job.Reason != retry.ReasonExpired {
		t.Errorf("the job that came too late is %s: %s", job.State, job.Reason)
	}
}

// A job that two workers died with runs alone.
func TestAWorkerBySQLRunsASuspectAlone(t *testing.T) {
	t.Parallel()
	pool, s := besideSQL(t)
	for range 4 {
		enqueue(t, s, "a", `1`, stint.MaxLosses(9))
	}
	for range 2 {
		w := joinSQL(t, pool, `'{a}', slots => 4`)
		for held := 0; held < 4; held += len(w.claim(4)) {
			time.Sleep(10 * time.Millisecond)
		}
		if _, err := engine.Bury(t.Context(), s, store.EngineID(w.id), "by a test"); err != nil {
			t.Fatal(err)
		}
	}
	w := joinSQL(t, pool, `'{a}', slots => 4`)
	for range 4 {
		j := w.awaits()
		if more := w.claim(4); len(more) > 0 {
			t.Errorf("beside %+v it was given %+v", j, more)
		}
		w.finish(j.receipt, `null`)
	}
}

func TestAWorkerBySQLLeaves(t *testing.T) {
	t.Parallel()
	pool, s := besideSQL(t)
	id := enqueue(t, s, "a", `1`)
	w := joinSQL(t, pool, `'{a}'`)
	j := w.awaits()
	if _, err := pool.Exec(t.Context(), `select stint.worker_leave($1)`, w.id); err != nil {
		t.Fatal(err)
	}
	refused(t, pool, "ST002", "roster", `select stint.worker_finish($1, $2)`, w.id, j.receipt)
	if again := joinSQL(t, pool, `'{a}'`).awaits(); again.id != id || again.attempt != 1 || again.mayHaveRun {
		t.Errorf("what it left came as %+v", again)
	}
}

// The page shows a procedure that is a worker.
func TestAProcedureIsAWorker(t *testing.T) {
	t.Parallel()
	pool, s := besideSQL(t)
	page, err := os.ReadFile("../docs/sql-workers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "create procedure")
	procedure, _, found := strings.Cut(rest, "\n$$;\n")
	if !found {
		t.Fatal("the page shows no procedure")
	}
	for _, text := range []string{
		`create table closed (month text)`,
		`create function close_month(month text) returns void language sql as $$ insert into closed select close_month.month where 1 / length(month) > -1 $$`,
		"create procedure" + procedure + "\n$$",
	} {
		if _, err := pool.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	good := []stint.ID{enqueue(t, s, "close_month", `{"month": "may"}`), enqueue(t, s, "close_month", `{"month": "june"}`)}
	bad := enqueue(t, s, "close_month", `{"month": ""}`, stint.Retry(retry.None()))
	if _, err := pool.Exec(t.Context(), `call close_months()`); err != nil {
		t.Fatal(err)
	}
	for _, id := range good {
		if job := info(t, s, id); job.State != stint.Completed {
			t.Errorf("job %d is %s", id, job.State)
		}
	}
	if job := until(t, s, bad, stint.Failed); job.Attempts[0].Error.Class != "22012" {
		t.Errorf("what failed is %+v", job.Attempts[0].Error)
	}
	var closed, workers int
	if err := pool.QueryRow(t.Context(), `select (select count(*) from closed), (select count(*) from stint.engines where version = 'SQL')`).Scan(&closed, &workers); err != nil || closed != 2 || workers != 0 {
		t.Errorf("%d months are closed, %d workers have stayed, error %v", closed, workers, err)
	}
}

// A claim stands in a transaction of its own, which ends soon.
func TestAClaimBySQLIsItsTransaction(t *testing.T) {
	t.Parallel()
	pool, s := besideSQL(t)
	enqueue(t, s, "a", `1`)
	w := joinSQL(t, pool, `'{a}'`)
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `create temporary table x (n integer)`); err != nil {
			return err
		}
		_, err := w.tryClaim(t.Context(), tx, 1)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "ST004") {
		t.Errorf("after other writes a claim gives %v", err)
	}
	var limit string
	undo := errors.New("undone")
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if jobs, err := w.tryClaim(t.Context(), tx, 1); err != nil || len(jobs) != 1 {
			t.Errorf("in a transaction it was given %v, %v", jobs, err)
		}
		if err := tx.QueryRow(t.Context(), `show idle_in_transaction_session_timeout`).Scan(&limit); err != nil {
			t.Error(err)
		}
		return undo
	})
	if !errors.Is(err, undo) || limit != "10s" {
		t.Errorf("%v, and it may idle for %s", err, limit)
	}
	if j := w.awaits(); j.attempt != 1 { // the claim was undone
		t.Errorf("it was given %+v", j)
	}
	if _, err := pool.Exec(t.Context(), `update stint.beats set timeline = 'other' where token = $1`, w.id); err != nil {
		t.Fatal(err)
	}
	refused(t, pool, "ST030", "another server", `select stint.worker_beat($1)`, w.id)
}

// Jobs that are to be sealed, or limited, need a program.
func TestAWorkerBySQLIsToldWhichKindsItCannotPerform(t *testing.T) {
	t.Parallel()
	pool, _ := openPool(t)
	if _, err := pool.Exec(t.Context(), `insert into stint.kinds (kind, queue, priority, tags, sealed, limits) values ('secret', 'default', 0, '{}', '{""}', null), ('slow', 'default', 0, '{}', null, '{x}')`); err != nil {
		t.Fatal(err)
	}
	refused(t, pool, "22023", `'secret' are sealed`, `select stint.worker_join('{a,secret}')`)
	refused(t, pool, "22023", `'slow' have limits`, `select stint.worker_join('{slow}')`)
}

// Workers in SQL whose connections and statements are cut work beside an engine. Each effect is of the transaction that
// finished its job: there is one of each.
func TestWorkersBySQLLoseNothingAndDoNothingTwice(t *testing.T) {
	t.Parallel()
	pool, s := openPool(t)
	if _, err := pool.Exec(t.Context(), `create table effects (job bigint)`); err != nil {
		t.Fatal(err)
	}
	const jobs = 1000
	ids, err := stint.NewClient(s).EnqueueMany(t.Context(), slices.Repeat([]stint.NewJob{newJob("a", `{}`, stint.MaxLosses(100), stint.Retry(retry.Fixed(100, time.Millisecond)))}, jobs))
	if err != nil {
		t.Fatal(err)
	}
	var byEngine, bySQL, cuts atomic.Int64
	mux := stint.NewMux()
	handle(mux, "a", func(ctx context.Context, job *stint.Job) error {
		byEngine.Add(1)
		_, err := pool.Exec(ctx, `insert into effects values ($1)`, job.ID)
		time.Sleep(20 * time.Millisecond)
		return err
	})
	start(t, s, mux, engine.Config{Slots: 2})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	theirs := pool.Config().ConnConfig.Copy()
	theirs.RuntimeParams["application_name"] = "a worker"
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for ctx.Err() == nil {
				conn, err := pgx.ConnectConfig(ctx, theirs)
				if err != nil {
					continue
				}
				w := &sqlWorker{t: t, pool: pool}
				err = conn.QueryRow(ctx, `select stint.worker_join('{a}', slots => 5, time_to_live => '5 s')`).Scan(&w.id)
				for err == nil {
					var given []sqlJob
					given, err = w.tryClaim(ctx, conn, 5)
					for _, j := range given {
						if err != nil {
							break
						}
						switch rand.IntN(10) {
						case 0:
							_, err = conn.Exec(ctx, `select stint.worker_finish($1, $2, error => 'by chance')`, w.id, j.receipt)
						case 1:
							_, err = conn.Exec(ctx, `select stint.worker_finish($1, $2, hand_back => true)`, w.id, j.receipt)
						default:
							if err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
								if _, err := tx.Exec(ctx, `insert into effects values ($1)`, j.id); err != nil {
									return err
								}
								_, err := tx.Exec(ctx, `select stint.worker_finish($1, $2)`, w.id, j.receipt)
								return err
							}); err == nil {
								bySQL.Add(1)
							}
						}
					}
					if err == nil && rand.IntN(3) == 0 {
						_, err = conn.Exec(ctx, `select stint.worker_beat($1)`, w.id)
					}
				}
				_ = conn.Close(context.WithoutCancel(ctx))
			}
		})
	}
	workers.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(rand.N(300 * time.Millisecond))
			tag, err := pool.Exec(ctx, `
				select pg_terminate_backend(pid) from pg_stat_activity
				where datname = current_database() and application_name = 'a worker' order by random() limit 1`)
			if err == nil {
				cuts.Add(tag.RowsAffected())
			}
		}
	})
	limit, cancel := context.WithTimeout(t.Context(), pace.Of(3*time.Minute))
	defer cancel()
	for _, id := range ids {
		if job, err := stint.NewClient(s).Await(limit, id); err != nil || job.State != stint.Completed {
			t.Fatalf("job %d: %+v, %v", id, job, err)
		}
	}
	stop()
	workers.Wait()
	var missing, twice int
	if err := pool.QueryRow(t.Context(), `
		select count(*) filter (where n = 0), count(*) filter (where n > 1)
		from (select j.id, count(e.job) as n from stint.jobs j left join effects e on e.job = j.id where j.kind = 'a' and not exists (
		        select from stint.attempts a where a.job = j.id and a.outcome = 'completed' and a.instance not like 'sql-%') group by j.id) x`).Scan(&missing, &twice); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d runs by the engine, %d jobs done by SQL, %d connections cut", byEngine.Load(), bySQL.Load(), cuts.Load())
	if missing > 0 || bySQL.Load() == 0 || byEngine.Load() == 0 {
		t.Errorf("%d jobs have no effect", missing)
	}
	if twice > 0 {
		t.Errorf("%d jobs have more than one", twice)
	}
}
