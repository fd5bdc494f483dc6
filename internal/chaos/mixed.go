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

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint/internal/pgtest"
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
	Admin   *pgxpool.Pool // past all proxies
	Clients *Proxy        // before the producers

	People   *People
	Producer *Producer // who enqueues when it comes up, and not by itself

	dice      *rand.Rand // of the present act: what it meets does not change the next one
	began     time.Time
	restarted time.Time
	later     sync.WaitGroup // thaws and returns that are still to come
	done      map[string]int
}

// Kept is a worker that is kept running, behind a proxy of its own or none.
type Kept struct {
	*Keeper
	*Proxy
}

// trouble is one thing to do, how often it comes up, and what it needs.
type trouble struct {
	weight int
	do     func(m *Mixed, ctx context.Context) string
	can    func(m *Mixed) bool
}

var troubles = []trouble{
	{3, (*Mixed).kill, (*Mixed).always},
	{4, (*Mixed).freeze, (*Mixed).always},
	{2, (*Mixed).renew, (*Mixed).always},
	{2, (*Mixed).restart, (*Mixed).served},
	{6, (*Mixed).terminate, (*Mixed).served},
	{4, (*Mixed).breakOff, (*Mixed).proxied},
	{4, (*Mixed).stall, (*Mixed).proxied},
	{5, (*Mixed).stallOne, (*Mixed).proxied},
	{12, (*Mixed).wire, (*Mixed).proxied},
	{10, (*Mixed).enqueue, (*Mixed).producing},
	{3, (*Mixed).repeat, (*Mixed).producing},
	{4, by((*People).cancel), (*Mixed).peopled},
	{4, by((*People).retry), (*Mixed).peopled},
	{4, by((*People).recover), (*Mixed).peopled},
	{4, by((*People).delete), (*Mixed).peopled},
	{2, by((*People).pause), (*Mixed).peopled},
	{4, by((*People).resume), (*Mixed).peopled},
}

func (m *Mixed) always() bool    { return true }
func (m *Mixed) served() bool    { return m.Server != nil }
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
	m.done, m.began = map[string]int{}, time.Now()
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
		if what := possible[m.dice.IntN(len(possible))].do(m, ctx); what != "" {
			m.done[strings.Fields(what)[0]]++
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
	if m.peopled() {
		if err := m.People.Leave(ctx); err != nil {
			m.T.Error(err)
		}
	}
}

// Done says what was done how often.
func (m *Mixed) Done() string {
	var list []string
	for _, what := range slices.Sorted(maps.Keys(m.done)) {
		list = append(list, fmt.Sprintf("%s %d", what, m.done[what]))
	}
	return strings.Join(list, ", ")
}

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

func (m *Mixed) worker() Kept { return m.Workers[m.dice.IntN(len(m.Workers))] }

func (m *Mixed) kill(context.Context) string {
	p := m.worker().Process()
	p.Kill()
	return "kill " + p.Name
}

func (m *Mixed) freeze(context.Context) string {
	p, long := m.worker().Process(), m.span()
	p.Freeze()
	m.later.Go(func() {
		time.Sleep(long)
		p.Thaw()
	})
	return fmt.Sprintf("freeze %s for %v", p.Name, long)
}

// renew stops a worker in good order, as a deployment does.
func (m *Mixed) renew(context.Context) string {
	p := m.worker().Process()
	p.Retire()
	return "renew " + p.Name
}

func (m *Mixed) restart(context.Context) string {
	away := time.Duration(0)
	if m.dice.IntN(3) == 0 {
		away = m.span()
	}
	if time.Since(m.restarted) < 8*time.Second {
		return ""
	}
	m.Fleet.CutOff("")
	m.Server.Stop(pgtest.Immediate)
	time.Sleep(away)
	m.Server.Start()
	m.restarted = time.Now()
	return fmt.Sprintf("restart the server, away for %v", away)
}

func (m *Mixed) terminate(ctx context.Context) string {
	var who string
	err := m.Admin.QueryRow(ctx, `
		select application_name || ' ' || pg_terminate_backend(pid)::text from (
		  select pid, application_name from pg_stat_activity
		  where datname = current_database() and pid <> pg_backend_pid()
		  order by md5(pid::text || $1::text) limit 1)`, m.dice.Int64()).Scan(&who)
	if err != nil {
		return ""
	}
	return "terminate a session, " + who
}

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
	m.cutOff(who)
	p.Stall(d, long)
	return fmt.Sprintf("stall all of %s, direction %d, for %v", who, d, long)
}

func (m *Mixed) stallOne(context.Context) string {
	p, who := m.proxy()
	d, long, n := Direction(1+m.dice.IntN(3)), m.span(), m.dice.IntN(100)
	m.cutOff(who)
	p.StallOne(n, d, long)
	return fmt.Sprintf("stall-one of %s, direction %d, for %v", who, d, long)
}

func (m *Mixed) cutOff(who string) {
	if who != clients {
		m.Fleet.CutOff(who)
	}
}

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
		if fate.does == holds {
			m.cutOff(who)
		}
		return fate
	})
	return fmt.Sprintf("wire-%s the %d. %s of %s", how, n, aim, who)
}
