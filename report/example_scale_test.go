package report_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/sqlite"
)

// A program that starts engines asks how many are wanted; here before the first one runs.
func ExampleScale() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := sqlite.Open(ctx, filepath.Join(dir, "jobs.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	client := stint.NewClient(store)
	mail := stint.NewKind[string]("mail")
	for range 90 {
		if _, err := mail.Enqueue(ctx, client, "hello"); err != nil {
			log.Fatal(err)
		}
	}
	s, err := report.Scale(ctx, store, report.ScaleFilter{Target: 10 * time.Second, Slots: 4, Max: 20, Kinds: []string{"mail"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Engines, "engines for", s.Backlog, "jobs")
	for _, why := range s.Why {
		fmt.Println(why)
	}
	// Output:
	// 3 engines for 90 jobs
	// kind mail has not run in the last week: an attempt is taken to last 1s
}
