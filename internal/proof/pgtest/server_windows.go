package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

const hasUnixSockets = false

// serverProcess is a server that pg_ctl has started, which drops an administrator's rights for it.
type serverProcess struct {
	ctl string
	dir *runDir
}

func runAsServer(path string, args []string, dir string, output *os.File) error {
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, serverEnv(), output, output
	return cmd.Run()
}

// startServer starts a server and returns when it accepts connections.
func startServer(installation Installation, dir *runDir, port int) (*serverProcess, error) {
	p := &serverProcess{installation.program("pg_ctl"), dir}
	err := p.control("start", "-l", dir.log(), "-o", "-p "+strconv.Itoa(port))
	if err != nil {
		return nil, err
	}
	return p, nil
}

// control runs pg_ctl without pipes: a server would inherit them, and waiting for their end would never end.
func (p *serverProcess) control(verb string, args ...string) error {
	args = append([]string{verb, "-w", "-s", "-t", strconv.Itoa(int(startLimit.Seconds())), "-D", p.dir.data()}, args...)
	return runAsServer(p.ctl, args, p.dir.path, nil)
}

func (p *serverProcess) stop(mode Mode) error { return p.control("stop", "-m", string(mode)) }

// ended tells whether the server ended by itself.
func (p *serverProcess) ended() bool { return p.control("status") != nil }

func (p *serverProcess) kill() error {
	text, err := os.ReadFile(p.dir.pidFile())
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return fmt.Errorf("read the process id of the server: %w", err)
	}
	server, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return server.Kill()
}

func releaseSharedMemory(string) {}
