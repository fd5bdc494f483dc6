package main

import "fmt"

// How many workers River and backlite did best with; README.md has the figures.
const (
	riverWorkers    = 200
	backliteWorkers = 1000
)

// others are the peers with other settings, to find which are best. More than
// one connection is none of them: then both fail now and then, because the
// database is locked.
func others() []contestant {
	all := []contestant{riverBest(riverWorkers)}
	for _, n := range []int{50, 200, 1000, 5000} {
		c := riverBest(n)
		c.name += fmt.Sprintf(", %d workers", n)
		all = append(all, c)
	}
	for _, n := range []int{100, 1000, 5000} {
		c := backliteBest(n)
		c.name += fmt.Sprintf(", %d workers", n)
		all = append(all, c)
	}
	return all
}
