package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"

	_ "github.com/ncruces/go-sqlite3/driver" // or any other driver for SQLite

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/sqlite"
)

func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "stint")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	store, err := sqlite.Open(ctx, filepath.Join(dir, "jobs.db")) // makes the file and its tables
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	client := stint.NewClient(store)
	id, err := client.Enqueue(ctx, stint.NewJob{Kind: "send_invoice", Args: []byte(`{"customer": 42}`)})
	if err != nil {
		log.Fatal(err)
	}
	job, err := store.Job(ctx, id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(job.ID, job.Kind, job.State)
	// Output: 1 send_invoice available
}

// The job exists if, and only if, what it is about exists.
func ExampleTx() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "stint")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "shop.db")

	store, err := sqlite.Open(ctx, path)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	client := stint.NewClient(store)

	// The program's own tables live in the same file. A transaction that
	// writes waits for its turn when it begins as "immediate".
	db, err := sql.Open("sqlite3", "file:"+path+"?_txlock=immediate")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`create table invoices (customer integer)`); err != nil {
		log.Fatal(err)
	}

	order := func(customer int, paid bool) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.Exec(`insert into invoices values (?)`, customer); err != nil {
			return err
		}
		job := stint.NewJob{Kind: "send_invoice", Args: fmt.Appendf(nil, `{"customer": %d}`, customer)}
		if _, err := client.With(sqlite.Tx(tx)).Enqueue(ctx, job); err != nil {
			return err
		}
		if !paid {
			return nil // both are rolled back
		}
		return tx.Commit()
	}
	if err := order(42, true); err != nil {
		log.Fatal(err)
	}
	if err := order(43, false); err != nil {
		log.Fatal(err)
	}
	jobs, err := store.Jobs(ctx, stint.Filter{})
	if err != nil {
		log.Fatal(err)
	}
	for _, job := range jobs {
		fmt.Println(job.Kind, string(job.Args))
	}
	// Output: send_invoice {"customer": 42}
}
