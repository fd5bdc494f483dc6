package report

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestAHistogramCountsFromEachBoundToTheNext(t *testing.T) {
	if n := len(HistogramBounds); n != 91 || HistogramBounds[0] != 100*time.Microsecond || HistogramBounds[10] != time.Millisecond || HistogramBounds[90] != 100_000*time.Second {
		t.Fatalf("%d bounds: %v", n, HistogramBounds)
	}
	for _, c := range []struct {
		took time.Duration
		at   int
	}{
		{0, 0}, {99 * time.Microsecond, 0}, {100 * time.Microsecond, 1}, {125 * time.Microsecond, 1}, {126 * time.Microsecond, 2},
		{time.Second - time.Microsecond, 40}, {time.Second, 41}, {100_000 * time.Second, 91}, {math.MaxInt64, 91},
	} {
		var h Histogram
		h.Add(c.took)
		if len(h) != c.at+1 || h[c.at] != 1 || h.Count() != 1 {
			t.Errorf("%v is counted as %v, want one at %d", c.took, h, c.at)
		}
	}
}

func TestHistogramsAddUpAndStayAsTheyAre(t *testing.T) {
	a, b := Histogram{1, 2}, Histogram{0, 1, 5}
	if got := a.Plus(b); !slices.Equal(got, Histogram{1, 3, 5}) || !slices.Equal(b.Plus(a), got) {
		t.Errorf("%v and %v are %v", a, b, got)
	}
	sum := Histogram(nil).Plus(b)
	sum.Add(0)
	if !slices.Equal(a, Histogram{1, 2}) || !slices.Equal(b, Histogram{0, 1, 5}) || !slices.Equal(a.Plus(nil), a) {
		t.Errorf("they have become %v and %v", a, b)
	}
}

// Whatever the distribution, a percentile is near the one that really occurred.
func TestPercentilesOfHistogramsAreNearTheRealOnes(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	for name, draw := range map[string]func() float64{
		"log-normal": func() float64 { return math.Exp(dice.NormFloat64()*1.5) * 2e7 },
		"even":       func() float64 { return 1e6 + dice.Float64()*1e9 },
		"two humps":  func() float64 { return []float64{3e6, 4e8}[dice.IntN(2)] * (1 + dice.Float64()/5) },
		"one value":  func() float64 { return 42e6 },
	} {
		for _, n := range []int{1, 7, 1000, 20_000} {
			var h Histogram
			all := make([]time.Duration, n)
			for i := range all {
				all[i] = time.Duration(draw()).Truncate(time.Microsecond)
				h.Add(all[i])
			}
			real := PercentilesOf(all)
			for p, want := range map[int]time.Duration{50: real.P50, 95: real.P95, 99: real.P99} {
				if got := h.Percentile(p); math.Abs(math.Log(float64(got)/float64(want))) > math.Log(1.26) {
					t.Errorf("%s, %d of them: percentile %d is %v, want about %v", name, n, p, got, want)
				}
			}
		}
	}
	if got := (Histogram{}).Percentile(50); got != 0 {
		t.Errorf("of none it is %v", got)
	}
	var long Histogram
	long.Add(1e6 * time.Second)
	if got := long.Percentile(50); got != 100_000*time.Second {
		t.Errorf("of what is longer than all bounds it is %v", got)
	}
}

func TestADistributionKeepsToTheFastestAndTheLongest(t *testing.T) {
	var s Totals
	if a, b := s.Distribution(); a != nil || b != nil {
		t.Errorf("of none there are %v and %v", a, b)
	}
	for range 3 {
		s.Ran(42*time.Millisecond, time.Second, time.Now())
	}
	took, waited := s.Distribution()
	if ms := 42 * time.Millisecond; *took != (Percentiles{ms, ms, ms, ms}) || waited.Mean != time.Second || waited.P95 < 999*time.Millisecond || waited.P95 > 1260*time.Millisecond {
		t.Errorf("they are %v and %v", took, waited)
	}
}
