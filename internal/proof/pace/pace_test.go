package pace

import (
	"runtime"
	"testing"
	"time"
)

// Other work on all processors makes times longer, and its end makes them what they were.
func TestTimesGrowWithWhatElseTheMachineDoes(t *testing.T) {
	busy, release := make(chan struct{}), make(chan struct{})
	for range 32 * runtime.NumCPU() {
		go func() {
			for {
				select {
				case <-busy:
					release <- struct{}{}
					return
				default:
				}
			}
		}()
	}
	last.at = time.Time{}
	beside := Of(time.Second)
	close(busy)
	for range 32 * runtime.NumCPU() {
		<-release
	}
	last.at = time.Time{}
	alone := Of(time.Second)
	t.Logf("beside other work a second takes %v, alone %v", beside, alone)
	if alone < time.Second || beside < 2*time.Second || beside < alone || beside > most*time.Second {
		t.Errorf("beside other work a second takes %v, alone %v", beside, alone)
	}
}
