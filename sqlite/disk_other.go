//go:build !linux && !darwin

package sqlite

// diskOf would tell about the disk of a directory.
func diskOf(string) (kind string, free int64, ok bool) { return "", 0, false }
