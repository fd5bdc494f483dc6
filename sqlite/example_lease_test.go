package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/sqlite"
)

// A program can have leases of its own for what one of its engines does.
func ExampleStore_Acquire() {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, sqlite.Memory)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	engine := stint.EngineInfo{Token: 1, Instance: "first", Slots: 1, TimeToLive: time.Minute} // an engine joins by itself
	if err := store.Join(ctx, engine, nil); err != nil {
		log.Fatal(err)
	}
	lease, err := store.Acquire(ctx, "nightly report", engine.Token, time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Name, "is held by", lease.Instance, "for", lease.Expires.Sub(lease.Renewed))
	// Output: nightly report is held by first for 1m0s
}
