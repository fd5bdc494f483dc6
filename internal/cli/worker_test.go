package cli

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestTheMemoryLimitOfTheCommandIsGosTooUnlessItWasToldOtherwise(t *testing.T) {
	limit := debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() { debug.SetMemoryLimit(limit) })
	for _, c := range []struct {
		gomemlimit string
		limit      int64
	}{
		{"", (900 << 20) / 10 * 9},
		{"1GiB", math.MaxInt64}, // as Go itself has set it when the process began
	} {
		debug.SetMemoryLimit(math.MaxInt64)
		t.Setenv("GOMEMLIMIT", c.gomemlimit)
		f := engineFlags{}
		f.memory = 900 << 20
		f.limitGo()
		if limit := debug.SetMemoryLimit(-1); limit != c.limit {
			t.Errorf("with GOMEMLIMIT=%s it is %d, want %d", c.gomemlimit, limit, c.limit)
		}
	}
}

func TestAProgramOfGoRunIsTypedAsThat(t *testing.T) {
	for path, want := range map[string]bool{
		"/tmp/go-build1234/b001/exe/stint": true, "/root/.cache/go-build/5e/5e1f-d/stint": true, "/usr/local/bin/stint": false, "/home/ann/stint/stint": false,
	} {
		if got := madeByGoRun(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
