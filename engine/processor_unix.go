//go:build unix

package engine

import (
	"syscall"
	"time"
)

// processTime returns how much processor time this process has used.
func processTime() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
