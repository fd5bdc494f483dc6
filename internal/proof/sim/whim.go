package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// whim is one job that its client thinks better of at a moment of its life.
type whim struct {
	when  moment
	does  wish
	dice  dice
	begun chan struct{} // an attempt of the job begins
	ended chan struct{} // and ends
}

// wish is what a client wants of its job by then.
type wish int

const (
	itCancelled wish = iota
	itAgain
	itGone
)

// comeTrue does what the client wants, of others too if it is careless.
func (h *whim) comeTrue(p *process, job stint.ID, others []stint.ID) {
	switch h.does {
	case itCancelled:
		p.cancelSome(h.dice, job, others)
	case itAgain:
		p.againSome(h.dice, []stint.ID{job})
	case itGone:
		p.tidy(h.dice, job)
	}
}

// moment is when a client thinks so.
type moment int

const (
	anyTime   moment = iota // wherever it is by then
	atOnce                  // when it is there
	whenDue                 // when it is promoted, or just before or behind
	whenBegun               // when an attempt of it runs
	whenEnded               // when the end of one is being recorded
	whenDone                // when it has most likely ended
	moments
)

func newWhim(d dice) *whim {
	return &whim{when: moment(d.IntN(int(moments))), dice: d, begun: make(chan struct{}, 1), ended: make(chan struct{}, 1)}
}

// expect remembers a whim before its job is there.
func (w *world) expect(key string, h *whim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.whims[key] = h
}

// begins and ends tell whoever waits for it.
func (w *world) begins(a args) { w.signal(a, func(h *whim) chan struct{} { return h.begun }) }
func (w *world) ends(a args)   { w.signal(a, func(h *whim) chan struct{} { return h.ended }) }

func (w *world) signal(a args, which func(h *whim) chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h := w.whims[a.Key]; h != nil {
		select {
		case which(h) <- struct{}{}:
		default:
		}
	}
}

// comes waits until the moment comes, in the life of a job that is due after a
// delay; false says that the trouble is over before.
func (h *whim) comes(w *world, delay time.Duration) bool {
	d := h.dice
	var event chan struct{}
	var after time.Duration
	switch h.when {
	case anyTime:
		after = d.between(0, 20*time.Second)
	case atOnce:
		after = d.between(0, 5*time.Millisecond)
	case whenDue:
		after = max(0, delay+d.between(-3*time.Millisecond, 5*time.Millisecond))
	case whenBegun:
		event, after = h.begun, d.between(0, time.Second)
	case whenEnded:
		event, after = h.ended, d.between(0, 5*time.Millisecond)
	case whenDone:
		after = d.between(15*time.Second, 30*time.Second)
	}
	if event != nil {
		select {
		case <-event:
		case <-time.After(30 * time.Second):
		case <-w.calm:
			return false
		}
	}
	select {
	case <-time.After(after):
		return true
	case <-w.calm:
		return false
	}
}

// cancelSome cancels a job, at times with others and with some that do not
// exist, and at times again when it does not know what came of it.
func (p *process) cancelSome(d dice, job stint.ID, others []stint.ID) {
	ids := []stint.ID{job}
	if d.chance(15) {
		for range 1 + d.IntN(4) {
			ids = append(ids, others[d.IntN(len(others))])
		}
	}
	if d.chance(10) {
		ids = append(ids, stint.ID(1<<40+d.Int64N(1<<40)), job)
	}
	for try := range 5 {
		ctx, cancel := context.WithTimeout(context.Background(), d.between(time.Second, 10*time.Second))
		_, err := p.Cancel(ctx, slices.Clone(ids), fmt.Sprintf("%s does not want job %d, call %d", p.name, job, try+1))
		cancel()
		if err == nil || d.chance(30) || p.w.over.Load() {
			return
		}
	}
}

// regret has a client cancel something that an engine holds: before its burial,
// beside it, or just after.
func (w *world) regret(d dice, engine store.EngineID) {
	ctx := context.Background()
	claims, err := w.real.Held(ctx, engine, 0)
	if err != nil || len(claims) == 0 {
		return
	}
	claim := claims[d.IntN(len(claims))]
	at := claim.Positions[d.IntN(len(claim.Positions))]
	entries, err := w.real.Fetch(ctx, []store.Position{at})
	if err != nil || len(entries) != 1 {
		return
	}
	client := w.clients[d.IntN(len(w.clients))]
	after := d.between(0, 4*time.Millisecond)
	if d.chance(20) {
		after = d.between(0, time.Second)
	}
	own := roll(w.seed.N, client.name+"regrets", int(entries[0].ID)) // d goes on beside it
	w.strays.Go(func() {
		time.Sleep(after)
		client.cancelSome(own, entries[0].ID, []stint.ID{entries[0].ID})
	})
}
