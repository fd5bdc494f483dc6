package shelljob_test

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/jobs/shelljob"
)

func Example() {
	// Where jobs are worked on:
	mux := stint.NewMux()
	shelljob.Register(mux, shelljob.Config{
		Env:   []string{"PATH", "HOME", "PG*"},
		Grace: 10 * time.Second,
	})

	// Where they are made; with a client, Kind.Enqueue does this and stores
	// the job.
	job, err := shelljob.Kind.New(
		shelljob.Args{Argv: []string{"pg_dump", "--file", "shop.sql", "shop"}, Dir: "/backup"},
		stint.Timeout(time.Hour), stint.Tag("backup"),
	)
	fmt.Println(job.Kind, string(job.Args), err)
	// Output: sh {"argv":["pg_dump","--file","shop.sql","shop"],"dir":"/backup"} <nil>
}

func ExampleHandler() {
	// An engine calls the handler; so can a test.
	run := shelljob.Handler(shelljob.Config{})
	job := &stint.Job{ID: 1, Attempt: 1, Args: []byte(`{"shell": "echo hello; exit 2"}`)}
	result, err := run(context.Background(), job)
	fmt.Println(string(result))
	fmt.Println(err)
	// Output:
	// {"exit_code":2,"output":"hello\n"}
	// exit code 2: hello
}
