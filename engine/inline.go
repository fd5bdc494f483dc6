package engine

import (
	"sync"

	"github.com/stint-go/stint/store"
)

// inlineRuns are the runs of a session that callers brought. Their slot numbers follow those of the
// session's own slots.
type inlineRuns struct {
	first int // the first slot number

	mu      sync.Mutex
	closed  bool                   // no more may enter
	slots   map[int]store.Position // what they work on
	running sync.WaitGroup
}

// enter notes a run; false means that the session takes no more.
func (g *inlineRuns) enter(stopping <-chan struct{}) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-stopping:
		return false
	default:
	}
	if !g.closed {
		g.running.Add(1)
	}
	return !g.closed
}

func (g *inlineRuns) leave() { g.running.Done() }

// close lets no more runs in, and waits until all have left.
func (g *inlineRuns) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.running.Wait()
}

// begin takes the first free slot number and notes what is worked on there.
func (g *inlineRuns) begin(pos store.Position) (slot int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.slots == nil {
		g.slots = map[int]store.Position{}
	}
	slot = g.first
	for g.slots[slot] != 0 {
		slot++
	}
	g.slots[slot] = pos
	return slot
}

func (g *inlineRuns) end(slot int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.slots, slot)
}

// positions lists what inline runs work on.
func (g *inlineRuns) positions() []store.Position {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := make([]store.Position, 0, len(g.slots))
	for _, pos := range g.slots {
		list = append(list, pos)
	}
	return list
}
