//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const hasUnixSockets = true

// serverProcess is a postmaster that is a child of ours. Its process id lies in a file for the watchdog, and
// only while it is ours: the id of a process that we have waited for may belong to somebody else.
type serverProcess struct {
	*process
	idFile string
}

var stopSignals = map[Mode]syscall.Signal{
	Smart:     syscall.SIGTERM,
	Fast:      syscall.SIGINT,
	Immediate: syscall.SIGQUIT,
}

// runAsServer runs a program to its end, as the user that servers run as.
func runAsServer(path string, args []string, dir string, output *os.File) error {
	as, _ := serverUser()
	p, err := startProcess(path, args, dir, -1, output, as)
	if err != nil {
		return err
	}
	status, done := p.wait(startLimit)
	switch {
	case !done:
		return errors.Join(fmt.Errorf("did not end within %v", startLimit), p.signal(syscall.SIGKILL))
	case status.ExitStatus() != 0:
		return errors.New(describe(status))
	}
	return nil
}

// startServer starts a postmaster and returns when it accepts connections.
func startServer(installation Installation, dir *runDir, port int) (*serverProcess, error) {
	log, err := os.OpenFile(dir.log(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	as, _ := serverUser()
	args := []string{"-D", dir.data(), "-p", strconv.Itoa(port), "-k", dir.path}
	child, err := startProcess(installation.program("postgres"), args, dir.path, -1, log, as, dir.clockEnv()...)
	if err != nil {
		return nil, err
	}
	p := &serverProcess{child, idFileIn(dir.path)}
	if err := os.WriteFile(p.idFile, []byte(strconv.Itoa(p.pid)+"\n"), 0o600); err != nil {
		return nil, errors.Join(err, p.kill())
	}
	if err := p.awaitReady(dir.pidFile()); err != nil {
		return nil, err
	}
	return p, nil
}

func idFileIn(dir string) string { return filepath.Join(dir, "postgres.pid") }

func (p *serverProcess) awaitReady(pidFile string) error {
	for begin := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		if status, done := p.exited(); done {
			return errors.Join(errors.New(describe(status)), os.Remove(p.idFile))
		}
		if ready(pidFile, p.pid) {
			return nil
		}
		if time.Since(begin) > startLimit {
			return errors.Join(fmt.Errorf("not ready within %v", startLimit), p.kill())
		}
	}
}

// ready reads the server's lock file. Its first line is the process id, which tells it from the file of a killed
// predecessor, and its eighth the state.
func ready(pidFile string, pid int) bool {
	text, err := os.ReadFile(pidFile)
	if err != nil {
		return false
	}
	lines := strings.Split(string(text), "\n")
	return len(lines) >= 8 && lines[0] == strconv.Itoa(pid) && strings.TrimSpace(lines[7]) == "ready"
}

func (p *serverProcess) stop(mode Mode) error {
	signal, ok := stopSignals[mode]
	if !ok {
		return fmt.Errorf("no such mode")
	}
	return p.end(signal)
}

// ended tells whether the server ended by itself. It must not be asked again once it has said yes.
func (p *serverProcess) ended() bool {
	_, done := p.exited()
	if done {
		_ = os.Remove(p.idFile)
	}
	return done
}

func (p *serverProcess) kill() error { return p.end(syscall.SIGKILL) }

func (p *serverProcess) end(signal syscall.Signal) error {
	if err := p.signal(signal); err != nil {
		return err
	}
	if _, done := p.wait(startLimit); !done {
		return fmt.Errorf("still running %v after the signal %v", startLimit, signal)
	}
	return os.Remove(p.idFile)
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "ended by the signal " + status.Signal().String()
	}
	return fmt.Sprintf("ended with status %d", status.ExitStatus())
}

// releaseSharedMemory frees the System V memory segment of a server that was killed and never started again. It is only
// 56 bytes long, but systems allow few segments; macOS has room for 32. The seventh line of the lock file, which a
// killed server leaves behind, has the segment's key and id. Failing to free it does no harm to this test.
func releaseSharedMemory(pidFile string) {
	text, err := os.ReadFile(pidFile)
	if err != nil {
		return // The server has stopped properly.
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 7 {
		return
	}
	if fields := strings.Fields(lines[6]); len(fields) == 2 {
		_ = exec.Command("ipcrm", "-m", fields[1]).Run()
	}
}
