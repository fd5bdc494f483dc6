package pgtest

import (
	"fmt"
	"os"
	"syscall"
)

// memoryNeeded is the free space from which on a memory file system is used. Containers often give it 64 MB,
// which not even an empty cluster fits into.
const memoryNeeded = 4 << 30

// memoryDir returns the memory file system that every Linux has, or nothing if it is small or if TMPDIR asks for another
// place. Creating a database creates 300 files; some disks need a millisecond for each, and memory does not.
func memoryDir() string {
	const dir = "/dev/shm"
	var stat syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(dir, &stat) != nil || reachable(dir) != nil {
		return ""
	}
	if uint64(stat.Bsize)*stat.Bavail < memoryNeeded {
		return ""
	}
	return dir
}

func mountMemory(dir string, bytes int64) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", bytes))
}

// resize changes the bound of a file system in memory. It fails when more is used.
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
