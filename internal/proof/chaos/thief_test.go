//go:build unix

package chaos_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/postgres"
)

// What engines have they keep, and that is enough for them.
func TestWhileAServerHasNoConnectionLeftEnginesKeepTheirPlaces(t *testing.T) {
	atLength(t)
	t.Parallel()
	ttl := pace.Of(4 * time.Second)
	w := newWorld(t, pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_connections": "60"}}).New(t))
	l := w.load(2, 2, ttl, 200*time.Millisecond)
	w.works()
	time.Sleep(ttl / 2)
	thief := chaos.NewThief(w.url)
	t.Cleanup(thief.GiveBack)
	t.Logf("%d connections are gone", thief.Take(t.Context()))
	if _, err := postgres.Open(t.Context(), w.url); err == nil || !strings.Contains(err.Error(), "53300") {
		t.Errorf("who comes now is told %v", err)
	}
	for until := time.Now().Add(2 * ttl); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		thief.Take(t.Context())
		if took := w.works(); took > pace.Of(2*time.Second) {
			t.Errorf("meanwhile a job ended only after %v", took)
		}
	}
	thief.GiveBack()
	l.end(time.Minute)
	for _, k := range l.keepers {
		if n := chaos.Count(w.Events(k.Process().Name), event.EventBuried); n > 0 || k.Lives > 1 {
			t.Errorf("%s lost its place %d times, in %d lives", k.Process().Name, n, k.Lives)
		}
	}
}

// Engines whose sessions were ended have nothing to beat with, and lose their
// places rightly. One that is started meanwhile ends with an error.
func TestEnginesThatFindNoConnectionComeBackByThemselves(t *testing.T) {
	atLength(t)
	t.Parallel()
	ttl := pace.Of(2 * time.Second)
	w := newWorld(t, pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_connections": "60"}}).New(t))
	l := w.load(2, 1, ttl, 200*time.Millisecond)
	w.works()
	thief := chaos.NewThief(w.url)
	t.Cleanup(thief.GiveBack)
	over := w.CutOff("")
	for until := time.Now().Add(2 * ttl); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		thief.Take(t.Context())
		if _, err := w.pool.Exec(t.Context(), `
			select pg_terminate_backend(pid) from pg_stat_activity
			where datname = current_database() and application_name like 'stint%' limit 3`); err != nil {
			t.Log(err)
		}
	}
	giveBack := thief.Keep(t.Context(), 20*time.Millisecond)
	doomed := w.Start(chaos.Worker{Name: "late", DB: w.url, Slots: 1, TimeToLive: ttl})
	if code, _ := doomed.Exit(30 * time.Second); code != 1 {
		t.Errorf("who is started meanwhile ends with %d", code)
	}
	giveBack()
	over()
	took := w.recovers()
	t.Logf("work resumed after %v", took)
	if took > pace.Of(5*time.Second) {
		t.Errorf("work resumed %v after there were connections again, more than 5s", took)
	}
	l.end(time.Minute)
	for _, k := range l.keepers {
		if k.Lives > 1 {
			t.Errorf("%s had %d lives", k.Process().Name, k.Lives)
		}
	}
}

// The handlers' transactions take all connections of the program's pool, for
// longer than an engine may be silent.
func TestHandlersThatExhaustTheProgramsPoolStarveNoBeatAndNoFlush(t *testing.T) {
	t.Parallel()
	ttl := pace.Of(2 * time.Second)
	w := newWorld(t, pgtest.New(t))
	worker := w.Start(chaos.Worker{Name: "worker", DB: w.url + "&pool_max_conns=2", Slots: 10, TimeToLive: ttl, Shares: true})
	w.Await("worker", event.EventJoined, 1, time.Minute)
	ids := w.enqueue("slow", 0, 8, func(int) chaos.Args { return chaos.Args{Tx: true, Open: int(ttl.Milliseconds() * 3 / 4)} })
	w.until("two have the pool", `select count(*) = 2 from pg_stat_activity where state = 'idle in transaction' and query like '%chaos_effects%'`)
	for i := range 10 {
		began := time.Now()
		quicks := w.enqueue("quick", i, 1, quick)
		w.until("a quick one is done", `select exists (select from stint.executions where pos = $1 and outcome = 1)`, quicks[0])
		if took := time.Since(began); took > pace.Of(2*time.Second) {
			t.Errorf("a quick job took %v beside the slow ones", took)
		}
		time.Sleep(300 * time.Millisecond)
	}
	w.Drain(t.Context(), w.store, time.Minute)
	if err := worker.Stop(); err != nil {
		t.Error(err)
	}
	if n := chaos.Count(w.Events("worker"), event.EventJoined); n != 1 {
		t.Errorf("the engine joined %d times", n)
	}
	if n := w.number(`select count(*) from stint.executions where pos = any ($1) and outcome = 1`, ids); n != len(ids) {
		t.Errorf("%d of %d slow jobs succeeded at once", n, len(ids))
	}
	t.Log(w.Judge(t.Context(), w.ground))
}
