package sqlite

import "golang.org/x/sys/unix"

// fileSystems are kinds of file systems by the numbers that Linux gives them.
var fileSystems = map[uint32]string{
	unix.NFS_SUPER_MAGIC: "nfs", unix.SMB_SUPER_MAGIC: "smb", unix.SMB2_SUPER_MAGIC: "smb2", unix.CIFS_SUPER_MAGIC: "cifs",
	unix.V9FS_MAGIC: "9p", unix.AFS_SUPER_MAGIC: "afs", unix.CEPH_SUPER_MAGIC: "ceph",
}

// diskOf returns what kind of file system a directory is on, as far as that
// matters, and how many bytes users may still write to it.
func diskOf(dir string) (kind string, free int64, ok bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return "", 0, false
	}
	return fileSystems[uint32(s.Type)], int64(s.Bavail) * int64(s.Bsize), true
}
