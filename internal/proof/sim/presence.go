package sim

import (
	"time"

	"github.com/stint-go/stint/store"
)

// presence is the session by which the server knows that an engine's process lives, as package
// postgres keeps one. The network may end it in either way: a line that refuses calls has reset it,
// and both sides know; on one that is silent it stands until the server has heard nothing for four
// thirds of the longest outage.
type presence struct {
	process  *process
	outage   time.Duration
	answered time.Time // when the server was heard last; guarded by world.mu, as what follows
	busy     bool      // the last beat said that something runs
}

// ask has the server heard if the line lets it.
func (one *presence) ask() {
	p := one.process
	if how, _ := p.line(); how == "" {
		p.w.mu.Lock()
		one.answered = time.Now()
		p.w.mu.Unlock()
	}
}

// beaten notes whether something runs. The server is asked when something begins, and seldom while nothing does.
func (one *presence) beaten(busy bool) {
	p := one.process
	p.w.mu.Lock()
	begins := busy && !one.busy
	one.busy = busy
	p.w.mu.Unlock()
	if begins {
		one.ask()
	}
}

// due reports whether the server is to be asked.
func (one *presence) due() bool {
	one.process.w.mu.Lock()
	defer one.process.w.mu.Unlock()
	return one.busy || time.Since(one.answered) >= min(one.outage/5, 15*time.Second)
}

// appear has an engine keep a session, if its seed has any.
func (p *process) appear(e store.EngineInfo) {
	if e.MaxOutage == 0 {
		return
	}
	one := &presence{process: p, outage: e.MaxOutage, answered: time.Now()}
	p.w.mu.Lock()
	p.w.presences[e.Token] = one
	p.w.mu.Unlock()
	go func() {
		for p.awake() && p.w.present(e.Token) == one {
			if one.due() {
				one.ask()
			}
			select {
			case <-time.After(e.TimeToLive / 4):
			case <-p.gone:
			}
		}
	}()
}

func (w *world) present(engine store.EngineID) *presence {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.presences[engine]
}

// heard returns when the server was heard last on a session that stands.
func (w *world) heard(one *presence) (at time.Time, stands bool) {
	if one == nil || one.process.dead() {
		return time.Time{}, false
	}
	how, _ := one.process.line()
	w.mu.Lock()
	defer w.mu.Unlock()
	return one.answered, how != refusing && time.Since(one.answered) < one.outage*4/3
}

// Vouches implements [store.LivenessLocker].
func (p *process) Vouches(engine store.EngineID, beat time.Time) time.Time {
	one := p.w.present(engine)
	at, stands := p.w.heard(one)
	if !stands {
		return time.Time{}
	}
	if beat.Before(at) {
		at = beat
	}
	return at.Add(one.outage)
}

// Release implements [store.LivenessLocker].
func (p *process) Release(engine store.EngineID) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	delete(p.w.presences, engine)
}

// spares reports whether an engine is left alone, though it does not beat, by somebody who saw no
// beat of it for a time.
func (w *world) spares(b store.Burial) bool {
	one := w.present(b.Engine)
	_, stands := w.heard(one)
	return b.Unless > 0 && stands && b.Silent < one.outage*4/3
}
