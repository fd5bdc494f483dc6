package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// setLock locks one byte, or unlocks it. It does not wait.
func setLock(f *os.File, at int64, l lock) error {
	switch l {
	case exclusive:
		return lockByte(f, at, windows.LOCKFILE_EXCLUSIVE_LOCK)
	case shared:
		// On top of the exclusive one, which the first unlocking takes away.
		if err := lockByte(f, at, 0); err != nil {
			return err
		}
	}
	return unlockByte(f, at)
}

// seeLock returns how others have locked a byte, by trying.
func seeLock(f *os.File, at int64) (lock, error) {
	for _, try := range []struct {
		flags   uint32
		refused lock
	}{{0, exclusive}, {windows.LOCKFILE_EXCLUSIVE_LOCK, shared}} {
		switch err := lockByte(f, at, try.flags); {
		case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
			return try.refused, nil
		case err != nil:
			return unlocked, err
		}
		if err := unlockByte(f, at); err != nil {
			return unlocked, err
		}
	}
	return unlocked, nil
}

func lockByte(f *os.File, at int64, flags uint32) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), flags|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, place(at))
}

func unlockByte(f *os.File, at int64) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, place(at))
}

func place(at int64) *windows.Overlapped {
	return &windows.Overlapped{Offset: uint32(at), OffsetHigh: uint32(at >> 32)}
}
