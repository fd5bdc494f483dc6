//go:build unix

package shelljob

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
}

func sameName(a, b string) bool { return a == b }

func shell(line string) *exec.Cmd { return exec.Command("/bin/sh", "-c", line) }

// group is a process group. Its number is the command's.
type group struct{ id int }

func (g *group) prepare(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithEngine(cmd.SysProcAttr)
	return nil
}

func (g *group) adopt(p *os.Process) error {
	g.id = p.Pid
	return nil
}

// terminate asks every process of the group to end. One that was stopped
// hears it only when it goes on.
func (g *group) terminate() {
	_ = syscall.Kill(-g.id, syscall.SIGTERM)
	_ = syscall.Kill(-g.id, syscall.SIGCONT)
}

func (g *group) kill() { _ = syscall.Kill(-g.id, syscall.SIGKILL) }

// gone reports whether the group is empty. It may be asked once the command
// itself has been waited for, not before.
func (g *group) gone() bool {
	// An engine that is process 1 of its container inherits the orphans, and
	// nobody else collects them.
	for {
		if pid, err := syscall.Wait4(-g.id, nil, syscall.WNOHANG, nil); pid <= 0 && err != syscall.EINTR {
			break
		}
	}
	return syscall.Kill(-g.id, 0) == syscall.ESRCH || onlyZombies(g.id)
}

func (g *group) close() {}

func status(state *os.ProcessState) (code int, signal string) {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), unix.SignalName(ws.Signal())
	}
	return state.ExitCode(), ""
}
