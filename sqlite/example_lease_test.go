package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// A program can have leases of its own for what one of its engines does.
func ExampleStore_Acquire() {
	ctx := context.Background()
	st, err := sqlite.Open(ctx, sqlite.Memory)
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	engine := store.EngineInfo{Token: 1, Instance: "first", Slots: 1, TimeToLive: time.Minute} // an engine joins by itself
	if err := st.Join(ctx, engine, nil); err != nil {
		log.Fatal(err)
	}
	lease, err := st.Acquire(ctx, "nightly report", engine.Token, time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Name, "is held by", lease.Instance, "for", lease.Expires.Sub(lease.Renewed))
	// Output: nightly report is held by first for 1m0s
}
