package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/sqlite"
)

// How the work goes: the same on PostgreSQL.
func ExampleStore_Analyze() {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, sqlite.Memory)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	jobs := []stint.NewJob{
		{Kind: "send_invoice", Queue: "mail", Args: []byte(`{"customer": 42}`)}, {Kind: "send_invoice", Queue: "mail", Args: []byte(`{"customer": 7}`)},
		{Kind: "send_invoice", Queue: "mail", Args: []byte(`{"customer": 42}`)}, {Kind: "clean_up", Delay: time.Hour},
	}
	if _, err := stint.NewClient(store).EnqueueMany(ctx, jobs); err != nil {
		log.Fatal(err)
	}

	now, err := store.Analyze(ctx, report.AnalyticsFilter{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(now.Queued, "queued,", now.Postponed, "postponed,", now.Running, "running")
	fmt.Println(now.Ended, "ended in the last minute, 99 % within", now.Execution.P99)

	groups, err := store.DueBy(ctx, "args.customer", report.AnalyticsFilter{Queue: "mail"}, 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, g := range groups {
		fmt.Println("customer", *g.Value, "has", g.Jobs)
	}
	// Output:
	// 3 queued, 1 postponed, 0 running
	// 0 ended in the last minute, 99 % within 0s
	// customer 42 has 2
	// customer 7 has 1
}

// How attempts of each kind went: all that ever began, whether their jobs are
// still there or not.
func ExampleStore_Stats() {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, sqlite.Memory)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	all, err := store.Stats(ctx, report.StatsFilter{Queue: "mail", From: time.Now().Add(-24 * time.Hour)})
	if err != nil {
		log.Fatal(err)
	}
	for _, kind := range report.StatsByKind(all) {
		fmt.Println(kind.Kind, kind.Attempts, kind.Failed(), kind.Took.Mean(), kind.Took.Longest)
	}
	fmt.Println(len(all), "kinds so far")
	// Output: 0 kinds so far
}
