//go:build unix

package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stint-go/stint/internal/check"
)

// Fleet starts and ends worker processes, and remembers what was done to them.
type Fleet struct {
	t       testing.TB
	Dir     string // of the history
	History *check.Writer

	mu   sync.Mutex
	done []check.Disturbance
}

// NewFleet makes a fleet with a history of its own. Its producers write to
// History.
func NewFleet(t testing.TB) *Fleet {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "history")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := check.Create(dir, "producers")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return &Fleet{t: t, Dir: dir, History: w}
}

// Process is one worker's process.
type Process struct {
	Worker
	fleet *Fleet
	cmd   *exec.Cmd
	ended chan error

	frozen check.Instant
}

// Start starts a worker. It is killed when the test ends and it still runs.
func (f *Fleet) Start(w Worker) *Process {
	f.t.Helper()
	w.History = f.Dir
	settings, err := json.Marshal(w)
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), workerEnv+"="+string(settings))
	log, err := os.Create(filepath.Join(filepath.Dir(f.Dir), w.Name+".log"))
	if err != nil {
		f.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	p := &Process{Worker: w, fleet: f, cmd: cmd, ended: make(chan error, 1)}
	go func() { p.ended <- cmd.Wait() }()
	f.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if f.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			f.t.Logf("%s said:\n%s", w.Name, tail(text, 4000))
		}
	})
	return p
}

func tail(text []byte, n int) []byte { return text[max(0, len(text)-n):] }

// Stop ends the worker as an operator does, and says how that went.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-p.ended:
		return err
	case <-time.After(time.Minute):
		return fmt.Errorf("%s does not end", p.Name)
	}
}

// Kill ends it as the kernel does when memory runs out.
func (p *Process) Kill() {
	p.fleet.Disturb(check.Disturbance{Does: check.Kills, Process: p.Name, From: check.Now()})
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// Freeze stops the process where it stands; Thaw lets it go on.
func (p *Process) Freeze() {
	p.frozen = check.Now()
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
}

// Thaw lets a frozen process go on.
func (p *Process) Thaw() {
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	p.fleet.Disturb(check.Disturbance{Does: check.Freezes, Process: p.Name, From: p.frozen, To: check.Now()})
}

// Keeper is what supervises a worker: it starts it again whenever it dies.
type Keeper struct {
	stop chan struct{}
	done chan struct{}
}

// Keep starts a worker and keeps it running, as systemd would. Each life has
// a name of its own.
func (f *Fleet) Keep(w Worker) *Keeper {
	k := &Keeper{make(chan struct{}), make(chan struct{})}
	go func() {
		defer close(k.done)
		for life := 1; ; life++ {
			next := w
			next.Name = fmt.Sprintf("%s.%d", w.Name, life)
			p := f.Start(next)
			select {
			case <-p.ended:
				f.Disturb(check.Disturbance{Does: check.Kills, Process: p.Name, From: check.Now()})
				time.Sleep(100 * time.Millisecond)
			case <-k.stop:
				if err := p.Stop(); err != nil {
					f.t.Errorf("%s: %v", p.Name, err)
				}
				return
			}
		}
	}()
	return k
}

// Stop stops the worker and its supervision.
func (k *Keeper) Stop() {
	close(k.stop)
	<-k.done
}

// Disturb notes what the test does, for the judge.
func (f *Fleet) Disturb(d check.Disturbance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = append(f.done, d)
}
