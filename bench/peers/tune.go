package main

import (
	"fmt"
	"time"

	"github.com/stint-go/stint/bench/contest"
)

// tune is the bout of River with itself: what is called its best settings, and
// others that differ in one of them. It is how they were found, and how to find
// others on another machine.
func tune(s *server, o options) contest.Bout {
	b := burn(s, o)
	b.Name = "tune"
	b.Entrants = nil
	b.Entrants = append(b.Entrants, burnEntrant(s, o, riverBest.contestant("River, tuned")))
	vary := func(name string, change func(*riverSettings)) {
		other := riverBest
		change(&other)
		if other != riverBest {
			b.Entrants = append(b.Entrants, burnEntrant(s, o, other.contestant(name)))
		}
	}
	for _, n := range []int{500, 1000, 2000, 4000, 10_000} {
		vary(fmt.Sprintf("%d workers", n), func(r *riverSettings) { r.workers = n })
	}
	for _, d := range []time.Duration{time.Millisecond, 2 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond} {
		vary(fmt.Sprintf("cooldown %v", d), func(r *riverSettings) { r.cooldown, r.poll = d, max(d, r.poll) })
	}
	for _, n := range []int{5, 10, 100} {
		vary(fmt.Sprintf("%d connections", n), func(r *riverSettings) { r.conns = n })
	}
	for _, n := range []int{1000, 5000, 20_000} {
		vary(fmt.Sprintf("batches of %d", n), func(r *riverSettings) { r.batch = n })
	}
	for _, n := range []int{1, 2, 4} {
		vary(fmt.Sprintf("clients: %d", n), func(r *riverSettings) { r.clients = n })
	}
	return b
}
