package pgtest

import (
	"fmt"
	"syscall"
)

func mountMemory(dir string, bytes int64) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", bytes))
}

// resize bounds a file system in memory anew. It fails when more is used.
func resize(dir string, bytes int64) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, fmt.Sprintf("size=%d", bytes))
}

func usedOf(dir string) (int64, error) {
	var stat syscall.Statfs_t
	err := syscall.Statfs(dir, &stat)
	return int64(stat.Blocks-stat.Bfree) * stat.Bsize, err
}

// unmount takes a file system away, if there is one. Processes that still use it do not keep it.
func unmount(dir string) { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }
