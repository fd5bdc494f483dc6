package stint_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/seal"
	"github.com/stint-go/stint/sqlite"
)

// What is sealed is encrypted in the database, and in clear for handlers.
func ExampleSealed() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	store, err := sqlite.Open(ctx, sqlite.Memory)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	type payment struct {
		Amount int    `json:"amount"`
		IBAN   string `json:"iban"`
	}
	kind := stint.NewKind[payment]("pay", stint.Sealed("/iban"))
	keys, err := seal.NewRing(seal.Key{ID: "2026-11", Secret: bytes.Repeat([]byte("x"), 32)}) // better from openssl rand 32
	if err != nil {
		log.Fatal(err)
	}
	client := stint.NewClient(store).Seal(keys)
	mux := stint.NewMux()
	stint.Handle(mux, kind, func(_ context.Context, _ *stint.Job, p payment) error {
		fmt.Println("pay", p.Amount, "to", p.IBAN)
		return nil
	})
	e, err := engine.New(store, mux, engine.Config{Client: client})
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()

	id, err := kind.Enqueue(ctx, client, payment{Amount: 100, IBAN: "CH93 0076 2011 6238 5295 7"})
	if err != nil {
		log.Fatal(err)
	}
	if err := kind.Await(ctx, client, id); err != nil {
		log.Fatal(err)
	}
	stored, err := store.Job(ctx, id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the database has the IBAN:", bytes.Contains(stored.Args, []byte("CH93")))
	stop()
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
	// Output:
	// pay 100 to CH93 0076 2011 6238 5295 7
	// the database has the IBAN: false
}
