package engine

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"

	"github.com/stint-go/stint"
)

// identity is what tells this process from every other one: host, boot,
// process number, and when the process started. Where the system does not
// tell, a part is empty.
func identity() stint.EngineInfo {
	info := stint.EngineInfo{Host: hostname(), PID: os.Getpid()}
	info.BootID = bootID()
	info.PIDStarted, _ = startedTicks("self")
	return info
}

// bootID names this boot of this machine and, since containers share hosts and
// count processes from 1, this namespace of process numbers.
func bootID() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(boot)) + " " + namespace
}

// self is the identity of this process.
type self stint.EngineInfo

// provesDead tells whether the process of another engine is certainly gone:
// it lived on this boot of this machine among the same process numbers, and its
// number is free now or another process's. Everything else proves nothing.
func (s self) provesDead(e stint.EngineInfo) bool {
	if s.BootID == "" || e.BootID != s.BootID || e.PIDStarted == 0 {
		return false
	}
	p, err := os.FindProcess(e.PID)
	if err != nil {
		return false
	}
	defer p.Release()
	// Not by /proc: a mount option hides other users' processes there.
	if err := p.Signal(syscall.Signal(0)); errors.Is(err, os.ErrProcessDone) {
		return true
	}
	started, err := startedTicks(strconv.Itoa(e.PID))
	return err == nil && started != e.PIDStarted
}

// startedTicks is when a process started, in clock ticks after boot.
func startedTicks(pid string) (int64, error) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, err
	}
	return parseStat(stat)
}

// parseStat reads when a process started from its stat in Linux's /proc: field 22,
// counted behind the parenthesised name, which may be anything. A zombie has ended,
// as far as its work goes: its answer is -1.
func parseStat(stat []byte) (int64, error) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, errors.New("the system does not tell when a process started")
	}
	if state := string(fields[0]); state == "Z" || state == "X" {
		return -1, nil
	}
	return strconv.ParseInt(string(fields[19]), 10, 64)
}
