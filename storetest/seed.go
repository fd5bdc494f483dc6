package storetest

import (
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"testing"
	"time"
)

var seedFlag = flag.Uint64("storetest.seed", 0, "seed of the randomised tests; 0 takes one from the clock")

// Rand returns the randomness of a part of a test. A failing test prints the
// seed that -storetest.seed takes to draw the same numbers again; what many
// goroutines make of them may still differ.
func Rand(t testing.TB, part string) *rand.Rand {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the randomness of %q was drawn with -storetest.seed=%d", part, seed)
		}
	})
	h := fnv.New64a()
	h.Write([]byte(part))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
