//go:build !linux

package pgtest

// memoryDir returns nothing: only Linux has a memory file system that every user can write to.
func memoryDir() string { return "" }
