package engine

import (
	"bytes"
	"os"
	"strconv"
)

// residentMemory is how much of the machine's memory the process has, in bytes:
// with what did not come from Go, and what it has in common with others.
func residentMemory() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if fields := bytes.Fields(text); err == nil && len(fields) > 1 {
		if pages, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
			return pages * int64(os.Getpagesize())
		}
	}
	return runtimeMemory()
}
