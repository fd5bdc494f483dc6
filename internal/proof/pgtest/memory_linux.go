package pgtest

import (
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
