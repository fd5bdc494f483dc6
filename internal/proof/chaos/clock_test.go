//go:build unix

package chaos_test

import (
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/internal/proof/pgtest"
)

// wrongClock is a world whose server's clock can be set.
func wrongClock(t *testing.T) (*world, *pgtest.Server) {
	t.Helper()
	server := pgtest.Start(t, pgtest.Options{Clock: true})
	w := newWorld(t, server.New(t))
	w.Slack = 24 * time.Hour
	return w, server
}

// Who is alive is not a matter of what time it is: engines watch each other by
// clocks that nobody can set. A date is: what waits for one waits for the
// server's clock to show it.
func TestAServersClockThatIsHoursOffAndJumpsBuriesNobodyAndHoldsNoWorkUp(t *testing.T) {
	t.Parallel()
	atLength(t)
	w, server := wrongClock(t)
	l := w.load(3, 2, 0, 300*time.Millisecond)
	w.resumesBehind()
	for _, ahead := range []time.Duration{-3 * time.Hour, 3 * time.Hour, -time.Hour, 5 * time.Hour} {
		time.Sleep(7 * time.Second) // longer than a time to live
		server.SetClock(ahead)
		took := w.resumesBehind()
		t.Logf("with the clock at %+v work resumed after %v", ahead, took)
		if took > pace.Of(5*time.Second) {
			t.Errorf("with the clock at %+v work resumed after %v, more than 5s", ahead, took)
		}
	}
	time.Sleep(3 * time.Second)
	server.SetClock(6 * time.Hour) // the dates that were set meanwhile have come
	report := l.end(time.Minute)
	for _, k := range l.keepers {
		events := w.Events(k.Process().Name)
		if n := chaos.Count(events, event.EventJoined); n != 1 || k.Lives != 1 {
			t.Errorf("%s joined %d times, in %d lives", k.Process().Name, n, k.Lives)
		}
	}
	if len(report.Overlaps) > 0 || report.Reruns["lost connection"] > 0 {
		t.Errorf("something was taken away from engines that lived: %v", report)
	}
}

// resumesBehind waits until a job ends that was appended to the log after now,
// whatever the server believes that is, and tells how long that took.
func (w *world) resumesBehind() time.Duration {
	w.t.Helper()
	now, last := time.Now(), w.number(`select coalesce(max(pos), 0) from stint.entries`)
	w.until("work resumes", `select exists (select from stint.executions where outcome = 1 and pos > $1)`, last)
	return time.Since(now)
}

// A beat that the clock was put back behind says nothing any more of when it
// came. What others saw does.
func TestAnEngineThatDiedBeforeTheClockWasPutBackIsBuriedInTime(t *testing.T) {
	atLength(t)
	t.Parallel()
	w, server := wrongClock(t)
	ttl := pace.Of(2 * time.Second)
	doomed := w.Start(chaos.Worker{Name: "doomed", DB: w.url, Slots: 4, TimeToLive: ttl})
	w.enqueue("long", 0, 4, func(int) chaos.Args { return chaos.Args{Hang: "doomed"} })
	w.until("they run and were announced", `select count(*) = 4 from stint.jobs where begun`)
	if _, err := w.pool.Exec(t.Context(), `update stint.engines set boot_id = 'another'`); err != nil {
		t.Fatal(err)
	}
	doomed.Kill()
	killed := time.Now()
	server.SetClock(-3 * time.Hour)
	survivor := w.Start(chaos.Worker{Name: "survivor", DB: w.url, Slots: 4, TimeToLive: ttl})
	w.Drain(t.Context(), w.store, 30*time.Second)
	t.Logf("its jobs were done elsewhere %v after it died", time.Since(killed))
	if err := survivor.Stop(); err != nil {
		t.Error(err)
	}
	t.Log(w.Judge(t.Context(), w.ground))
}

// By when a job is to begin is a matter of the server's clock, also when that was set
// while an engine ran.
func TestWhatIsToBeginInTimeRunsWhenTheServersClockWasPutBack(t *testing.T) {
	atLength(t)
	t.Parallel()
	w, server := wrongClock(t)
	ttl := pace.Of(2 * time.Second)
	worker := w.Start(chaos.Worker{Name: "worker", DB: w.url, Slots: 2, TimeToLive: ttl})
	w.Await("worker", event.EventJoined, 1, time.Minute)
	server.SetClock(-time.Hour)
	time.Sleep(ttl) // some beats
	ids := w.enqueue("bounded", 0, 5, quick, stint.StartWithin(10*time.Minute))
	w.Drain(t.Context(), w.store, time.Minute)
	w.ended(ids, "worker completed at attempt 1")
	if err := worker.Stop(); err != nil {
		t.Error(err)
	}
	t.Log(w.Judge(t.Context(), w.ground))
}
