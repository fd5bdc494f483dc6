package engine

import (
	"sync"

	"github.com/stint-go/stint"
)

// guests are the runs of a session that callers brought along. They have seats
// behind the slots that work: numbers that none of these has.
type guests struct {
	first int // the first seat

	mu    sync.Mutex
	over  bool                   // no more may enter
	seats map[int]stint.Position // what they work on
	here  sync.WaitGroup
}

// enter lets a guest in, unless the session takes no more work.
func (g *guests) enter(stopping <-chan struct{}) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-stopping:
		return false
	default:
	}
	if !g.over {
		g.here.Add(1)
	}
	return !g.over
}

func (g *guests) leave() { g.here.Done() }

// shut lets nobody in any more, and waits until all have left.
func (g *guests) shut() {
	g.mu.Lock()
	g.over = true
	g.mu.Unlock()
	g.here.Wait()
}

// sit takes the first seat that is free, and says what is worked on there.
func (g *guests) sit(pos stint.Position) (seat int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.seats == nil {
		g.seats = map[int]stint.Position{}
	}
	seat = g.first
	for g.seats[seat] != 0 {
		seat++
	}
	g.seats[seat] = pos
	return seat
}

func (g *guests) rise(seat int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.seats, seat)
}

// positions lists what guests work on.
func (g *guests) positions() []stint.Position {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := make([]stint.Position, 0, len(g.seats))
	for _, pos := range g.seats {
		list = append(list, pos)
	}
	return list
}
