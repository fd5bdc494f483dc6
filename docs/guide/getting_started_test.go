package guide

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/postgres"
)

type greeting struct{ Name string }

var greet = stint.NewResultKind[greeting, string]("greet")

// The lines that follow the program of the README.
func TestGreetInATransaction(t *testing.T) {
	store, url := openPostgres(t)
	ctx, client := t.Context(), stint.NewClient(store)
	conn, err := pgx.Connect(ctx, url)
	must(t, err)
	defer conn.Close(context.WithoutCancel(ctx))
	tx, err := conn.Begin(ctx)
	must(t, err)
	id, err := greet.Enqueue(ctx, client.With(postgres.Tx(tx)), greeting{"ada"}) // pgx; postgres.SQLTx for database/sql
	must(t, err)
	must(t, tx.Commit(ctx))
	if job := shown(ctx, t, client, id); job.Kind != "greet" || job.State != stint.Available {
		t.Errorf("the job is %+v", job)
	}
}

func TestOpenPostgres(t *testing.T) {
	ctx, url := t.Context(), pgtest.New(t)
	store, err := postgres.Open(ctx, url) // such as "postgres://app@db/shop"
	must(t, err)
	defer store.Close()
	id, err := SendInvoice.Enqueue(ctx, stint.NewClient(store), Invoice{Customer: 42})
	must(t, err)

	db, err := sql.Open("pgx", url)
	must(t, err)
	defer db.Close()
	var found int64
	must(t, db.QueryRowContext(ctx, `select id from stint.jobs order by id desc limit 10`).Scan(&found))
	if found != int64(id) {
		t.Errorf("the newest job is %d, want %d", found, id)
	}
}
