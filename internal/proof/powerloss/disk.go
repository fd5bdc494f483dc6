package powerloss

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// Disk is a file system of SQLite, to be opened by its name. Its methods may be
// called concurrently.
type Disk struct {
	name  string
	under vfs.VFSFilename

	mu    sync.Mutex
	files map[string]*inode // by path, as programs see them
	names map[string]*inode // by path, as they stand on the disk
	ops   int               // that changed something, or were to
	cut   int               // the operation at which the power goes; 0 for never
	at    func()            // called then instead
	off   bool
	room  int64 // for all files together; 0 for any amount
}

var disks atomic.Int64

// New makes a disk. What stands on the real one was synced.
func New(t testing.TB) *Disk {
	d := Register()
	t.Cleanup(func() { vfs.Unregister(d.name) })
	return d
}

// Register makes a disk that is there until the process ends.
func Register() *Disk {
	d := &Disk{
		name:  fmt.Sprintf("disk-%d", disks.Add(1)),
		under: vfs.Find("os").(vfs.VFSFilename),
		files: map[string]*inode{}, names: map[string]*inode{},
	}
	vfs.Register(d.name, d)
	return d
}

// Name is what SQLite knows the disk by.
func (d *Disk) Name() string { return d.name }

// CutAt has the power go at the n-th operation from now on.
func (d *Disk) CutAt(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut = d.ops + n
}

// CallAt has something else happen at the n-th operation from now on, before it
// is done. If that is a write, its first half is.
func (d *Disk) CallAt(n int, at func()) {
	d.CutAt(n)
	d.at = at
}

// Off tells whether the power is gone, and how many operations there were.
func (d *Disk) Off() (off bool, ops int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.off, d.ops
}

// Room bounds how much all files take together, from now on; 0 lifts the bound.
func (d *Disk) Room(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = bytes
}

// Used is how much all files take together.
func (d *Disk) Used() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.usedLocked()
}

func (d *Disk) usedLocked() (sum int64) {
	for _, n := range d.files {
		sum += n.size
	}
	return sum
}

// SyncDir puts all names on the disk as they are.
func (d *Disk) SyncDir(string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.stepLocked(); err != nil {
		return err
	}
	d.names = maps.Clone(d.files)
	return nil
}

// errOff is what every operation gives when the power is gone.
var errOff = error(sqlite3.IOERR)

// stepLocked counts an operation. The one at which the power goes fails, and a
// write may still be done in part.
func (d *Disk) stepLocked() error {
	if d.off {
		return errOff
	}
	if d.ops++; d.ops != d.cut {
		return nil
	}
	if d.at != nil {
		d.at()
		return nil
	}
	d.off = true
	return errOff
}

// Open implements [vfs.VFS].
func (d *Disk) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	return d.OpenFilename(nil, flags) // of a file without a name
}

// OpenFilename implements [vfs.VFSFilename].
func (d *Disk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.off {
		return nil, flags, errOff
	}
	path := name.String()
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && flags&vfs.OPEN_CREATE != 0 && path != "" {
		if err := d.stepLocked(); err != nil {
			return nil, flags, err
		}
	}
	f, flags, opened := d.under.OpenFilename(name, flags)
	if opened != nil || path == "" || flags&vfs.OPEN_DELETEONCLOSE != 0 {
		return f, flags, opened
	}
	node := d.files[path]
	if node == nil {
		node = &inode{synced: content, size: int64(len(content))}
		d.files[path] = node
		if err == nil {
			d.names[path] = node
		}
	}
	return &file{File: f, disk: d, node: node}, flags, nil
}

// Delete implements [vfs.VFS].
func (d *Disk) Delete(name string, syncDir bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.stepLocked(); err != nil {
		return err
	}
	if err := d.under.Delete(name, syncDir); err != nil {
		return err
	}
	delete(d.files, name)
	if syncDir {
		d.names = maps.Clone(d.files)
	}
	return nil
}

// Access implements [vfs.VFS].
func (d *Disk) Access(name string, flags vfs.AccessFlag) (bool, error) {
	return d.under.Access(name, flags)
}

// FullPathname implements [vfs.VFS].
func (d *Disk) FullPathname(name string) (string, error) { return d.under.FullPathname(name) }

// file is an open file of a disk.
type file struct {
	vfs.File
	disk *Disk
	node *inode
}

var (
	_ vfs.FileSharedMemory = (*file)(nil)
	_ vfs.FileLockState    = (*file)(nil)
	_ vfs.FileHasMoved     = (*file)(nil)
)

// ReadAt implements [io.ReaderAt].
func (f *file) ReadAt(p []byte, at int64) (int, error) {
	if off, _ := f.disk.Off(); off {
		return 0, errOff
	}
	return f.File.ReadAt(p, at)
}

// WriteAt implements [io.WriterAt].
func (f *file) WriteAt(p []byte, at int64) (int, error) {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if more := at + int64(len(p)) - f.node.size; d.room > 0 && more > 0 && d.usedLocked()+more > d.room {
		return 0, sqlite3.FULL
	}
	if d.at != nil && d.ops+1 == d.cut {
		_, _ = f.File.WriteAt(p[:len(p)/2], at)
	}
	was := d.off
	err := d.stepLocked()
	if !was {
		f.node.write(p, at) // also at the cut: it was under way
	}
	if err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, at)
}

// Truncate implements [vfs.File].
func (f *file) Truncate(size int64) error {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.off
	err := d.stepLocked()
	if !was {
		f.node.truncate(size)
	}
	if err != nil {
		return err
	}
	return f.File.Truncate(size)
}

// Sync implements [vfs.File].
func (f *file) Sync(flags vfs.SyncFlag) error {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.stepLocked(); err != nil {
		return err
	}
	if flags&vfs.SYNC_FULL == vfs.SYNC_FULL {
		f.node.sync()
	}
	return nil // the real disk need not know
}

// SharedMemory implements [vfs.FileSharedMemory].
func (f *file) SharedMemory() vfs.SharedMemory {
	if f, ok := f.File.(vfs.FileSharedMemory); ok {
		return f.SharedMemory()
	}
	return nil
}

// LockState implements [vfs.FileLockState].
func (f *file) LockState() vfs.LockLevel { return f.File.(vfs.FileLockState).LockState() }

// HasMoved implements [vfs.FileHasMoved].
func (f *file) HasMoved() (bool, error) { return f.File.(vfs.FileHasMoved).HasMoved() }
