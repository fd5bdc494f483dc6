//go:build unix

package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/internal/proof/pgtest"
)

// What is done to the server, and to what it is set to.

func (m *Mixed) restart(ctx context.Context) string {
	away := time.Duration(0)
	if m.dice.IntN(3) == 0 {
		away = m.span()
	}
	if time.Since(m.restarted) < 8*time.Second {
		return ""
	}
	over := m.Fleet.CutOff("")
	m.Server.Stop(pgtest.Immediate)
	time.Sleep(away)
	m.Server.Start()
	m.back(ctx, over)
	return fmt.Sprintf("restart the server, away for %v", away)
}

// failOver has the standby take the server's place, and that follow it.
func (m *Mixed) failOver(ctx context.Context) string {
	if time.Since(m.restarted) < 8*time.Second {
		return ""
	}
	over := m.Fleet.CutOff("")
	FailOver(m.Server, m.Standby, m.Address, func() {})
	m.Server, m.Standby = m.Standby, m.Server
	m.back(ctx, over)
	m.Standby.Follow(m.Server)
	m.Server.Synchronous(true)
	m.restarted = time.Now()
	return "failover"
}

// back notes that the server is there again, and how long it takes until work
// goes on. Where its clock jumps nobody can tell, and where people have paused a
// queue it says nothing.
func (m *Mixed) back(ctx context.Context, over func()) {
	over()
	m.restarted = time.Now()
	if m.Clock {
		return
	}
	m.later.Go(func() {
		took, err := m.Ground.GoesOn(ctx, time.Minute)
		if err != nil {
			m.T.Errorf("behind a restart: %v", err)
			return
		}
		if paused, err := m.Ground.Store.Paused(ctx); err != nil || len(paused) > 0 {
			m.T.Logf("behind a restart a job ended after %v, with the queues %v paused, %v", took, paused, err)
			return
		}
		m.Fleet.Recovered(took)
	})
}

// FailOver has the standby take the primary's place behind an address. Nobody
// reaches either of them between.
func FailOver(primary, standby *pgtest.Server, address *Proxy, between func()) {
	address.Move("")
	primary.Stop(pgtest.Immediate)
	standby.Promote()
	between()
	address.Move(standby.Addr())
}

// fill takes the server's room away for a while. Whoever gives it back starts
// the server, which may have ended.
func (m *Mixed) fill(ctx context.Context) string {
	if time.Since(m.restarted) < 8*time.Second {
		return ""
	}
	away := m.span()
	over := m.Fleet.CutOff("")
	m.Server.Fill()
	if _, err := m.Ground.Pool.Exec(ctx, `create table room as select repeat('x', 1000) from generate_series(1, 100000)`); err == nil {
		m.T.Error("on a full disk there is room for a table")
	}
	time.Sleep(away)
	m.Server.Empty()
	m.Server.Restart(pgtest.Immediate)
	m.back(ctx, over)
	return fmt.Sprintf("fill the disk for %v", away)
}

func (m *Mixed) terminate(ctx context.Context) string {
	var who string
	err := m.Ground.Pool.QueryRow(ctx, `
		select application_name || ' ' || pg_terminate_backend(pid)::text from (
		  select pid, application_name from pg_stat_activity
		  where datname = current_database() and pid <> pg_backend_pid()
		  order by md5(pid::text || $1) limit 1)`, fmt.Sprint(m.dice.Int64())).Scan(&who)
	if err != nil {
		return "" // nobody is there
	}
	return "terminate a session, " + who
}

// steal takes all connections that the server has left, for a while.
func (m *Mixed) steal(ctx context.Context) string {
	over := func() {}
	thief, long := NewThief(m.Ground.Pool.Config().ConnString()), m.span()
	if long >= m.beat() { // whoever loses its connections meanwhile is cut off
		over = m.Fleet.CutOff("")
	}
	n := thief.Take(ctx)
	m.after(long, func() {
		thief.GiveBack()
		over()
	})
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("steal %d connections for %v", n, long)
}

// pin keeps vacuum from cleaning up for a while.
func (m *Mixed) pin(ctx context.Context) string {
	pin, err := Pin(ctx, m.Ground.Pool.Config().ConnString())
	if err != nil {
		return ""
	}
	long := 5 * m.span() // autovacuum should miss it
	m.after(long, func() { _ = pin.Close(context.WithoutCancel(ctx)) })
	return fmt.Sprintf("pin the horizon for %v", long)
}

// jump sets the server's clock, by seconds or by hours.
func (m *Mixed) jump(context.Context) string {
	most := []time.Duration{m.TTL, time.Minute, 3 * time.Hour}[m.dice.IntN(3)]
	ahead := time.Duration((2*m.dice.Float64() - 1) * float64(most)).Round(time.Millisecond)
	m.Server.SetClock(ahead)
	m.ahead = max(m.ahead, ahead)
	return fmt.Sprintf("jump with the clock to %+v", ahead)
}

// decrees are what somebody sets for a role, for the sake of other programs.
var decrees = []string{
	"set default_transaction_isolation = 'repeatable read'", "set default_transaction_isolation = serializable",
	"set statement_timeout = '100ms'", "set lock_timeout = '10ms'", "set idle_in_transaction_session_timeout = '100ms'",
	"set synchronous_commit = remote_apply", "set plan_cache_mode = force_custom_plan",
	"set plan_cache_mode = force_generic_plan", "set search_path = decoy, public", "set enable_nestloop = off", "set enable_indexscan = off", "set timezone = 'Asia/Kathmandu'",
	"reset all",
}

// decree changes a default of the fleet's role. Sessions that begin later have it.
func (m *Mixed) decree(ctx context.Context) string {
	what := m.rarest(decrees)
	if !m.set(ctx, what) {
		return ""
	}
	m.of(what)
	return "decree that whoever logs in shall " + what
}

func (m *Mixed) set(ctx context.Context, what string) bool {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // it waits for the standby
	defer cancel()
	_, err := m.Ground.Pool.Exec(ctx, "alter role "+pgx.Identifier{m.Role}.Sanitize()+" "+what)
	return err == nil
}

// upgrade brings the schema to a later version amid the trouble, as often as it
// takes, and every other worker to programs that know it.
func (m *Mixed) upgrade(ctx context.Context) string {
	if m.aged || time.Since(m.began) < m.long/2 {
		return ""
	}
	m.aged = true
	const knows = 2 // the next step would have the others leave
	m.later.Go(func() {
		for try := 1; ctx.Err() == nil; try++ {
			p, err := m.Fleet.start(Worker{Name: fmt.Sprint("upgrader-", try), DB: m.Ground.Pool.Config().ConnString(), Knows: knows, Upgrades: true})
			if err != nil {
				m.T.Error(err)
				return
			}
			if <-p.ended; p.err == nil {
				m.T.Logf("%7.2f s: the schema is upgraded, at the %d. attempt", time.Since(m.began).Seconds(), try)
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		for i, w := range m.Workers {
			if i%2 == 1 {
				w.Renews(knows)
				w.Process().Retire()
			}
		}
	})
	return "upgrade the schema"
}

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
	m.after(long, func() { p.Weather(Weather{}) })
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
	m.after(long, m.Fleet.CutOff(who))
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
