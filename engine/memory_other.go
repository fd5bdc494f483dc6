//go:build !linux

package engine

// residentMemory returns the bytes of the machine's memory that the process uses. On systems other
// than Linux it counts Go's memory only.
func residentMemory() int64 { return runtimeMemory() }
