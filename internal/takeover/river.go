// Package takeover moves the jobs that wait in another job queue into stint.
//
// Of River it takes batches of rows that no worker holds. In one database a batch is one
// transaction:
//
//	select … for update skip locked ─▶ enqueue ─▶ cancel or delete the rows
//
// Between two databases no transaction spans both, so a batch has three steps, each of
// which may be the last before a crash:
//
//	select …, hold ─▶ enqueue under keys ─▶ cancel or delete the rows
//
// A held row is pending, which no worker of River runs and no cleaner removes, and its
// metadata says that it is held. The next import goes on with the rows that are held. The
// idempotency key is made of the row, so what is enqueued twice is stored once.
package takeover

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/postgres"
)

// ErrNoRiver says that a database has no tables of a River that is new enough.
var ErrNoRiver = errors.New("no jobs of River")

// River is where jobs of River wait, and which of them are wanted.
type River struct {
	Pool   *pgxpool.Pool
	Schema string // of River's tables; empty for the search path's
	Apart  bool   // the jobs go into another database than River's

	Queues, Kinds []string          // only these; nil for all
	Rename        map[string]string // kinds of River that have another name in stint
	Pending       bool              // also jobs that wait for a program to release them
	Delete        bool              // delete the rows of jobs that were taken, in place of cancelling them
	Batch         int               // rows of a transaction; 0 means 1,000

	Progress func(taken int64) // called after each batch; nil for none
}

// Check returns an error that matches [ErrNoRiver] unless the tables are there.
func (r *River) Check(ctx context.Context) error {
	var there, recent bool
	err := r.Pool.QueryRow(ctx, `
		select to_regclass($1) is not null,
			exists (select from pg_attribute where attrelid = to_regclass($1) and attname = 'unique_states')`,
		r.table("river_job")).Scan(&there, &recent)
	switch {
	case err != nil:
		return err
	case !there:
		return fmt.Errorf("%w: there is no table %s", ErrNoRiver, r.table("river_job"))
	case !recent:
		return fmt.Errorf("%w: the table %s is of before River's migration 6; migrate River first", ErrNoRiver, r.table("river_job"))
	}
	return nil
}

// Plan reports what Import would do, and changes nothing.
func (r *River) Plan(ctx context.Context) (*Report, error) {
	report := &Report{}
	for after := int64(0); ; {
		rows, err := r.read(ctx, r.Pool, after, "")
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 {
			break
		}
		after = rows[len(rows)-1].id
		for _, w := range rows {
			if _, err := r.job(w); err != nil {
				report.refuse(w, err)
			} else {
				report.take(w)
			}
		}
		r.tell(report)
	}
	states := []string{"running"}
	if !r.Pending {
		states = append(states, "pending")
	}
	return report, r.finish(ctx, report, states...)
}

// Import takes the jobs over. Workers of River and other imports may be at work meanwhile:
// a row that one of them holds is passed over. What the report says has happened also if
// there is an error; after one, or after a crash, import again.
func (r *River) Import(ctx context.Context, client *stint.Client) (*Report, error) {
	report := &Report{}
	for after, more := int64(0), true; more; {
		var err error
		if after, more, err = r.importBatch(ctx, client, after, report); err != nil {
			return report, err
		}
		r.tell(report)
	}
	return report, r.finish(ctx, report, "running", "pending", "available", "scheduled", "retryable")
}

func (r *River) tell(report *Report) {
	if r.Progress != nil {
		r.Progress(report.Jobs)
	}
}

// importBatch imports the next rows after one, and returns the last of them.
func (r *River) importBatch(ctx context.Context, client *stint.Client, after int64, report *Report) (last int64, more bool, err error) {
	var (
		rows, fit []row
		jobs      []stint.NewJob
		refusals  []error
		receipts  []stint.Receipt
	)
	// Of each row the newest version is seen, not that of a snapshot.
	err = pgx.BeginTxFunc(ctx, r.Pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
		// A row that a worker is just claiming is passed over. One that is taken here is not seen by workers until
		// the commit, and is cancelled, gone or held after that.
		if rows, err = r.read(ctx, tx, after, "for update skip locked"); err != nil {
			return err
		}
		refusals = make([]error, len(rows))
		for i, w := range rows {
			job, err := r.job(w)
			if refusals[i] = err; err == nil {
				fit, jobs = append(fit, w), append(jobs, job)
			}
		}
		if r.Apart {
			return r.hold(ctx, tx, fit)
		}
		receipts, err = r.move(ctx, tx, client.With(postgres.Tx(tx)), fit, jobs)
		return err
	})
	if err == nil && r.Apart {
		receipts, err = r.move(ctx, r.Pool, client, fit, jobs)
	}
	if err != nil || len(rows) == 0 {
		return after, false, err
	}
	for i, w := range rows {
		switch {
		case refusals[i] != nil:
			report.refuse(w, refusals[i])
		case receipts[0].Duplicate:
			report.Known++
			receipts = receipts[1:]
		default:
			report.take(w)
			receipts = receipts[1:]
		}
	}
	return rows[len(rows)-1].id, true, nil
}

// hold keeps rows from River's workers until their jobs are in the other database. It lets go of
// River's unique key, which other states may have and this one not.
func (r *River) hold(ctx context.Context, tx pgx.Tx, rows []row) error {
	_, err := tx.Exec(ctx, `
		update `+r.table("river_job")+`
		set state = 'pending', unique_key = null,
			metadata = metadata || jsonb_build_object('stint_import', jsonb_build_object('state', state, 'at', now()))
		where id = any($1) and not metadata ? 'stint_import'`, ids(rows))
	return err
}

// move enqueues the jobs of rows, and ends the rows.
func (r *River) move(ctx context.Context, db execer, client *stint.Client, rows []row, jobs []stint.NewJob) ([]stint.Receipt, error) {
	receipts, err := client.EnqueueReceipts(ctx, jobs)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	// Between two databases a person may have touched what was held: what runs or ended is left.
	const waits = `state in ('available', 'scheduled', 'retryable', 'pending')`
	if r.Delete {
		_, err = db.Exec(ctx, `delete from `+r.table("river_job")+` where id = any($1) and `+waits, ids(rows))
		return receipts, err
	}
	taken := make([]int64, len(receipts))
	for i, receipt := range receipts {
		taken[i] = int64(receipt.ID)
	}
	_, err = db.Exec(ctx, `
		update `+r.table("river_job")+` r
		set state = 'cancelled', finalized_at = now(), unique_key = null,
			metadata = (metadata - 'stint_import') || jsonb_build_object('stint_job', t.job)
		from unnest($1::bigint[], $2::bigint[]) t (id, job)
		where r.id = t.id and `+waits, ids(rows), taken)
	return receipts, err
}

type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

func ids(rows []row) []int64 {
	all := make([]int64, len(rows))
	for i, w := range rows {
		all[i] = w.id
	}
	return all
}

// table is the name of a table of River's in SQL.
func (r *River) table(name string) string {
	if r.Schema == "" {
		return name
	}
	return pgx.Identifier{r.Schema, name}.Sanitize()
}
