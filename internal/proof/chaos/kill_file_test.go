//go:build unix

package chaos_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/store"
)

// Whoever works on a file or enqueues is killed at any moment, all the time, and at
// times everybody. After each kill is measured how long it takes until what the dead
// had in hand is others' and a job ends that begins then, with default settings.
func TestWorkersAndProducersOfOneFileAreKilledAllTheTime(t *testing.T) {
	t.Parallel()
	w := newFileWorld(t, t.TempDir())
	workers := w.keep(2)
	var producers []*chaos.Keeper
	for i := range 2 {
		producers = append(producers, w.Keep(chaos.Worker{Name: fmt.Sprintf("producer-%d", i+1), DB: w.path, Produces: w.seed + uint64(i)}))
	}
	dice := w.dice(9)
	var took []time.Duration
	all := slices.Concat(workers, producers)
	for end := time.Now().Add(minutes(t, "STINT_CHAOS_MINUTES", 5*time.Second)); time.Now().Before(end) && !t.Failed(); {
		time.Sleep(time.Duration(dice.Int64N(int64(400 * time.Millisecond))))
		doomed := all[dice.IntN(len(all)):][:1]
		if dice.IntN(4) == 0 {
			doomed = all
		}
		var dead []store.EngineID
		began := time.Now()
		for _, k := range doomed {
			p := k.Process()
			p.Kill()
			for _, e := range w.Events(p.Name) {
				dead = append(dead, e.Engine)
			}
		}
		w.untilGone(dead)
		w.Works(t.Context(), w.ground)
		took = append(took, time.Since(began))
		w.Recovered(time.Since(began))
	}
	for _, p := range producers {
		p.Stop()
	}
	slices.Sort(took)
	t.Logf("%d kills; work resumed after %v, half of the time, and %v at most", len(took), took[len(took)/2], took[len(took)-1])
	if took[len(took)-1] > pace.Of(10*time.Second) {
		t.Errorf("once, work resumed %v after a kill", took[len(took)-1])
	}
	w.end(workers, time.Minute)
}

// untilGone waits until none of these engines stands in the roster: whoever takes
// one out has taken over what it held.
func (w *fileWorld) untilGone(dead []store.EngineID) {
	w.t.Helper()
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		all, err := w.ground.Store.Engines(w.t.Context())
		if err == nil && !slices.ContainsFunc(all, func(e store.EngineInfo) bool { return slices.Contains(dead, e.Token) }) {
			return
		}
		if time.Now().After(until) {
			w.t.Fatalf("the dead stay in the roster: %v, %v", all, err)
		}
	}
}
