package stint_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/outside"
	"github.com/stint-go/stint/sqlite"
)

// Large arguments are kept outside of the database, and handlers see them as they were.
func ExampleClient_Outside() {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, sqlite.Memory)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	dir, err := os.MkdirTemp("", "stint")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	kind := stint.NewKind[string]("count")
	client := stint.NewClient(store).Outside(outside.Dir(dir), 64<<10)
	mux := stint.NewMux()
	stint.Handle(mux, kind, func(_ context.Context, _ *stint.Job, text string) error {
		fmt.Println(len(text), "bytes")
		return nil
	})
	e, err := engine.New(store, mux, engine.Config{Client: client})
	if err != nil {
		log.Fatal(err)
	}
	id, err := kind.Enqueue(ctx, client, strings.Repeat("x", 3_000_000))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := e.RunReady(ctx, nil); err != nil {
		log.Fatal(err)
	}
	stored, err := store.Job(ctx, id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(stored.Args))
	// Output:
	// 3000000 bytes
	// {"$outside":{"bytes":3000002,"sha256":"3bc98639a19511f01e224060b1978e70fb84fd1b44dd8c9d9ac6c76eaec80289"}}
}
