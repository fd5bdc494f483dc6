package main

import "fmt"

// How many workers River and backlite did best with; README.md has the figures.
const (
	riverWorkers    = 1000
	backliteWorkers = 100
)

// others are the peers with other settings, to find which are best.
func others() []contestant {
	all := []contestant{riverBest(riverWorkers, 1)}
	add := func(c contestant, conns int) {
		c.name += fmt.Sprintf(", %d workers, %d connections", c.workers, conns)
		all = append(all, c)
	}
	for _, n := range []int{50, 200, 1000, 5000} {
		add(riverBest(n, 1), 1)
	}
	for _, conns := range []int{1, 4} {
		for _, n := range []int{100, 1000, 5000} {
			add(backliteBest(n, conns), conns)
		}
	}
	return all
}
