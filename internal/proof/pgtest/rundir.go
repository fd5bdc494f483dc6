package pgtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	runPrefix = "stint-pg-"
	lockName  = "owner.lock"
	dataName  = "data"

	// A run directory younger than this is left alone: its owner may be about to take the lock.
	sweepAge = time.Minute

	// The path of a unix socket must fit into 103 bytes on macOS and 107 on Linux. This leaves room for the name
	// of the run directory and the socket in it.
	longestBase = 60
)

// runDir is the directory that holds all of one cluster. It belongs to the server's user, and its name is known to
// nobody in advance, so that other users of the machine can neither enter it nor lay it out beforehand.
type runDir struct {
	path string
	lock *os.File // locked for as long as this process lives
}

// newRunDir creates a run directory, after it has removed those that dead processes left. A directory that is to
// survive the machine lies on a disk; any other one may lie in memory.
func newRunDir(durable bool) (*runDir, error) {
	disk, memory := tempDir(), memoryDir()
	sweep(disk)
	base := disk
	if memory != "" {
		sweep(memory)
		if !durable {
			base = memory
		}
	}
	path, err := os.MkdirTemp(base, runPrefix)
	if err != nil {
		return nil, err
	}
	d := &runDir{path: path}
	if d.lock, err = takeLock(filepath.Join(path, lockName)); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the run directory: %w", err), os.RemoveAll(path))
	}
	if err := giveToServer(path); err != nil {
		return nil, errors.Join(err, d.remove())
	}
	return d, nil
}

func (d *runDir) data() string    { return filepath.Join(d.path, dataName) }
func (d *runDir) log() string     { return filepath.Join(d.path, "postgres.log") }
func (d *runDir) pidFile() string { return filepath.Join(d.data(), "postmaster.pid") }

// remove deletes the directory. It tries for a while, because the children of a killed server may still be writing.
func (d *runDir) remove() error {
	closed := d.lock.Close()
	unmount(d.data())
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err := os.RemoveAll(d.path)
		if err == nil || time.Since(begin) > startLimit {
			return errors.Join(closed, err)
		}
	}
}

// tempDir is where run directories on a disk are made: the temporary directory, unless its path is too long for a
// socket or closed to the server's user.
func tempDir() string {
	dir := os.TempDir()
	if len(dir) > longestBase || reachable(dir) != nil {
		return "/tmp"
	}
	return dir
}

// sweep removes run directories whose owner is gone. A server that still runs in one needs no signal, and no
// process id that may belong to somebody else by now: PostgreSQL looks at its lock file once a minute and stops when
// it has disappeared. What cannot be removed belongs to another user, who will do it.
func sweep(base string) {
	dirs, _ := filepath.Glob(filepath.Join(base, runPrefix+"*")) // Only a malformed pattern is an error.
	for _, dir := range dirs {
		if abandoned(dir) {
			unmount(filepath.Join(dir, dataName))
			_ = os.RemoveAll(dir)
		}
	}
}

func abandoned(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || time.Since(info.ModTime()) < sweepAge {
		return false
	}
	free, err := lockIsFree(filepath.Join(dir, lockName))
	// A directory without a lock was left between its creation and the locking, more than a minute ago.
	return free || errors.Is(err, fs.ErrNotExist)
}

// errNoSpace says that this machine or this user cannot have a file system of a given size.
var errNoSpace = errors.New("cannot mount a small file system for the server")

// CanBound tells whether servers can have Options.Space here.
func CanBound() bool {
	dir, err := os.MkdirTemp("", runPrefix)
	if err != nil {
		return false
	}
	defer os.Remove(dir)
	defer unmount(dir)
	return mountMemory(dir, 1<<20) == nil
}

// bound gives the data directory a file system of so many bytes, in memory.
func (d *runDir) bound(bytes int64) error {
	if err := os.Mkdir(d.data(), 0o700); err != nil {
		return err
	}
	if err := mountMemory(d.data(), bytes); err != nil {
		return fmt.Errorf("%w: %w", errNoSpace, err)
	}
	return giveToServer(d.data())
}

// Fill leaves no room on the file system of a server that was started with Options.Space.
func (s *Server) Fill() {
	s.own("Fill").Helper()
	var err error
	for range 100 { // it may grow between the two
		var used int64
		if used, err = usedOf(s.dir.data()); err == nil {
			err = resize(s.dir.data(), used)
		}
		if err == nil {
			return
		}
	}
	s.t.Errorf("pgtest: fill: %v", err)
}

// Empty gives the room back that [Server.Fill] took.
func (s *Server) Empty() {
	s.own("Empty").Helper()
	if err := resize(s.dir.data(), s.space); err != nil {
		s.t.Errorf("pgtest: empty: %v", err)
	}
}
