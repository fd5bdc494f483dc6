package sim

import (
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"time"
)

// dice are the random decisions of one thing in the simulation.
type dice struct{ *rand.Rand }

// roll makes the dice of the thing that a seed, a name and a number tell
// apart. The same three always make the same decisions, in whatever order
// things come to pass.
func roll(seed uint64, name string, n int) dice {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	_, _ = h.Write(strconv.AppendInt([]byte{0}, int64(n), 10))
	return dice{rand.New(rand.NewPCG(seed, h.Sum64()))}
}

// chance is true in p of 100 cases.
func (d dice) chance(p int) bool { return d.IntN(100) < p }

// between is a duration of the interval, to the nanosecond: two that end at the
// same instant by accident are as rare here as anywhere.
func (d dice) between(low, high time.Duration) time.Duration {
	return low + time.Duration(d.Int64N(int64(high-low)))
}
