//go:build unix

package chaos

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/check"
)

// Keeper is what supervises a worker: it starts it again whenever it dies.
type Keeper struct {
	fleet *Fleet
	name  string
	now   atomic.Pointer[Process]
	ends  sync.Once // stop is closed
	stop  chan struct{}
	done  chan struct{}
	left  atomic.Bool  // by a test that ended before it was stopped
	knows atomic.Int32 // see Renews

	// Lives is how many there were; read it when the keeper has stopped.
	Lives int
}

// Keep starts a worker and keeps it running, as systemd would. Each life has
// a name of its own. Once an engine has joined it may die only by its own
// job's hand or the test's: one that gives up needs an operator, and that is an
// error.
func (f *Fleet) Keep(w Worker) *Keeper {
	k := &Keeper{fleet: f, name: w.Name, stop: make(chan struct{}), done: make(chan struct{})}
	k.now.Store(f.Start(k.life(w)))
	go k.watch(w)
	f.t.Cleanup(func() {
		k.left.Store(true)
		k.Stop()
	})
	return k
}

func (k *Keeper) life(w Worker) Worker {
	k.Lives++
	w.Name = fmt.Sprintf("%s.%d", w.Name, k.Lives)
	w.Knows = max(w.Knows, int(k.knows.Load()))
	return w
}

// Renews has later lives know so many steps of the schema that are still to come.
func (k *Keeper) Renews(knows int) { k.knows.Store(int32(knows)) }

func (k *Keeper) watch(w Worker) {
	defer close(k.done)
	f := k.fleet
	for p := k.now.Load(); ; k.now.Store(p) {
		select {
		case <-k.stop:
			if k.left.Load() {
				p.Kill()
				return
			}
			// One that had only just been started may not even know the signal.
			if err := p.Stop(); err != nil && k.joined(p) {
				f.t.Errorf("%s: %v", p.Name, err)
			}
			return
		case <-p.ended:
		}
		at, gone, said := f.wentAt(p.Name)
		if p.cmd.ProcessState.Exited() && !said && !p.retired.Load() && k.joined(p) {
			f.t.Errorf("%s ended by itself: %v", p.Name, p.err)
		}
		if code := p.cmd.ProcessState.ExitCode(); code == exitPanicked && !said {
			f.t.Errorf("%s panicked: %v", p.Name, p.err)
		}
		f.Disturb(check.Disturbance{Does: check.Kills, Process: p.Name, From: gone})
		f.harm(p.Name, at, time.Time{})
		time.Sleep(100 * time.Millisecond)
		next, err := f.start(k.life(w))
		if err != nil {
			f.t.Error(err)
			return
		}
		p = next
	}
}

func (k *Keeper) joined(p *Process) bool {
	return Count(k.fleet.Events(p.Name), event.EventJoined) > 0
}

// Said is all that its lives wrote; read it when the keeper has stopped.
func (k *Keeper) Said() string {
	var all strings.Builder
	for life := range k.Lives {
		text, _ := os.ReadFile(k.fleet.logOf(fmt.Sprintf("%s.%d", k.name, life+1)))
		all.Write(text)
	}
	return all.String()
}

// Process is the present life.
func (k *Keeper) Process() *Process { return k.now.Load() }

// Stop stops the worker and its supervision.
func (k *Keeper) Stop() {
	k.ends.Do(func() { close(k.stop) })
	<-k.done
}
