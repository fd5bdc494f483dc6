package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
)

// machine is a place where a supervisor keeps an engine running, and where
// trouble strikes.
type machine struct {
	w      *world
	number int
	dice   dice
	config engine.Config
	kinds  []string
	deaf   bool // its engines cannot listen
	judges bool // they have the retry function
	desk   bool // they do nothing but what callers bring
}

func (w *world) newMachine(number int) *machine {
	d := roll(w.seed.N, "machine", number)
	m := &machine{w: w, number: number, dice: d, kinds: kinds, deaf: d.chance(20)}
	m.config = engine.Config{
		Slots:      1 + d.IntN(8),
		TimeToLive: []time.Duration{2 * time.Second, 4 * time.Second, 6 * time.Second}[d.IntN(3)],
		Grace:      d.between(100*time.Millisecond, 5*time.Second),
		Retention:  w.retention,
		LeaseFor:   roll(w.seed.N, "machine leads", number).between(2*time.Second, 10*time.Second),
	}
	if number > 0 { // the first can do everything
		m.kinds = nil
		for _, kind := range kinds {
			if d.chance(70) {
				m.kinds = append(m.kinds, kind)
			}
		}
		if d.chance(30) {
			m.config.Queues = []string{stint.DefaultQueue}
		}
	}
	if w.seed.Age < Plain && (number == 0 || roll(w.seed.N, "machine keeps", number).chance(70)) {
		m.kinds = append(slices.Clone(m.kinds), kept)
	}
	if w.seed.Age < Twisted {
		m.config = poolsOf(roll(w.seed.N, "machine pools", number), m.config)
		m.judges = number == 0 || roll(w.seed.N, "machine judges", number).chance(40)
	}
	return m
}

// life is one running engine.
type life struct {
	*process
	ended   chan error
	callers sync.WaitGroup
}

// keep runs one engine after the other until the world says that it is time
// to stop the last.
func (m *machine) keep() {
	for n := 1; ; n++ {
		l, err := m.start(n)
		if err != nil {
			m.w.wrong("machine %d: %v", m.number, err)
			return
		}
		last := m.trouble(l)
		l.callers.Wait()
		if last {
			return
		}
		timer := time.NewTimer(m.dice.between(0, 8*time.Second))
		select {
		case <-timer.C:
		case <-m.w.calm:
		}
		timer.Stop()
	}
}

// start starts an engine in a process of its own.
func (m *machine) start(n int) (*life, error) {
	weather := weathers[m.dice.IntN(len(weathers))]
	p, err := m.w.newProcess(fmt.Sprintf("m%d.%d", m.number, n), weather)
	if err != nil {
		return nil, err
	}
	c := m.config
	c.Instance = p.name
	if m.dice.chance(50) {
		c.Instance = fmt.Sprintf("m%d", m.number) // the same in each life
	}
	c.OnEvent = p.event
	c.QueueSlots = crowd(m.w.bug, c.QueueSlots)
	e, err := engine.New(p.seen(m.deaf), m.mux(p), c)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop, p.ttl, p.slots, p.pools = stop, c.TimeToLive, m.config.Slots, m.config.QueueSlots
	l := &life{process: p, ended: make(chan error, 1)}
	m.w.note(p.name, nil, "STARTED with %d slots %v, %v to live, kinds %v, weather %d", c.Slots, c.QueueSlots, c.TimeToLive, m.kinds, weather)
	m.work(ctx, l, e)
	return l, nil
}

// mux is what its engines can do.
func (m *machine) mux(p *process) *stint.Mux {
	mux := stint.NewMux()
	for _, kind := range m.kinds {
		mux.Add(stint.KindInfo{Name: kind, Queue: stint.DefaultQueue, Keep: kind == kept}, p.perform)
	}
	m.declare(mux)
	if m.judges {
		mux.RetryFunc(judgement, decides)
	}
	return mux
}

// event is told what the engine does, and holds it up while it is frozen.
func (p *process) event(ev event.Event) {
	switch {
	case ev.Type == event.EventStarted, !p.awake():
		return // the handler waits by itself, and knows since when
	case ev.Type == event.EventLeft:
		p.w.left(ev.Engine)
	case ev.Type == event.EventEnded, ev.Type == event.EventTrouble:
		return
	}
	p.w.note(p.name, nil, "event: %s, engine %x, count %d", ev.Type, ev.Engine, ev.Count)
}

// trouble does things to a life until it is over, and reports whether it was
// the last: that is stopped when everything is done, and must end well.
func (m *machine) trouble(l *life) (last bool) {
	for {
		timer := time.NewTimer(m.dice.between(500*time.Millisecond, 15*time.Second))
		select {
		case <-timer.C:
		case <-m.w.calm:
		case err := <-l.ended:
			timer.Stop()
			return m.over(l, err)
		}
		timer.Stop()
		if m.w.over.Load() {
			return m.atLast(l)
		}
		m.strike(l)
	}
}

// strike does one thing to an engine.
func (m *machine) strike(l *life) {
	d := m.dice
	long := d.between(50*time.Millisecond, 3*time.Second)
	if d.chance(50) {
		long = d.between(3*time.Second, 20*time.Second)
	}
	switch d.IntN(10) {
	case 0, 1, 2:
		l.freeze()
		m.pause(long)
		if d.chance(10) {
			l.kill()
		}
		l.unfreeze()
	case 3, 4, 5:
		l.cutOff([]cut{refusing, silent, oneWay}[d.IntN(3)])
		m.pause(long)
		l.reconnect()
	case 6, 7:
		l.kill()
	default:
		m.w.note(l.name, nil, "told to STOP")
		l.retire()
	}
}

func (m *machine) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-m.w.calm:
	}
}

// over ends a process whose engine has returned. What still runs in it dies
// with it.
func (m *machine) over(l *life, err error) (last bool) {
	m.w.note(l.name, nil, "the engine ended: %v", err)
	l.kill()
	return false
}

// atLast lets an engine work until everything is done, and stops it.
func (m *machine) atLast(l *life) bool {
	select {
	case err := <-l.ended:
		return m.over(l, err)
	case <-m.w.done:
	}
	l.retire()
	select {
	case err := <-l.ended:
		// It may have been told to stop while it joined, or while deaf handlers ran.
		if err != nil && !l.dead() && !errors.Is(err, engine.ErrStillRunning) && !errors.Is(err, context.Canceled) {
			m.w.wrong("%s did not stop well: %v", l.name, err)
		}
	case <-time.After(time.Minute):
		m.w.wrong("%s does not stop", l.name)
	}
	l.kill()
	return true
}
