//go:build unix

package chaos_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"testing"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/internal/proof/pgtest"
)

// long tells whether a run by hand asks for the full lengths, which CI has no
// time for.
func long() bool { return os.Getenv("STINT_CHAOS_MINUTES") != "" }

// patient is the time to live of engines of which none is to lose its place, also
// where the machine is so busy that for some seconds no beat comes through.
const patient = 30 * time.Second

// load keeps workers working and clients enqueueing until it is ended.
type load struct {
	w       *world
	keepers []*chaos.Keeper
	stop    func() // the clients
}

func (w *world) load(workers, clients int, ttl, pause time.Duration) *load {
	l := &load{w: w}
	for i := range workers {
		l.keepers = append(l.keepers, w.Keep(chaos.Worker{
			Name: fmt.Sprintf("worker-%d", i+1), DB: w.url, Slots: 10, TimeToLive: ttl,
		}))
	}
	l.stop = goOn(w.t, clients, every(pause, w.client))
	return l
}

// end stops the clients, has all work done, stops the workers and judges.
func (l *load) end(within time.Duration) *check.Report {
	w := l.w
	w.t.Helper()
	l.stop()
	began := time.Now()
	w.Drain(w.t.Context(), w.store, within)
	w.t.Logf("everything was done %v after the clients stopped", time.Since(began))
	lives := 0
	for _, k := range l.keepers {
		k.Stop()
		lives += k.Lives
	}
	buried := w.Burials(w.t.Context(), w.ground)
	report := w.Judge(w.t.Context(), w.ground)
	w.t.Logf("%d lives of %d workers, %d engines buried; %v", lives, len(l.keepers), buried, report)
	return report
}

// works waits until a job ends that begins from now on.
func (w *world) works() time.Duration { w.t.Helper(); return w.Works(w.t.Context(), w.ground) }

// recovers does so behind a fault.
func (w *world) recovers() time.Duration { w.t.Helper(); return w.Recovers(w.t.Context(), w.ground) }

func TestImmediateRestartsOfTheDatabaseUnderLoadAreSurvived(t *testing.T) {
	atLength(t)
	t.Parallel()
	times, every := 2, 2*time.Second
	if long() {
		times, every = 18, 10*time.Second
	}
	server := pgtest.Start(t, pgtest.Options{Fsync: true})
	w := newWorld(t, server.New(t))
	l := w.load(3, 2, 0, 200*time.Millisecond)
	w.works()
	for i := range times {
		time.Sleep(every)
		over := w.CutOff("")
		began := time.Now()
		server.Restart(pgtest.Immediate)
		over()
		down, took := time.Since(began), w.recovers()
		t.Logf("restart %d: %v down, work resumed after %v", i+1, down, took)
		if took > pace.Of(5*time.Second) {
			t.Errorf("work resumed %v after the server, more than 5s", took)
		}
	}
	l.end(time.Minute)
}

// During an outage engines lose their places by their own clocks. When the
// database is back its clock says that everybody is dead: nobody may believe it
// without having watched.
func TestAfterAnOutageNobodyIsBuriedWronglyAndWorkResumes(t *testing.T) {
	atLength(t)
	t.Parallel()
	outage, ttl := pace.Of(5*time.Second), pace.Of(2*time.Second)
	if long() {
		outage, ttl = time.Minute, 0
	}
	server := pgtest.Start(t, pgtest.Options{Fsync: true})
	w := newWorld(t, server.New(t))
	l := w.load(3, 2, ttl, 100*time.Millisecond)
	w.works()
	w.enqueue("long", 0, 20, func(int) chaos.Args { return chaos.Args{Work: 1000} })
	time.Sleep(time.Second)
	over := w.CutOff("")
	server.Stop(pgtest.Immediate)
	time.Sleep(outage)
	server.Start()
	over()
	took := w.recovers()
	t.Logf("work resumed after %v", took)
	if took > pace.Of(5*time.Second) {
		t.Errorf("work resumed %v after the server, more than 5s", took)
	}
	l.end(time.Minute)
}

func TestRandomlyTerminatedSessionsCostNobodyItsPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	l := w.load(2, 2, patient, 100*time.Millisecond)
	w.works()
	w.endSessions(3 * time.Second)
	l.end(30 * time.Second)
}

// endSessions ends sessions of programs at random, the more seldom the slower the machine is.
func (w *world) endSessions(during time.Duration) {
	w.t.Helper()
	dice, ended := w.dice(1000), 0
	for until := time.Now().Add(during); time.Now().Before(until); {
		n := 0
		if err := w.pool.QueryRow(w.t.Context(), `
			select count(*) filter (where pg_terminate_backend(pid)) from (
			  select pid from pg_stat_activity
			  where datname = current_database() and application_name like 'stint%'
			  order by pid offset $1 limit 1) one`, dice.IntN(20)).Scan(&n); err != nil {
			w.t.Fatal(err)
		}
		ended += n
		time.Sleep(pace.Of(time.Duration(dice.IntN(60)) * time.Millisecond))
	}
	w.t.Logf("%d sessions were ended", ended)
}

// Each commit takes a tenth of a second, in which its session may be ended: then nobody
// knows whether it was done. Once no more sessions are ended, what is due is moved at once.
func TestWhatIsDueWaitsForNobodyWhenCommitsTookLongAndSessionsEnded(t *testing.T) {
	atLength(t)
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Fsync: true, Settings: map[string]string{"commit_delay": "100000", "commit_siblings": "0"}})
	w := newWorld(t, server.New(t))
	l := w.load(2, 2, patient, 200*time.Millisecond)
	w.works()
	w.endSessions(10 * time.Second)
	time.Sleep(pace.Of(3 * time.Second)) // the longest pause after failures
	ctx, cancel := context.WithCancel(t.Context())
	longest := make(chan time.Duration)
	go func() {
		var most, overdue time.Duration
		for ctx.Err() == nil {
			if err := w.pool.QueryRow(ctx, `select coalesce(clock_timestamp() - min(due), '0') from stint.waiting where due < clock_timestamp()`).Scan(&overdue); err == nil {
				most = max(most, overdue)
			}
			time.Sleep(50 * time.Millisecond)
		}
		longest <- most
	}()
	l.end(time.Minute)
	cancel()
	most := <-longest
	t.Logf("what was due waited for at most %v", most)
	// What notifies commits one after the other, ten in a second here, so it waits in a line.
	if most > pace.Of(10*time.Second) {
		t.Error("that is too long")
	}
}

func TestAJobEnqueuedWhileTheListenerIsGoneRunsPromptly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	w.Start(chaos.Worker{Name: "worker", DB: w.url, Slots: 4, Poll: time.Minute})
	const listening = `
		select exists (select from pg_stat_activity
		where datname = current_database() and application_name = 'stint engine' and state = 'idle' and query ~ '^(listen|-- ping)')`
	for i := range 5 {
		w.until("it listens", listening)
		time.Sleep(100 * time.Millisecond) // it sleeps
		if _, err := w.pool.Exec(t.Context(), `
			select pg_terminate_backend(pid) from pg_stat_activity
			where datname = current_database() and application_name in ('stint engine', 'stint listen')`); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		w.enqueue("deaf", i, 1, quick)
		w.Drain(t.Context(), w.store, 5*time.Second)
		t.Logf("it was done after %v", time.Since(began))
	}
	w.Await("worker", event.EventTrouble, 1, time.Second)
	t.Log(w.Judge(t.Context(), w.ground))
}

// While a server is down nobody needs to fear another engine: what runs goes on, what ends is
// recorded when the server is back, and nothing runs again.
func TestAnOutageOfTheServerCancelsAndRepeatsNothing(t *testing.T) {
	outage := 8 * time.Second
	if long() {
		outage = 24 * time.Second // and recovery, which on a busy machine takes seconds
	}
	for name, mode := range few(1, maps.All(map[string]pgtest.Mode{"stopped": pgtest.Fast, "crashed": pgtest.Immediate})) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := pgtest.Start(t, pgtest.Options{Fsync: true})
			w := newWorld(t, server.New(t))
			l := w.load(3, 2, 0, 100*time.Millisecond)
			w.works()
			w.enqueue("through", 0, 6, func(int) chaos.Args { return chaos.Args{Work: int((outage + 4*time.Second).Milliseconds())} })
			w.enqueue("into", 0, 6, func(int) chaos.Args { return chaos.Args{Work: int((outage / 2).Milliseconds())} })
			w.until("they run", `select count(*) = 12 from stint.jobs where state = 'running' and args->>'key' ~ '^(through|into)'`)
			server.Stop(mode)
			time.Sleep(outage)
			server.Start()
			if took := w.recovers(); took > pace.Of(5*time.Second) {
				t.Errorf("work resumed %v after the server, more than 5s", took)
			}
			// Nothing is known to have happened to anybody, so the judge lets nothing be repeated.
			l.end(time.Minute)
			if n := w.number(`select count(*) from stint.engine_history where ended is not null and why <> 'left'`); n > 0 {
				t.Errorf("%d engines were buried", n)
			}
		})
	}
}

// An engine that is cut off without a word gives up before anybody may take over.
func TestAnEngineThatIsCutOffForLongGivesUpBeforeItIsBuried(t *testing.T) {
	atLength(t)
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	proxy := w.behind()
	ttl := pace.Of(2 * time.Second)
	settings := chaos.Worker{Name: "lone", DB: proxy.URL(w.url), Slots: 4, TimeToLive: ttl, MaxOutage: 3 * ttl}
	lone := w.Start(settings)
	w.Await("lone", event.EventJoined, 1, time.Minute)
	settings.Name, settings.DB = "other", w.url
	other := w.Start(settings)
	w.Await("other", event.EventJoined, 1, time.Minute)
	if _, err := w.pool.Exec(t.Context(), `update stint.engines set boot_id = 'another' where instance = 'lone'`); err != nil {
		t.Fatal(err)
	}
	time.Sleep(ttl)
	over := w.CutOff("lone")
	proxy.Stall(chaos.Both, chaos.Forever)
	cut := time.Now()
	gaveUp := w.Await("lone", event.EventBuried, 1, 5*ttl).At
	burial := w.Await("other", event.EventBurial, 1, 5*ttl).At
	t.Logf("it gave up after %v and was buried after %v", gaveUp.Sub(cut), burial.Sub(cut))
	if first := gaveUp.Sub(cut); first < 2*ttl || !gaveUp.Before(burial) {
		t.Errorf("it gave up %v after it was cut off, and was buried after %v", first, burial.Sub(cut))
	}
	proxy.Calm()
	over()
	w.enqueue("after", 0, 10, quick)
	w.Drain(t.Context(), w.store, 10*time.Second)
	for _, p := range []*chaos.Process{lone, other} {
		if err := p.Stop(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	w.Burials(t.Context(), w.ground)
	t.Log(w.Judge(t.Context(), w.ground))
}
