//go:build !unix

package sqlite

import "os"

// shareAs does nothing: here a directory says which users may use what is in it.
func shareAs(string, os.FileInfo) {}
