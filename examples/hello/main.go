// Hello is a first job: it enqueues a greeting, performs it, and waits for what came of it.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/sqlite"
)

type greeting struct{ Name string }

var greet = stint.NewResultKind[greeting, string]("greet")

func main() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	store, err := sqlite.Open(ctx, "hello.db") // or postgres.Open(ctx, "postgres:///app")
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	mux := stint.NewMux()
	stint.HandleResult(mux, greet, func(ctx context.Context, job *stint.Job, in greeting) (string, error) {
		return "hello " + in.Name, nil // an error has it tried again, longer and longer after each time
	})
	worker, err := engine.New(store, mux, engine.Config{})
	if err != nil {
		log.Fatal(err)
	}
	go worker.Run(ctx) // here, or in any other process

	client := stint.NewClient(store)
	id, err := greet.Enqueue(ctx, client, greeting{"ada"})
	if err != nil {
		log.Fatal(err)
	}
	said, err := greet.Await(ctx, client, id)
	fmt.Println(said, err)
}
