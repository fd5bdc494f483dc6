package pgtest

import (
	"errors"
	"os"
	"path/filepath"
)

// credential stands for another user; on Windows a server always runs as ourselves, because pg_ctl gives up an
// administrator's rights by itself.
type credential struct{}

func serverUser() (*credential, bool) { return nil, false }

func giveToServer(string) error { return nil }

// cacheDirs are where fetched servers lie, the one to fetch into first.
func cacheDirs() []string {
	if dir := os.Getenv("STINT_PG_CACHE"); dir != "" {
		return []string{dir}
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil
	}
	return []string{filepath.Join(dir, "stint", "postgres")}
}

// takeLock creates the file. That it is open is the lock: nobody can remove it until its owner has ended.
func takeLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
}

// lockIsFree says whether the process that took the lock is gone, by removing the file.
func lockIsFree(path string) (bool, error) {
	err := os.Remove(path)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		return err == nil, err
	}
	return false, nil
}

// watchdog does not exist on Windows: a test process that is killed leaves its server running until the next run
// removes its files or somebody stops it.
type watchdog struct{}

func newWatchdog(string) (*watchdog, error) { return nil, nil }

func (*watchdog) dismiss() error { return nil }
