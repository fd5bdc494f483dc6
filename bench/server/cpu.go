package server

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc, on every processor that Go knows.
const tick = 10 * time.Millisecond

// startedWithin is how far the start of a process by /proc may lie from the one
// that the server tells: the kernel knows when it booted to the second, and a
// server notes the start of a session once it has begun.
const startedWithin = 3 * time.Second

// serverCPU sums the processor time of a server's processes: of its first one,
// of those that it started, and of those of them that have ended. It begins at
// one that serves a session, and is false unless that process is to be found
// here. A number alone proves nothing, for the server may live on another
// machine or in a container: it must be a postgres that began when the session
// did.
func serverCPU(proc fs.FS, backend int, started time.Time) (time.Duration, bool) {
	own, err := readProcess(proc, strconv.Itoa(backend))
	if err != nil || own.name != "postgres" {
		return 0, false
	}
	booted, err := bootTime(proc)
	if err != nil || booted.Add(time.Duration(own.started)*tick).Sub(started).Abs() > startedWithin {
		return 0, false
	}
	for {
		// A process that ends meanwhile would count twice or not at all.
		before, err := readProcess(proc, strconv.Itoa(own.parent))
		if err != nil || before.name != "postgres" {
			return 0, false
		}
		children, err := childrenTicks(proc, own.parent)
		if err != nil {
			return 0, false
		}
		after, err := readProcess(proc, strconv.Itoa(own.parent))
		if err != nil {
			return 0, false
		}
		if after.ended == before.ended {
			return time.Duration(after.own+after.ended+children) * tick, true
		}
	}
}

// childrenTicks sums what the running children of a process have used.
func childrenTicks(proc fs.FS, parent int) (sum int64, err error) {
	entries, err := fs.ReadDir(proc, ".")
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if name := e.Name(); name[0] >= '0' && name[0] <= '9' {
			// One that has just ended is in its parent's account.
			if p, err := readProcess(proc, name); err == nil && p.parent == parent {
				sum += p.own + p.ended
			}
		}
	}
	return sum, nil
}

// process is what /proc tells of one, in ticks.
type process struct {
	name    string
	parent  int
	own     int64 // used by itself
	ended   int64 // used by its children that have ended
	started int64 // after the boot
}

func readProcess(proc fs.FS, pid string) (process, error) {
	text, err := fs.ReadFile(proc, pid+"/stat")
	if err != nil {
		return process{}, err
	}
	// The name is in parentheses and may hold anything, these too.
	open, closed := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || closed < open {
		return process{}, fmt.Errorf("/proc/%s/stat has no name in it", pid)
	}
	fields := strings.Fields(string(text[closed+1:]))
	const parent, user, system, endedUser, endedSystem, started = 1, 11, 12, 13, 14, 19 // counted behind the name
	if len(fields) <= started {
		return process{}, fmt.Errorf("/proc/%s/stat has %d fields", pid, len(fields))
	}
	var wrong error
	number := func(field int) int64 {
		n, err := strconv.ParseInt(fields[field], 10, 64)
		wrong = errors.Join(wrong, err)
		return n
	}
	p := process{
		name: string(text[open+1 : closed]), parent: int(number(parent)),
		own: number(user) + number(system), ended: number(endedUser) + number(endedSystem), started: number(started),
	}
	return p, wrong
}

// bootTime is when the kernel of this machine says that it began.
func bootTime(proc fs.FS) (time.Time, error) {
	text, err := fs.ReadFile(proc, "stat")
	if err != nil {
		return time.Time{}, err
	}
	for line := range strings.Lines(string(text)) {
		if seconds, ok := strings.CutPrefix(line, "btime "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(seconds), 10, 64)
			return time.Unix(n, 0), err
		}
	}
	return time.Time{}, errors.New("/proc/stat does not say when the machine booted")
}
