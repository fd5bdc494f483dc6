//go:build unix

package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/internal/proof/pace"
)

// Process is one worker's process.
type Process struct {
	Worker
	fleet *Fleet
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has
	err   error         // how; to be read after ended
	gone  check.Instant // when that was noticed; likewise

	retired atomic.Bool // told to stop

	mu     sync.Mutex
	frozen check.Instant // since when; 0 when it is not
	since  time.Time
}

// Start starts a worker. It is killed when the test ends and it still runs.
func (f *Fleet) Start(w Worker) *Process {
	f.t.Helper()
	p, err := f.start(w)
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

func (f *Fleet) start(w Worker) (*Process, error) {
	w.History = f.Dir
	settings, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), workerEnv+"="+string(settings))
	log, err := os.Create(f.logOf(w.Name))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{Worker: w, fleet: f, cmd: cmd, ended: make(chan struct{})}
	f.mu.Lock()
	f.workers = append(f.workers, w.Name)
	f.mu.Unlock()
	go func() {
		p.err = cmd.Wait()
		p.gone = check.Now()
		close(p.ended)
	}()
	f.t.Cleanup(func() {
		shown := 4000
		if f.t.Failed() && !p.Gone() {
			shown = 60_000
			_ = cmd.Process.Signal(syscall.SIGQUIT) // where its goroutines are goes to its log
			select {
			case <-p.ended:
			case <-time.After(5 * time.Second):
			}
		}
		_ = cmd.Process.Kill()
		<-p.ended
		if f.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			f.t.Logf("%s said:\n%s", w.Name, tail(text, shown))
		}
	})
	return p, nil
}

func tail(text []byte, n int) []byte { return text[max(0, len(text)-n):] }

// Stop ends the worker as an operator does, and says how that went.
func (p *Process) Stop() error {
	if p.Gone() {
		return fmt.Errorf("%s had ended: %w", p.Name, p.err)
	}
	p.Retire()
	select {
	case <-p.ended:
		return p.err
	case <-time.After(pace.Of(time.Minute)):
		return fmt.Errorf("%s does not end", p.Name)
	}
}

// Retire tells the worker to stop, unless it was told before, and does not
// wait for it.
func (p *Process) Retire() {
	if !p.retired.Load() {
		p.Signal(syscall.SIGTERM)
	}
}

// Signal tells the worker to stop, and at once if it was told before. Should
// it not leave the roster then, others bury it rightly.
func (p *Process) Signal(s syscall.Signal) {
	p.retired.Store(true)
	p.fleet.harm(p.Name, time.Now(), time.Time{})
	p.fleet.Disturb(check.Disturbance{Does: check.Stops, Process: p.Name, From: check.Now()})
	_ = p.cmd.Process.Signal(s)
}

// Exit waits for the end of a worker that was told to stop. It returns the
// exit code, -1 if a signal ended it, and an instant when it was gone.
func (p *Process) Exit(within time.Duration) (code int, gone check.Instant) {
	p.fleet.t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode(), p.gone
	case <-time.After(pace.Of(within)):
		p.fleet.t.Fatalf("%s does not end within %v", p.Name, within)
		return
	}
}

// Kill ends it as the kernel does when memory runs out. It stands still by the
// moment that is noted for the judge, so that nothing began after it, and is
// gone only afterwards, so that nobody took over before it.
func (p *Process) Kill() {
	already := p.Freeze()
	p.mu.Lock()
	if already {
		p.fleet.Disturb(check.Disturbance{Does: check.Freezes, Process: p.Name, From: p.frozen, To: check.Now()})
	}
	p.frozen = 0
	p.fleet.Disturb(check.Disturbance{Does: check.Kills, Process: p.Name, From: check.Now()})
	p.fleet.harm(p.Name, p.since, time.Time{})
	p.mu.Unlock()
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// Freeze stops the process where it stands; Thaw lets it go on. It reports whether it stood still already.
func (p *Process) Freeze() (already bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen != 0 {
		return true
	}
	p.frozen, p.since = check.Now(), time.Now()
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	for range 100 {
		if p.still() {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// still tells whether the process stands still. Where the system does not
// tell, it does so a moment after it was told to.
func (p *Process) still() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		time.Sleep(5 * time.Millisecond)
		return true
	}
	behind := bytes.TrimSpace(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(behind) > 0 && bytes.ContainsRune([]byte("TtZX"), rune(behind[0]))
}

// Starve gives the process no processor for a while, as a machine that is busy does: nobody
// notes that, and only its engine can say that it was too late.
func (p *Process) Starve(long time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(long)
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
}

// Thaw lets a frozen process go on.
func (p *Process) Thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen == 0 {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	p.fleet.Disturb(check.Disturbance{Does: check.Freezes, Process: p.Name, From: p.frozen, To: check.Now()})
	p.fleet.harm(p.Name, p.since, time.Now())
	p.frozen = 0
}

// Gone tells whether the process has ended.
func (p *Process) Gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

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

// exits is the event of a worker whose job ends it.
const exits event.EventType = "exits"

// end is how a job ends its own process. Others may see that it is gone, and run
// its jobs, before the test does; so it says itself when it went, and nothing
// begins in it after that.
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
