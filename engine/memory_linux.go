package engine

import (
	"bytes"
	"os"
	"strconv"
)

// residentMemory returns the bytes of the machine's memory that the process uses. On systems other
// than Linux it counts Go's memory only.
func residentMemory() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if fields := bytes.Fields(text); err == nil && len(fields) > 1 {
		if pages, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
			return pages * int64(os.Getpagesize())
		}
	}
	return runtimeMemory()
}
