package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"time"
)

const memoryEvery = time.Second

// MemoryError says that an engine left because its process had grown beyond Config.MemoryLimit.
type MemoryError struct {
	Limit, Used int64 // bytes
}

// Error names both in MiB.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("engine: the process uses %s of memory, and its limit is %s", mebibytes(e.Used), mebibytes(e.Limit))
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// watchMemory measures the process until ctx ends, and drains the engine above the limit. Memory
// that only the garbage collector keeps does not count: it is released first.
func (e *Engine) watchMemory(ctx context.Context) {
	every(ctx, memoryEvery, func() {
		if residentMemory() <= e.config.MemoryLimit {
			return
		}
		debug.FreeOSMemory()
		if used := residentMemory(); used > e.config.MemoryLimit {
			e.Drain(&MemoryError{Limit: e.config.MemoryLimit, Used: used}) // which ends ctx
		}
	})
}

// residentMemory returns the bytes of the machine's memory that the process uses. On systems other
// than Linux it counts what Go has taken from the system and not given back.
func residentMemory() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if fields := bytes.Fields(text); err == nil && len(fields) > 1 {
		if pages, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
			return pages * int64(os.Getpagesize())
		}
	}
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
