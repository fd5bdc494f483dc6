//go:build linux || darwin

package sqlite

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Locks of the open file, and not of the process as POSIX has them: those are
// lost when anything in the process closes the file, and do not tell two
// stores of one process apart.

// setLock locks one byte, or unlocks it. It does not wait.
func setLock(f *os.File, at int64, l lock) error {
	kind := map[lock]int16{unlocked: unix.F_UNLCK, shared: unix.F_RDLCK, exclusive: unix.F_WRLCK}[l]
	return unix.FcntlFlock(f.Fd(), ofdSetLock, &unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: at, Len: 1})
}

// seeLock tells how others have locked a byte.
func seeLock(f *os.File, at int64) (lock, error) {
	q := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: at, Len: 1}
	if err := unix.FcntlFlock(f.Fd(), ofdGetLock, &q); err != nil {
		return unlocked, err
	}
	switch q.Type {
	case unix.F_WRLCK:
		return exclusive, nil
	case unix.F_RDLCK:
		return shared, nil
	}
	return unlocked, nil
}
