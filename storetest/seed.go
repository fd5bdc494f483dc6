package storetest

import (
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"testing"
	"time"
)

var seedFlag = flag.Uint64("storetest.seed", 0, "seed of the randomised tests; 0 takes one from the clock")

// Seed is where the randomness of a test comes from.
type Seed uint64

// NewSeed takes the seed of a test from -storetest.seed or from the clock. A
// failing test prints it. With it each part of the test draws the same numbers
// again; how its goroutines are interleaved may still differ.
func NewSeed(t testing.TB) Seed {
	seed := Seed(*seedFlag)
	if seed == 0 {
		seed = Seed(time.Now().UnixNano())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("draw the same numbers again with -storetest.seed=%d", seed)
		}
	})
	return seed
}

// Rand is the randomness of one part of the test, for one goroutine.
func (s Seed) Rand(part string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(part)) // it never fails
	return rand.New(rand.NewPCG(uint64(s), h.Sum64()))
}
