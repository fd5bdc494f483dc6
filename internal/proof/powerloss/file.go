package powerloss

import (
	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

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
