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
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/store"
)

// process is one life of a program: an engine with its handlers, or a
// producer. It is the wall between the program and the world: whatever the
// program does passes awake, and whatever it wants of the store passes call.
type process struct {
	w       *world
	name    string   // new for each life
	store   anyStore // the real one, with the planted bug
	weather int
	history *check.Writer
	gone    chan struct{} // closed when it is killed

	// Of its engine, if it has one.
	stop  func() // tells it to stop
	ttl   time.Duration
	slots int
	pools map[string]int

	gathers bool // it takes the jobs of the kind together in batches

	mu     sync.Mutex // guards what follows; held by no one who waits
	thaw   chan struct{}
	frozen check.Instant
	cut    cut
	heal   chan struct{} // closed when the cut is over; nil when there is none
	ops    [ops]int
	token  store.EngineID // under which it joined last
	inHand map[stint.ID]holding
	unread map[store.Position]holding // claimed and not yet read

	effects int // that its handlers began
	commit  map[store.Position]commitment
	uneasy  time.Time      // when something happened to it last that may keep it from hearing
	asking  [ops]time.Time // since when it has been asking this; zero when it is not

	since   time.Time            // when its engine joined
	paused  map[string]time.Time // the queues that its engine knows to be paused, and since when
	running map[pool]int         // how many run
}

// cut is a way of being cut off.
type cut string

const (
	connected cut = ""
	refusing  cut = "refusing" // every call fails at once
	silent    cut = "silent"   // calls are swallowed
	oneWay    cut = "one-way"  // calls arrive, answers are swallowed
)

func (w *world) newProcess(name string, weather int) *process {
	history := must(check.Create(w.historyDir, name))
	w.mu.Lock()
	w.logs = append(w.logs, history)
	w.mu.Unlock()
	return &process{w: w, name: name, store: w.store, weather: weather, history: history, gone: make(chan struct{}),
		inHand: map[stint.ID]holding{}, unread: map[store.Position]holding{}, commit: map[store.Position]commitment{},
		running: map[pool]int{}}
}

// awake returns when the process is not frozen; false says that it is dead.
func (p *process) awake() bool {
	for {
		if p.dead() {
			return false
		}
		p.mu.Lock()
		thaw := p.thaw
		p.mu.Unlock()
		if thaw == nil {
			return true
		}
		select {
		case <-thaw:
		case <-p.gone:
		}
	}
}

func (p *process) dead() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// log writes to the history, unless the process is dead.
func (p *process) log(write func(w *check.Writer)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dead() {
		write(p.history)
	}
}

// retire tells its engine to stop.
func (p *process) retire() {
	p.w.disturb(check.Disturbance{Does: check.Stops, Process: p.name, From: check.Now()})
	p.stop()
}

// kill ends the process where it stands. What remains of its engine is also
// told to stop, lest it go on joining for ever.
func (p *process) kill() {
	if p.stop != nil {
		defer p.stop()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead() {
		return
	}
	close(p.gone)
	now := check.Now()
	if p.thaw != nil {
		p.w.disturb(check.Disturbance{Does: check.Freezes, Process: p.name, From: p.frozen, To: now})
		p.thaw = nil
	}
	p.w.disturb(check.Disturbance{Does: check.Kills, Process: p.name, From: now})
	p.w.note(p.name, nil, "KILLED")
}

func (p *process) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.thaw, p.frozen = make(chan struct{}), check.Now()
	p.uneasy = time.Now()
	p.w.note(p.name, nil, "FROZEN")
}

func (p *process) unfreeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.thaw == nil {
		return
	}
	p.w.disturb(check.Disturbance{Does: check.Freezes, Process: p.name, From: p.frozen, To: check.Now()})
	p.w.note(p.name, nil, "THAWED")
	close(p.thaw)
	p.thaw = nil
	p.uneasy = time.Now()
}

func (p *process) cutOff(how cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut, p.heal = how, make(chan struct{})
	p.uneasy = time.Now()
	p.w.disturb(check.Disturbance{Does: check.CutsOff, Process: p.name, From: check.Now()})
	p.w.note(p.name, nil, "CUT OFF, %s", how)
}

func (p *process) reconnect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.heal != nil {
		p.w.note(p.name, nil, "CONNECTED AGAIN")
		close(p.heal)
		p.cut, p.heal = connected, nil
		p.uneasy = time.Now()
	}
}

// line is how the process is connected now.
func (p *process) line() (cut, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut, p.heal
}

// fate draws the fate of the next call of a kind.
func (p *process) fate(o op) fate {
	p.mu.Lock()
	n := p.ops[o]
	p.ops[o]++
	p.mu.Unlock()
	weather := p.weather
	if p.w.over.Load() {
		weather = -1
	}
	f := fateOf(roll(p.w.seed.N, p.name+o.String(), n), o, weather)
	f.n = n
	return f
}

// count is how many calls of a kind there were.
func (p *process) count(o op) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ops[o]
}

func (p *process) joined(token store.EngineID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.token, p.since, p.paused = token, time.Now(), nil
}

func (p *process) engine() store.EngineID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.token
}

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

	// gathers is how they take the jobs of the kind together; zero for one by one.
	gathers stint.Gathering
	desk    bool // they do nothing but what callers bring
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
	m.config.MaxOutage = -1
	if sessions := roll(w.seed.N, "machine keeps a session", number); w.seed.Age < Beating && sessions.chance(70) {
		m.config.MaxOutage = sessions.between(m.config.TimeToLive, 2*m.config.TimeToLive)
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
	if d := roll(w.seed.N, "machine gathers", number); w.seed.Age < Apart && d.chance(40) {
		m.gathers = stint.Gather(1+d.IntN(20), d.between(0, 2*time.Second))
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
		l := m.start(n)
		last := m.trouble(l)
		l.callers.Wait()
		if last {
			return
		}
		m.w.rest(m.dice.between(0, 8*time.Second))
	}
}

// start starts an engine in a process of its own.
func (m *machine) start(n int) *life {
	weather := weathers[m.dice.IntN(len(weathers))]
	p := m.w.newProcess(fmt.Sprintf("m%d.%d", m.number, n), weather)
	c := m.config
	c.Instance = p.name
	if m.dice.chance(50) {
		c.Instance = fmt.Sprintf("m%d", m.number) // the same in each life
	}
	c.OnEvent = p.event
	c.QueueSlots = crowd(m.w.bug, c.QueueSlots)
	e := must(engine.New(p.seen(m.deaf), m.mux(p), c))
	ctx, stop := context.WithCancel(context.Background())
	p.stop, p.ttl, p.slots, p.pools, p.gathers = stop, c.TimeToLive, m.config.Slots, m.config.QueueSlots, m.gathers.Jobs > 0
	l := &life{process: p, ended: make(chan error, 1)}
	m.w.note(p.name, nil, "STARTED with %d slots %v, %v to live, kinds %v, weather %d", c.Slots, c.QueueSlots, c.TimeToLive, m.kinds, weather)
	m.work(ctx, l, e)
	return l
}

// mux is what its engines can do.
func (m *machine) mux(p *process) *stint.Mux {
	mux := stint.NewMux()
	for _, kind := range m.kinds {
		if kind == together && m.gathers.Jobs > 0 {
			stint.HandleMany(mux, stint.NewKind[args](kind, stint.Queue(stint.DefaultQueue)), m.gathers, p.performMany)
			continue
		}
		mux.Add(stint.KindInfo{Name: kind, Queue: stint.DefaultQueue, Keep: kind == kept}, p.perform)
	}
	m.declare(mux)
	if m.w.seed.Age < Boundless {
		for name, rule := range limitRules {
			mux.Limit(name, rule)
		}
	}
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
		select {
		case <-time.After(m.dice.between(500*time.Millisecond, 15*time.Second)):
		case <-m.w.calm:
		case err := <-l.ended:
			return m.over(l, err)
		}
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
		m.w.rest(long)
		if d.chance(10) {
			l.kill()
		}
		l.unfreeze()
	case 3, 4, 5:
		l.cutOff([]cut{refusing, silent, oneWay}[d.IntN(3)])
		m.w.rest(long)
		l.reconnect()
	case 6, 7:
		l.kill()
	default:
		m.w.note(l.name, nil, "told to STOP")
		l.retire()
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

// newDesk is a place where somebody has jobs run by hand, in some seeds.
func (w *world) newDesk() *machine {
	const number = 9 // no machine's
	if w.seed.Age >= Twisted || !roll(w.seed.N, "desk", 0).chance(40) {
		return nil
	}
	m := w.newMachine(number)
	m.kinds, m.desk = append(slices.Clone(kinds), kept), true
	return m
}

// work lets an engine run and in some lives callers bring jobs along; at a desk
// there are only these.
func (m *machine) work(ctx context.Context, l *life, e *engine.Engine) {
	d := roll(m.w.seed.N, l.name+"calls", 0)
	switch {
	case m.desk:
		go func() {
			l.callSome(ctx, d, e, m.kinds, 10*time.Second)
			<-ctx.Done()
			l.ended <- nil
		}()
		return
	case m.w.seed.Age < Twisted && len(m.kinds) > 0 && d.chance(20):
		l.callers.Go(func() { l.callSome(ctx, d, e, m.kinds, 15*time.Second) })
	}
	go func() { l.ended <- e.Run(ctx) }()
}
