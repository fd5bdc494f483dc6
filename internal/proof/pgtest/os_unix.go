//go:build unix

package pgtest

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
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
