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
	report := newReport()
	for b := (batch{more: true}); b.more; r.tell(report) {
		var err error
		if b, err = r.read(ctx, r.Pool, b.last, ""); err != nil {
			return nil, err
		}
		report.add(b, make([]stint.Receipt, len(b.fit)))
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
	report := newReport()
	for b := (batch{more: true}); b.more; r.tell(report) {
		var (
			receipts []stint.Receipt
			err      error
		)
		if b, receipts, err = r.importBatch(ctx, client, b.last); err != nil {
			return report, err
		}
		report.add(b, receipts)
	}
	return report, r.finish(ctx, report, "running", "pending", "available", "scheduled", "retryable")
}

func (r *River) tell(report *Report) {
	if r.Progress != nil {
		r.Progress(report.Jobs)
	}
}

// importBatch imports the next rows after one.
func (r *River) importBatch(ctx context.Context, client *stint.Client, after int64) (b batch, receipts []stint.Receipt, err error) {
	// Of each row the newest version is seen, not that of a snapshot.
	err = pgx.BeginTxFunc(ctx, r.Pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
		// A row that a worker is just claiming is passed over. One that is taken here is not seen by workers until
		// the commit, and is cancelled, gone or held after that.
		if b, err = r.read(ctx, tx, after, "for update skip locked"); err != nil {
			return err
		}
		if r.Apart {
			return r.hold(ctx, tx, b)
		}
		receipts, err = r.move(ctx, tx, client.With(postgres.Tx(tx)), b)
		return err
	})
	if err == nil && r.Apart {
		receipts, err = r.move(ctx, r.Pool, client, b)
	}
	return b, receipts, err
}

// hold keeps rows from River's workers until their jobs are in the other database. It lets go of
// River's unique key, which other states may have and this one not.
func (r *River) hold(ctx context.Context, tx pgx.Tx, b batch) error {
	_, err := tx.Exec(ctx, `
		update `+r.table("river_job")+`
		set state = 'pending', unique_key = null,
			metadata = metadata || jsonb_build_object('stint_import', jsonb_build_object('state', state, 'at', now()))
		where id = any($1) and not metadata ? 'stint_import'`, b.ids())
	return err
}

// move enqueues the jobs of a batch, and ends their rows.
func (r *River) move(ctx context.Context, db execer, client *stint.Client, b batch) ([]stint.Receipt, error) {
	receipts, err := client.EnqueueReceipts(ctx, b.jobs)
	if err != nil || len(b.jobs) == 0 {
		return nil, err
	}
	// Between two databases a person may have touched what was held: what runs or ended is left.
	const waits = `state in ('available', 'scheduled', 'retryable', 'pending')`
	if r.Delete {
		_, err = db.Exec(ctx, `delete from `+r.table("river_job")+` where id = any($1) and `+waits, b.ids())
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
		where r.id = t.id and `+waits, b.ids(), taken)
	return receipts, err
}

type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// table is the name of a table of River's in SQL.
func (r *River) table(name string) string {
	if r.Schema == "" {
		return name
	}
	return pgx.Identifier{r.Schema, name}.Sanitize()
}
