package stint_test

import (
	"fmt"
	"time"

	"github.com/stint-go/stint"
)

// What is said of a queue wins over what is said of all.
func ExampleRetention() {
	r := stint.Retention{
		Kept:   stint.Kept{Failed: 30 * 24 * time.Hour},
		Queues: map[string]stint.Kept{"mail": {All: time.Hour}},
	}
	fmt.Println(r.Of("default", stint.Completed), r.Of("default", stint.Failed), r.Of("mail", stint.Failed))
	// Output: 120h0m0s 720h0m0s 1h0m0s
}
