//go:build !linux

package pgtest

import "errors"

// memoryDir returns nothing: only Linux has a memory file system that every user can write to.
func memoryDir() string { return "" }

func mountMemory(string, int64) error { return errors.ErrUnsupported }

func resize(string, int64) error { return errors.ErrUnsupported }

func usedOf(string) (int64, error) { return 0, errors.ErrUnsupported }

func unmount(string) {}
