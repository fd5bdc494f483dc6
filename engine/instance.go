package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// identity returns what distinguishes this process from all others: host, boot, process id, and
// start time of the process. What the system does not tell is empty.
func identity() store.EngineInfo {
	info := store.EngineInfo{Host: hostname(), PID: os.Getpid()}
	info.BootID = bootID()
	info.PIDStarted, _ = startedTicks("self")
	return info
}

// bootID names this boot of this machine and the namespace of process ids: containers share a host,
// and each counts its processes from 1.
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

// processIdentity is the identity of this process.
type processIdentity store.EngineInfo

// provesDead reports whether the process of another engine is certainly gone: it ran on this boot
// of this machine in the same namespace, and its process id is free or belongs to another process
// now. In all other cases nothing is proven.
func (s processIdentity) provesDead(e store.EngineInfo) bool {
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

// startedTicks returns when a process started, in clock ticks after boot.
func startedTicks(pid string) (int64, error) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, err
	}
	return parseStat(stat)
}

// parseStat reads the start time of a process from its stat in Linux's /proc: field 22, counted
// after the parenthesised name, which may contain anything. A zombie does no more work: the answer
// is -1.
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

// NameTakenError says that an engine was not started because the roster has an engine of the same
// name that holds unfinished jobs.
type NameTakenError struct {
	Instance string
	Engines  []store.EngineInfo
	Jobs     []stint.ID
}

// Error lists the first ten jobs and says how to free them.
func (e *NameTakenError) Error() string {
	const shown = 10
	ids := make([]string, 0, shown)
	for _, id := range e.Jobs[:min(shown, len(e.Jobs))] {
		ids = append(ids, id.String())
	}
	if more := len(e.Jobs) - shown; more > 0 {
		ids = append(ids, fmt.Sprintf("and %d more", more))
	}
	tokens := make([]string, len(e.Engines))
	for i, other := range e.Engines {
		tokens[i] = fmt.Sprint(other.Token)
	}
	return fmt.Sprintf("engine: the roster has an engine named %s already, with unfinished jobs: %s; bury it to have them run again: stint engines bury %s",
		e.Instance, strings.Join(ids, ", "), strings.Join(tokens, " "))
}

// checkName looks for engines of the same name that hold something.
func (e *Engine) checkName(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, longestJoin)
	defer cancel()
	roster, err := e.store.Engines(ctx)
	if err != nil {
		return err
	}
	taken := &NameTakenError{Instance: e.config.Instance}
	for _, other := range roster {
		if other.Instance != e.config.Instance {
			continue
		}
		claims, err := e.store.Held(ctx, other.Token, other.Low)
		if err != nil {
			return err
		}
		var at []store.Position
		for _, c := range claims {
			at = append(at, c.Positions...)
		}
		if len(at) == 0 {
			continue
		}
		entries, err := e.store.Fetch(ctx, at)
		if err != nil {
			return err
		}
		taken.Engines = append(taken.Engines, other)
		for _, entry := range entries {
			taken.Jobs = append(taken.Jobs, entry.ID)
		}
	}
	if taken.Engines == nil {
		return nil
	}
	slices.Sort(taken.Jobs)
	return taken
}
