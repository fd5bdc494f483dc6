//go:build unix

package chaos

import (
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/check"
)

// exits is the event of a worker whose job ends it.
const exits stint.EventType = "exits"

// end is how a job ends its own process. Others may see that it is gone, and run
// its jobs, before the test does; so it says itself when it went, and nothing
// begins in it behind that.
type end struct {
	mu  sync.RWMutex
	log func(Event)
}

// before begins something, unless the process is about to end.
func (e *end) before(begin func() check.Running) check.Running {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return begin()
}

func (e *end) now() {
	e.mu.Lock()
	e.log(Event{At: time.Now(), Type: exits, Gone: check.Now()})
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// wentAt tells when a process that has ended by itself went, as it said, or else
// when that is seen.
func (f *Fleet) wentAt(process string) (time.Time, check.Instant) {
	for _, e := range f.Events(process) {
		if e.Type == exits {
			return e.At, e.Gone
		}
	}
	return time.Now(), check.Now()
}
