//go:build unix

package chaos_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/internal/proof/pgtest"
)

// limited keeps engines at work on jobs of a limit, makes trouble, and returns what ran.
func (w *world) limited(rule stint.LimitRule, engines, work, jobs int, trouble func(keepers []*chaos.Keeper, until time.Time), during time.Duration) chaos.Load {
	w.t.Helper()
	if err := w.store.SetLimit(w.t.Context(), "limit", rule, "", ""); err != nil {
		w.t.Fatal(err)
	}
	w.enqueue("limited", 0, jobs, func(int) chaos.Args { return chaos.Args{Work: work} }, stint.Limited("limit"))
	var keepers []*chaos.Keeper
	for i := range engines {
		keepers = append(keepers, w.Keep(chaos.Worker{Name: "worker-" + string(rune('a'+i)), DB: w.url, Slots: 5, TimeToLive: 2 * time.Second, MaxOutage: 10 * time.Second}))
	}
	w.works()
	time.Sleep(2 * time.Second)
	from, until := check.Now(), time.Now().Add(during)
	trouble(keepers, until)
	to := check.Now()
	if _, err := w.store.ResetLimit(w.t.Context(), "limit"); err != nil { // the rest need not wait
		w.t.Error(err)
	}
	w.Drain(w.t.Context(), w.store, 2*time.Minute)
	stopAll(keepers)
	load := w.Load(from, to)
	w.Judge(w.t.Context(), w.ground)
	return load
}

// Each two seconds one of twenty engines is killed, every few seconds one is frozen for longer than its
// time to live, and sessions are ended all the time.
func TestNoMoreThanALimitAllowsRunsWhateverHappensToEngines(t *testing.T) {
	for name, c := range few(1, maps.All(map[string]struct {
		work int
		used float64
	}{"jobs of 50 ms": {50, 0.95}, "jobs of 5 ms": {5, 0.85}})) {
		t.Run(name, func(t *testing.T) {
			during := minutes(t, "STINT_CHAOS_MINUTES", 15*time.Second)
			w := newWorld(t, pgtest.New(t))
			dice := w.dice(21)
			load := w.limited(stint.LimitRule{AtOnce: 10}, 20, c.work, 10*1000/c.work*int((during+10*time.Second).Seconds()), func(keepers []*chaos.Keeper, until time.Time) {
				for round := 0; time.Now().Before(until); round++ {
					at := time.Now()
					if round%4 == 3 {
						p := keepers[dice.IntN(len(keepers))].Process()
						p.Freeze()
						time.AfterFunc(4*time.Second, p.Thaw)
					}
					keepers[dice.IntN(len(keepers))].Process().Kill()
					w.endSessions(500 * time.Millisecond)
					time.Sleep(2*time.Second - time.Since(at))
				}
				time.Sleep(5 * time.Second) // what is frozen wakes up
			}, during)
			t.Logf("at most %d ran at once, %.1f %% of the limit were used, %d began", load.Most, 10*load.Used, len(load.Starts))
			if load.Most != 10 {
				t.Errorf("%d ran at once, want 10:\n%s", load.Most, strings.Join(load.Crowd, "\n"))
			}
			if least := c.used; long() && load.Used < 10*least {
				t.Errorf("%.1f %% of the limit were used, want %.0f %%", 10*load.Used, 100*least)
			}
		})
	}
}

// A rate is kept over outages of the server and a failover, and what was missed is not made up for.
func TestARateIsKeptWhateverHappensToTheServer(t *testing.T) {
	during := minutes(t, "STINT_CHAOS_MINUTES", 20*time.Second)
	w := newPair(t, pgtest.Options{Fsync: true})
	w.primary.Synchronous(true)
	const rate, burst = 100, 5
	var outages time.Duration
	load := w.limited(stint.LimitRule{Starts: rate, Per: time.Second, Burst: burst}, 10, 1, 4*rate*int((during+10*time.Second).Seconds()), func(_ []*chaos.Keeper, until time.Time) {
		server := w.primary
		for n := 1; time.Now().Before(until); n++ {
			time.Sleep(during / 4)
			began := time.Now()
			if n == 2 {
				chaos.FailOver(w.primary, w.standby, w.address, func() { time.Sleep(2 * time.Second) })
				server = w.standby
			} else {
				server.Stop(pgtest.Immediate)
				time.Sleep(2 * time.Second)
				server.Start()
			}
			w.recovers()
			outages += time.Since(began)
		}
	}, during)
	most := load.MostWithin(time.Second)
	used := float64(len(load.Starts)) / (load.Starts[len(load.Starts)-1].Sub(load.Starts[0]) - outages).Seconds() / rate
	t.Logf("at most %d began in a second, %.1f %% of the rate were used while there was a server, %d began", most, 100*used, len(load.Starts))
	if most > rate+burst {
		t.Errorf("%d began in a second, want at most %d", most, rate+burst)
	}
	if long() && used < 0.97 {
		t.Errorf("%.1f %% of the rate were used, want 97 %%", 100*used)
	}
}
