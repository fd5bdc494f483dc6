package sim

import (
	"maps"
	"slices"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/store"
)

// poolsOf divides the slots of some engines among the queues; together they
// have as many as before, and one more of each that would have none.
func poolsOf(d dice, c engine.Config) engine.Config {
	if !d.chance(30) {
		return c
	}
	first := 1 + d.IntN(c.Slots)
	c.QueueSlots = map[string]int{stint.DefaultQueue: first, "*": max(1, c.Slots-first)}
	if len(c.Queues) > 0 { // it works on the first only
		delete(c.QueueSlots, "*")
	}
	c.Slots = 0
	return c
}

// pool is a part of an engine's slots, by the name that its configuration has
// for it; empty where there is one for all.
type pool struct {
	engine store.EngineID
	name   string
}

// takesSlot notes that an attempt begins in an engine, and checks that the
// engine has a slot for it. The function returned is called at its end.
func (p *process) takesSlot(job *stint.Job, h holding) (leave func()) {
	if h.guest {
		return func() {}
	}
	in, slots := pool{engine: h.engine}, p.slots
	if len(p.pools) > 0 {
		in.name = "*"
		if p.pools[job.Queue] > 0 {
			in.name = job.Queue
		}
		slots = p.pools[in.name]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[in]++
	if n := p.running[in]; n > slots {
		p.w.wrong("job %d: %s runs %d at once of the queue %s, and has %d slots for them", job.ID, p.name, n, job.Queue, slots)
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.running[in]--
	}
}

// crowd gives an engine more slots than it says, where that is planted.
func crowd(bug Bug, pools map[string]int) map[string]int {
	if bug != bugCrowds {
		return pools
	}
	pools = maps.Clone(pools)
	for _, queue := range slices.Collect(maps.Keys(pools)) {
		pools[queue]++
	}
	return pools
}
