// Package coalesce has goroutines that wait for long wake at the same moments. To wake a processor that has nothing else
// to do costs far more than what each of them does then.
package coalesce

import "time"

const (
	apart = 250 * time.Millisecond // how far two such moments are apart
	least = time.Second            // what is shorter stays as it is
)

var origin = time.Now() // so that processes have moments of their own

// Wait shortens a wait of a second or more, by less than a quarter of a second, so that it ends when other such waits
// of the process do.
func Wait(d time.Duration) time.Duration {
	if d < least {
		return d
	}
	over := (time.Since(origin) + d) % apart
	if over < 0 { // the clock of a test
		over += apart
	}
	return d - over
}
