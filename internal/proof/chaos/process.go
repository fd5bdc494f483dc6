//go:build unix

package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stint-go/stint/internal/proof/check"
)

// Process is one worker's process.
type Process struct {
	Worker
	fleet *Fleet
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has
	err   error         // how; to be read behind ended
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
		_ = cmd.Process.Kill()
		<-p.ended
		if f.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			f.t.Logf("%s said:\n%s", w.Name, tail(text, 4000))
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
	case <-time.After(time.Minute):
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
	case <-time.After(within):
		p.fleet.t.Fatalf("%s does not end within %v", p.Name, within)
		return
	}
}

// Kill ends it as the kernel does when memory runs out. It stands still by the
// moment that is noted for the judge, so that nothing began after it, and is
// gone only afterwards, so that nobody took over before it.
func (p *Process) Kill() {
	p.Freeze()
	p.mu.Lock()
	p.frozen = 0
	p.fleet.Disturb(check.Disturbance{Does: check.Kills, Process: p.Name, From: check.Now()})
	p.fleet.harm(p.Name, p.since, time.Time{})
	p.mu.Unlock()
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// Freeze stops the process where it stands; Thaw lets it go on.
func (p *Process) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen != 0 {
		return
	}
	p.frozen, p.since = check.Now(), time.Now()
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	for range 100 {
		if p.still() {
			return
		}
		time.Sleep(time.Millisecond)
	}
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
