package sim

import (
	"sync"
	"time"

	"github.com/stint-go/stint"
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

func (w *world) newProcess(name string, weather int) (*process, error) {
	history, err := check.Create(w.historyDir, name)
	if err != nil {
		return nil, err
	}
	w.keepLog(history)
	return &process{w: w, name: name, store: w.store, weather: weather, history: history, gone: make(chan struct{}),
		inHand: map[stint.ID]holding{}, unread: map[store.Position]holding{}, commit: map[store.Position]commitment{},
		running: map[pool]int{}}, nil
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
