//go:build unix && !linux

package shelljob

import "syscall"

// dieWithEngine does nothing where the kernel offers nothing.
func dieWithEngine(*syscall.SysProcAttr) {}

// onlyZombies is of use in Linux containers only.
func onlyZombies(int) bool { return false }
