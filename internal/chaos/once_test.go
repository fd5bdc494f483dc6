//go:build unix

package chaos_test

import (
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/chaos"
	"github.com/stint-go/stint/internal/pgtest"
)

func TestWhatMustRunAtMostOnceDoesThroughKills(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	const n = 20_000
	w.enqueue("once", 0, n, quick, stint.MaxLosses(0))
	keeper := w.Keep(chaos.Worker{Name: "worker", DB: w.url, Slots: 20})
	dice := w.dice(1)
	for range 6 {
		w.Await(keeper.Process().Name, stint.EventJoined, 1, time.Minute)
		time.Sleep(time.Duration(100+dice.IntN(200)) * time.Millisecond)
		p := keeper.Process()
		p.Kill()
		for keeper.Process() == p {
			time.Sleep(time.Millisecond)
		}
	}
	w.Drain(t.Context(), w.store, time.Minute)
	keeper.Stop()
	runs, lost := map[int64]int{}, w.number(`select count(*) from stint.jobs where state = 'failed' and reason = $1`, stint.ReasonLost)
	for _, r := range w.history().Runs {
		if runs[r.Job]++; runs[r.Job] == 2 {
			t.Errorf("job %d ran again", r.Job)
		}
	}
	if lost == 0 || lost+len(runs) < n {
		t.Errorf("%d of %d jobs ran and %d were lost", len(runs), n, lost)
	}
	t.Logf("%d of %d jobs ran, %d were lost with %d lives", len(runs), n, lost, keeper.Lives-1)
	t.Log(w.Judge(t.Context(), w.store, w.pool))
}
