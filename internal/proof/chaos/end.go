//go:build unix

package chaos

import (
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/check"
)

// exits is the event of a worker whose job ends it.
const exits event.EventType = "exits"

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

// by ends the process, in a way that may take a moment.
func (e *end) by(deed func()) {
	e.mu.Lock()
	e.log(Event{At: time.Now(), Type: exits, Gone: check.Now()})
	deed()
	select {}
}

// now ends it as the kernel does when memory runs out.
func (e *end) now() { e.by(func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }) }

// wentAt tells when a process went that a job of its own has ended, as it said, or
// else when that is seen.
func (f *Fleet) wentAt(process string) (at time.Time, gone check.Instant, said bool) {
	for _, e := range f.Events(process) {
		if e.Type == exits {
			return e.At, e.Gone, true
		}
	}
	return time.Now(), check.Now(), false
}
