package load

import (
	"math"
	"slices"
)

// Median is the middle of some figures of one kind, and what it is known to lie
// between.
type Median struct {
	Value float64 `json:"median"`

	// Low and High are two of the figures that the true median lies between with
	// a confidence of 95% or more, whatever the distribution; of fewer than six
	// figures none are, and both are 0.
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
}

// MedianOf tells the median of figures that were measured independently. The
// bounds are those of the sign test: so many figures from either end that as few
// heads or fewer come up with a chance of at most 2.5% when as many coins are
// tossed (W. J. Conover, Practical Nonparametric Statistics, 3.2). Of no figures
// it is zero.
func MedianOf(figures []float64) Median {
	n := len(figures)
	if n == 0 {
		return Median{}
	}
	all := slices.Sorted(slices.Values(figures))
	m := Median{Value: (all[(n-1)/2] + all[n/2]) / 2}
	outside := 0
	for chance := heads(n, 0); chance <= 0.025; chance += heads(n, outside) {
		outside++
	}
	if outside > 0 {
		m.Low, m.High = all[outside-1], all[n-outside]
	}
	return m
}

// heads is the chance that k of n coins show heads.
func heads(n, k int) float64 {
	ln := func(n int) float64 { f, _ := math.Lgamma(float64(n) + 1); return f } // of the factorial
	return math.Exp(ln(n) - ln(k) - ln(n-k) - float64(n)*math.Ln2)
}
