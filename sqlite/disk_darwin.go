package sqlite

import "golang.org/x/sys/unix"

// diskOf returns what kind of file system a directory is on, and how many bytes
// users may still write to it.
func diskOf(dir string) (kind string, free int64, ok bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return "", 0, false
	}
	return unix.ByteSliceToString(s.Fstypename[:]), int64(s.Bavail) * int64(s.Bsize), true
}
