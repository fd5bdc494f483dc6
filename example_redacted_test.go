package stint_test

import (
	"context"
	"fmt"
	"log"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/sqlite"
)

// What is redacted is not shown to people, and in clear for handlers.
func ExampleRedact() {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, sqlite.Memory)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	type account struct {
		User  int    `json:"user"`
		Token string `json:"token"`
	}
	kind := stint.NewKind[account]("sync", stint.Redact("/token"))
	mux := stint.NewMux()
	stint.Handle(mux, kind, func(_ context.Context, _ *stint.Job, a account) error {
		fmt.Println("sync", a.User, "with", a.Token)
		return nil
	})
	e, err := engine.New(store, mux, engine.Config{})
	if err != nil {
		log.Fatal(err)
	}
	id, err := kind.Enqueue(ctx, stint.NewClient(store), account{User: 7, Token: "s3cret"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := e.RunReady(ctx, nil); err != nil {
		log.Fatal(err)
	}

	shown, err := ops.Show(store).Job(ctx, id) // as pages, the API and the command show it
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(shown.Args))
	// Output:
	// sync 7 with s3cret
	// {"token":"[redacted]","user":7}
}
