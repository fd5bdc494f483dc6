//go:build unix

package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/internal/proof/pgtest"
)

// ticking is a fleet that fires schedules while its workers die.
type ticking struct {
	*chaos.Fleet
	t       *testing.T
	ticks   chaos.Ticks
	step    time.Duration // from one occurrence to the next
	rest    time.Duration // between two troubles, at most
	busy    time.Duration // how long occurrences are being fired, about
	dice    *rand.Rand
	ground  *chaos.Ground
	workers []*chaos.Keeper
	restart func()         // of the database; nil for none
	proxies []*chaos.Proxy // one before each worker; none before a file

	later sync.WaitGroup // kills under way

	mu      sync.Mutex
	struck  map[string]bool // by name, the lives that were ended
	calm    bool            // no more kills
	killed  int
	aimed   int // of these, just when they fired
	renewed int
}

func (k *ticking) start(n int, db string, behind func() *chaos.Proxy) {
	k.struck = map[string]bool{}
	for i := range n {
		db := db
		if behind != nil {
			k.proxies = append(k.proxies, behind())
			db = k.proxies[i].URL(db)
		}
		k.workers = append(k.workers, k.Keep(chaos.Worker{
			Name: fmt.Sprintf("worker-%d", i+1), DB: db, Slots: 8, TimeToLive: pace.Of(3 * time.Second), Grace: 5 * time.Second,
			Drag: 10 * time.Millisecond, Ticks: &k.ticks,
		}))
	}
}

// trouble kills workers and renews some, until the last occurrence is due: every
// other time just when occurrences are being fired. The database is restarted in
// the middle.
func (k *ticking) trouble() {
	middle := time.Now().Add(time.Until(k.ticks.Until) / 2)
	for time.Now().Before(k.ticks.Until) && !k.t.Failed() {
		time.Sleep(k.rest/4 + time.Duration(k.dice.Int64N(int64(k.rest))))
		if due := k.due(); due < k.rest && k.dice.IntN(2) == 0 {
			time.Sleep(due + time.Duration(k.dice.Int64N(int64(k.busy))))
		}
		if k.restart != nil && time.Now().After(middle) {
			k.restart()
			k.restart = nil
		}
		switch i := k.dice.IntN(len(k.workers)); {
		case k.dice.IntN(4) == 0:
			k.strike(i, (*chaos.Process).Retire, &k.renewed)
		case k.proxies != nil && k.dice.IntN(3) > 0:
			k.aim()
		default:
			k.strike(i, (*chaos.Process).Kill, &k.killed)
		}
	}
	for _, p := range k.proxies {
		p.Calm()
	}
	k.mu.Lock()
	k.calm = true
	k.mu.Unlock()
	k.later.Wait()
}

// strike ends the present life of a worker, and counts it.
func (k *ticking) strike(i int, end func(*chaos.Process), count *int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.workers[i].Process()
	k.struck[p.Name] = true
	end(p)
	*count++
}

// aim kills the worker that fires next, which is the first that tries to, and so
// most likely the one that does: the server gets what it sent, or not, or not what
// commits it.
func (k *ticking) aim() {
	match, fate := chaos.FireCommits, chaos.Mute
	if k.dice.IntN(4) == 0 {
		match = chaos.FireSent
	}
	if k.dice.IntN(4) == 0 {
		fate = chaos.Cut
	}
	done := false
	for i, p := range k.proxies {
		p.Once(1, match, func() chaos.Fate {
			k.mu.Lock()
			defer k.mu.Unlock()
			if done || k.calm {
				return chaos.Pass
			}
			done = true
			// Not before the message goes on: another one would be faster.
			k.later.Go(func() { k.strike(i, (*chaos.Process).Kill, &k.aimed) })
			return fate
		})
	}
}

// due is how long until occurrences are.
func (k *ticking) due() time.Duration {
	info, err := k.ground.Store.Schedule(k.t.Context(), "tick-0000")
	if err != nil || info.Next.IsZero() {
		return 0
	}
	return time.Until(info.Next)
}

// settle waits until the last life of a worker has joined: a process that begins
// heeds no signal.
func (k *ticking) settle(w *chaos.Keeper) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		p := w.Process()
		k.mu.Lock()
		struck := k.struck[p.Name]
		k.mu.Unlock()
		if !struck && chaos.Count(k.Events(p.Name), event.EventJoined) > 0 {
			return
		}
	}
	k.t.Fatalf("%s has not joined", w.Process().Name)
}

// end waits for all that is still to come, and judges.
func (k *ticking) end() {
	k.t.Helper()
	k.AwaitTicks(k.t.Context(), k.ground, &k.ticks, time.Minute)
	lives := 0
	for _, w := range k.workers {
		k.settle(w)
		w.Stop()
		lives += w.Lives
	}
	late := k.JudgeTicks(k.t.Context(), k.ground, &k.ticks, k.step)
	k.t.Logf("%d schedules, %v apart; %d killed, %d killed when they fired, %d renewed, %d lives of %d workers; %v",
		k.ticks.Schedules, k.step, k.killed, k.aimed, k.renewed, lives, len(k.workers), late)
}

// All are due at the same instants, which is the worst that schedules can do. The
// full length takes STINT_CHAOS_MINUTES, and has a thousand schedules of a minute.
func TestFiveEnginesFireEveryOccurrenceExactlyOnceWhileTheyDie(t *testing.T) {
	atLength(t)
	t.Parallel()
	long := long()
	server := (*pgtest.Server)(nil)
	url := ""
	if long {
		server = pgtest.Start(t, pgtest.Options{Fsync: true})
		url = server.New(t)
	} else {
		url = pgtest.New(t)
	}
	w := newWorld(t, url)
	k := &ticking{Fleet: w.Fleet, t: t, step: time.Second, rest: 800 * time.Millisecond, busy: 100 * time.Millisecond, dice: w.dice(33), ground: w.ground}
	k.ticks = chaos.Ticks{Schedules: 50, Recurrence: "every 1s", Until: time.Now().Add(7 * time.Second)}
	if long {
		k.step, k.rest, k.busy = time.Minute, 6*time.Second, 3*time.Second
		k.ticks = chaos.Ticks{Schedules: 1000, Recurrence: "* * * * *", Until: time.Now().Add(minutes(t, "STINT_CHAOS_MINUTES", 20*time.Second) + 30*time.Second)}
		k.restart = func() { server.Restart(pgtest.Immediate) }
	}
	k.start(5, w.url, w.behind)
	k.trouble()
	k.end()
	t.Logf("%d engines were buried", w.Burials(t.Context(), w.ground))
}

func TestProcessesOnOneFileFireEveryOccurrenceExactlyOnceWhileTheyDie(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	ground, err := chaos.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ground.Close)
	k := &ticking{
		Fleet: chaos.NewFleet(t), t: t, step: time.Second, rest: 800 * time.Millisecond, busy: 100 * time.Millisecond, ground: ground,
		dice:  rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 33)),
		ticks: chaos.Ticks{Schedules: 50, Recurrence: "every 1s", Until: time.Now().Add(6 * time.Second)},
	}
	k.start(3, path, nil)
	k.trouble()
	k.end()
}
