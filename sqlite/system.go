package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// system is the file system below a store. The zero value is the real one; tests
// put something between.
type system struct {
	vfs     string                 // SQLite's name for it
	syncDir func(dir string) error // as [syncDir]
}

// filename returns the name that SQLite opens for a path.
func (y system) filename(path string) string {
	if y.vfs == "" {
		return path
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: "vfs=" + y.vfs}).String()
}

// companions are what SQLite puts beside a file while it is open: the WAL, and the
// index of that.
var companions = []string{"-wal", "-shm"}

// share makes the companions, by reading, and gives the users of the file the right
// to use them. Otherwise the first user that opens it, such as root, would keep the
// others out. The files of another user stay as they are.
func (s *Store) share(c *conn) error {
	if s.path == Memory {
		return nil
	}
	if err := c.script(`select 1 from sqlite_schema limit 1`); err != nil {
		return err
	}
	file, err := os.Stat(s.path)
	if err != nil {
		return nil // reported elsewhere
	}
	for _, suffix := range companions {
		shareAs(s.path+suffix, file)
	}
	return nil
}

// kept names the companion that keeps this user out, if one does: SQLite says of
// that only that it cannot open the file.
func (s *Store) kept() error {
	for _, suffix := range companions {
		f, err := os.OpenFile(s.path+suffix, os.O_RDWR, 0)
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("%s belongs to another user; give it the owner, group and mode of the file: %w", filepath.Base(s.path)+suffix, err)
		} else if err == nil {
			_ = f.Close()
		}
	}
	return nil
}

// keepNames makes sure that the file and its WAL are found after a power cut. A
// file's sync does not have to bring its name along, and SQLite's driver does not
// see to it. Both are there by now, and nothing deletes the WAL while the connection
// that writes is open.
func (s *Store) keepNames() error {
	if s.path == Memory {
		return nil
	}
	if s.system.syncDir != nil {
		return s.system.syncDir(filepath.Dir(s.path))
	}
	return syncDir(filepath.Dir(s.path))
}

// syncDir puts on the disk which files a directory has. Where a system has no such
// thing there is nothing to do, and nothing that could be done if the directory
// may not be read.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	} else if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
