//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"syscall"
)

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
