package pace

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Other work on all processors makes times longer, and its end makes them what they were.
func TestTimesGrowWithWhatElseTheMachineDoes(t *testing.T) {
	var (
		over atomic.Bool
		busy sync.WaitGroup
	)
	for range 32 * runtime.NumCPU() {
		busy.Go(func() {
			for !over.Load() {
			}
		})
	}
	last.at, last.pace = time.Time{}, 0
	beside := Of(time.Second)
	over.Store(true)
	busy.Wait()
	last.at = time.Time{}
	if soon := Of(time.Second); soon < beside {
		t.Errorf("a bound of what was stretched to %v would be %v", beside, soon)
	}
	last.at, last.set = time.Time{}, time.Now().Add(-calm-time.Second)
	alone := Of(time.Second)
	t.Logf("beside other work a second takes %v, alone %v", beside, alone)
	if alone < time.Second || beside < 2*time.Second || beside < alone || beside > most*time.Second {
		t.Errorf("beside other work a second takes %v, alone %v", beside, alone)
	}
}
