//go:build !linux && !darwin && !windows

package sqlite

import (
	"errors"
	"os"
)

func setLock(*os.File, int64, lock) error { return errors.ErrUnsupported }

func seeLock(*os.File, int64) (lock, error) { return unlocked, errors.ErrUnsupported }
