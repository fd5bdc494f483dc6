package outside

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Dir keeps values as files below a directory, which all programs must reach that enqueue or run the jobs: on one
// machine, or on a volume that they share. Each file is named by its key, in a directory of the key's first two digits.
// What is put again gets the time of that.
type Dir string

// Put implements [Blobs]. The file is whole and on the disk before it has its name.
func (d Dir) Put(_ context.Context, key string, value []byte) error {
	name, now := d.file(key), time.Now()
	if os.Chtimes(name, now, now) == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), "put-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // which fails when it has its name
	_, err = f.Write(value)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	return syncDir(filepath.Dir(name))
}

// Get implements [Blobs]. A directory that is not there is an error of its own: a volume that is not mounted has lost
// nothing.
func (d Dir) Get(_ context.Context, key string) ([]byte, error) {
	value, err := os.ReadFile(d.file(key))
	if errors.Is(err, fs.ErrNotExist) {
		if _, gone := os.Stat(string(d)); gone != nil {
			return nil, gone
		}
		return nil, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return value, err
}

func (d Dir) file(key string) string { return filepath.Join(string(d), key[:2], key) }

// syncDir has the name of a file on the disk as well, where a directory can be synced.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return nil // Windows opens none for that
	}
	err = f.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrInvalid) || errors.Is(err, fs.ErrPermission) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
