package load

import (
	"math"
	"slices"
	"time"
)

// Quantiles are figures of one distribution, in milliseconds.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// quantiles uses the nearest rank: each figure is one that was measured. It
// sorts its argument.
func quantiles(all []time.Duration) Quantiles {
	if len(all) == 0 {
		return Quantiles{}
	}
	slices.Sort(all)
	at := func(q float64) float64 {
		i := max(0, int(math.Ceil(q*float64(len(all))))-1)
		return math.Round(float64(all[i])/float64(time.Microsecond)) / 1000
	}
	return Quantiles{P50: at(0.50), P95: at(0.95), P99: at(0.99), Max: at(1)}
}
