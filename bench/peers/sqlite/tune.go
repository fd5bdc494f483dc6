package main

import "fmt"

// How many workers River and backlite did best with; README.md has the figures.
const (
	riverWorkers    = 1000
	backliteWorkers = 100
)

// others are the peers with other settings, to find which are best.
func others() []contestant {
	all := []contestant{riverBest(riverWorkers)}
	for _, n := range []int{50, 200, 1000, 5000} {
		c := riverBest(n)
		c.name = fmt.Sprintf("River, %d workers", n)
		all = append(all, c)
	}
	for _, n := range []int{1, 10, 100, 1000, 5000} {
		c := backliteBest(n)
		c.name = fmt.Sprintf("backlite, %d workers", n)
		all = append(all, c)
	}
	return all
}
