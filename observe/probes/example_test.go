package probes_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/observe/probes"
	"github.com/stint-go/stint/sqlite"
)

func Example() {
	ctx, stop := context.WithCancel(context.Background())
	store, err := sqlite.Open(ctx, sqlite.Memory)
	if err != nil {
		panic(err)
	}
	joined := make(chan struct{})
	worker, err := engine.New(store, stint.NewMux(), engine.Config{OnEvent: func(e event.Event) {
		if e.Type == event.EventJoined {
			close(joined)
		}
	}})
	if err != nil {
		panic(err)
	}
	// In a program: mux.Handle("/", probes.Handler(worker)) on a server with
	// timeouts of its own.
	server := httptest.NewServer(probes.Handler(worker))
	defer server.Close()
	ask := func() {
		answer, err := http.Get(server.URL + "/readyz")
		if err != nil {
			panic(err)
		}
		defer answer.Body.Close()
		fmt.Println(answer.Status)
	}
	ask()
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	select {
	case <-joined:
	case <-time.After(time.Minute):
	}
	ask()
	stop()
	<-done
	ask()
	// Output:
	// 503 Service Unavailable
	// 200 OK
	// 503 Service Unavailable
}
