//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// nobody is the user id that unprivileged work falls back to when the system has no user of a better name.
const nobody = 65534

// serverUser returns whom the server runs as, and whether that is somebody else than ourselves. PostgreSQL refuses to
// run as root.
var serverUser = sync.OnceValues(func() (*syscall.Credential, bool) {
	if os.Geteuid() != 0 {
		return nil, false
	}
	credential := &syscall.Credential{Uid: nobody, Gid: nobody}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(account.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(account.Gid, 10, 32)
		if err1 == nil && err2 == nil && uid != 0 {
			credential.Uid, credential.Gid = uint32(uid), uint32(gid)
			break
		}
	}
	return credential, true
})

func giveToServer(path string) error {
	if credential, switched := serverUser(); switched {
		return os.Chown(path, int(credential.Uid), int(credential.Gid))
	}
	return nil
}

// cacheDirs are where fetched servers lie, the one to fetch into first. Root has a cache of its own, outside its home,
// because the server runs as somebody who cannot enter that home; others can use what root has fetched.
func cacheDirs() []string {
	const system = "/var/cache/stint/postgres"
	if dir := os.Getenv("STINT_PG_CACHE"); dir != "" {
		return []string{dir}
	}
	if os.Geteuid() == 0 {
		return []string{system}
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return []string{system}
	}
	return []string{filepath.Join(dir, "stint", "postgres"), system}
}

// takeLock creates the file and locks it until this process ends or closes it.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// lockIsFree says whether the process that took the lock is gone.
func lockIsFree(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil, nil
}

// process is a child of ours that is watched without a goroutine: os/exec would need one for as long as the
// process runs, and every leak detector would report it.
type process struct{ pid int }

// startProcess starts a program in a session of its own, so that Ctrl-C at the terminal does not reach it before the
// tests have ended. Its standard input is a file descriptor, or none if that is negative. Its environment is that of
// servers, and what is added.
func startProcess(path string, args []string, dir string, stdin int, output *os.File, as *syscall.Credential, env ...string) (*process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	files := []uintptr{null.Fd(), null.Fd(), null.Fd()}
	if stdin >= 0 {
		files[0] = uintptr(stdin)
	}
	if output != nil {
		files[1], files[2] = output.Fd(), output.Fd()
	}
	pid, err := syscall.ForkExec(path, append([]string{path}, args...), &syscall.ProcAttr{
		Dir:   dir,
		Env:   append(serverEnv(), env...),
		Files: files,
		Sys:   &syscall.SysProcAttr{Setsid: true, Credential: as},
	})
	if err != nil {
		return nil, err
	}
	return &process{pid}, nil
}

func (p *process) signal(s syscall.Signal) error { return syscall.Kill(p.pid, s) }

// exited says whether the process has ended, and how. It must not be asked again once it has said yes.
func (p *process) exited() (syscall.WaitStatus, bool) {
	var status syscall.WaitStatus
	for {
		pid, err := syscall.Wait4(p.pid, &status, syscall.WNOHANG, nil)
		if err != syscall.EINTR {
			return status, err != nil || pid == p.pid
		}
	}
}

// wait waits for the end of the process and says whether it came in time.
func (p *process) wait(limit time.Duration) (syscall.WaitStatus, bool) {
	for begin := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		status, done := p.exited()
		if done || time.Since(begin) > limit {
			return status, done
		}
	}
}

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

// watchdogScript waits for a word from its owner. The word says that the owner has cleaned up; the end of the input
// without a word says that the owner has died, and the watchdog does it: it stops the server, at once at first and with
// force after ten seconds, and removes the run directory.
const watchdogScript = `
PATH=$PATH:/usr/bin:/bin
read -r word && exit 0
if read -r pid <"$1/postgres.pid"; then
	kill -QUIT "$pid"
	n=0
	while kill -0 "$pid" && [ $n -lt 100 ]; do
		sleep 0.1
		n=$((n + 1))
	done
	[ $n -lt 100 ] || kill -KILL "$pid"
fi
umount -l "$1/data" 2>/dev/null
rm -rf "$1"
`

// watchdog is a process that outlives us by as long as it takes to clean up. A pipe is the one thing that the system
// closes however a process ends, which neither deferred functions nor signal handlers can promise, and it works on
// every unix.
type watchdog struct {
	process *process
	pipe    int // writing end; no other process may have it, or the watchdog never wakes
}

func newWatchdog(dir string) (*watchdog, error) {
	reading, writing, err := pipe()
	if err != nil {
		return nil, err
	}
	defer syscall.Close(reading)
	p, err := startProcess("/bin/sh", []string{"-c", watchdogScript, "sh", dir}, "/", reading, nil, nil)
	if err != nil {
		return nil, errors.Join(err, syscall.Close(writing))
	}
	return &watchdog{p, writing}, nil
}

// pipe returns a pipe that no child inherits unasked. os.Pipe is of no use: it makes both ends non-blocking,
// and the shell would read an error instead of waiting.
func pipe() (reading, writing int, err error) {
	var ends [2]int
	syscall.ForkLock.RLock() // No child may be forked between the next two steps.
	defer syscall.ForkLock.RUnlock()
	if err := syscall.Pipe(ends[:]); err != nil {
		return 0, 0, err
	}
	syscall.CloseOnExec(ends[0])
	syscall.CloseOnExec(ends[1])
	return ends[0], ends[1], nil
}

// dismiss sends the watchdog home.
func (w *watchdog) dismiss() error {
	_, err := syscall.Write(w.pipe, []byte("done\n"))
	err = errors.Join(err, syscall.Close(w.pipe))
	if _, done := w.process.wait(startLimit); !done {
		return errors.Join(err, fmt.Errorf("the watchdog did not leave within %v", startLimit))
	}
	return err
}
