//go:build unix

package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stint-go/stint/internal/proof/chaos"
)

// fileWorld is a file with a fleet on it.
type fileWorld struct {
	*chaos.Fleet
	t      *testing.T
	path   string
	ground *chaos.Ground
	seed   uint64
	ones   int // enqueued one by one
}

func newFileWorld(t *testing.T, dir string) *fileWorld {
	t.Helper()
	w := &fileWorld{Fleet: chaos.NewFleet(t), t: t, path: filepath.Join(dir, "jobs.db"), seed: seed(t)}
	var err error
	if w.ground, err = chaos.Open(t.Context(), w.path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.ground.Close)
	if err := w.ground.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// dice are what the seed decides for one purpose.
func (w *fileWorld) dice(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(w.seed, purpose)) }

// client makes a producer of mixed jobs.
func (w *fileWorld) client(i int) *chaos.Producer {
	return &chaos.Producer{
		Name: fmt.Sprintf("client-%d", i), Ground: w.ground, History: w.History, Rand: w.dice(uint64(i)), Mixed: true,
	}
}

// recovers waits until a job ends that begins from now on, behind a fault.
func (w *fileWorld) recovers() time.Duration {
	w.t.Helper()
	return w.Recovers(w.t.Context(), w.ground)
}

// keep starts workers and keeps them running.
func (w *fileWorld) keep(n int) (all []*chaos.Keeper) {
	for i := range n {
		all = append(all, w.Keep(chaos.Worker{Name: fmt.Sprintf("worker-%d", i+1), DB: w.path, Slots: 10, Grace: 5 * time.Second}))
	}
	return all
}

// end has all work done, stops the workers and judges.
func (w *fileWorld) end(keepers []*chaos.Keeper, within time.Duration) {
	w.t.Helper()
	began := time.Now()
	w.Drain(w.t.Context(), w.ground.Store, within)
	w.t.Logf("everything was done %v after the clients stopped", time.Since(began))
	lives := 0
	for _, k := range keepers {
		k.Stop()
		lives += k.Lives
	}
	buried := w.Burials(w.t.Context(), w.ground)
	w.t.Logf("%d lives of %d workers, %d engines buried; %v", lives, len(keepers), buried, w.Judge(w.t.Context(), w.ground))
	if err := w.ground.Sound(w.t.Context()); err != nil {
		w.t.Error(err)
	}
}
