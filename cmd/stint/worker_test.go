package main

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestAnEngineOfTheCommandKeepsLittleGarbageUnlessGoWasToldOtherwise(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) })
	for _, c := range []struct {
		gogc, gomemlimit string
		percent          int
		limit            int64
	}{
		{"", "", garbagePercent, (900 << 20) / 10 * 9},
		{"200", "1GiB", 100, math.MaxInt64}, // as Go itself has set it when the process began
	} {
		debug.SetGCPercent(100)
		debug.SetMemoryLimit(math.MaxInt64)
		t.Setenv("GOGC", c.gogc)
		t.Setenv("GOMEMLIMIT", c.gomemlimit)
		f := engineFlags{}
		f.memory = 900 << 20
		f.limitGo()
		if percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(-1); percent != c.percent || limit != c.limit {
			t.Errorf("with GOGC=%s and GOMEMLIMIT=%s they are %d and %d, want %d and %d", c.gogc, c.gomemlimit, percent, limit, c.percent, c.limit)
		}
	}
}
