package sim

import (
	"sync"

	"github.com/stint-go/stint/store"
)

// transactions are those that engines have begun and not ended.
type transactions struct {
	mu   sync.Mutex
	open map[store.EngineID][]*transaction
}

type transaction struct {
	mu             sync.Mutex
	evicted, ended bool
}

// begin notes a transaction of an engine. The function ends it, and tells
// whether somebody else had ended it before.
func (l *transactions) begin(engine store.EngineID) (end func() (evicted bool)) {
	x := new(transaction)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[store.EngineID][]*transaction{}
	}
	l.open[engine] = append(l.open[engine], x)
	return func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.ended = true
		return x.evicted
	}
}

// block tells whether one stands in the way of the engine's burial.
func (l *transactions) block(engine store.EngineID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.open[engine] {
		if x.stands() {
			return true
		}
	}
	return false
}

func (x *transaction) stands() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !x.evicted && !x.ended
}

// evict ends all of the engine's.
func (l *transactions) evict(engine store.EngineID) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, x := range l.open[engine] {
		x.mu.Lock()
		if !x.ended && !x.evicted {
			x.evicted = true
			n++
		}
		x.mu.Unlock()
	}
	delete(l.open, engine)
	return n
}
