//go:build unix

package chaos_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stint-go/stint/internal/chaos"
	"github.com/stint-go/stint/internal/check"
	"github.com/stint-go/stint/internal/pgtest"
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
	mixed(t, pgtest.Options{Fsync: true, Clock: true}, minutes(t, "STINT_CHAOS_MINUTES", time.Minute)/4)
}

// standstill is how long no job at all may end amid the trouble: an outage lasts up
// to twice a time to live, and people pause queues.
const standstill = 30 * time.Second

// linesOfTrouble is how many lines about trouble an engine may log in a minute, as
// docs/monitoring.md says.
const linesOfTrouble = 30

// mixed makes all kinds of trouble for a fleet, and judges.
func mixed(t *testing.T, options pgtest.Options, trouble time.Duration) {
	t.Helper()
	const (
		ttl     = 3 * time.Second
		workers = 4
		clients = 3
	)
	if long() && pgtest.CanBound() {
		options.Space = 8 << 30 // which lies in memory, and is more than a long run needs
	}
	w := newPair(t, options)
	w.primary.Synchronous(true)
	if options.Clock {
		w.Slack = 24 * time.Hour
	}
	fleet := w.as()
	m := &chaos.Mixed{
		T: t, Fleet: w.Fleet, Rand: w.dice(77), Server: w.primary, Ground: w.ground, Clients: w.behind(), TTL: ttl,
		Standby: w.standby, Address: w.address, Small: options.Space > 0, Clock: options.Clock, Role: databaseOf(t, w.url), Ages: true,
		People:   &chaos.People{Fleet: w.Fleet, Store: w.store},
		Producer: w.client(clients),
	}
	m.Producer.Varied = true // with keys, under which it repeats
	if _, err := w.pool.Exec(t.Context(), decoys); err != nil {
		t.Fatal(err)
	}
	border := int64(1 << 31) // as ids of jobs are positions, they grow across it
	if options.Clock {
		border = 1 << 53
	}
	if err := w.ground.Advance(t.Context(), border-int64(50*trouble.Seconds())); err != nil {
		t.Fatal(err)
	}
	for i := range workers {
		proxy := w.behind()
		settings := chaos.Worker{Name: fmt.Sprintf("worker-%d", i+1), Slots: 10, TimeToLive: ttl, Grace: 5 * time.Second}
		switch settings.DB = proxy.URL(fleet); {
		case i == 0: // its handlers may take all connections that it has
			settings.DB, settings.Shares = settings.DB+"&pool_max_conns=6", true
		case i == 1 && pgtest.CanPool():
			pooler := pgtest.StartPooler(t, fleet, map[string]string{"default_pool_size": "8", "server_login_retry": "1", "server_idle_timeout": "5"})
			proxy = chaos.NewProxy(t, pooler.Addr())
			settings.DB = proxy.URL(fleet)
		}
		m.Workers = append(m.Workers, chaos.Kept{Proxy: proxy, Keeper: w.Keep(settings)})
	}
	// One lives through all of it, behind the producers' proxy, and must neither grow nor
	// fill a log.
	steady := w.Start(chaos.Worker{Name: "steady", DB: m.Clients.URL(fleet), Slots: 10, TimeToLive: ttl, Vitals: true, Diary: true})
	w.CutOff(steady.Name) // with its producers, at any time
	store, pool := w.connect(m.Clients.URL(fleet))
	stop := goOn(t, clients, every(300*time.Millisecond, func(i int) *chaos.Producer {
		p := w.client(i)
		p.Ground, p.Slow, p.Varied = chaos.NewGround(store, pool), true, true
		return p
	}))
	w.works()

	began := check.Now()
	m.Run(t.Context(), trouble)
	calm, ended := time.Now(), check.Now()
	stop()
	// People may have paused a queue until now.
	waiting := w.number(`select count(*) from stint.jobs where state = 'available'`)
	w.Drain(t.Context(), w.store, 30*time.Second+time.Duration(waiting)*time.Millisecond)
	t.Logf("everything was done %v after the trouble ended, when %d jobs waited for a slot", time.Since(calm), waiting)
	const sessions = `select count(*) from pg_stat_activity where usename = $1`
	if w.number(sessions, m.Role) == 0 {
		t.Error("the fleet has no session of its role")
	}
	lives := 0
	for _, k := range m.Workers {
		k.Stop()
		lives += k.Lives
	}
	if err := steady.Stop(); err != nil {
		t.Error(err)
	}
	t.Log(w.Flat(steady.Name))
	if n := w.Complaints(steady.Name); n > linesOfTrouble {
		t.Errorf("%s logged %d lines about trouble within a minute, more than %d", steady.Name, n, linesOfTrouble)
	} else {
		t.Logf("%s logged at most %d lines about trouble within a minute", steady.Name, n)
	}
	if trouble >= 10*time.Minute && w.number(`select (max(pos) > $1)::int from stint.entries`, border) == 0 {
		t.Errorf("no position has grown across %d", border)
	}
	if n := w.Standstill(began, ended); n > standstill {
		t.Errorf("amid the trouble no job ended for %v, more than %v", n, standstill)
	} else {
		t.Logf("amid the trouble the longest time in which no job ended was %v", n)
	}
	if missing := m.Missing(); trouble >= 10*time.Minute && len(missing) > 0 {
		t.Errorf("of these troubles nothing was made: %v", missing)
	}
	store.Close()
	pool.Close()
	w.until("no session of the fleet is left", `select (`+sessions+`) = 0`, m.Role)
	buried := w.Burials(t.Context(), w.ground)
	report := w.Judge(t.Context(), w.ground)
	t.Logf("seed %d: %s; %d lives of %d workers, %d engines buried; %v", w.seed, m.Done(), lives, workers, buried, report)
}
