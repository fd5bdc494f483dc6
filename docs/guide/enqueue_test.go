package guide

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/sqlite"
)

func TestEnqueue(t *testing.T) {
	store := openSQLite(t)
	client := stint.NewClient(store)
	ctx := t.Context()

	id, err := SendInvoice.Enqueue(ctx, client, Invoice{Customer: 42},
		stint.Delay(time.Hour),          // or stint.RunAt(t)
		stint.Priority(-10),             // from -100 to 100, the lower first
		stint.Tag("vip", "customer:42"), // to find it by
		stint.Description("invoice of May for Miller"),
	)
	must(t, err)
	job := shown(ctx, t, client, id)
	if job.State != stint.Scheduled || job.Priority != -10 || !slices.Contains(job.Tags, "vip") {
		t.Errorf("the job is %+v", job)
	}

	var jobs []stint.NewJob
	for customer := range int64(1000) {
		job, err := SendInvoice.New(Invoice{Customer: customer})
		must(t, err)
		jobs = append(jobs, job)
	}
	ids, err := client.EnqueueMany(ctx, jobs) // all of them or none, in one round trip
	must(t, err)
	if len(ids) != 1000 {
		t.Errorf("%d jobs were enqueued", len(ids))
	}

	// In a program that does not have the kind as a Go value:
	id, err = client.Enqueue(ctx, stint.KindInfo{Name: "resize_image", Queue: "images"}.Job([]byte(`{"file": "a.png", "width": 100}`)))
	must(t, err)
	if job := shown(ctx, t, client, id); job.Queue != "images" {
		t.Errorf("the job is %+v", job)
	}

	client.Use(func(next stint.EnqueueFunc) stint.EnqueueFunc {
		return func(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
			for i := range jobs {
				jobs[i].Tags = append(jobs[i].Tags, "region:eu")
			}
			return next(ctx, tx, jobs)
		}
	})
}

func TestEnqueueInATransaction(t *testing.T) {
	store, url := openPostgres(t)
	client := stint.NewClient(store)
	ctx := t.Context()
	db, err := sql.Open("pgx", url)
	must(t, err)
	defer db.Close()
	exec(t, db, `create table orders (id bigint generated always as identity primary key, customer bigint)`)
	conn, err := pgx.Connect(ctx, url)
	must(t, err)
	defer conn.Close(context.WithoutCancel(ctx))

	place := func(ctx context.Context, customer int64) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `insert into orders (customer) values ($1)`, customer); err != nil {
				return err
			}
			_, err := SendInvoice.Enqueue(ctx, client.With(postgres.Tx(tx)), Invoice{Customer: customer})
			return err // the job exists if the order does
		})
	}
	must(t, place(ctx, 42))

	tx, err := db.BeginTx(ctx, nil)
	must(t, err)
	id, err := SendInvoice.Enqueue(ctx, client.With(postgres.SQLTx(tx)), Invoice{Customer: 43}) // any driver of database/sql
	must(t, err)
	must(t, tx.Rollback())
	if _, err := client.Job(ctx, id); !errors.Is(err, stint.ErrNotFound) {
		t.Errorf("a job of a transaction that was rolled back: %v", err)
	}
	var orders, jobs int
	must(t, db.QueryRowContext(ctx, `select (select count(*) from orders), (select count(*) from stint.jobs)`).Scan(&orders, &jobs))
	if orders != 1 || jobs != 1 {
		t.Errorf("there are %d orders and %d jobs", orders, jobs)
	}
}

func TestEnqueueInATransactionOfSQLite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	ctx := t.Context()
	store, err := sqlite.Open(ctx, path)
	must(t, err)
	defer store.Close()
	client := stint.NewClient(store)
	db, err := sql.Open("sqlite3", "file:"+path+"?_txlock=immediate")
	must(t, err)
	defer db.Close()

	tx, err := db.BeginTx(ctx, nil)
	must(t, err)
	id, err := SendInvoice.Enqueue(ctx, client.With(sqlite.Tx(tx)), Invoice{Customer: 42})
	must(t, err)
	must(t, tx.Commit())
	if job := shown(ctx, t, client, id); job.State != stint.Available {
		t.Errorf("the job is %s", job.State)
	}
}

func TestEnqueueAgain(t *testing.T) {
	client := stint.NewClient(openSQLite(t))
	ctx := t.Context()
	for range 2 {
		receipt, err := SendInvoice.EnqueueReceipt(ctx, client, Invoice{Customer: 42}, stint.IdempotencyKey("invoice:42:may"))
		must(t, err)
		fmt.Println(receipt.ID, receipt.Duplicate) // 1 false, then 1 true
		if receipt.ID != 1 {
			t.Errorf("the job is %d", receipt.ID)
		}
	}
}

func TestEnqueueFromSQL(t *testing.T) {
	store, url := openPostgres(t)
	db, err := sql.Open("pgx", url)
	must(t, err)
	defer db.Close()
	var id int64
	must(t, db.QueryRowContext(t.Context(), `select stint.enqueue('send_invoice', '{"customer": 42}', delay => '1 hour')`).Scan(&id))
	if job := shown(t.Context(), t, stint.NewClient(store), stint.ID(id)); job.State != stint.Scheduled {
		t.Errorf("the job is %s", job.State)
	}
	must(t, db.QueryRowContext(t.Context(), `select stint.enqueue('send_invoise')`).Scan(&id)) // that nobody declared
	if job := shown(t.Context(), t, stint.NewClient(store), stint.ID(id)); job.State != stint.Available {
		t.Errorf("the job of an unknown kind is %s", job.State)
	}
}
