//go:build !linux

package engine

// residentMemory is what Go has of the machine's memory, in bytes: what else is
// in the process is not known here.
func residentMemory() int64 { return runtimeMemory() }
