//go:build unix

package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// What is done to connections.

// clients stands for the producers in what is told.
const clients = "clients"

// proxy is any of them, and the name of the process behind it.
func (m *Mixed) proxy() (*Proxy, string) {
	n := m.dice.IntN(len(m.Workers) + 1)
	if n == len(m.Workers) {
		return m.Clients, clients
	}
	return m.Workers[n].Proxy, m.Workers[n].Process().Name
}

func (m *Mixed) breakOff(context.Context) string {
	p, who := m.proxy()
	if m.dice.IntN(2) == 0 {
		p.Cut()
		return "cut all of " + who
	}
	p.Reset()
	return "reset all of " + who
}

func (m *Mixed) stall(context.Context) string {
	p, who := m.proxy()
	d, long := Direction(1+m.dice.IntN(3)), m.span()
	m.cutOff(who, long)
	p.Stall(d, long)
	return fmt.Sprintf("stall all of %s, direction %d, for %v", who, d, long)
}

func (m *Mixed) stallOne(context.Context) string {
	p, who := m.proxy()
	d, long, n := Direction(1+m.dice.IntN(3)), m.span(), m.dice.IntN(100)
	m.cutOff(who, long)
	p.StallOne(n, d, long)
	return fmt.Sprintf("stall-one of %s, direction %d, for %v", who, d, long)
}

// storm is bad weather for a while.
func (m *Mixed) storm(context.Context) string {
	p, who := m.proxy()
	weather, long := Weather{Least: 10 * time.Millisecond, Most: 200 * time.Millisecond}, m.span()
	if m.dice.IntN(3) == 0 {
		weather = Weather{Rate: 20_000 + m.dice.IntN(200_000)}
	}
	m.cutOff(who, long)
	p.Weather(weather)
	m.later.Go(func() {
		time.Sleep(long)
		p.Weather(Weather{})
	})
	return fmt.Sprintf("storm around %s for %v: %+v", who, long, weather)
}

// deafen loses some notifications, or all, until it comes up again.
func (m *Mixed) deafen(context.Context) string {
	p, who := m.proxy()
	share := []float64{0, 0.5, 1}[m.dice.IntN(3)]
	p.Deafen(share)
	return fmt.Sprintf("deafen %s: %v of the notifications are lost", who, share)
}

// cutOff notes that a worker cannot reach the database for a while. What is over
// before a beat is missed costs nobody its place, and explains nothing.
func (m *Mixed) cutOff(who string, long time.Duration) {
	if who == clients {
		who = m.Steady
	}
	if who == "" || long < m.beat() { // without a name it would be everybody
		return
	}
	over := m.Fleet.CutOff(who)
	m.later.Go(func() {
		time.Sleep(long)
		over()
	})
}

// met is the trouble of a message that was aimed at and came.
const met = "hit"

// aims are the messages that a fault of the wire can be aimed at, by who sends
// them.
type aims map[string]func(Message) bool

var (
	workersAims = aims{
		"claim": ClaimSent, "claim's commit": ClaimCommits, "flush": FinishSent, "flush's commit": FinishCommits,
		"beat": BeatCommits, "completion": CompleteSent, "transaction's commit": TxCommits,
		"promotion": Commits("stint.promote("), "burial": Executes("delete from stint.engines"),
		"joining": Commits("insert into stint.engines"), "message": anything,
	}
	clientsAims = aims{
		"enqueue": EnqueueSent, "enqueue's commit": EnqueueLands, "transaction's commit": TxCommits, "message": anything,
	}
)

func anything(Message) bool { return true }

func (m *Mixed) wire(context.Context) string {
	p, who := m.proxy()
	aims := clientsAims
	if who != clients {
		aims = workersAims
	}
	names := slices.Sorted(maps.Keys(aims))
	aim, n, long := names[m.dice.IntN(len(names))], 1+m.dice.IntN(3), m.span()
	how := []string{"cut", "reset", "halve", "mute", "hold"}[m.dice.IntN(5)]
	fate := map[string]Fate{"cut": Cut, "reset": Reset, "halve": Halve, "mute": Mute, "hold": Hold(long)}[how]
	p.Once(n, aims[aim], func() Fate {
		m.made(met)
		if fate.does == holds {
			m.cutOff(who, long)
		}
		return fate
	})
	return fmt.Sprintf("wire-%s the %d. %s of %s", how, n, aim, who)
}
