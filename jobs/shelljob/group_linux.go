package shelljob

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// dieWithEngine has the kernel kill the command when the thread that started
// it ends. It does not reach the command's children.
func dieWithEngine(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// onlyZombies reports whether the group has members but none that is alive.
// Some containers have a process 1 that collects the dead late or never, and
// an attempt should not wait for that.
func onlyZombies(group int) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	want := strconv.Itoa(group)
	found := false
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it is gone meanwhile
		}
		// After the name, which may hold anything: state, parent, group.
		f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(f) < 3 || string(f[2]) != want {
			continue
		}
		if s := f[0][0]; s != 'Z' && s != 'X' {
			return false
		}
		found = true
	}
	return found
}
