package prom_test

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/observe/prom"
	"github.com/stint-go/stint/sqlite"
)

func Example() {
	events := prom.NewEvents()
	registry := prometheus.NewRegistry() // or prometheus.DefaultRegisterer
	registry.MustRegister(events)
	store := &sqlite.Store{}
	_, err := engine.New(store, stint.NewMux(), engine.Config{OnEvent: events.On})
	if err != nil {
		panic(err)
	}
	events.On(event.Event{Type: event.EventReturned, Count: 3}) // as the engine does
	n, err := testutil.GatherAndCount(registry, "stint_jobs_returned_total")
	fmt.Println(n, err)
	// Output: 1 <nil>
}
