//go:build unix

package sqlite

import (
	"os"
	"syscall"
)

// shareAs lets the users of one file use another. Root can also give it the same
// owner.
//
// A user with the right to write to the directory may put anything at the path, so
// no link is followed. A file that is as it should be is not opened: another driver in this
// process would lose its locks on it with the closing.
func shareAs(path string, as os.FileInfo) {
	want := as.Sys().(*syscall.Stat_t)
	alike := func(info os.FileInfo) bool {
		is := info.Sys().(*syscall.Stat_t)
		return is.Uid == want.Uid && is.Gid == want.Gid && info.Mode() == as.Mode()
	}
	if info, err := os.Lstat(path); err != nil || alike(info) {
		return
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Sys().(*syscall.Stat_t).Nlink != 1 {
		return
	}
	if os.Geteuid() == 0 {
		_ = f.Chown(int(want.Uid), int(want.Gid))
	}
	_ = f.Chmod(as.Mode().Perm())
}
