package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// memoryEvery is how often the process is measured that has a limit.
const memoryEvery = time.Second

// MemoryError says that an engine left because its process had grown beyond
// Config.MemoryLimit.
type MemoryError struct {
	Limit, Used int64 // bytes
}

// Error says both.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("engine: the process uses %s of memory, and its limit is %s", mebibytes(e.Used), mebibytes(e.Limit))
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// watchMemory measures the process until ctx ends, and drains the engine when
// there is too much of it. What the garbage collector only keeps does not count:
// it gives that back first.
func (e *Engine) watchMemory(ctx context.Context) {
	tick := time.NewTicker(memoryEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if residentMemory() <= e.config.MemoryLimit {
			continue
		}
		debug.FreeOSMemory()
		if used := residentMemory(); used > e.config.MemoryLimit {
			e.Drain(&MemoryError{Limit: e.config.MemoryLimit, Used: used})
			return
		}
	}
}

// runtimeMemory is what Go has taken from the system and not given back.
func runtimeMemory() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
