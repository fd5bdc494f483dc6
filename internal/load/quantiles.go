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

// QuantilesOf uses the nearest rank: each figure is one that was measured. It
// sorts its argument.
func QuantilesOf(all []time.Duration) Quantiles {
	if len(all) == 0 {
		return Quantiles{}
	}
	slices.Sort(all)
	at := func(q float64) float64 {
		return inMS(all[max(0, int(math.Ceil(q*float64(len(all))))-1)])
	}
	return Quantiles{P50: at(0.50), P95: at(0.95), P99: at(0.99), Max: at(1)}
}

// inMS is a duration in milliseconds, to the microsecond.
func inMS(d time.Duration) float64 { return math.Round(float64(d)/float64(time.Microsecond)) / 1000 }

// over is how many times as long each figure is as another one's. Nothing is
// compared with nothing: that is 0.
func (q Quantiles) over(p Quantiles) Quantiles {
	ratio := func(a, b float64) float64 {
		if b == 0 {
			return 0
		}
		return a / b
	}
	return Quantiles{ratio(q.P50, p.P50), ratio(q.P95, p.P95), ratio(q.P99, p.P99), ratio(q.Max, p.Max)}
}
