package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver" // or any other driver for SQLite

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
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

	st, err := sqlite.Open(ctx, path)
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	client := stint.NewClient(st)

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
	jobs, err := st.Jobs(ctx, store.Filter{})
	if err != nil {
		log.Fatal(err)
	}
	for _, job := range jobs {
		fmt.Println(job.Kind, string(job.Args))
	}
	// Output: send_invoice {"customer": 42}
}

// A job that was cancelled is done after all, and the old one is not needed
// any more.
func ExampleStore_Retry() {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, sqlite.Memory)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	id, err := stint.NewClient(store).Enqueue(ctx, stint.NewJob{Kind: "send_invoice", Delay: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := store.Cancel(ctx, []stint.ID{id}, "the customer left"); err != nil {
		log.Fatal(err)
	}

	answers, err := store.Retry(ctx, []stint.ID{id}, stint.RerunOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answers[id].Answer, "as", answers[id].ID)
	job, err := store.Job(ctx, answers[id].ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(job.Kind, job.State, "of job", job.Origin.Recovered)

	deleted, err := store.Delete(ctx, []stint.ID{id, job.ID})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(deleted[id], deleted[job.ID])
	// Output:
	// recovered as 2
	// send_invoice available of job 1
	// deleted too early
}

// Nothing of a paused queue begins.
func ExampleStore_Pause() {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, sqlite.Memory)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	for _, queue := range []string{"mail", "reports"} {
		if _, err := stint.NewClient(store).Enqueue(ctx, stint.NewJob{Kind: "k", Queue: queue}); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := store.Pause(ctx, "mail", "anna", "the server is down"); err != nil {
		log.Fatal(err)
	}
	queues, err := store.Queues(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, q := range queues {
		fmt.Println(q.Name, "available:", q.Counts[stint.Available], "paused:", !q.Paused.IsZero(), q.Why)
	}
	// Output:
	// mail available: 1 paused: true the server is down
	// reports available: 1 paused: false
}

// What went wrong is found by any attempt of a job, crashes included.
func ExampleStore_Jobs() {
	ctx := context.Background()
	st, err := sqlite.Open(ctx, sqlite.Memory)
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	jobs, err := st.Jobs(ctx, store.Filter{
		Outcome: stint.OutcomeLost,
		States:  []stint.State{stint.Failed, stint.Retrying, stint.Available},
		Created: store.TimeRange{From: time.Now().Add(-24 * time.Hour)},
	})
	fmt.Println(len(jobs), err)
	// Output: 0 <nil>
}

// While one runs, any number of enqueues store one more, which begins after all of them.
func Example_oneMoreAfterTheCurrent() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	store, err := sqlite.Open(ctx, sqlite.Memory)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	client := stint.NewClient(store)

	type account struct{ ID int }
	sync := stint.NewKind[account]("sync", stint.UniqueUntilStarted(stint.By("/ID")), stint.LimitedBy("account", "/ID"))

	mux := stint.NewMux()
	mux.Limit("account", stint.LimitRule{AtOnce: 1})
	runs := 0
	stint.Handle(mux, sync, func(ctx context.Context, _ *stint.Job, a account) error {
		if runs++; runs > 1 {
			stop()
			return nil
		}
		first, _ := sync.EnqueueReceipt(ctx, client, a)
		second, err := sync.EnqueueReceipt(ctx, client, a)
		fmt.Println("one more:", !first.Duplicate, second.Duplicate, second.ID == first.ID)
		return err
	})
	if _, err := sync.Enqueue(ctx, client, account{7}); err != nil {
		log.Fatal(err)
	}
	worker, err := engine.New(store, mux, engine.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if err := worker.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("runs:", runs)
	// Output:
	// one more: true true true
	// runs: 2
}

func Example_uniqueJobs() {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, sqlite.Memory)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	client := stint.NewClient(store)

	type page struct{ ID, Revision int }
	reindex := stint.NewKind[page]("reindex", stint.UniqueUntilEnded(stint.By("/ID"), stint.OrReplace()))

	first, _ := reindex.EnqueueReceipt(ctx, client, page{7, 1}, stint.Delay(time.Minute))
	second, _ := reindex.EnqueueReceipt(ctx, client, page{7, 2}, stint.Delay(time.Minute))
	third, err := reindex.EnqueueReceipt(ctx, client, page{7, 3}, stint.UniqueUntilEnded(stint.By("/ID")))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("replaced the first:", second.Replaced == first.ID)
	fmt.Println("duplicate of the second:", third.Duplicate, third.ID == second.ID, third.State)
	// Output:
	// replaced the first: true
	// duplicate of the second: true true scheduled
}

// Many changes of a document in a short time send one mail: five seconds after the last one, but no later
// than a minute after the first.
func Example_debounce() {
	ctx := context.Background()
	db, err := sqlite.Open(ctx, sqlite.Memory)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	client := stint.NewClient(db)

	type change struct{ Document, Revision int }
	notify := stint.NewKind[change]("notify", stint.UniqueUntilStarted(stint.By("/Document"), stint.OrDebounce(time.Minute)))

	for revision := range 3 {
		if _, err := notify.Enqueue(ctx, client, change{7, revision}, stint.Delay(5*time.Second)); err != nil {
			log.Fatal(err)
		}
	}
	jobs, err := db.Jobs(ctx, store.Filter{Limit: 10, States: []stint.State{stint.Scheduled}})
	if err != nil {
		log.Fatal(err)
	}
	for _, job := range jobs {
		fmt.Println("waits:", string(job.Args))
	}
	// Output:
	// waits: {"Document":7,"Revision":2}
}
