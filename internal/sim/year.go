package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/sqlite"
)

// What a long run is like. Nothing but the schedules is often: beats and looks
// are as seldom as they can be.
const (
	yearEngines = 3
	yearTTL     = time.Hour
	yearSweep   = 12 * time.Hour // how often what has ended is deleted
	yearDrained = 5 * time.Hour  // within which all that is left must be done
)

// year is a fleet that fires schedules for a long time, while its engines are
// killed and replaced.
type year struct {
	seed      uint64
	store     *sqlite.Store
	scheduler stint.Scheduler // the store, or with a bug
	plans     []planned
	schedules []stint.Schedule
	began     time.Time
	until     time.Time
	buried    atomic.Int64
	done      chan struct{}

	mu       sync.Mutex
	wrong    []string
	gate     chan struct{} // closed when engines may start
	alive    []*soldier
	lives    int
	killed   int
	outages  []outage
	ran      map[stint.ID]int // what ran and was not yet deleted
	runs     int
	jobs     map[string][]int64
	finished int
}

// outage is a time in which there is no engine.
type outage struct{ from, to time.Time }

// runYear fires schedules for a long fake time from an instant of the year 2000 on, and returns what went wrong and a
// summary. Bug wraps the scheduler, if it is not nil.
func runYear(t *testing.T, seed uint64, plans []planned, from time.Time, long time.Duration, kills int, bug func(stint.Scheduler) stint.Scheduler) (wrong []string, summary string) {
	t.Helper()
	dir, err := os.MkdirTemp(fast(), "stint-year-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(from))
		watch := time.AfterFunc(long+48*time.Hour, func() { panic("sim: the bubble's time is over") })
		defer watch.Stop()
		store, err := sqlite.Open(t.Context(), filepath.Join(dir, "jobs.db"), sqlite.Config{Poll: -1, Readers: 1, Busy: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		y := &year{
			seed: seed, store: store, scheduler: store, plans: plans, began: time.Now(), until: time.Now().Add(long),
			done: make(chan struct{}), gate: make(chan struct{}), ran: map[stint.ID]int{}, jobs: map[string][]int64{},
		}
		if bug != nil {
			y.scheduler = bug(store)
		}
		for _, p := range plans {
			y.schedules = append(y.schedules, p.schedule(y.until))
		}
		close(y.gate)
		y.run(t.Context(), kills)
		wrong, summary = y.wrong, y.summary()
	})
	return wrong, summary
}

func (y *year) run(ctx context.Context, kills int) {
	var machines, sweeper sync.WaitGroup
	for i := range yearEngines {
		machines.Go(func() { y.keep(i) })
	}
	sweeper.Go(func() { y.sweepOften(ctx) })
	y.strike(roll(y.seed, "strikes", 0), kills)
	time.Sleep(time.Until(y.until))
	for end := time.Now().Add(yearDrained); y.open(ctx) > 0; time.Sleep(time.Minute) {
		if time.Now().After(end) {
			y.wrongf("%v after the end %d schedules and jobs have not ended", yearDrained, y.open(ctx))
			break
		}
	}
	close(y.done)
	machines.Wait()
	sweeper.Wait()
	y.sweep(ctx)
	y.judge(ctx)
}

func (y *year) wrongf(format string, args ...any) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if len(y.wrong) < 50 {
		y.wrong = append(y.wrong, fmt.Sprintf(format, args...))
	}
}

// keep runs one engine after the other.
func (y *year) keep(number int) {
	d := roll(y.seed, "year machine", number)
	for n := 1; ; n++ {
		y.mu.Lock()
		gate := y.gate
		y.mu.Unlock()
		select {
		case <-gate:
		case <-y.done:
			return
		}
		if !y.live(number, n) {
			return
		}
		timer := time.NewTimer(d.between(time.Second, 20*time.Minute))
		select {
		case <-timer.C:
		case <-y.done:
		}
		timer.Stop()
	}
}

// live runs an engine until it is killed, and reports whether another one is to
// follow.
func (y *year) live(number, n int) bool {
	s := y.newSoldier(fmt.Sprintf("y%d.%d", number, n))
	mux := stint.NewMux()
	mux.Add(stint.Declaration{Name: kinds[0]}, s.perform)
	if number < 2 {
		mux.Recurrence(yearFunc, func(after time.Time, _ *time.Location) (time.Time, bool) {
			const step = 36 * time.Hour // from the beginning on, whatever is asked
			return y.began.Add(after.Sub(y.began)/step*step + step).UTC(), true
		})
	}
	mux.Schedule(y.schedules...)
	e, err := engine.New(mortal{s, s}, mux, engine.Config{
		Instance: fmt.Sprintf("y%d.%d", number, n), Slots: 50, TimeToLive: yearTTL, Poll: yearTTL / 2, PollFrom: yearTTL / 2,
	})
	if err != nil {
		y.wrongf("start an engine: %v", err)
		return false
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	y.enlist(s)
	defer y.discharge(s)
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	select {
	case <-s.gone:
	case <-y.done:
	case err := <-ended:
		y.wrongf("an engine ended by itself: %v", err)
		return false
	}
	stop()
	<-ended
	s.kill()
	return true
}

func (y *year) enlist(s *soldier) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.alive = append(y.alive, s)
	y.lives++
}

func (y *year) discharge(s *soldier) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for i := range y.alive {
		if y.alive[i] == s {
			y.alive = append(y.alive[:i:i], y.alive[i+1:]...)
			return
		}
	}
}

// perform is the handler of all jobs.
func (s *soldier) perform(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
	y := s.y
	if s.dead() {
		return nil, errGone
	}
	if !job.Due.Equal(job.Provenance.Occurrence) {
		y.wrongf("job %d of %s, of %v, is due at %v", job.ID, job.Provenance.Schedule, job.Provenance.Occurrence, job.Due)
	}
	s.hold(ctx, time.Duration(job.ID%97)*10*time.Millisecond)
	y.mu.Lock()
	defer y.mu.Unlock()
	y.ran[job.ID]++
	y.runs++
	if s.dead() {
		return nil, errGone
	}
	return nil, nil
}

// strike has engines die, most in the middle of a firing, and now and then all at
// once for hours.
func (y *year) strike(d dice, kills int) {
	apart := time.Until(y.until.Add(-yearDrained)) / time.Duration(kills)
	for n := range kills {
		time.Sleep(d.between(0, apart))
		if n%20 == 19 {
			y.goAway(d)
		} else if s := y.victim(d); s != nil {
			if how := d.IntN(4); how == 0 {
				s.kill()
			} else {
				s.armed.Store(int32(how))
			}
		}
		time.Sleep(time.Until(y.began.Add(time.Duration(n+1) * apart)))
	}
}

// victim is an engine that can be spared: another one goes on.
func (y *year) victim(d dice) *soldier {
	y.mu.Lock()
	defer y.mu.Unlock()
	var well []*soldier
	for _, s := range y.alive {
		if s.armed.Load() == 0 && !s.dead() {
			well = append(well, s)
		}
	}
	if len(well) < 2 {
		return nil
	}
	y.killed++
	return well[d.IntN(len(well))]
}

// goAway kills all engines, and lets none begin for a while: from half a minute to
// another, so that nothing is due at its ends.
func (y *year) goAway(d dice) {
	half := func(at time.Time) time.Time { return at.Truncate(time.Minute).Add(90 * time.Second) }
	time.Sleep(time.Until(half(time.Now())))
	o := outage{from: time.Now()}
	o.to = half(o.from.Add(d.between(0, 5*time.Hour)))
	y.mu.Lock()
	gate := make(chan struct{})
	y.gate = gate
	y.outages = append(y.outages, o)
	for _, s := range y.alive {
		s.kill()
		y.killed++
	}
	y.mu.Unlock()
	time.Sleep(time.Until(o.to))
	// Those that rest are late, but one comes at once.
	close(gate)
}
