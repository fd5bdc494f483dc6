//go:build unix

package chaos

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint/internal/proof/pgtest"
)

// Mixed does everything to a fleet at once, for a while and as a seed says.
// The order and the times of what it does come from the seed; what that meets
// does not, so a seed run again is much the same run, and no more. Whatever
// is nil, nothing is done to or by.
type Mixed struct {
	T       testing.TB
	Fleet   *Fleet
	Rand    *rand.Rand
	Workers []Kept
	TTL     time.Duration // of the workers
	Rest    time.Duration // between two acts, at most; 550 ms if it is 0

	Server  *pgtest.Server
	Ground  *Ground        // past all proxies
	Clients *Proxy         // before the producers
	Steady  string         // the worker that is behind it too
	Standby *pgtest.Server // of the server, which waits for it
	Address *Proxy         // by which all reach the server, and after a failover the other one
	Small   bool           // the servers' disks can be filled
	Clock   bool           // the servers' clocks can be set
	Role    string         // by which the fleet logs in, whose defaults change; who judges has another
	Ages    bool           // the schema is brought to a later version when half of the time is over

	People   *People
	Producer *Producer // who enqueues when it comes up, and not by itself

	dice      *rand.Rand // of the present act: what it meets does not change the next one
	began     time.Time
	long      time.Duration
	restarted time.Time
	aged      bool
	ahead     time.Duration  // the most that a clock was put ahead
	later     sync.WaitGroup // thaws and returns that are still to come

	mu    sync.Mutex
	done  map[string]int // how often each trouble was made
	kinds map[string]int // each decree and each poison
}

// Kept is a worker that is kept running, behind a proxy of its own or none.
type Kept struct {
	*Keeper
	*Proxy
}

// trouble is one thing to do, how often it comes up, and what it needs. It says
// what it did; nothing where that could not be done.
type trouble struct {
	name   string
	weight int
	do     func(m *Mixed, ctx context.Context) string
	can    func(m *Mixed) bool
}

var troubles = []trouble{
	{"kill", 3, (*Mixed).kill, (*Mixed).always},
	{"freeze", 4, (*Mixed).freeze, (*Mixed).always},
	{"renew", 2, (*Mixed).renew, (*Mixed).always},
	{"restart", 2, (*Mixed).restart, (*Mixed).served},
	{"failover", 1, (*Mixed).failOver, (*Mixed).doubled},
	{"full disk", 1, (*Mixed).fill, (*Mixed).small},
	{"ended session", 6, (*Mixed).terminate, (*Mixed).served},
	{"stolen connections", 2, (*Mixed).steal, (*Mixed).served},
	{"pinned horizon", 3, (*Mixed).pin, (*Mixed).served},
	{"jump of the clock", 3, (*Mixed).jump, (*Mixed).clocked},
	{"decree", 2, (*Mixed).decree, (*Mixed).ruled},
	{"upgrade", 1, (*Mixed).upgrade, (*Mixed).ages},
	{"broken connections", 4, (*Mixed).breakOff, (*Mixed).proxied},
	{"stall", 4, (*Mixed).stall, (*Mixed).proxied},
	{"stalled connection", 5, (*Mixed).stallOne, (*Mixed).proxied},
	{"aimed", 12, (*Mixed).wire, (*Mixed).proxied},
	{"storm", 4, (*Mixed).storm, (*Mixed).proxied},
	{"lost notifications", 4, (*Mixed).deafen, (*Mixed).proxied},
	{"enqueue", 10, (*Mixed).enqueue, (*Mixed).producing},
	{"repeat", 3, (*Mixed).repeat, (*Mixed).producing},
	{"poison", 3, (*Mixed).poison, (*Mixed).producing},
	{"cancel", 4, by((*People).cancel), (*Mixed).peopled},
	{"retry", 4, by((*People).retry), (*Mixed).peopled},
	{"recover", 4, by((*People).recover), (*Mixed).peopled},
	{"delete", 4, by((*People).delete), (*Mixed).peopled},
	{"pause", 2, by((*People).pause), (*Mixed).peopled},
	{"resume", 4, by((*People).resume), (*Mixed).peopled},
}

func (m *Mixed) always() bool    { return true }
func (m *Mixed) served() bool    { return m.Server != nil }
func (m *Mixed) doubled() bool   { return m.Standby != nil }
func (m *Mixed) small() bool     { return m.Small }
func (m *Mixed) clocked() bool   { return m.Clock }
func (m *Mixed) ruled() bool     { return m.Role != "" }
func (m *Mixed) ages() bool      { return m.Ages }
func (m *Mixed) proxied() bool   { return m.Clients != nil }
func (m *Mixed) producing() bool { return m.Producer != nil }
func (m *Mixed) peopled() bool   { return m.People != nil }

// by has people do something.
func by(do func(*People, context.Context, *rand.Rand) string) func(*Mixed, context.Context) string {
	return func(m *Mixed, ctx context.Context) string { return do(m.People, ctx, m.dice) }
}

// Run makes trouble for about as long as told, and then sees to it that all
// of it is over.
func (m *Mixed) Run(ctx context.Context, long time.Duration) {
	m.T.Helper()
	m.began, m.long = time.Now(), long
	if m.done == nil {
		m.done, m.kinds = map[string]int{}, map[string]int{}
	}
	m.restarted = m.began
	var possible []trouble
	for _, t := range troubles {
		if t.can(m) {
			possible = append(possible, slices.Repeat([]trouble{t}, t.weight)...)
		}
	}
	rest := cmp.Or(m.Rest, 550*time.Millisecond)
	for time.Since(m.began) < long && !m.T.Failed() {
		m.dice = rand.New(rand.NewPCG(m.Rand.Uint64(), m.Rand.Uint64()))
		time.Sleep(time.Duration(m.dice.Int64N(int64(rest))))
		t := possible[m.dice.IntN(len(possible))]
		if what := t.do(m, ctx); what != "" {
			m.made(t.name)
			m.T.Logf("%7.2f s: %s", time.Since(m.began).Seconds(), what)
		}
	}
	m.calm(ctx)
}

// calm ends all trouble that goes on by itself.
func (m *Mixed) calm(ctx context.Context) {
	if m.proxied() {
		for _, w := range m.Workers {
			w.Calm()
		}
		m.Clients.Calm()
	}
	m.later.Wait()
	m.tell()
	if m.clocked() {
		// The dates that were set by any of the clocks come.
		m.Server.SetClock(m.ahead)
	}
	for m.ruled() && !m.set(ctx, "reset all") && ctx.Err() == nil && !m.T.Failed() {
		time.Sleep(100 * time.Millisecond)
	}
	if m.peopled() {
		// What was cut off says so only now, and what stays paused is never done.
		err := m.People.Leave(ctx)
		for until := time.Now().Add(time.Minute); err != nil && time.Now().Before(until); err = m.People.Leave(ctx) {
			time.Sleep(100 * time.Millisecond)
		}
		if err != nil {
			m.T.Error(err)
		}
	}
}

// after ends what goes on for a while.
func (m *Mixed) after(long time.Duration, end func()) {
	m.later.Go(func() {
		time.Sleep(long)
		end()
	})
}

// made counts a trouble.
func (m *Mixed) made(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done[name]++
}

// tell has the fleet's account say what was made.
func (m *Mixed) tell() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Fleet.mu.Lock()
	defer m.Fleet.mu.Unlock()
	m.Fleet.made = maps.Clone(m.done)
}

// of notes which decree or poison it was.
func (m *Mixed) of(kind string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kinds[kind]++
}

// rarest is one of some decrees or poisons, of those that were made least often: so
// that each comes up, however few there are.
func (m *Mixed) rarest(kinds []string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	least := m.kinds[slices.MinFunc(kinds, func(a, b string) int { return m.kinds[a] - m.kinds[b] })]
	var rare []string
	for _, kind := range kinds {
		if m.kinds[kind] == least {
			rare = append(rare, kind)
		}
	}
	return rare[m.dice.IntN(len(rare))]
}

// Missing lists the troubles that could have been made and never were, each decree
// and each poison by itself.
func (m *Mixed) Missing() (names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range troubles {
		if t.can(m) && m.done[t.name] == 0 {
			names = append(names, t.name)
		}
	}
	if m.proxied() && m.done[met] == 0 {
		names = append(names, met)
	}
	var kinds []string
	if m.ruled() {
		kinds = append(kinds, decrees...)
	}
	if m.producing() {
		kinds = append(slices.AppendSeq(kinds, maps.Keys(Harmful)), slices.Collect(maps.Keys(Deadly))...)
	}
	for _, kind := range kinds {
		if m.kinds[kind] == 0 {
			names = append(names, kind)
		}
	}
	return names
}

// Done says what was done how often.
func (m *Mixed) Done() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []string
	for _, what := range slices.Sorted(maps.Keys(m.done)) {
		list = append(list, fmt.Sprintf("%s %d", what, m.done[what]))
	}
	return strings.Join(list, ", ")
}

// beat is how long after one beat of a worker the next one follows.
func (m *Mixed) beat() time.Duration { return m.TTL / 4 }

// span is a time that is mostly short and at most two times to live.
func (m *Mixed) span() time.Duration {
	return time.Duration(m.dice.Float64() * m.dice.Float64() * 2 * float64(m.TTL))
}

// enqueue enqueues some jobs.
func (m *Mixed) enqueue(ctx context.Context) string {
	m.Producer.Rand = m.dice
	n, err := m.Producer.Run(ctx, 1+m.dice.IntN(40))
	if err != nil {
		m.T.Error(err)
	}
	return fmt.Sprintf("enqueue %d jobs", n)
}

// repeat enqueues a job again that has a key.
func (m *Mixed) repeat(ctx context.Context) string {
	m.Producer.Rand = m.dice
	what, err := m.Producer.Repeat(ctx)
	if err != nil {
		m.T.Error(err)
	}
	return what
}

// poison enqueues a job that does harm.
func (m *Mixed) poison(ctx context.Context) string {
	kinds := slices.Sorted(maps.Keys(Harmful))
	if m.dice.IntN(3) == 0 {
		kinds = slices.Sorted(maps.Keys(Deadly))
	}
	poison := m.rarest(kinds)
	m.Producer.Rand = m.dice
	there, err := m.Producer.Poison(ctx, poison)
	if err != nil {
		m.T.Error(err)
	}
	if !there {
		return ""
	}
	m.of(poison)
	return "poison with what " + poison
}

func (m *Mixed) worker() Kept { return m.Workers[m.dice.IntN(len(m.Workers))] }

func (m *Mixed) kill(context.Context) string {
	p := m.worker().Process()
	p.Kill()
	return "kill " + p.Name
}

func (m *Mixed) freeze(context.Context) string {
	p, long := m.worker().Process(), m.span()
	p.Freeze()
	m.after(long, p.Thaw)
	return fmt.Sprintf("freeze %s for %v", p.Name, long)
}

// renew stops a worker in good order, as a deployment does.
func (m *Mixed) renew(context.Context) string {
	p := m.worker().Process()
	p.Retire()
	return "renew " + p.Name
}
