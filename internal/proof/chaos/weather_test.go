//go:build unix

package chaos_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/internal/proof/pgtest"
)

// Far from its database an engine is slower, and nothing else: it keeps its
// place, and so its jobs.
func TestEnginesFarFromTheirDatabaseKeepTheirPlaces(t *testing.T) {
	atLength(t)
	ttl := pace.Of(6 * time.Second)
	for name, weather := range map[string]chaos.Weather{
		"100 ms each way":       {Least: 100 * time.Millisecond, Most: 100 * time.Millisecond},
		"10 to 200 ms each way": {Least: 10 * time.Millisecond, Most: 200 * time.Millisecond},
		"100 kB a second":       {Rate: 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pgtest.New(t))
			far := w.behind()
			far.Weather(weather)
			var keepers []*chaos.Keeper
			for _, name := range []string{"one", "another"} {
				keepers = append(keepers, w.Keep(chaos.Worker{Name: name, DB: far.URL(w.url), Slots: 10, TimeToLive: ttl}))
			}
			began := time.Now()
			w.produce(t.Context(), 1, 60)
			w.Drain(t.Context(), w.store, time.Minute)
			t.Logf("everything was done after %v", time.Since(began))
			time.Sleep(time.Until(began.Add(ttl)))
			w.enqueue("later", 0, 10, quick)
			w.Drain(t.Context(), w.store, 30*time.Second)
			var stops sync.WaitGroup
			for _, k := range keepers {
				stops.Go(k.Stop)
			}
			stops.Wait()
			for _, k := range keepers {
				if n := chaos.Count(w.Events(k.Process().Name), event.EventBuried); n > 0 || k.Lives > 1 {
					t.Errorf("%s lost its place %d times, in %d lives", k.Process().Name, n, k.Lives)
				}
			}
			w.Burials(t.Context(), w.ground)
			t.Log(w.Judge(t.Context(), w.ground))
		})
	}
}

// The machine of a worker loses its power: no process of it says good-bye, and
// nor does its kernel. The server goes on believing in its connections, with
// whatever was open on them.
func TestAMachineThatVanishesHoldsUpNobodyForLong(t *testing.T) {
	for _, at := range few(1, slices.All([]point{
		{"inside a claim that holds its lane", chaos.ClaimCommits, chaos.Hold(chaos.Forever), chaos.Args{}},
		{"inside a flush", chaos.FinishCommits, chaos.Hold(chaos.Forever), chaos.Args{}},
		{"inside a transaction that completes its job", chaos.TxCommits, chaos.Hold(chaos.Forever), chaos.Args{Tx: true}},
	})) {
		t.Run(at.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pgtest.New(t))
			proxy := w.behind()
			ttl := pace.Of(2 * time.Second)
			doomed := w.Start(chaos.Worker{Name: "doomed", DB: proxy.URL(w.url) + "&application_name=doomed", Slots: 4, TimeToLive: ttl})
			other := w.Start(chaos.Worker{Name: "other", DB: w.url, Slots: 4, TimeToLive: ttl})
			w.Await("doomed", event.EventJoined, 1, time.Minute)
			w.Await("other", event.EventJoined, 1, time.Minute)
			if _, err := w.pool.Exec(t.Context(), `update stint.engines set boot_id = 'another' where instance = 'doomed'`); err != nil {
				t.Fatal(err)
			}
			vanishes := proxy.Once(1, at.match, func() chaos.Fate {
				proxy.Stall(chaos.Both, chaos.Forever)
				doomed.Kill()
				return at.fate
			})
			for i := 0; !closed(vanishes); i++ {
				w.enqueue("before", 8*i, 8, func(int) chaos.Args { return at.args })
				time.Sleep(100 * time.Millisecond)
			}
			since := time.Now()
			// What it sent just before may be on its way to a server that is busy.
			w.until("it left something open behind", `
				select exists (select from pg_stat_activity where datname = current_database() and application_name = 'doomed' and xact_start is not null)`)
			w.enqueue("behind", 0, 100, quick)
			w.Drain(t.Context(), w.store, 2*ttl+5*time.Second)
			t.Logf("everything was done %v after it vanished", time.Since(since))
			// A transaction of a handler's own that has not come to stint yet is not known to it.
			w.until("nothing of it that has come to stint is open", `
				select not exists (select from pg_stat_activity s
				                   join pg_locks l on l.pid = s.pid and l.database = s.datid
				                   join pg_class c on c.oid = l.relation and c.relnamespace = 'stint'::regnamespace
				                   where s.datname = current_database() and s.application_name = 'doomed')`)
			w.until("it was buried", `select count(*) = 1 from stint.engines`)
			proxy.Calm()
			if err := other.Stop(); err != nil {
				t.Error(err)
			}
			if n := w.Burials(t.Context(), w.ground); n == 0 {
				t.Error("nobody was buried")
			}
			t.Log(w.Judge(t.Context(), w.ground))
		})
	}
}
