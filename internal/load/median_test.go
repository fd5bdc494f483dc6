package load

import "testing"

func TestAMedianIsKnownToLieBetweenFigures(t *testing.T) {
	upTo := func(n int) (all []float64) {
		for i := n; i > 0; i-- {
			all = append(all, float64(i))
		}
		return all
	}
	for _, want := range []struct {
		n int
		Median
	}{
		{0, Median{}},
		{1, Median{Value: 1}},
		{4, Median{Value: 2.5}},
		{5, Median{Value: 3}},
		{6, Median{3.5, 1, 6}},
		{9, Median{5, 2, 8}},
		{30, Median{15.5, 10, 21}},
		{100, Median{50.5, 40, 61}},
		{2000, Median{1000.5, 956, 1045}},
	} {
		if got := MedianOf(upTo(want.n)); got != want.Median {
			t.Errorf("of %d: got %+v, want %+v", want.n, got, want.Median)
		}
	}
}
