//go:build unix

package chaos_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/internal/proof/pgtest"
)

// minutes is how long a run makes trouble: what a variable says, or else a moment.
func minutes(t *testing.T, variable string, moment time.Duration) time.Duration {
	text := os.Getenv(variable)
	if text == "" {
		return moment
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(n * float64(time.Minute))
}

func TestMixedTroubleLosesAndDoublesNothing(t *testing.T) {
	mixed(t, pgtest.Options{Fsync: true}, minutes(t, "STINT_CHAOS_MINUTES", 20*time.Second))
}

// What is compared with the server's clock is compared loosely here, and so this comes on top.
func TestMixedTroubleUnderAClockThatJumpsLosesAndDoublesNothing(t *testing.T) {
	atLength(t)
	mixed(t, pgtest.Options{Fsync: true, Clock: true}, minutes(t, "STINT_CHAOS_MINUTES", time.Minute)/4)
}

// standstill is how long no job at all may end amid the trouble: an outage lasts up
// to twice a time to live, and people pause queues.
const standstill = 30 * time.Second

// muchTime is long enough for each trouble to be made.
const muchTime = 10 * time.Minute

// linesOfTrouble is how many lines about trouble an engine may log in a minute, as
// docs/monitoring.md says.
const linesOfTrouble = 30

// mixed makes all kinds of trouble for a fleet, and judges.
func mixed(t *testing.T, options pgtest.Options, trouble time.Duration) {
	t.Helper()
	f := newFray(t, options, trouble)
	f.m.People = &chaos.People{Fleet: f.Fleet, Store: f.store}
	f.m.Producer.Varied = true // with keys, under which it repeats
	began := check.Now()
	f.m.Run(t.Context(), trouble)
	ended := check.Now()
	f.end()
	if n := f.Standstill(began, ended); n > pace.Of(standstill) {
		t.Errorf("amid the trouble no job ended for %v, more than %v", n, standstill)
	} else {
		t.Logf("amid the trouble the longest time in which no job ended was %v", n)
	}
	if trouble < muchTime {
		return
	}
	missing := f.m.Missing()
	if !pgtest.CanPool() {
		missing = append(missing, "a pooler")
	}
	if !f.m.Small {
		missing = append(missing, "full disk")
	}
	if len(missing) > 0 {
		t.Errorf("of these troubles nothing was made: %v", missing)
	}
	if f.number(`select (max(pos) > $1)::int from stint.entries`, f.border) == 0 {
		t.Errorf("no position has grown across %d", f.border)
	}
}

// The server is replaced by a standby that lags, with trouble of all kinds before
// and behind it. What people did and what was enqueued under a key may be lost with
// the rest, and the judge could not tell: so nobody deletes, and nothing is repeated.
func TestMixedTroubleAroundAStandbyThatLagsLosesWhatTheServerLostAndNothingElse(t *testing.T) {
	atLength(t)
	trouble := minutes(t, "STINT_CHAOS_MINUTES", 40*time.Second) / 8
	f := newFray(t, pgtest.Options{Fsync: true}, trouble)
	f.m.Run(t.Context(), trouble)
	server, lags := f.m.Server, f.m.Standby
	server.Synchronous(false)
	f.works()
	lags.Detach()
	time.Sleep(1500 * time.Millisecond)
	over := f.CutOff("")
	var had func(*chaos.Ground)
	chaos.FailOver(server, lags, f.address, func() { had = f.FailedOver(t.Context(), f.on(lags)) })
	over()
	t.Logf("work resumed after %v", f.recovers())
	server.Start() // where nobody finds it
	had(f.on(server))
	server.Stop(pgtest.Fast)
	f.m.Server, f.m.Standby = lags, nil
	f.m.Run(t.Context(), trouble)
	if undone := f.end().Undone; undone.Jobs == 0 || undone.Claims == 0 || undone.Outcomes == 0 {
		t.Errorf("not everything that can be lost was: %+v", undone)
	}
}

// fray is a fleet that trouble of all kinds is made for.
type fray struct {
	*pair
	m      *chaos.Mixed
	steady *chaos.Process // lives through all of it
	border int64          // which positions grow across
	stop   func()         // the clients, and closes what they had
}

// newFray starts a fleet that works. Its positions are close to a border for so long a
// trouble.
func newFray(t *testing.T, options pgtest.Options, trouble time.Duration) *fray {
	t.Helper()
	const (
		workers = 4
		clients = 3
	)
	ttl := pace.Of(3 * time.Second)
	if long() && pgtest.CanBound() {
		options.Space = 8 << 30 // which lies in memory, and is more than a long run needs
	}
	f := &fray{pair: newPair(t, options), border: 1 << 31}
	f.primary.Synchronous(true)
	if options.Clock {
		f.Slack, f.border = 24*time.Hour, 1<<53
	}
	fleet := f.as()
	const steady = "steady"
	f.m = &chaos.Mixed{
		T: t, Fleet: f.Fleet, Rand: f.dice(77), Server: f.primary, Ground: f.ground, Clients: f.behind(), Steady: steady, TTL: ttl,
		Standby: f.standby, Address: f.address, Small: options.Space > 0, Clock: options.Clock, Role: databaseOf(t, f.url), Ages: true,
		Producer: f.client(clients),
	}
	if _, err := f.pool.Exec(t.Context(), decoys); err != nil {
		t.Fatal(err)
	}
	if err := f.ground.Advance(t.Context(), f.border-int64(50*trouble.Seconds())); err != nil {
		t.Fatal(err)
	}
	for i := range workers {
		proxy := f.behind()
		settings := chaos.Worker{Name: fmt.Sprintf("worker-%d", i+1), Slots: 10, TimeToLive: ttl, MaxOutage: 4 * ttl, Grace: 5 * time.Second}
		switch settings.DB = proxy.URL(fleet); {
		case i == 0: // its handlers may take all connections that it has
			settings.DB, settings.Shares = settings.DB+"&pool_max_conns=6", true
		case i == 1 && pgtest.CanPool():
			pooler := pgtest.StartPooler(t, fleet, map[string]string{"default_pool_size": "8", "server_login_retry": "1", "server_idle_timeout": "5"})
			proxy = chaos.NewProxy(t, pooler.Addr())
			settings.DB = proxy.URL(fleet)
		}
		f.m.Workers = append(f.m.Workers, chaos.Kept{Proxy: proxy, Keeper: f.Keep(settings)})
	}
	// It must neither grow nor fill a log.
	f.steady = f.Start(chaos.Worker{Name: steady, DB: f.m.Clients.URL(fleet), Slots: 10, TimeToLive: ttl, Vitals: true, Diary: true})
	store, pool := f.connect(f.m.Clients.URL(fleet))
	stop := goOn(t, clients, every(300*time.Millisecond, func(i int) *chaos.Producer {
		p := f.client(i)
		p.Ground, p.Slow, p.Varied = chaos.NewGround(store, pool), true, true
		return p
	}))
	f.stop = func() {
		stop()
		store.Close()
		pool.Close()
	}
	f.works()
	return f
}

// end has everything be done behind the trouble, ends the fleet and judges.
func (f *fray) end() *check.Report {
	f.t.Helper()
	calm := time.Now()
	f.stop()
	// People may have paused a queue until now.
	waiting := f.number(`select count(*) from stint.jobs where state = 'available'`)
	f.Drain(f.t.Context(), f.store, 30*time.Second+time.Duration(waiting)*time.Millisecond)
	f.t.Logf("everything was done %v after the trouble ended, when %d jobs waited for a slot", time.Since(calm), waiting)
	const sessions = `select count(*) from pg_stat_activity where usename = $1`
	if f.number(sessions, f.m.Role) == 0 {
		f.t.Error("the fleet has no session of its role")
	}
	lives := 0
	for _, k := range f.m.Workers {
		k.Stop()
		lives += k.Lives
	}
	if err := f.steady.Stop(); err != nil {
		f.t.Error(err)
	}
	f.t.Log(f.Flat(f.steady.Name))
	if n := f.Complaints(f.steady.Name); n > linesOfTrouble {
		f.t.Errorf("%s logged %d lines about trouble within a minute, more than %d", f.steady.Name, n, linesOfTrouble)
	} else {
		f.t.Logf("%s logged at most %d lines about trouble within a minute", f.steady.Name, n)
	}
	f.until("no session of the fleet is left", `select (`+sessions+`) = 0`, f.m.Role)
	buried := f.Burials(f.t.Context(), f.ground)
	report := f.Judge(f.t.Context(), f.ground)
	f.t.Logf("seed %d: %s; %d lives of %d workers, %d engines buried; %v", f.seed, f.m.Done(), lives, len(f.m.Workers), buried, report)
	return report
}
