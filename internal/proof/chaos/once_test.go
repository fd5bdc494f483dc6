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

// The last beat of a worker knows nothing any more of slots that are free
// again. What must not be lost must not run again for that, when the worker
// dies before its outcome is recorded.
func TestWhatMustRunAtMostOnceDoesSoWhenItsWorkerDiesBeforeTheFlush(t *testing.T) {
	t.Parallel()
	const n = 4
	w := newWorld(t, pgtest.New(t))
	proxy := w.behind()
	worker := w.Start(chaos.Worker{Name: "worker", DB: proxy.URL(w.url), Slots: n, TimeToLive: pace.Of(4 * time.Second)})
	w.Await("worker", event.EventJoined, 1, time.Minute)
	proxy.Hook(func(m chaos.Message) chaos.Fate {
		if chaos.FinishSent(m) {
			return chaos.Hold(chaos.Forever)
		}
		return chaos.Pass
	})
	ids := w.enqueue("once", 0, n, quick, stint.MaxLosses(0))
	for end := time.Now().Add(time.Minute); len(w.history().runsOn("worker")) < n && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	for range 2 {
		w.until("it beats", `select exists (select from stint.beats where beat > $1)`, time.Now())
	}
	worker.Kill()
	other := w.Start(chaos.Worker{Name: "other", DB: w.url, Slots: n})
	w.Drain(t.Context(), w.store, time.Minute)
	w.ended(ids, "worker lost at attempt 1")
	if again := w.history().runsOn("other"); len(again) > 0 {
		t.Errorf("%d of %d jobs ran again", len(again), n)
	}
	if err := other.Stop(); err != nil {
		t.Error(err)
	}
	w.apart()
}
