// Package pace stretches the times of tests to the machine that they run on. A time to
// live of two seconds is plenty where nothing else runs. Beside other work it is not: an
// engine that gets a tenth of a processor misses its beats, and is right to give up.
package pace

import (
	"crypto/sha256"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// What the work below takes on the machine that the times of the tests were chosen on
	// beside these tests: three times of what it takes when nothing else runs.
	usual = 30 * time.Millisecond
	most  = 8.0
	fresh = 5 * time.Second // how long a measurement holds
	calm  = 2 * time.Minute // how long it holds while later ones are smaller: a bound goes with what was stretched before
)

var last struct {
	sync.Mutex
	at   time.Time
	pace float64
	set  time.Time // when the pace was
}

// Of stretches a duration by how many times slower than usual the machine is now, eight
// times at most. It never shortens one.
func Of(d time.Duration) time.Duration {
	last.Lock()
	defer last.Unlock()
	if time.Since(last.at) > fresh {
		now := min(max(1, measure().Seconds()/usual.Seconds()), most)
		if last.at = time.Now(); now >= last.pace || last.at.Sub(last.set) > calm {
			last.pace, last.set = now, last.at
		}
	}
	return time.Duration(float64(d) * last.pace)
}

// measure is the median of what the same work takes three times, on all processors at once.
func measure() time.Duration {
	var took [3]time.Duration
	for i := range took {
		began := time.Now()
		var all sync.WaitGroup
		for range runtime.NumCPU() {
			all.Go(func() {
				block := make([]byte, 1<<16)
				for range 330 {
					block[0] = sha256.Sum256(block)[0]
				}
			})
		}
		all.Wait()
		took[i] = time.Since(began)
	}
	slices.Sort(took[:])
	return took[1]
}
