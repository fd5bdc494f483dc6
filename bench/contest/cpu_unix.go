//go:build unix

package contest

import (
	"syscall"
	"time"
)

// ProcessTime is the processor time that this process has used.
func ProcessTime() (time.Duration, bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
