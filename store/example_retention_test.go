package store_test

import (
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// What is said of a queue wins over what is said of all.
func ExampleRetention() {
	r := store.Retention{
		KeepFor: store.KeepFor{Failed: 30 * 24 * time.Hour},
		Queues:  map[string]store.KeepFor{"mail": {All: time.Hour}},
	}
	fmt.Println(r.Of("default", stint.Completed), r.Of("default", stint.Failed), r.Of("mail", stint.Failed))
	// Output: 120h0m0s 720h0m0s 1h0m0s
}
