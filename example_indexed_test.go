package stint_test

import (
	"context"
	"fmt"
	"log"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// Jobs are found by an argument that people ask for, however many others there are.
func ExampleIndexed() {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, sqlite.Memory)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	type shipment struct {
		Order int `json:"order"`
	}
	ship := stint.NewKind[shipment]("ship", stint.Indexed("/order"))
	client := stint.NewClient(s)
	for order := 4710; order <= 4712; order++ {
		if _, err := ship.Enqueue(ctx, client, shipment{order}); err != nil {
			log.Fatal(err)
		}
	}

	found, err := s.Jobs(ctx, store.Filter{Tag: "order=4711"}) // in the search of the dashboard: args.order = 4711
	if err != nil {
		log.Fatal(err)
	}
	for _, job := range found {
		fmt.Println(job.Kind, string(job.Args), job.Tags)
	}
	// Output:
	// ship {"order":4711} [order=4711]
}
