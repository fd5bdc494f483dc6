//go:build linux || darwin

package sqlite

import (
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Locks are of the open file, not of the process as in POSIX: those are lost when
// anything in the process closes the file, and do not tell two stores of one
// process apart. The commands are as in the systems' fcntl.h, since package unix
// names them for Linux only.
var ofdSetLock, ofdGetLock = map[string]int{"linux": 37, "darwin": 90}[runtime.GOOS], map[string]int{"linux": 36, "darwin": 92}[runtime.GOOS]

// setLock locks one byte, or unlocks it. It does not wait.
func setLock(f *os.File, at int64, l lock) error {
	kind := map[lock]int16{unlocked: unix.F_UNLCK, shared: unix.F_RDLCK, exclusive: unix.F_WRLCK}[l]
	return unix.FcntlFlock(f.Fd(), ofdSetLock, &unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: at, Len: 1})
}

// seeLock returns how others have locked a byte.
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
