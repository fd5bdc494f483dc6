package engine

import (
	"bytes"
	"os"
	"strconv"

	"github.com/stint-go/stint"
)

// identity is what tells this process from every other one: host, boot,
// process number, and when the process started. Where the system does not
// tell, a part is empty.
func identity() stint.EngineInfo {
	info := stint.EngineInfo{Host: hostname(), PID: os.Getpid()}
	if boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		info.BootID = string(bytes.TrimSpace(boot))
	}
	info.PIDStarted = startedTicks()
	return info
}

// startedTicks is when this process started, in clock ticks after boot: field
// 22 of Linux's /proc/self/stat, counted behind the parenthesised name.
func startedTicks() int64 {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0
	}
	n, _ := strconv.ParseInt(string(fields[19]), 10, 64)
	return n
}
