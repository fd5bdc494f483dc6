package sim

import (
	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// holding is the entry of a job that the process got last, and the engine
// that claimed it: what a handler is not told. It was read after the instant
// read, as the world counts.
type holding struct {
	pos    store.Position
	engine store.EngineID
	read   int64

	guest bool // a caller brought it along
}

// reading is what was read from the store after an instant.
type reading[T any] struct {
	what  T
	after int64
}

// gets notes what was read of the entry.
func (h *holding) gets(e *store.Entry, after int64) {
	h.pos, h.read = e.Pos, after
}

// claimed notes what the process gets to see of a claim.
func (p *process) claimed(engine store.EngineID, r reading[store.Claim]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := r.what
	h := holding{engine: engine, guest: c.Lane == store.NowLane}
	for i := range c.Entries {
		h.gets(&c.Entries[i], r.after)
		p.inHand[c.Entries[i].ID] = h
	}
	if len(c.Entries) == 0 {
		for _, pos := range c.Positions {
			p.unread[pos] = h
		}
	}
}

// fetched notes what it reads later.
func (p *process) fetched(r reading[[]store.Entry]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	entries := r.what
	for i := range entries {
		pos := entries[i].Pos
		if h, ok := p.unread[pos]; ok {
			h.gets(&entries[i], r.after)
			p.inHand[entries[i].ID] = h
			delete(p.unread, pos)
		}
	}
}

func (p *process) holding(job stint.ID) holding {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inHand[job]
}
