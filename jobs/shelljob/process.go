package shelljob

import (
	"os/exec"
	"runtime"
	"time"
)

// Times that are nobody's choice.
const (
	killTime  = 5 * time.Second        // for a killed group to be gone
	pollMost  = 50 * time.Millisecond  // between two looks at a group
	stdinTime = 250 * time.Millisecond // for children who hold the standard input of a command that has ended
)

// process is a running command and the group that it leads.
type process struct {
	cmd   *exec.Cmd
	group group
	done  chan struct{} // closed when the command has ended; then cmd.ProcessState is set
}

// start starts the command in a group of its own.
func start(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	if err := p.group.prepare(cmd); err != nil {
		return nil, err
	}
	cmd.WaitDelay = stdinTime
	started := make(chan error, 1)
	go func() {
		// Linux kills the command when the thread that started it ends.
		// Waiting occupies a thread anyhow, so it may as well be that one.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		err := p.group.adopt(cmd.Process)
		if err != nil {
			_ = cmd.Process.Kill()
		}
		started <- err
		// The state says how the command ended. What Wait adds is about a
		// standard input that was not read to its end.
		_ = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// ended reports whether the command itself has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// gone reports whether nothing of the group is left.
func (p *process) gone() bool { return p.ended() && p.group.gone() }

// end returns when the group is gone: it asks first, and kills when the grace
// is over. The grace is a function because it shrinks when the engine is
// fenced off meanwhile. What not even killing ends, a process that waits for
// a broken disk, is given up after killTime.
func (p *process) end(grace func() time.Duration) {
	if p.gone() {
		return
	}
	p.group.terminate()
	var killed time.Time
	began := time.Now()
	for wait := time.Millisecond; !p.gone(); wait = min(2*wait, pollMost) {
		if killed.IsZero() && time.Since(began) >= grace() {
			killed = time.Now()
		}
		if !killed.IsZero() {
			p.group.kill()
			if time.Since(killed) >= killTime {
				return
			}
		}
		time.Sleep(wait)
	}
}

func (p *process) close() { p.group.close() }
