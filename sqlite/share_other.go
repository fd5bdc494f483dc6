//go:build !unix

package sqlite

import "os"

// shareAs would let those use a file who may use another one: here a directory says
// who may use what is in it.
func shareAs(string, os.FileInfo) {}
