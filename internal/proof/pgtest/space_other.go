//go:build !linux

package pgtest

import "errors"

func mountMemory(string, int64) error { return errors.ErrUnsupported }

func resize(string, int64) error { return errors.ErrUnsupported }

func usedOf(string) (int64, error) { return 0, errors.ErrUnsupported }

func unmount(string) {}
